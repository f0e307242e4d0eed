// clip and brelu: x limited to an interval.
#include "kernels/elementwise/convert.h"
#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"

namespace heddle {
namespace {

double Bound(const KernelContext& ctx, Key slot, Key attr) {
  const Tensor* t = ctx.InOpt(slot);
  return t != nullptr ? ScalarOf(*t) : ctx.Float(attr);
}

struct ClipAttrs : UnaryOp {
  explicit ClipAttrs(const KernelContext& ctx)
      : low(Bound(ctx, "Min", "min")), high(Bound(ctx, "Max", "max")) {}
  double low, high;
};
struct BreluAttrs : UnaryOp {
  explicit BreluAttrs(const KernelContext& ctx)
      : low(ctx.Float("t_min")), high(ctx.Float("t_max")) {}
  static void Declare(OpDef& op) { op.Attr("t_min", 0.0).Attr("t_max", 24.0); }
  double low, high;
};

template <typename Attrs>
struct Clip : Attrs {
  static constexpr GradReads kReads = kReadsX;
  using Attrs::Attrs;
  template <typename T>
  T Forward(T x) const {
    return fast::Clamp(x, ConvertTo<T>(Attrs::low), ConvertTo<T>(Attrs::high));
  }
  template <typename T>
  T Grad(T x, T dy) const {
    const bool inside = (x > ConvertTo<T>(Attrs::low)) & (x < ConvertTo<T>(Attrs::high));
    return fast::Select(inside, dy, T(0));
  }
};

struct ClipDoubleGrad : ClipAttrs {
  static constexpr Key kIns[] = {"X", "grad_x@GRAD"};
  static constexpr Key kOuts[] = {"grad_out@GRAD"};
  using ClipAttrs::ClipAttrs;
  template <typename T>
  T operator()(T x, T ddx) const {
    const bool inside = (x > ConvertTo<T>(low)) & (x < ConvertTo<T>(high));
    return fast::Select(inside, ddx, T(0));
  }
};

using ClipOp = Clip<ClipAttrs>;

template <typename T>
struct ClipForward {
  static Status Run(KernelContext& ctx) {
    const double low = Bound(ctx, "Min", "min"), high = Bound(ctx, "Max", "max");
    if (low > high) return InvalidArgument("min, ", low, ", must not be greater than max, ", high);
    if (!ctx.InVar("X")->is_rows()) return RunMap<ForwardMap<ClipOp>, T>(ctx);
    const Tensor x = ctx.InVar("X")->rows().value;
    Tensor& out = AllocRowsLike(ctx, ctx.InVar("X")->rows(), *ctx.OutVar("Out")).value;
    const ForwardMap<ClipOp> clip(ctx);
    for (int64_t i = 0; i < x.numel(); ++i)
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
  op.Doc("x limited to [min, max].").Input("X").Output("Out").Inplace("X", "Out");
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
