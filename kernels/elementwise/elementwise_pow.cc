#include <cmath>

#include "core/interrupts.h"
#include "kernels/base/convert.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/elementwise/binary_grad.h"
#include "kernels/elementwise/tile_loop.h"
#include "kernels/operands/broadcast_rows.h"

namespace heddle {
namespace {

struct PowFn {
  static constexpr int64_t kGrain = kHeavyGrain;
  template <typename T>
  static T Apply(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return ConvertTo<T>(std::pow(static_cast<double>(a), static_cast<double>(b)));
    else
      return b == T(2) ? a * a : std::pow(a, b);
  }
};

// Integers wrap; the exponent is not negative.
struct WrappingPowFn {
  static constexpr int64_t kGrain = kHeavyGrain;
  template <typename T>
  static T Apply(T base, T exponent) {
    uint64_t power = 1, square = static_cast<uint64_t>(base);
    for (auto e = static_cast<uint64_t>(exponent); e > 0; e >>= 1) {
      if ((e & 1) != 0) power *= square;
      square *= square;
    }
    return static_cast<T>(power);
  }
};

template <typename T>
Status NoNegativePower(const Tensor& y) {
  if constexpr (std::is_signed_v<T>)
    for (const int64_t i : Watched(y.dtype() == kDTypeOf<T> ? y.numel() : 0))
      if (y.data<T>()[i] < 0)
        return InvalidArgument("Y holds the negative power ", int64_t{y.data<T>()[i]},
                               " at position ", i, ", integers have none");
  return Status::Ok();
}

// A Y of another real dtype: a float to a power of X's dtype, an integer to one in double.
template <typename T>
Status PowOfOtherDType(KernelContext& ctx) {
  const Tensor &x = ctx.In("X"), &y = ctx.In("Y");
  if (IsComplex(y.dtype())) return CheckSameDType(ctx, x, y);
  using Exponent = std::conditional_t<std::is_same_v<T, float>, float, double>;
  HEDDLE_ASSIGN_OR_RETURN(const BroadcastPlan plan,
                          MakeBroadcastPlan(x.shape(), y.shape(), AxisOf(ctx)));
  Tensor exponents = ctx.Scratch(kDTypeOf<Exponent>, y.shape());
  ConvertElements(ctx, y.raw(), y.dtype(), exponents.mutable_raw(), exponents.dtype(), y.numel());
  ForEachPair(ctx, plan, x.data<T>(), exponents.data<Exponent>(),
              ctx.Out("Out").template mutable_data<T>(),
              [](T a, Exponent b) { return ConvertTo<T>(std::pow(static_cast<Exponent>(a), b)); });
  return Status::Ok();
}

// Squares and cubes where Y is one number: products, which wrap.
template <typename T>
bool SquaresOrCubes(KernelContext& ctx) {
  const Tensor &x = ctx.In("X"), &y = ctx.In("Y");
  Tensor& out = ctx.Out("Out");
  if (!ctx.Bool("wrap_squares") || y.numel() != 1 || out.numel() != x.numel()) return false;
  const double power = ScalarOf(y);
  if (power != 2 && power != 3) return false;
  const T* from = x.data<T>();
  T* to = out.mutable_data<T>();
  ctx.ParallelFor(x.numel(), kElementGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T square = MulFn::Apply(from[i], from[i]);
      to[i] = power == 3 ? MulFn::Apply(square, from[i]) : square;
    }
  });
  return true;
}

template <typename T>
struct Pow {
  static Status Run(KernelContext& ctx) {
    if constexpr (std::is_integral_v<T>) {
      if (ctx.Bool("wrap")) {
        HEDDLE_RETURN_IF_ERROR(NoNegativePower<T>(ctx.In("Y")));
        return RunBinaryOp<SlotsXY>(ctx, BinaryLoop<WrappingPowFn, T, T>::kLoops);
      }
      if (SquaresOrCubes<T>(ctx)) return Status::Ok();
    }
    if constexpr (std::is_same_v<T, ComputeType<T>> && !kIsComplex<T>)
      if (ctx.In("Y").dtype() != kDTypeOf<T>) return PowOfOtherDType<T>(ctx);
    if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
      if (ctx.In("Y").dtype() != kDTypeOf<T>) return RunInFloat(ctx);
    return RunBinaryOp<SlotsXY>(ctx, BinaryLoop<PowFn, T, T>::kLoops);
  }
};

// Squares, mostly: x ** 2 is this operator with a constant.
template <typename T>
void PowOfOne(const TileStep& step, std::byte* const* at, int64_t n) {
  if (*reinterpret_cast<const T*>(at[step.in[1]]) != T(2))
    return BinaryStep<PowFn>::Repeat<T, 1>(step, at, n);
  const T* const x = reinterpret_cast<const T*>(at[step.in[0]]);
  T* const y = reinterpret_cast<T*>(at[step.out]);
  n &= -TileStep::kGroup;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i];
}

struct PowGradX {  // dout * y * x^(y-1)
  static constexpr unsigned kUses = kUsesX | kUsesY;
  template <typename T>
  static T Apply(T x, T y, T, T dout, double) {
    return static_cast<T>(dout * y * PowFn::Apply<T>(x, static_cast<T>(y - T(1))));
  }
};

struct PowGradY {  // dout * log(x) * x^y
  static constexpr unsigned kUses = kUsesX | kUsesY;
  template <typename T>
  static T Apply(T x, T y, T, T dout, double) {
    if constexpr (std::is_integral_v<T>) {
      const double a = static_cast<double>(x);
      return static_cast<T>(static_cast<double>(dout) * std::log(a) *
                            std::pow(a, static_cast<double>(y)));
    } else {
      return dout * std::log(x) * std::pow(x, y);
    }
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(elementwise_pow) {
  DefineElementwise<PowFn>(op,
                           "x to the power y, in X's dtype; integers as in double, or with wrap in "
                           "integers, whose exponents are not negative");
  op.Attr("wrap", false).Attr("wrap_squares", false);
  op.Kernels<Pow, float, double, uint8_t, int8_t, int16_t, int32_t, int64_t, float16, bfloat16,
             std::complex<float>, std::complex<double>>();
}

HEDDLE_OP(elementwise_pow_grad) {
  op.Doc("gradient of x to the power y");
  DefineElementwiseGrad<PowGradX, PowGradY, float, double, int32_t, int64_t, float16, bfloat16>(
      op, kUsesX | kUsesY);
}

HEDDLE_TILE(elementwise_pow) {
  TileOp tile = BinaryTile<PowFn>();
  tile.f32_repeat[1] = &PowOfOne<float>;
  tile.f64_repeat[1] = &PowOfOne<double>;
  return tile;
}
