// Eigenvalues by Eigen's solvers, between whose steps a run can be ended. Matrices are square, by
// columns.
#pragma once

#include <complex>
#include <cstdint>

namespace heddle {

// Of the Hermitian matrix whose lower triangle `a` holds: n eigenvalues in ascending order, and
// eigenvectors unless `vectors` is null. False if the iteration did not converge. T: double,
// std::complex<double>.
template <typename T>
bool HermitianEigen(const T* a, int64_t n, double* values, T* vectors);

// The same of any matrix.
template <typename T>
bool GeneralEigen(const T* a, int64_t n, std::complex<double>* values,
                  std::complex<double>* vectors);

}  // namespace heddle
