// Real numbers of three types in memory, float32 in registers: kernels read and write float16 and
// bfloat16 and compute in float32, as the host's kernels do.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/dtype_of.h"
#include "core/error.h"
#include "device/cuda/grid/grid_body.h"
#include "heddle/tensor.h"

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

namespace heddle::HEDDLE_GRID {

HEDDLE_BODY inline float LoadReal(float x) { return x; }
HEDDLE_BODY inline float LoadReal(float16 x) {
#ifdef __CUDA_ARCH__
  return __half2float(__ushort_as_half(x.bits));
#else
  return static_cast<float>(x);
#endif
}
HEDDLE_BODY inline float LoadReal(bfloat16 x) {
#ifdef __CUDA_ARCH__
  return __uint_as_float(static_cast<unsigned>(x.bits) << 16);
#else
  return static_cast<float>(x);
#endif
}

// To the nearest number of the type, of two equally near ones to the even one.
HEDDLE_BODY inline void StoreReal(float x, float* to) { *to = x; }
HEDDLE_BODY inline void StoreReal(float x, float16* to) {
#ifdef __CUDA_ARCH__
  to->bits = __half_as_ushort(__float2half_rn(x));
#else
  *to = static_cast<float16>(x);
#endif
}
HEDDLE_BODY inline void StoreReal(float x, bfloat16* to) {
#ifdef __CUDA_ARCH__
  to->bits = __bfloat16_as_ushort(__float2bfloat16_rn(x));
#else
  *to = static_cast<bfloat16>(x);
#endif
}

// The number to compute with: itself, but for the 16-bit types.
template <typename T>
HEDDLE_BODY ComputeType<T> ValueOf(T x) {
  if constexpr (std::is_same_v<T, ComputeType<T>>)
    return x;
  else
    return LoadReal(x);
}
template <typename T>
HEDDLE_BODY void Put(ComputeType<T> x, T* to) {
  if constexpr (std::is_same_v<T, ComputeType<T>>)
    *to = x;
  else
    StoreReal(x, to);
}

// Elements in memory, used like pointers to float.
template <typename T>
struct RealIn {
  const T* p = nullptr;
  HEDDLE_BODY float operator[](int64_t i) const { return LoadReal(p[i]); }
  HEDDLE_BODY RealIn operator+(int64_t n) const { return {p + n}; }
  HEDDLE_BODY bool there() const { return p != nullptr; }
};
template <typename T>
struct RealOut {
  T* p = nullptr;
  struct Element {
    T* at;
    HEDDLE_BODY void operator=(float x) const { StoreReal(x, at); }
    HEDDLE_BODY operator float() const { return LoadReal(*at); }  // NOLINT
  };
  HEDDLE_BODY Element operator[](int64_t i) const { return {p + i}; }
  HEDDLE_BODY RealOut operator+(int64_t n) const { return {p + n}; }
};

template <typename T>
RealIn<T> ReadOf(const Tensor& t) {
  return {t.data<T>()};
}
template <typename T>
RealIn<T> ReadOr(const Tensor* t) {  // `t` may be null
  return {t != nullptr ? t->data<T>() : nullptr};
}
template <typename T>
RealOut<T> WriteOf(Tensor& t) {
  return {t.mutable_data<T>()};
}

// An operand whose type the kernel does not depend on, as norms' scales: float32, or that of the
// other operands.
struct AnyReal {
  const void* p = nullptr;
  DType dtype = DType::kF32;

  AnyReal() = default;
  explicit AnyReal(const Tensor* t)
      : p(t != nullptr ? t->raw() : nullptr), dtype(t != nullptr ? t->dtype() : DType::kF32) {}
  HEDDLE_BODY bool there() const { return p != nullptr; }
  HEDDLE_BODY float operator[](int64_t i) const {
    if (dtype == DType::kF16) return LoadReal(static_cast<const float16*>(p)[i]);
    if (dtype == DType::kBF16) return LoadReal(static_cast<const bfloat16*>(p)[i]);
    return static_cast<const float*>(p)[i];
  }
};

inline bool IsHalf(DType t) { return t == DType::kF16 || t == DType::kBF16; }
inline bool IsReal(DType t) { return t == DType::kF32 || IsHalf(t); }

// fn(TypeTag<T>()) for the type of real numbers.
template <typename Fn>
Status VisitReal(DType dtype, Fn&& fn) {
  switch (dtype) {
    case DType::kF32:
      return fn(TypeTag<float>{});
    case DType::kF16:
      return fn(TypeTag<float16>{});
    case DType::kBF16:
      return fn(TypeTag<bfloat16>{});
    default:
      return Unimplemented("no CUDA kernel for ", Name(dtype));
  }
}

}  // namespace heddle::HEDDLE_GRID
