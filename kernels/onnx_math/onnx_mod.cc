// Remainders, quotients and powers in ONNX's sense.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/base/check.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/onnx/broadcast_rows.h"
#include "kernels/onnx/element_types.h"

namespace heddle {
namespace {

Status OnnxAbShape(ShapeContext& ctx) {
  if (ctx.InDType("A") != ctx.InDType("B"))
    return InvalidArgument("A is ", Name(ctx.InDType("A")), ", B ", Name(ctx.InDType("B")),
                           ", expected one dtype");
  return BroadcastPair(ctx, "A", "B", "C");
}

template <typename T>
Status NoZeroIn(const Tensor& b) {
  const T* v = b.data<T>();
  for (const auto part : Stretches(b.numel()))
    for (int64_t i = part.begin; i < part.end; ++i)
      if (v[i] == 0)
        return InvalidArgument("B holds 0 at position ", i, ", integers are not divided by it");
  return Status::Ok();
}

// The remainder of a truncated quotient has the sign of the dividend, that of a floored one the
// divisor's. The divisor of integers is not 0.
template <typename T>
T Remainder(T a, T b, bool truncated) {
  if constexpr (std::is_integral_v<T>) {
    if constexpr (std::is_signed_v<T>)
      if (b == T(-1)) return 0;  // least / -1 overflows
    const T r = static_cast<T>(a % b);
    return !truncated && r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
  } else {
    const T r = std::fmod(a, b);
    if (truncated) return r;
    if (r == 0) return std::copysign(T(0), b);
    return (r < 0) != (b < 0) ? r + b : r;
  }
}

template <typename T>
struct OnnxMod {
  static Status Run(KernelContext& ctx) {
    const Tensor &a = ctx.In("A"), &b = ctx.In("B");
    HEDDLE_ASSIGN_OR_RETURN(const BroadcastPlan plan, MakeBroadcastPlan(a.shape(), b.shape(), -1));
    const bool truncated = ctx.Int("fmod") != 0;
    T* to = ctx.Out("C").template mutable_data<T>();
    if constexpr (std::is_integral_v<T>) HEDDLE_RETURN_IF_ERROR(NoZeroIn<T>(b));
    if constexpr (std::is_same_v<T, int64_t>) {
      HEDDLE_ASSIGN_OR_RETURN(const ElementType type, StoredAs(ctx.Int("elem_type"), a.dtype()));
      if (type == ElementType::kUint64) {
        ForEachPair(ctx, plan, a.data<T>(), b.data<T>(), to, [](T x, T y) {
          return static_cast<T>(static_cast<uint64_t>(x) % static_cast<uint64_t>(y));
        });
        return Status::Ok();
      }
    }
    ForEachPair(ctx, plan, a.data<T>(), b.data<T>(), to,
                [truncated](T x, T y) { return Remainder(x, y, truncated); });
    return Status::Ok();
  }
};

// Integers are cut towards zero.
template <typename T>
struct OnnxDiv {
  static Status Run(KernelContext& ctx) {
    const Tensor &a = ctx.In("A"), &b = ctx.In("B");
    HEDDLE_ASSIGN_OR_RETURN(const BroadcastPlan plan, MakeBroadcastPlan(a.shape(), b.shape(), -1));
    T* to = ctx.Out("C").template mutable_data<T>();
    if constexpr (std::is_integral_v<T>) HEDDLE_RETURN_IF_ERROR(NoZeroIn<T>(b));
    if constexpr (std::is_same_v<T, int64_t>) {
      HEDDLE_ASSIGN_OR_RETURN(const ElementType type, StoredAs(ctx.Int("elem_type"), a.dtype()));
      if (type == ElementType::kUint64) {
        ForEachPair(ctx, plan, a.data<T>(), b.data<T>(), to, [](T x, T y) {
          return static_cast<T>(static_cast<uint64_t>(x) / static_cast<uint64_t>(y));
        });
        return Status::Ok();
      }
    }
    ForEachPair(ctx, plan, a.data<T>(), b.data<T>(), to,
                [](T x, T y) { return DivFn::Apply(x, y); });
    return Status::Ok();
  }
};

// A power in double, converted back: what does not fit becomes the least integer.
template <typename T>
T PowerInDouble(T base, double exponent) {
  return ConvertTo<T>(std::pow(static_cast<double>(base), exponent));
}

// The result has the base's type. Integers are powers in double, but for squares and cubes, where
// all exponents are one number: those are products, which wrap.
template <typename T>
struct OnnxPow {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &y = ctx.In("Y");
    HEDDLE_ASSIGN_OR_RETURN(const BroadcastPlan plan, MakeBroadcastPlan(x.shape(), y.shape(), -1));
    T* to = ctx.Out("Z").template mutable_data<T>();
    using Exponent = std::conditional_t<std::is_same_v<T, float>, float, double>;
    constexpr DType kWide = kDTypeOf<Exponent>;
    Tensor exponents = y;
    if (y.dtype() != kWide) {
      exponents = ctx.Scratch(kWide, y.shape());
      ConvertElements(ctx, y.raw(), y.dtype(), exponents.mutable_raw(), kWide, y.numel());
    }
    const Exponent* e = exponents.data<Exponent>();
    if constexpr (std::is_integral_v<T>) {
      if (y.numel() == 1 && (*e == 2 || *e == 3)) {
        const bool cube = *e == 3;
        ForEachPair(ctx, plan, x.data<T>(), e, to, [cube](T a, Exponent) {
          const T square = MulFn::Apply(a, a);
          return cube ? MulFn::Apply(square, a) : square;
        });
      } else {
        ForEachPair(ctx, plan, x.data<T>(), e, to, &PowerInDouble<T>);
      }
    } else {
      ForEachPair(ctx, plan, x.data<T>(), e, to, [](T a, T b) { return std::pow(a, b); });
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_mod) {
  op.Doc("remainders with the divisor's sign, or (fmod) the dividend's").Input("A").Input("B");
  op.Output("C").Attr("fmod", 0).Attr("elem_type", 0).InferShape(OnnxAbShape);
  op.Kernels<OnnxMod, float, double, uint8_t, int8_t, int16_t, int32_t, int64_t>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(onnx_div) {
  op.Doc("A / B; integers are cut towards zero").Input("A").Input("B").Output("C");
  op.Attr("elem_type", 0).InferShape(OnnxAbShape);
  op.Kernels<OnnxDiv, float, double, uint8_t, int8_t, int16_t, int32_t, int64_t>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(onnx_pow) {
  op.Doc("X to the power of Y, of whatever dtype, in the dtype of X");
  op.Input("X").Input("Y").Output("Z");
  op.InferShape([](ShapeContext& ctx) { return BroadcastPair(ctx, "X", "Y", "Z"); });
  op.Kernels<OnnxPow, float, double, int32_t, int64_t>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}

HEDDLE_EXAMPLES(onnx_mod, R"(
example integers, the divisor's sign
in A int32 [6] -4 7 5 4 -7 8
in B int32 [6] 2 -3 8 -2 3 5
out C int32 [6] 0 -2 5 0 2 3

example floats, the dividend's sign
attr fmod INT 1
in A float32 [2, 3] -4.3 7.2 5 4.3 -7.2 8
in B float32 [3] 2.1 -3.4 8
out C float32 [2, 3] -0.10000038 0.39999962 5 0.10000038 -0.39999962 0

example integers, the dividend's sign
attr fmod INT 1
in A int64 [2, 1] -7 7
in B int64 [2] 2 -2
out C int64 [2, 2] -1 -1 1 1
)")
HEDDLE_EXAMPLES(onnx_div, R"(
example integers
in A int32 [2, 2] -7 7 -8 9
in B int32 [2] 2 -2
out C int32 [2, 2] -3 -3 -4 -4

example floats
dtypes none: integers are not divided by 0
in A float32 [3] 1 -1 0
in B float32 [] 0
out C float32 [3] inf -inf nan
)")
HEDDLE_EXAMPLES(onnx_pow, R"(
example integers, more than fits
dtypes none: what fits depends on the dtype
in X int32 [6] 3 -3 2 0 -2147483648 5
in Y int64 [6] 20 25 31 -1 2 13
out Z int32 [6] -2147483648*5 1220703125

example squares of integers, more than fits
dtypes none: what fits depends on the dtype
in X int32 [5] 65537 -2147483648 46341 3 -7
in Y int64 [1] 2
out Z int32 [5] 131073 0 -2147479015 9 49

example cubes of integers, more than fits
dtypes none: what fits depends on the dtype
in X int64 [5] 3000001 -2147483648 9223372036854775807 3 -7
in Y float32 [] 3
out Z int64 [5] 8553282926299448385 0 9223372036854775807 27 -343

example fourth powers of integers, more than fits
dtypes none: what fits depends on the dtype
in X int64 [5] 65537 -2147483648 9223372036854775807 3 -7
in Y int32 [] 4
out Z int64 [5] -9223372036854775808 -9223372036854775808 -9223372036854775808 81 2401

example floats
in X float32 [2, 2] 1.5 2 3 4
in Y float32 [2] 2 -0.5
out Z float32 [2, 2] 2.25 0.70710677 9 0.5

example an integer to a broken power
dtypes none: the result is cut
in X int32 [3] 2 3 4
in Y float32 [3] 0.5 1.5 2
out Z int32 [3] 1 5 16

example an integer to a negative power
in X int64 [5] 3 2 1 -1 -2
in Y int64 [5] -1 3 -7 -3 3
out Z int64 [5] 0 8 1 -1 -8

example a float to an integral power
in X float32 [3] -2 0.5 3
in Y int64 [3] 3 -1 0
out Z float32 [3] -8 2 1
)")
