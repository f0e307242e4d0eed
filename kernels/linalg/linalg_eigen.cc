#include "kernels/linalg/linalg_eigen.h"

#include <Eigen/Eigenvalues>
#include <complex>

namespace heddle {

template <typename T>
bool SelfAdjointEigen(const Columns<T>& a, Eigen::VectorXd& values, Columns<T>* vectors) {
  const Eigen::SelfAdjointEigenSolver<Columns<T>> solver(
      a, vectors != nullptr ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
  values = solver.eigenvalues();
  if (solver.info() != Eigen::Success) return false;
  if (vectors != nullptr) *vectors = solver.eigenvectors();
  return true;
}

template bool SelfAdjointEigen<double>(const Columns<double>&, Eigen::VectorXd&, Columns<double>*);
template bool SelfAdjointEigen<std::complex<double>>(const Columns<std::complex<double>>&,
                                                     Eigen::VectorXd&,
                                                     Columns<std::complex<double>>*);

}  // namespace heddle
