#include "kernels/linalg/linalg_eigen.h"

#include <complex>

#include "kernels/linalg/linalg_solvers.h"

namespace heddle {

template <typename T>
bool SelfAdjointEigen(const Columns<T>& a, Eigen::VectorXd& values, Columns<T>* vectors) {
  values.resize(a.rows());
  if (vectors != nullptr) vectors->resize(a.rows(), a.rows());
  return HermitianEigen<T>(a.data(), a.rows(), values.data(),
                           vectors != nullptr ? vectors->data() : nullptr);
}

template bool SelfAdjointEigen<double>(const Columns<double>&, Eigen::VectorXd&, Columns<double>*);
template bool SelfAdjointEigen<std::complex<double>>(const Columns<std::complex<double>>&,
                                                     Eigen::VectorXd&,
                                                     Columns<std::complex<double>>*);

}  // namespace heddle
