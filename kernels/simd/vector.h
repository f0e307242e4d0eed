// Vectors of the compiler: plain types that it maps to whatever registers the flags of the source
// allow. Code that needs no more than the kernels' base instruction set uses them directly, without
// the table of microkernels.
//
// Functions take vectors by value and are always inlined: a call would depend on the instruction
// set.
#pragma once

#include <cstring>

#define HEDDLE_SIMD_INLINE inline __attribute__((always_inline))

namespace heddle::simd {

// kBytes bytes as elements of type T.
template <typename T, int kBytes>
struct VectorTypes {
  typedef T Aligned __attribute__((vector_size(kBytes)));
  // For access through a pointer to elements of any type, at any address.
  typedef T Unaligned __attribute__((vector_size(kBytes), aligned(1), may_alias));
};
template <typename T, int kBytes>
using VectorOf = typename VectorTypes<T, kBytes>::Aligned;
template <typename T, int kBytes>
using UnalignedVectorOf = typename VectorTypes<T, kBytes>::Unaligned;

#if defined(__AVX__)
constexpr int kBaseVectorBytes = 32;
#else
constexpr int kBaseVectorBytes = 16;
#endif

// The operations of a vector that gemm_tile.h needs.
template <typename E, int kCount>
struct BaseVector {
  using Element = E;
  using T = VectorOf<E, static_cast<int>(sizeof(E)) * kCount>;
  static constexpr int kLanes = kCount;

  static HEDDLE_SIMD_INLINE T Zero() { return T{}; }
  static HEDDLE_SIMD_INLINE T Set(E x) { return T{} + x; }
  static HEDDLE_SIMD_INLINE T Load(const E* p) {
    T v;
    std::memcpy(&v, p, sizeof(T));
    return v;
  }
  static HEDDLE_SIMD_INLINE void Store(E* p, T v) { std::memcpy(p, &v, sizeof(T)); }
  static HEDDLE_SIMD_INLINE T Fma(T a, T b, T c) { return a * b + c; }
};

}  // namespace heddle::simd
