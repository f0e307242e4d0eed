// Eigenvalues of symmetric and Hermitian matrices, in double precision.
#pragma once

#include <Eigen/Core>

namespace heddle {

template <typename T>
using Columns = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;

// Eigenvalues in ascending order of the matrix whose lower triangle `a` holds, and its eigenvectors
// as columns unless `vectors` is null. False if the iteration did not converge. T: double,
// std::complex<double>.
template <typename T>
bool SelfAdjointEigen(const Columns<T>& a, Eigen::VectorXd& values, Columns<T>* vectors);

}  // namespace heddle
