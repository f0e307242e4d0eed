// Conversion between element types and filling with one value, for whatever dtypes the tensors
// have.
#pragma once

#include <limits>
#include <type_traits>

#include "core/dtype_of.h"
#include "core/kernel_context.h"
#include "kernels/simd/fast_math.h"

namespace heddle {

// Paddle's cast: floats are cut towards zero; what no 32-bit (for int64: 64-bit) integer
// can hold, NaN included, gives its smallest value, and narrower integers keep the low bits of
// that; complex numbers lose their imaginary part; everything but zero is true.
template <typename To, typename From>
To ConvertTo(From v) {
  if constexpr (std::is_same_v<To, From>) {
    return v;
  } else if constexpr (kIsComplex<From>) {
    if constexpr (kIsComplex<To>)
      return To(static_cast<typename To::value_type>(v.real()),
                static_cast<typename To::value_type>(v.imag()));
    else if constexpr (std::is_same_v<To, bool>)
      return v.real() != 0 || v.imag() != 0;
    else
      return ConvertTo<To>(v.real());
  } else if constexpr (kIsComplex<To>) {
    return To(ConvertTo<typename To::value_type>(v), 0);
  } else if constexpr (!std::is_same_v<From, ComputeType<From>>) {
    return ConvertTo<To>(static_cast<float>(v));
  } else if constexpr (!std::is_same_v<To, ComputeType<To>>) {
    return To(static_cast<float>(v));
  } else if constexpr (std::is_same_v<To, bool>) {
    return v != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    using Wide = std::conditional_t<sizeof(To) == 8, int64_t, int32_t>;
    constexpr From kLimit = sizeof(To) == 8 ? From(9223372036854775808.0) : From(2147483648.0);
    const bool fits = v >= -kLimit && v < kLimit;
    const auto whole = static_cast<Wide>(fast::Select(fits, v, From(0)));
    return static_cast<To>(fits ? whole : std::numeric_limits<Wide>::min());
  } else {
    return static_cast<To>(v);
  }
}

// The first argument of fn is TypeTag<T> of `dtype`; false when the dtype is unknown.
template <typename Fn>
bool VisitAnyDType(DType dtype, Fn&& fn) {
  return VisitDType<bool, uint8_t, int8_t, int16_t, int32_t, int64_t, float16, bfloat16, float,
                    double, std::complex<float>, std::complex<double>>(dtype, fn);
}

// dst[i] = src[i] for n elements; both dtypes known. Splits large work over the run's threads.
void ConvertElements(const KernelContext& ctx, const void* src, DType from, void* dst, DType to,
                     int64_t n);

// The only element of `t`, of any dtype.
double ScalarOf(const Tensor& t);

// Every element of `out`, whose dtype is known, becomes `value`.
void FillElements(const KernelContext& ctx, Tensor& out, double value);

// Copies n bytes unless the two are the same memory.
void CopyBytes(const KernelContext& ctx, void* dst, const void* src, int64_t n);

// Makes output `out` selected rows with the rows of `in` and a new value of `in`'s shape.
SelectedRows& AllocRowsLike(const KernelContext& ctx, const SelectedRows& in, Value& out);

// `t` converted to fp16 in scratch memory, LoD included; dtypes other than float32 and float64 are
// returned as they are.
inline Tensor ToFp16(const KernelContext& ctx, const Tensor& t) {
  if (t.dtype() != DType::kF32 && t.dtype() != DType::kF64) return t;
  Tensor half = ctx.Scratch(DType::kF16, t.shape());
  ConvertElements(ctx, t.raw(), t.dtype(), half.mutable_raw(), half.dtype(), t.numel());
  if (t.has_lod()) half.set_lod(t.lod());
  return half;
}

// The kernel of 16-bit floats: runs that for float with operands of those dtypes converted, and
// converts the results. What the operator's Prepare step made must be meant for floats.
Status RunInFloat(KernelContext& ctx);

}  // namespace heddle
