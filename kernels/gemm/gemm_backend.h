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

// On all threads of the run, by a library that shares them; false when there is none for T.
template <typename T>
bool LibraryGemm(const GemmDims&, T, const T*, const T*, T, T*) {
  return false;
}
template <>
bool LibraryGemm<float>(const GemmDims& d, float alpha, const float* a, const float* b, float beta,
                        float* c);

}  // namespace heddle
