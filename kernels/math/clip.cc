// clip and brelu: x limited to an interval.
#include "core/interrupts.h"
#include "core/operands/slot_kinds.h"
#include "kernels/elementwise/convert.h"
#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"

namespace heddle {
namespace {

// A number of any dtype. An int64 is kept as it is, since a double may not hold it; smaller
// integers take its low bits.
struct Limit {
  Limit(double v) : value(v) {}
  template <typename T>
  T As() const {
    if constexpr (std::is_integral_v<T>)
      return is_whole ? static_cast<T>(whole) : ConvertTo<T>(value);
    return ConvertTo<T>(is_whole ? static_cast<double>(whole) : value);
  }
  union {
    double value;
    int64_t whole;
  };
  bool is_whole = false;
};

Limit Bound(const KernelContext& ctx, Key slot, Key attr) {
  const Tensor* t = ctx.InOpt(slot);
  Limit limit = t != nullptr ? ScalarOf(*t) : ctx.Float(attr);
  limit.is_whole = t != nullptr && t->dtype() == DType::kI64;
  if (limit.is_whole) limit.whole = *t->data<int64_t>();
  return limit;
}

struct ClipAttrs : UnaryOp {
  explicit ClipAttrs(const KernelContext& ctx)
      : low(Bound(ctx, "Min", "min")), high(Bound(ctx, "Max", "max")) {}
  Limit low, high;
};
struct BreluAttrs : UnaryOp {
  explicit BreluAttrs(const KernelContext& ctx)
      : low(ctx.Float("t_min")), high(ctx.Float("t_max")) {}
  static void Declare(OpDef& op) { op.Attr("t_min", 0.0).Attr("t_max", 24.0); }
  Limit low, high;
};

template <typename Attrs>
struct Clip : Attrs {
  static constexpr GradReads kReads = kReadsX;
  using Attrs::Attrs;
  template <typename T>
  T Forward(T x) const {
    return fast::Clamp(x, Attrs::low.template As<T>(), Attrs::high.template As<T>());
  }
  template <typename T>
  T Grad(T x, T dy) const {
    const bool inside = (x > Attrs::low.template As<T>()) & (x < Attrs::high.template As<T>());
    return fast::Select(inside, dy, T(0));
  }
};

struct ClipDoubleGrad : ClipAttrs {
  static constexpr Key kIns[] = {"X", "grad_x@GRAD"};
  static constexpr Key kOuts[] = {"grad_out@GRAD"};
  using ClipAttrs::ClipAttrs;
  template <typename T>
  T operator()(T x, T ddx) const {
    const bool inside = (x > low.As<T>()) & (x < high.As<T>());
    return fast::Select(inside, ddx, T(0));
  }
};

using ClipOp = Clip<ClipAttrs>;

template <typename T>
struct ClipForward {
  static Status Run(KernelContext& ctx) {
    using C = ComputeType<T>;
    const C low = Bound(ctx, "Min", "min").As<C>(), high = Bound(ctx, "Max", "max").As<C>();
    using Shown = std::conditional_t<std::is_integral_v<C>, int64_t, double>;
    if (low > high)
      return InvalidArgument("min, ", Shown(low), ", must not be greater than max, ", Shown(high),
                             ", as ", Name(kDTypeOf<T>));
    if (!ctx.InVar("X")->is_rows()) return RunMap<ForwardMap<ClipOp>, T>(ctx);
    const Tensor x = ctx.InVar("X")->rows().value;
    Tensor& out = AllocRowsLike(ctx, ctx.InVar("X")->rows(), *ctx.OutVar("Out")).value;
    const ForwardMap<ClipOp> clip(ctx);
    for (const auto part : Stretches(x.numel()))
      for (int64_t i = part.begin; i < part.end; ++i)
        out.mutable_data<T>()[i] = static_cast<T>(clip(ComputeType<T>(x.data<T>()[i])));
    return Status::Ok();
  }
};

template <InferShapeFn kShape>
Status ClipShape(ShapeContext& ctx) {
  if (ctx.InVar("X") == nullptr) return InvalidArgument("input X is missing");
  for (const Key& slot : {Key("Min"), Key("Max")}) {
    if (!ctx.HasIn(slot)) continue;
    const Shape& s = ctx.InShape(slot);
    if (s.is_static() && s.numel() != 1)
      return InvalidArgument(slot.name, " must hold one element, but has shape ", s.ToString());
  }
  return kShape(ctx);
}

void DeclareBounds(OpDef& op) {
  op.Input("Min", kOptional).Input("Max", kOptional).Attr("min", 0.0).Attr("max", 0.0);
}

template <typename T>
Status ClipTile(const KernelContext& attrs, TileStep* step) {
  if (attrs.Float("min") > attrs.Float("max")) return InvalidArgument("min is above max");
  return MakeMapTile<ForwardMap<ClipOp>, T>(attrs, step);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(clip) {
  op.Doc("x limited to [min, max].")
      .Input("X", kAnyKind | kTakesRows)
      .Output("Out", kTakesRows)
      .Inplace("X", "Out");
  DeclareBounds(op);
  op.Traits(kElementwise).InferShape(ClipShape<SameShape>);
  op.Kernels<ClipForward, float, double, int32_t, int64_t, float16, bfloat16>();
}
HEDDLE_OP(clip_grad) {
  DefineUnaryGrad<ClipOp, int32_t, int64_t>(op).InferShape(ClipShape<MapShape<GradMap<ClipOp>>>);
  DeclareBounds(op);
}
HEDDLE_OP(clip_double_grad) {
  DefineMap<ClipDoubleGrad, int32_t, int64_t>(op).InferShape(ClipShape<MapShape<ClipDoubleGrad>>);
  DeclareBounds(op);
}
HEDDLE_OP(brelu) { DefineUnary<Clip<BreluAttrs>>(op, "x limited to [t_min, t_max]."); }
HEDDLE_OP(brelu_grad) { DefineUnaryGrad<Clip<BreluAttrs>>(op); }

HEDDLE_TILE(clip) { return {1, &ClipTile<float>, &ClipTile<double>}; }
HEDDLE_TILE(clip_grad) { return UnaryGradTile<ClipOp>(); }
HEDDLE_TILE(brelu) { return UnaryTile<Clip<BreluAttrs>>(); }

HEDDLE_EXAMPLES(clip, R"(
example int32 with limits of 64 bits
dtypes none: the low bits are those of int32
in Max int64 [1] 4294967300
in Min int64 [1] 0
in X int32 [3] -9 9 5
out Out int32 [3] 0 4 4

example float32 1, max 0, min 0
attr max FLOAT 0.0
attr min FLOAT 0.0
in Max float32 [1] 0.7
in Min float32 [1] -0.5
in X float32 [1] -1.21
out Out float32 [1] -0.5

example int64 6, max 11, min 0
attr max FLOAT 11.0
attr min FLOAT 0.0
in X int64 [6] -20 -6 -19 -10 -11 -4
out Out int64 [6] 0*6

example float32 5x2, max 0.7, min -0.5
attr max FLOAT 0.7
attr min FLOAT -0.5
in X float32 [5, 2] -1.52 -0.47 1.28 -0.12 -1.17 0.58 1.63 -0.82 0.93 0.23
out Out float32 [5, 2] -0.5 -0.47 0.7 -0.12 -0.5 0.58 0.7 -0.5 0.7 0.23

example float64 2, max 3.40282e+38, min 0
attr max FLOAT 3.4028235e+38
attr min FLOAT 0.0
in X float64 [2] 0.7584353854104976 -0.21470836717965547
out Out float64 [2] 0.7584353854104976 0

example int64, limits that no double holds
dtypes none: the numbers are for int64
attr min FLOAT 0.0
attr max FLOAT 0.0
in X int64 [4] -9007199254740993 9007199254740993 9223372036854775806 7
in Min int64 [1] -9007199254740993
in Max int64 [1] 9223372036854775807
out Out int64 [4] -9007199254740993 9007199254740993 9223372036854775806 7
)")

HEDDLE_EXAMPLES(clip_grad, R"(
example float64 1, max 0, min 0
attr max FLOAT 0.0
attr min FLOAT 0.0
in Max float64 [1] 0.7
in Min float64 [1] -0.5
in Out@GRAD float64 [1] 0.7
in X float64 [1] -1.21
out X@GRAD float64 [1] 0

example float64 5x2, max 0.7, min -0.5
attr max FLOAT 0.7
attr min FLOAT -0.5
in Out@GRAD float64 [5, 2] -0.4 0.3 0.2 0.6 -0 0.9 1 0.7 -0.6 -0.7
in X float64 [5, 2] -1.52 -0.47 1.28 -0.12 -1.17 0.58 1.63 -0.82 0.93 0.23
out X@GRAD float64 [5, 2] 0 0.3 0 0.6 0 0.9 0 0 0 -0.7

example float64 2x4x3, max 1, min -1
attr max FLOAT 1.0
attr min FLOAT -1.0
in Out@GRAD float64 [2, 4, 3] -0.8 0.3 -0.2 0.2 0.4 0.4 0.9 0.3 0 -0.8 -0.2 -0.4 -0.7 -1 -0.2 -0 -1
  0.1 -0.8 -0.2 -0.4 0.5 0.2 -0.2
in X float64 [2, 4, 3] -2.91 2.15 -2.52 2.54 -4.07 -2.13 0.2 1.76 2.93 0.59 3.7 -0.18 -0.96 -4.46
  -3.29 1.37 0.98 4.48 -1.35 3.31 -0.57 -3.68 -1.74 4.09
out X@GRAD float64 [2, 4, 3] 0*6 0.9 0 0 -0.8 0 -0.4 -0.7 0 0 0 -1 0 0 0 -0.4 0 0 0

example float32 1, max 0, min 0
attr max FLOAT 0.0
attr min FLOAT 0.0
in Max float32 [1] 0.7
in Min float32 [1] -0.5
in Out@GRAD float32 [1] 0.7
in X float32 [1] -1.21
out X@GRAD float32 [1] 0
)")

HEDDLE_EXAMPLES(clip_double_grad, R"(
example float64 2x4x3, max 1, min -1
attr max FLOAT 1.0
attr min FLOAT -1.0
in X float64 [2, 4, 3] -2.91 -4.46 2.15 3.7 -3.29 2.93 -0.57 -3.68 -0.96 -1.35 -1.74 1.76 0.2 3.31
  4.48 -2.13 -2.52 4.09 1.37 0.98 -0.18 -4.07 2.54 0.59
in grad_x@GRAD float64 [2, 4, 3] -0.8 0.3 -0.2 0.2 0.4 0.4 0.9 0.3 0 -0.8 -0.2 -0.4 -0.7 -1 -0.2 -0
  -1 0.1 -0.8 -0.2 -0.4 0.5 0.2 -0.2
out grad_out@GRAD float64 [2, 4, 3] 0*6 0.9 0*5 -0.7 0*6 -0.2 -0.4 0 0 -0.2

example float32 2x4x3, max 1, min -1
attr max FLOAT 1.0
attr min FLOAT -1.0
in X float32 [2, 4, 3] -2.91 -4.46 2.15 3.7 -3.29 2.93 -0.57 -3.68 -0.96 -1.35 -1.74 1.76 0.2 3.31
  4.48 -2.13 -2.52 4.09 1.37 0.98 -0.18 -4.07 2.54 0.59
in grad_x@GRAD float32 [2, 4, 3] -0.8 0.3 -0.2 0.2 0.4 0.4 0.9 0.3 0 -0.8 -0.2 -0.4 -0.7 -1 -0.2 -0
  -1 0.1 -0.8 -0.2 -0.4 0.5 0.2 -0.2
out grad_out@GRAD float32 [2, 4, 3] 0*6 0.9 0*5 -0.7 0*6 -0.2 -0.4 0 0 -0.2
)")

HEDDLE_EXAMPLES(brelu, R"(
example float32 3x4, t_max 2, t_min -1
attr t_max FLOAT 2.0
attr t_min FLOAT -1.0
in X float32 [3, 4] -1.58 1.56 1.11 -0.23 -2.03 -0.68 0.21 2.46 -2.48 2.01 0.66 -1.13
out Out float32 [3, 4] -1 1.56 1.11 -0.23 -1 -0.68 0.21 2 -1 2 0.66 -1

example float64 4x3, t_max 4, t_min 1
attr t_max FLOAT 4.0
attr t_min FLOAT 1.0
in X float64 [4, 3] 3.1 5.4 -0.4 0.8 8.8 -3.8 -2.6 1.9 6.5 4.2 -1.5 7.7
out Out float64 [4, 3] 3.1 4 1 1 4 1 1 1.9 4 4 1 4

example float64 3, t_max 2, t_min -1
attr t_max FLOAT 2.0
attr t_min FLOAT -1.0
in X float64 [3] -2.42 -1.47 -2.22
out Out float64 [3] -1 -1 -1
)")

HEDDLE_EXAMPLES(brelu_grad, R"(
example float64 3, t_max 2, t_min -1
attr t_max FLOAT 2.0
attr t_min FLOAT -1.0
in Out@GRAD float64 [3] -0.5 -0.9 0.2
in X float64 [3] -1.57 -2.65 -0.97
out X@GRAD float64 [3] -0 -0 0.2

example float64 4x3, t_max 2, t_min -1
attr t_max FLOAT 2.0
attr t_min FLOAT -1.0
in Out@GRAD float64 [4, 3] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
in X float64 [4, 3] 0.21 1.12 -1.14 -0.69 2.47 -2.5 -2.04 -0.24 1.57 0.66 -1.59 2.02
out X@GRAD float64 [4, 3] -0.6 -0.6 -0 0.5 -0 0 0 -0.2 0.7 -0 -0 0

example float32 3, t_max 2, t_min -1
attr t_max FLOAT 2.0
attr t_min FLOAT -1.0
in Out@GRAD float32 [3] -0.5 -0.9 0.2
in X float32 [3] -1.57 -2.65 -0.97
out X@GRAD float32 [3] -0 -0 0.2
)")
