// The libraries behind Gemm, for large products. Used by gemm.cc alone.
#pragma once

#include "kernels/gemm/gemm.h"

namespace heddle {

// On the calling thread, cache-blocked. T: float, double.
template <typename T>
void LargeGemm(const GemmDims& d, T alpha, const T* a, const T* b, T beta, T* c);
template <>
void LargeGemm<float>(const GemmDims& d, float alpha, const float* a, const float* b, float beta,
                      float* c);
template <>
void LargeGemm<double>(const GemmDims& d, double alpha, const double* a, const double* b,
                       double beta, double* c);

// Sums may be cut at multiples of this and added part by part: the bits are the same, since the
// library cuts them so itself (except in products with a vector). The last part must have at least
// as many terms.
template <typename T>
int64_t SumStep();
template <>
int64_t SumStep<float>();
template <>
int64_t SumStep<double>();

// On all threads of the run, by a library that shares them; false when there is none.
bool LibraryGemm(const GemmDims& d, float alpha, const float* a, const float* b, float beta,
                 float* c);

}  // namespace heddle
