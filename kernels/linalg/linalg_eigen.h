// Eigenvalues of symmetric and Hermitian matrices, in double precision.
#pragma once

#include <Eigen/Core>

namespace heddle {

template <typename T>
using Columns = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;

// Of the matrix whose lower triangle `a` holds: its eigenvalues in ascending order, and unless that
// is null its eigenvectors as columns. False where they did not converge. T: double,
// std::complex<double>.
template <typename T>
bool SelfAdjointEigen(const Columns<T>& a, Eigen::VectorXd& values, Columns<T>* vectors);

}  // namespace heddle
