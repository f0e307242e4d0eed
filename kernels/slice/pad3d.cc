// pad3d and pad2d: padding of the spatial dimensions.
#include "core/shapes.h"
#include "kernels/base/index_args.h"
#include "kernels/strided/index_pad.h"

namespace heddle {
namespace {

// pad3d lists its pairs from the last spatial dimension to the first, pad2d the other way round.
struct Kind {
  int spatial;
  bool last_first;
};
constexpr Kind kPad3d{3, true};
constexpr Kind kPad2d{2, false};

Status ReadPadding3d(const OpContext& ctx, const Kind& kind, int rank, Padding* pad, bool* known) {
  IntArgs list;
  HEDDLE_RETURN_IF_ERROR(ReadInts(ctx, "Paddings", "paddings", &list));
  if (rank != kind.spatial + 2)
    return InvalidArgument("'X' must have ", kind.spatial + 2, " dimensions, not ", rank);
  if (list.n >= 0 && list.n != 2 * kind.spatial)
    return InvalidArgument("'paddings' has ", list.n, " values; expected ", 2 * kind.spatial);
  const std::string& format = ctx.Str("data_format");
  const bool channels_last = format.ends_with("C");
  pad->rank = rank;
  *known = list.known && list.n >= 0;
  for (int k = 0; *known && k < kind.spatial; ++k) {
    const int i = (channels_last ? 1 : 2) + (kind.last_first ? kind.spatial - 1 - k : k);
    pad->before[i] = list[2 * k];
    pad->after[i] = list[2 * k + 1];
  }
  return Status::Ok();
}

template <const Kind& kKind>
Status Pad3dShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  Padding pad;
  bool known = false;
  HEDDLE_RETURN_IF_ERROR(ReadPadding3d(ctx, kKind, x.rank(), &pad, &known));
  HEDDLE_ASSIGN_OR_RETURN(const PadMode mode, PadModeOf(ctx.Str("mode")));
  if (!known) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const Shape out, PaddedShape(x, pad, mode));
  ctx.SetOut("Out", out, ctx.InDType("X"));
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

template <const Kind& kKind>
Status Pad3d(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  Padding pad;
  bool known = false;
  HEDDLE_RETURN_IF_ERROR(ReadPadding3d(ctx, kKind, x.rank(), &pad, &known));
  HEDDLE_ASSIGN_OR_RETURN(const PadMode mode, PadModeOf(ctx.Str("mode")));
  const double value = kKind.spatial == 3 ? ctx.Float("value") : ctx.Float("pad_value");
  return RunPad(ctx, x, pad, mode, value, ctx.Out("Out"));
}

template <const Kind& kKind>
Status Pad3dGrad(KernelContext& ctx) {
  Tensor& out = ctx.Out("X@GRAD");
  Padding pad;
  bool known = false;
  HEDDLE_RETURN_IF_ERROR(ReadPadding3d(ctx, kKind, out.rank(), &pad, &known));
  HEDDLE_ASSIGN_OR_RETURN(const PadMode mode, PadModeOf(ctx.Str("mode")));
  return RunPadGrad(ctx, ctx.In("Out@GRAD"), pad, mode, out);
}

Status Pad3dDoubleGradShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("grad_x@GRAD");
  if (!x.known_rank()) return ctx.Defer();
  Padding pad;
  bool known = false;
  HEDDLE_RETURN_IF_ERROR(ReadPadding3d(ctx, kPad3d, x.rank(), &pad, &known));
  if (!known) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const PadMode mode, PadModeOf(ctx.Str("mode")));
  HEDDLE_ASSIGN_OR_RETURN(const Shape out, PaddedShape(x, pad, mode));
  ctx.SetOut("grad_out@GRAD", out, ctx.InDType("grad_x@GRAD"));
  return Status::Ok();
}

Status DoubleGrad(KernelContext& ctx) {
  const Tensor& x = ctx.In("grad_x@GRAD");
  Padding pad;
  bool known = false;
  HEDDLE_RETURN_IF_ERROR(ReadPadding3d(ctx, kPad3d, x.rank(), &pad, &known));
  HEDDLE_ASSIGN_OR_RETURN(const PadMode mode, PadModeOf(ctx.Str("mode")));
  return RunPad(ctx, x, pad, mode, 0, ctx.Out("grad_out@GRAD"));
}

void Declare3d(OpDef& op) {
  op.Attr("paddings", Ints{}).Attr("mode", "constant").Attr("data_format", "NCDHW");
}
void Declare2d(OpDef& op) {
  op.Attr("paddings", Ints{}).Attr("mode", "constant").Attr("data_format", "NCHW");
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(pad3d) {
  op.Doc(
        "X with its three spatial dimensions padded; paddings: left, right, top, bottom, front, "
        "back.")
      .Input("X")
      .Input("Paddings", kOptional | kShapeValue)
      .Output("Out")
      .Attr("value", 0.0)
      .InferShape(Pad3dShape<kPad3d>)
      .AnyKernel(Pad3d<kPad3d>);
  Declare3d(op);
}
HEDDLE_OP(pad3d_grad) {
  op.Input("Out@GRAD")
      .Input("X", kNoBuffer)
      .Input("Paddings", kOptional)
      .Output("X@GRAD")
      .InferShape(GradLikeInputs)
      .AnyKernel(Pad3dGrad<kPad3d>);
  Declare3d(op);
}
HEDDLE_OP(pad3d_double_grad) {
  op.Input("grad_x@GRAD")
      .Input("Paddings", kOptional | kShapeValue)
      .Output("grad_out@GRAD")
      .InferShape(Pad3dDoubleGradShape)
      .AnyKernel(DoubleGrad);
  Declare3d(op);
}
HEDDLE_OP(pad2d) {
  op.Doc("X with its two spatial dimensions padded; paddings: top, bottom, left, right.")
      .Input("X")
      .Input("Paddings", kOptional | kShapeValue)
      .Output("Out")
      .Attr("pad_value", 0.0)
      .InferShape(Pad3dShape<kPad2d>)
      .AnyKernel(Pad3d<kPad2d>);
  Declare2d(op);
}
HEDDLE_OP(pad2d_grad) {
  op.Input("Out@GRAD")
      .Input("X", kNoBuffer)
      .Input("Paddings", kOptional)
      .Output("X@GRAD")
      .InferShape(GradLikeInputs)
      .AnyKernel(Pad3dGrad<kPad2d>);
  Declare2d(op);
}
