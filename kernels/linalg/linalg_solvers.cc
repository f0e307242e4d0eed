#include "kernels/linalg/linalg_solvers.h"

#include "core/interrupts.h"

// Eigen's own checks are where its solvers can be left: they stand in every step, and what the
// solvers hold is given back when one of them throws. The namespace is renamed so that no other
// source's instances are linked with these.
#define Eigen EigenWithLooks
#define eigen_assert(condition) ::heddle::LookForInterrupt()

#include <Eigen/Eigenvalues>
#include <type_traits>

namespace heddle {
namespace {

template <typename T>
using Square = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;

// Eigenvalues and eigenvectors of a solver to memory.
template <typename Solver, typename V, typename W>
bool Give(const Solver& solver, int64_t n, V* values, W* vectors) {
  if (solver.info() != Eigen::Success) return false;
  Eigen::Map<Eigen::Matrix<V, Eigen::Dynamic, 1>>(values, n) = solver.eigenvalues();
  if (vectors != nullptr) Eigen::Map<Square<W>>(vectors, n, n) = solver.eigenvectors();
  return true;
}

}  // namespace

template <typename T>
bool HermitianEigen(const T* a, int64_t n, double* values, T* vectors) {
  const Eigen::SelfAdjointEigenSolver<Square<T>> solver(
      Eigen::Map<const Square<T>>(a, n, n),
      vectors != nullptr ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
  return Give(solver, n, values, vectors);
}

template <typename T>
bool GeneralEigen(const T* a, int64_t n, std::complex<double>* values,
                  std::complex<double>* vectors) {
  using Solver = std::conditional_t<std::is_same_v<T, double>, Eigen::EigenSolver<Square<double>>,
                                    Eigen::ComplexEigenSolver<Square<std::complex<double>>>>;
  const Solver solver(Eigen::Map<const Square<T>>(a, n, n), vectors != nullptr);
  return Give(solver, n, values, vectors);
}

template bool HermitianEigen<double>(const double*, int64_t, double*, double*);
template bool HermitianEigen<std::complex<double>>(const std::complex<double>*, int64_t, double*,
                                                   std::complex<double>*);
template bool GeneralEigen<double>(const double*, int64_t, std::complex<double>*,
                                   std::complex<double>*);
template bool GeneralEigen<std::complex<double>>(const std::complex<double>*, int64_t,
                                                 std::complex<double>*, std::complex<double>*);

}  // namespace heddle
