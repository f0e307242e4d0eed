// clip and brelu: x limited to an interval.
#include "core/interrupts.h"
#include "core/operands/slot_kinds.h"
#include "kernels/base/convert.h"
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

// Limits that are the type's finite ones where they are absent; NaN stays, and where min is above
// max, max holds.
template <typename T>
Status ClipToFinite(KernelContext& ctx) {
  using C = ComputeType<T>;
  C least = std::numeric_limits<C>::lowest(), most = std::numeric_limits<C>::max();
  if constexpr (std::is_same_v<T, float16>) least = -65504.0f, most = 65504.0f;
  for (const Key& slot : {Key("Min"), Key("Max")})
    if (const Tensor* t = ctx.InOpt(slot); t != nullptr && t->dtype() != kDTypeOf<T>)
      return InvalidArgument(slot.name, " is ", Name(t->dtype()), ", X ", Name(kDTypeOf<T>),
                             ", expected one dtype");
  if (ctx.InOpt("Min") != nullptr) least = Bound(ctx, "Min", "min").As<C>();
  if (ctx.InOpt("Max") != nullptr) most = Bound(ctx, "Max", "max").As<C>();
  const T* x = ctx.In("X").data<T>();
  T* y = ctx.Out("Out").template mutable_data<T>();
  ctx.ParallelFor(ctx.In("X").numel(), 1 << 15, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      y[i] = static_cast<T>(fast::Clamp(static_cast<C>(x[i]), least, most));
  });
  return Status::Ok();
}

template <typename T>
struct ClipForward {
  static Status Run(KernelContext& ctx) {
    if (ctx.Bool("finite")) return ClipToFinite<T>(ctx);
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
  if (attrs.Bool("finite") || attrs.Float("min") > attrs.Float("max"))
    return InvalidArgument("min is above max, or both are operands");
  return MakeMapTile<ForwardMap<ClipOp>, T>(attrs, step);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(clip) {
  op.Doc("x limited to [min, max]; finite: to the type's finite limits where Min or Max is absent")
      .Input("X", kAnyKind | kTakesRows)
      .Output("Out", kTakesRows)
      .Inplace("X", "Out");
  DeclareBounds(op);
  op.Attr("finite", false).Traits(kElementwise).InferShape(ClipShape<SameShape>);
  op.Kernels<ClipForward, float, double, uint8_t, int8_t, int16_t, int32_t, int64_t, float16,
             bfloat16>();
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
