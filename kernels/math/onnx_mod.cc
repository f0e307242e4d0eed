// Remainders, quotients and powers in ONNX's sense.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/base/check.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/operands/broadcast_rows.h"
#include "kernels/operands/element_types.h"

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
