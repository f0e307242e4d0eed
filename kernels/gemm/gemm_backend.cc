#include "kernels/gemm/gemm_backend.h"

#include <Eigen/Core>

#ifdef HEDDLE_WITH_ONEDNN
#include "kernels/gemm/onednn.h"
#endif

namespace heddle {
namespace {

template <typename T>
using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <typename T>
using ConstView = Eigen::Map<const RowMajor<T>, 0, Eigen::OuterStride<>>;
template <typename T>
using View = Eigen::Map<RowMajor<T>, 0, Eigen::OuterStride<>>;

template <typename T>
void EigenGemm(const GemmDims& d, T alpha, const T* a, const T* b, T beta, T* c) {
  View<T> out(c, d.m, d.n, Eigen::OuterStride<>(d.ldc));
  if (beta == T(0))
    out.setZero();
  else if (beta != T(1))
    out *= beta;
  const ConstView<T> left(a, d.trans_a ? d.k : d.m, d.trans_a ? d.m : d.k,
                          Eigen::OuterStride<>(d.lda));
  const ConstView<T> right(b, d.trans_b ? d.n : d.k, d.trans_b ? d.k : d.n,
                           Eigen::OuterStride<>(d.ldb));
  if (d.trans_a && d.trans_b)
    out.noalias() += alpha * left.transpose() * right.transpose();
  else if (d.trans_a)
    out.noalias() += alpha * left.transpose() * right;
  else if (d.trans_b)
    out.noalias() += alpha * left * right.transpose();
  else
    out.noalias() += alpha * left * right;
}

// The terms of a sum that Eigen takes together, which are the same number for all long sums.
template <typename T>
int64_t EigenSumStep() {
  constexpr int64_t kTogether = 48;
  Eigen::Index k = Eigen::Index{1} << 24, m = 64, n = 64;
  Eigen::internal::computeProductBlockingSizes<T, T>(k, m, n, Eigen::Index{1});
  return kTogether * k;
}

}  // namespace

template <>
int64_t SumStep<double>() {
  return EigenSumStep<double>();
}

template <>
void LargeGemm<double>(const GemmDims& d, double alpha, const double* a, const double* b,
                       double beta, double* c) {
  EigenGemm(d, alpha, a, b, beta, c);
}

#ifdef HEDDLE_WITH_ONEDNN

template <>
void LargeGemm<float>(const GemmDims& d, float alpha, const float* a, const float* b, float beta,
                      float* c) {
  if (!LibraryGemm(d, alpha, a, b, beta, c)) EigenGemm(d, alpha, a, b, beta, c);
}

template <>
int64_t SumStep<float>() {
  constexpr int64_t kOnednnTerms = 384;
  return 32 * kOnednnTerms;
}

bool LibraryGemm(const GemmDims& d, float alpha, const float* a, const float* b, float beta,
                 float* c) {
  return onednn::Sgemm(d, alpha, a, b, beta, c);
}

#else

template <>
int64_t SumStep<float>() {
  return EigenSumStep<float>();
}

template <>
void LargeGemm<float>(const GemmDims& d, float alpha, const float* a, const float* b, float beta,
                      float* c) {
  EigenGemm(d, alpha, a, b, beta, c);
}

bool LibraryGemm(const GemmDims&, float, const float*, const float*, float, float*) {
  return false;
}

#endif

}  // namespace heddle
