// pad3d and pad2d: padding of the spatial dimensions.
#include "core/shapes.h"
#include "kernels/index/index_args.h"
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

HEDDLE_EXAMPLES(pad3d, R"(
example float32 1x4x3x3x2, data_format NDHWC, mode replicate
attr data_format STRING "NDHWC"
attr mode STRING "replicate"
attr paddings INTS [0, 1, 0, 2, 2, 1]
in X float32 [1, 4, 3, 3, 2] -0.09 0.43 0.32 0.48 0.26 -0.42 -0.07 -0.23 0.86 0.81 -0.61 0.15 -0.96
  -0.88 0.92 0.21 -0.17 0.23 0.97 0.04 0.02 0.7 0.45 0.18 -0.53 0.07 0.29 -0.56 -0.91 -0.37 0.94
  -0.58 0.73 0.62 -0.45 -0.39 -0.47 -0.5 -0.75 -0.72 -0.69 0.89 -0.66 -0.83 -0.01 -0.12 0.56 0.4
  -0.31 -0.86 -0.8 -0.26 -0.15 -0.2 -0.64 0.64 0.83 0.75 0.67 0.34 -0.04 -0.28 0.59 0.53 -0.77 0.51
  -0.94 0.13 -0.34 0.37 0.1 0.78
out Out float32 [1, 7, 5, 4, 2] -0.09 0.43 0.32 0.48 0.26 -0.42 0.26 -0.42 -0.07 -0.23 0.86 0.81
  -0.61 0.15 -0.61 0.15 -0.96 -0.88 0.92 0.21 -0.17 0.23 -0.17 0.23 -0.96 -0.88 0.92 0.21 -0.17 0.23
  -0.17 0.23 -0.96 -0.88 0.92 0.21 -0.17 0.23 -0.17 0.23 -0.09 0.43 0.32 0.48 0.26 -0.42 0.26 -0.42
  -0.07 -0.23 0.86 0.81 -0.61 0.15 -0.61 0.15 -0.96 -0.88 0.92 0.21 -0.17 0.23 -0.17 0.23 -0.96
  -0.88 0.92 0.21 -0.17 0.23 -0.17 0.23 -0.96 -0.88 0.92 0.21 -0.17 0.23 -0.17 0.23 -0.09 0.43 0.32
  0.48 0.26 -0.42 0.26 -0.42 -0.07 -0.23 0.86 0.81 -0.61 0.15 -0.61 0.15 -0.96 -0.88 0.92 0.21 -0.17
  0.23 -0.17 0.23 -0.96 -0.88 0.92 0.21 -0.17 0.23 -0.17 0.23 -0.96 -0.88 0.92 0.21 -0.17 0.23 -0.17
  0.23 0.97 0.04 0.02 0.7 0.45 0.18 0.45 0.18 -0.53 0.07 0.29 -0.56 -0.91 -0.37 -0.91 -0.37 0.94
  -0.58 0.73 0.62 -0.45 -0.39 -0.45 -0.39 0.94 -0.58 0.73 0.62 -0.45 -0.39 -0.45 -0.39 0.94 -0.58
  0.73 0.62 -0.45 -0.39 -0.45 -0.39 -0.47 -0.5 -0.75 -0.72 -0.69 0.89 -0.69 0.89 -0.66 -0.83 -0.01
  -0.12 0.56 0.4 0.56 0.4 -0.31 -0.86 -0.8 -0.26 -0.15 -0.2 -0.15 -0.2 -0.31 -0.86 -0.8 -0.26 -0.15
  -0.2 -0.15 -0.2 -0.31 -0.86 -0.8 -0.26 -0.15 -0.2 -0.15 -0.2 -0.64 0.64 0.83 0.75 0.67 0.34 0.67
  0.34 -0.04 -0.28 0.59 0.53 -0.77 0.51 -0.77 0.51 -0.94 0.13 -0.34 0.37 0.1 0.78 0.1 0.78 -0.94
  0.13 -0.34 0.37 0.1 0.78 0.1 0.78 -0.94 0.13 -0.34 0.37 0.1 0.78 0.1 0.78 -0.64 0.64 0.83 0.75
  0.67 0.34 0.67 0.34 -0.04 -0.28 0.59 0.53 -0.77 0.51 -0.77 0.51 -0.94 0.13 -0.34 0.37 0.1 0.78 0.1
  0.78 -0.94 0.13 -0.34 0.37 0.1 0.78 0.1 0.78 -0.94 0.13 -0.34 0.37 0.1 0.78 0.1 0.78

example float64 1x4x3x3x2, data_format NDHWC, mode replicate
attr data_format STRING "NDHWC"
attr mode STRING "replicate"
attr paddings INTS [0, 1, 0, 2, 2, 1]
in X float64 [1, 4, 3, 3, 2] -0.09 0.43 0.32 0.48 0.26 -0.42 -0.07 -0.23 0.86 0.81 -0.61 0.15 -0.96
  -0.88 0.92 0.21 -0.17 0.23 0.97 0.04 0.02 0.7 0.45 0.18 -0.53 0.07 0.29 -0.56 -0.91 -0.37 0.94
  -0.58 0.73 0.62 -0.45 -0.39 -0.47 -0.5 -0.75 -0.72 -0.69 0.89 -0.66 -0.83 -0.01 -0.12 0.56 0.4
  -0.31 -0.86 -0.8 -0.26 -0.15 -0.2 -0.64 0.64 0.83 0.75 0.67 0.34 -0.04 -0.28 0.59 0.53 -0.77 0.51
  -0.94 0.13 -0.34 0.37 0.1 0.78
out Out float64 [1, 7, 5, 4, 2] -0.09 0.43 0.32 0.48 0.26 -0.42 0.26 -0.42 -0.07 -0.23 0.86 0.81
  -0.61 0.15 -0.61 0.15 -0.96 -0.88 0.92 0.21 -0.17 0.23 -0.17 0.23 -0.96 -0.88 0.92 0.21 -0.17 0.23
  -0.17 0.23 -0.96 -0.88 0.92 0.21 -0.17 0.23 -0.17 0.23 -0.09 0.43 0.32 0.48 0.26 -0.42 0.26 -0.42
  -0.07 -0.23 0.86 0.81 -0.61 0.15 -0.61 0.15 -0.96 -0.88 0.92 0.21 -0.17 0.23 -0.17 0.23 -0.96
  -0.88 0.92 0.21 -0.17 0.23 -0.17 0.23 -0.96 -0.88 0.92 0.21 -0.17 0.23 -0.17 0.23 -0.09 0.43 0.32
  0.48 0.26 -0.42 0.26 -0.42 -0.07 -0.23 0.86 0.81 -0.61 0.15 -0.61 0.15 -0.96 -0.88 0.92 0.21 -0.17
  0.23 -0.17 0.23 -0.96 -0.88 0.92 0.21 -0.17 0.23 -0.17 0.23 -0.96 -0.88 0.92 0.21 -0.17 0.23 -0.17
  0.23 0.97 0.04 0.02 0.7 0.45 0.18 0.45 0.18 -0.53 0.07 0.29 -0.56 -0.91 -0.37 -0.91 -0.37 0.94
  -0.58 0.73 0.62 -0.45 -0.39 -0.45 -0.39 0.94 -0.58 0.73 0.62 -0.45 -0.39 -0.45 -0.39 0.94 -0.58
  0.73 0.62 -0.45 -0.39 -0.45 -0.39 -0.47 -0.5 -0.75 -0.72 -0.69 0.89 -0.69 0.89 -0.66 -0.83 -0.01
  -0.12 0.56 0.4 0.56 0.4 -0.31 -0.86 -0.8 -0.26 -0.15 -0.2 -0.15 -0.2 -0.31 -0.86 -0.8 -0.26 -0.15
  -0.2 -0.15 -0.2 -0.31 -0.86 -0.8 -0.26 -0.15 -0.2 -0.15 -0.2 -0.64 0.64 0.83 0.75 0.67 0.34 0.67
  0.34 -0.04 -0.28 0.59 0.53 -0.77 0.51 -0.77 0.51 -0.94 0.13 -0.34 0.37 0.1 0.78 0.1 0.78 -0.94
  0.13 -0.34 0.37 0.1 0.78 0.1 0.78 -0.94 0.13 -0.34 0.37 0.1 0.78 0.1 0.78 -0.64 0.64 0.83 0.75
  0.67 0.34 0.67 0.34 -0.04 -0.28 0.59 0.53 -0.77 0.51 -0.77 0.51 -0.94 0.13 -0.34 0.37 0.1 0.78 0.1
  0.78 -0.94 0.13 -0.34 0.37 0.1 0.78 0.1 0.78 -0.94 0.13 -0.34 0.37 0.1 0.78 0.1 0.78

example int32 1x4x3x3x2, data_format NDHWC, mode replicate
attr data_format STRING "NDHWC"
attr mode STRING "replicate"
attr paddings INTS [0, 1, 0, 2, 2, 1]
in X int32 [1, 4, 3, 3, 2] 0*72
out Out int32 [1, 7, 5, 4, 2] 0*280

example int64 1x4x3x3x2, data_format NDHWC, mode replicate
attr data_format STRING "NDHWC"
attr mode STRING "replicate"
attr paddings INTS [0, 1, 0, 2, 2, 1]
in X int64 [1, 4, 3, 3, 2] 0*72
out Out int64 [1, 7, 5, 4, 2] 0*280

example complex64 1x4x3x3x2, data_format NDHWC, mode replicate
attr data_format STRING "NDHWC"
attr mode STRING "replicate"
attr paddings INTS [0, 1, 0, 2, 2, 1]
in X complex64 [1, 4, 3, 3, 2] -0.09+0.8j 0.43+0.3j 0.32+0.5j 0.48-0.7j 0.26-0.8j -0.42+0.6j
  -0.07-0.3j -0.23+0.1j 0.86-0.5j 0.81+0.1j -0.61-0.2j 0.15+0.4j -0.96+0.7j -0.88+0.2j 0.92-0.4j
  0.21-0.4j -0.17+0.4j 0.23-0.2j 0.97-0.9j 0.04+0.5j 0.02-0.1j 0.7-0.6j 0.45-0.9j 0.18-0.4j
  -0.53-0.9j 0.07+0.5j 0.29-0.9j -0.56-0.1j -0.91-0.3j -0.37-0.7j 0.94+0.1j -0.58-0.1j 0.73-0.9j
  0.62+0.6j -0.45-0.5j -0.39-0.7j -0.47+0.3j -0.5-0.8j -0.75-0.3j -0.72-0.2j -0.69-0.1j 0.89+1j
  -0.66+0.5j -0.83-0.4j -0.01+0.8j -0.12+0.6j 0.56-0.5j 0.4-0.4j -0.31-0.7j -0.86-0.2j -0.8+0.9j
  -0.26-0.3j -0.15-0.1j -0.2+0.8j -0.64+0.9j 0.64-0.5j 0.83+0.4j 0.75-0.9j 0.67-0.7j 0.34+0j
  -0.04+0.2j -0.28-0.3j 0.59-0.7j 0.53-0.5j -0.77+0.7j 0.51+0.4j -0.94+1j 0.13-0.4j -0.34-0.1j
  0.37+0.7j 0.1+0.3j 0.78-0.3j
out Out complex64 [1, 7, 5, 4, 2] -0.09+0.8j 0.43+0.3j 0.32+0.5j 0.48-0.7j 0.26-0.8j -0.42+0.6j
  0.26-0.8j -0.42+0.6j -0.07-0.3j -0.23+0.1j 0.86-0.5j 0.81+0.1j -0.61-0.2j 0.15+0.4j -0.61-0.2j
  0.15+0.4j -0.96+0.7j -0.88+0.2j 0.92-0.4j 0.21-0.4j -0.17+0.4j 0.23-0.2j -0.17+0.4j 0.23-0.2j
  -0.96+0.7j -0.88+0.2j 0.92-0.4j 0.21-0.4j -0.17+0.4j 0.23-0.2j -0.17+0.4j 0.23-0.2j -0.96+0.7j
  -0.88+0.2j 0.92-0.4j 0.21-0.4j -0.17+0.4j 0.23-0.2j -0.17+0.4j 0.23-0.2j -0.09+0.8j 0.43+0.3j
  0.32+0.5j 0.48-0.7j 0.26-0.8j -0.42+0.6j 0.26-0.8j -0.42+0.6j -0.07-0.3j -0.23+0.1j 0.86-0.5j
  0.81+0.1j -0.61-0.2j 0.15+0.4j -0.61-0.2j 0.15+0.4j -0.96+0.7j -0.88+0.2j 0.92-0.4j 0.21-0.4j
  -0.17+0.4j 0.23-0.2j -0.17+0.4j 0.23-0.2j -0.96+0.7j -0.88+0.2j 0.92-0.4j 0.21-0.4j -0.17+0.4j
  0.23-0.2j -0.17+0.4j 0.23-0.2j -0.96+0.7j -0.88+0.2j 0.92-0.4j 0.21-0.4j -0.17+0.4j 0.23-0.2j
  -0.17+0.4j 0.23-0.2j -0.09+0.8j 0.43+0.3j 0.32+0.5j 0.48-0.7j 0.26-0.8j -0.42+0.6j 0.26-0.8j
  -0.42+0.6j -0.07-0.3j -0.23+0.1j 0.86-0.5j 0.81+0.1j -0.61-0.2j 0.15+0.4j -0.61-0.2j 0.15+0.4j
  -0.96+0.7j -0.88+0.2j 0.92-0.4j 0.21-0.4j -0.17+0.4j 0.23-0.2j -0.17+0.4j 0.23-0.2j -0.96+0.7j
  -0.88+0.2j 0.92-0.4j 0.21-0.4j -0.17+0.4j 0.23-0.2j -0.17+0.4j 0.23-0.2j -0.96+0.7j -0.88+0.2j
  0.92-0.4j 0.21-0.4j -0.17+0.4j 0.23-0.2j -0.17+0.4j 0.23-0.2j 0.97-0.9j 0.04+0.5j 0.02-0.1j
  0.7-0.6j 0.45-0.9j 0.18-0.4j 0.45-0.9j 0.18-0.4j -0.53-0.9j 0.07+0.5j 0.29-0.9j -0.56-0.1j
  -0.91-0.3j -0.37-0.7j -0.91-0.3j -0.37-0.7j 0.94+0.1j -0.58-0.1j 0.73-0.9j 0.62+0.6j -0.45-0.5j
  -0.39-0.7j -0.45-0.5j -0.39-0.7j 0.94+0.1j -0.58-0.1j 0.73-0.9j 0.62+0.6j -0.45-0.5j -0.39-0.7j
  -0.45-0.5j -0.39-0.7j 0.94+0.1j -0.58-0.1j 0.73-0.9j 0.62+0.6j -0.45-0.5j -0.39-0.7j -0.45-0.5j
  -0.39-0.7j -0.47+0.3j -0.5-0.8j -0.75-0.3j -0.72-0.2j -0.69-0.1j 0.89+1j -0.69-0.1j 0.89+1j
  -0.66+0.5j -0.83-0.4j -0.01+0.8j -0.12+0.6j 0.56-0.5j 0.4-0.4j 0.56-0.5j 0.4-0.4j -0.31-0.7j
  -0.86-0.2j -0.8+0.9j -0.26-0.3j -0.15-0.1j -0.2+0.8j -0.15-0.1j -0.2+0.8j -0.31-0.7j -0.86-0.2j
  -0.8+0.9j -0.26-0.3j -0.15-0.1j -0.2+0.8j -0.15-0.1j -0.2+0.8j -0.31-0.7j -0.86-0.2j -0.8+0.9j
  -0.26-0.3j -0.15-0.1j -0.2+0.8j -0.15-0.1j -0.2+0.8j -0.64+0.9j 0.64-0.5j 0.83+0.4j 0.75-0.9j
  0.67-0.7j 0.34+0j 0.67-0.7j 0.34+0j -0.04+0.2j -0.28-0.3j 0.59-0.7j 0.53-0.5j -0.77+0.7j 0.51+0.4j
  -0.77+0.7j 0.51+0.4j -0.94+1j 0.13-0.4j -0.34-0.1j 0.37+0.7j 0.1+0.3j 0.78-0.3j 0.1+0.3j 0.78-0.3j
  -0.94+1j 0.13-0.4j -0.34-0.1j 0.37+0.7j 0.1+0.3j 0.78-0.3j 0.1+0.3j 0.78-0.3j -0.94+1j 0.13-0.4j
  -0.34-0.1j 0.37+0.7j 0.1+0.3j 0.78-0.3j 0.1+0.3j 0.78-0.3j -0.64+0.9j 0.64-0.5j 0.83+0.4j
  0.75-0.9j 0.67-0.7j 0.34+0j 0.67-0.7j 0.34+0j -0.04+0.2j -0.28-0.3j 0.59-0.7j 0.53-0.5j -0.77+0.7j
  0.51+0.4j -0.77+0.7j 0.51+0.4j -0.94+1j 0.13-0.4j -0.34-0.1j 0.37+0.7j 0.1+0.3j 0.78-0.3j 0.1+0.3j
  0.78-0.3j -0.94+1j 0.13-0.4j -0.34-0.1j 0.37+0.7j 0.1+0.3j 0.78-0.3j 0.1+0.3j 0.78-0.3j -0.94+1j
  0.13-0.4j -0.34-0.1j 0.37+0.7j 0.1+0.3j 0.78-0.3j 0.1+0.3j 0.78-0.3j
)")

HEDDLE_EXAMPLES(pad2d, R"(
example constant, float32
attr paddings INTS [1, 0, 2, 1]
attr mode STRING "constant"
attr pad_value FLOAT 0.5
in X float32 [1, 2, 3, 3] -0.58 0.32 -0.46 0.26 0.39 -0.62 0.01 -0.12 -0.93 0.73 0.84 -0.51 -0.81
  0.51 -0.75 -0.54 0.6 0.13
from unsqueeze2 X=X -> Out=x XShape=s1
attr axes INTS [2]
from pad3d X=x -> Out=y
attr paddings INTS [2, 1, 1, 0, 0, 0]
attr mode STRING "constant"
attr value FLOAT 0.5
from squeeze2 X=y -> Out=Out XShape=s2
attr axes INTS [2]
out Out float32 [1, 2, 4, 6] 0.5*8 -0.58 0.32 -0.46 0.5 0.5 0.5 0.26 0.39 -0.62 0.5 0.5 0.5 0.01
  -0.12 -0.93 0.5*9 0.73 0.84 -0.51 0.5 0.5 0.5 -0.81 0.51 -0.75 0.5 0.5 0.5 -0.54 0.6 0.13 0.5

example constant, float64
attr paddings INTS [1, 0, 2, 1]
attr mode STRING "constant"
attr pad_value FLOAT 0.5
in X float64 [1, 2, 3, 3] 0.27 0.59 0.52 0.33 -0.65 -0.85 -0.48 -0.05 0.94 0.2 0.19 -0.14 0.53 0.04
  0.64 -0.34 0.75 0.17
from unsqueeze2 X=X -> Out=x XShape=s1
attr axes INTS [2]
from pad3d X=x -> Out=y
attr paddings INTS [2, 1, 1, 0, 0, 0]
attr mode STRING "constant"
attr value FLOAT 0.5
from squeeze2 X=y -> Out=Out XShape=s2
attr axes INTS [2]
out Out float64 [1, 2, 4, 6] 0.5*8 0.27 0.59 0.52 0.5 0.5 0.5 0.33 -0.65 -0.85 0.5 0.5 0.5 -0.48
  -0.05 0.94 0.5*9 0.2 0.19 -0.14 0.5 0.5 0.5 0.53 0.04 0.64 0.5 0.5 0.5 -0.34 0.75 0.17 0.5

example reflect, float32
attr paddings INTS [1, 0, 2, 1]
attr mode STRING "reflect"
attr pad_value FLOAT 0.5
in X float32 [1, 2, 3, 3] 0.54 -0.86 -0.26 -0.96 -0.44 0.48 0.06 0.31 0.93 0.75 -0.68 -0.33 0.11 0.8
  0.68 -0.8 -0.46 -0.13
from unsqueeze2 X=X -> Out=x XShape=s1
attr axes INTS [2]
from pad3d X=x -> Out=y
attr paddings INTS [2, 1, 1, 0, 0, 0]
attr mode STRING "reflect"
attr value FLOAT 0.5
from squeeze2 X=y -> Out=Out XShape=s2
attr axes INTS [2]
out Out float32 [1, 2, 4, 6] 0.48 -0.44 -0.96 -0.44 0.48 -0.44 -0.26 -0.86 0.54 -0.86 -0.26 -0.86
  0.48 -0.44 -0.96 -0.44 0.48 -0.44 0.93 0.31 0.06 0.31 0.93 0.31 0.68 0.8 0.11 0.8 0.68 0.8 -0.33
  -0.68 0.75 -0.68 -0.33 -0.68 0.68 0.8 0.11 0.8 0.68 0.8 -0.13 -0.46 -0.8 -0.46 -0.13 -0.46

example edge, float32
attr paddings INTS [1, 0, 2, 1]
attr mode STRING "edge"
attr pad_value FLOAT 0.5
in X float32 [1, 2, 3, 3] 0.44 -0.68 -0.59 0.17 -0.37 0.84 0.18 -0.6 0.65 -0.19 -0.56 -0.73 -0.04
  0.25 -0.14 0.03 0.57 0.07
from unsqueeze2 X=X -> Out=x XShape=s1
attr axes INTS [2]
from pad3d X=x -> Out=y
attr paddings INTS [2, 1, 1, 0, 0, 0]
attr mode STRING "replicate"
attr value FLOAT 0.5
from squeeze2 X=y -> Out=Out XShape=s2
attr axes INTS [2]
out Out float32 [1, 2, 4, 6] 0.44 0.44 0.44 -0.68 -0.59 -0.59 0.44 0.44 0.44 -0.68 -0.59 -0.59 0.17
  0.17 0.17 -0.37 0.84 0.84 0.18 0.18 0.18 -0.6 0.65 0.65 -0.19 -0.19 -0.19 -0.56 -0.73 -0.73 -0.19
  -0.19 -0.19 -0.56 -0.73 -0.73 -0.04 -0.04 -0.04 0.25 -0.14 -0.14 0.03 0.03 0.03 0.57 0.07 0.07

example channels last
attr paddings INTS [0, 1, 1, 0]
attr mode STRING "constant"
attr data_format STRING "NHWC"
in X float32 [1, 2, 3, 2] -0.68 0.84 -0.91 0.3 -0.17 -0.51 -0.99 -0.2 -0.58 0.86 0.8 0.44
from pad X=X -> Out=Out
attr paddings INTS [0, 0, 0, 1, 1, 0, 0, 0]
out Out float32 [1, 3, 4, 2] 0 0 -0.68 0.84 -0.91 0.3 -0.17 -0.51 0 0 -0.99 -0.2 -0.58 0.86 0.8 0.44
  0*8

example int32
attr paddings INTS [1, 1, 0, 1]
attr pad_value FLOAT 7.0
in X int32 [1, 1, 2, 2] 4 5 5 8
from pad X=X -> Out=Out
attr paddings INTS [0, 0, 0, 0, 1, 1, 0, 1]
attr pad_value FLOAT 7
out Out int32 [1, 1, 4, 3] 7 7 7 4 5 7 5 8 7*4

example paddings from a tensor
in X float32 [1, 1, 2, 2] -0.64 -0 0.57 -0.15
in Paddings int32 [4] 1 0 0 2
from pad X=X -> Out=Out
attr paddings INTS [0, 0, 0, 0, 1, 0, 0, 2]
out Out float32 [1, 1, 3, 4] 0*4 -0.64 -0 0 0 0.57 -0.15 0 0
)")

HEDDLE_EXAMPLES(pad2d_grad, R"(
example constant
attr paddings INTS [1, 0, 2, 1]
attr mode STRING "constant"
in X float64 [1, 1, 3, 3] 0.3 0.59 -0.23 -0.63 -0.64 -0.51 0.4 0.05 -0.9
in Out@GRAD float64 [1, 1, 4, 6] 0.44 -0.01 0.71 -0.01 -0.21 -0.74 -0.31 0.26 -0.67 0.47 -0.28 -0.26
  -0.49 0.06 0.55 -0.16 0.2 0.74 -0.8 0.84 -0.99 0.77 0.58 0.92
from unsqueeze2 X=X -> Out=x XShape=s1
attr axes INTS [2]
from unsqueeze2 X=Out@GRAD -> Out=g XShape=s2
attr axes INTS [2]
from pad3d_grad X=x Out@GRAD=g -> X@GRAD=h
attr paddings INTS [2, 1, 1, 0, 0, 0]
attr mode STRING "constant"
attr value FLOAT 0.5
from squeeze2 X=h -> Out=X@GRAD XShape=s3
attr axes INTS [2]
out X@GRAD float64 [1, 1, 3, 3] -0.67 0.47 -0.28 0.55 -0.16 0.2 -0.99 0.77 0.58

example reflect
attr paddings INTS [1, 0, 2, 1]
attr mode STRING "reflect"
in X float64 [1, 1, 3, 3] 0.2 0.26 0.93 0.58 -0.63 0.2 0.64 0.5 0.72
in Out@GRAD float64 [1, 1, 4, 6] -0.51 0.72 0.35 -0.42 0.2 0.84 0.85 -0.55 -0.3 -0.5 0.37 -0.22 -0.8
  -0.41 -0.62 -0.2 0.36 -0.68 0.67 -0.62 0.84 0.17 0.2 -0.38
from unsqueeze2 X=X -> Out=x XShape=s1
attr axes INTS [2]
from unsqueeze2 X=Out@GRAD -> Out=g XShape=s2
attr axes INTS [2]
from pad3d_grad X=x Out@GRAD=g -> X@GRAD=h
attr paddings INTS [2, 1, 1, 0, 0, 0]
attr mode STRING "reflect"
attr value FLOAT 0.5
from squeeze2 X=h -> Out=X@GRAD XShape=s3
attr axes INTS [2]
out X@GRAD float64 [1, 1, 3, 3] -0.3 -1.27 1.22 -0.27 -0.15000000000000002 -0.7500000000000001 0.84
  -0.83 0.8700000000000001

example edge
attr paddings INTS [1, 0, 2, 1]
attr mode STRING "edge"
in X float64 [1, 1, 3, 3] 0.17 -0.56 -0.78 -0.73 -0.94 -0.64 0.77 -0.05 0.39
in Out@GRAD float64 [1, 1, 4, 6] 0.87 0.58 -0.77 0.05 0.27 0.85 0.8 -0.64 -0.33 0.19 -0.76 -0.82
  -0.23 -0.67 -0.9 -0.51 -0.16 -0.1 0.33 -0.38 0.49 0.01 0.29 -0.47
from unsqueeze2 X=X -> Out=x XShape=s1
attr axes INTS [2]
from unsqueeze2 X=Out@GRAD -> Out=g XShape=s2
attr axes INTS [2]
from pad3d_grad X=x Out@GRAD=g -> X@GRAD=h
attr paddings INTS [2, 1, 1, 0, 0, 0]
attr mode STRING "replicate"
attr value FLOAT 0.5
from squeeze2 X=h -> Out=X@GRAD XShape=s3
attr axes INTS [2]
out X@GRAD float64 [1, 1, 3, 3] 0.51 0.24 -0.45999999999999985 -1.8 -0.51 -0.26 0.44 0.01 -0.18
)")

HEDDLE_EXAMPLES(pad3d_double_grad, R"(
example float32
attr paddings INTS [1, 0, 0, 1, 0, 0]
attr mode STRING "constant"
attr data_format STRING "NCDHW"
attr value FLOAT 0.0
in grad_x@GRAD float32 [1, 1, 2, 2, 2] 0.65 -0.38 0.01 0.7 -0.41 0.35 -0.16 0.36
out grad_out@GRAD float32 [1, 1, 2, 3, 3] 0 0.65 -0.38 0 0.01 0.7 0*4 -0.41 0.35 0 -0.16 0.36 0 0 0

example float64
attr paddings INTS [1, 0, 0, 1, 0, 0]
attr mode STRING "constant"
attr data_format STRING "NCDHW"
attr value FLOAT 0.0
in grad_x@GRAD float64 [1, 1, 2, 2, 2] -0.82 -0.79 0.64 -0.79 -0.74 0.96 -0.2 0.81
out grad_out@GRAD float64 [1, 1, 2, 3, 3] 0 -0.82 -0.79 0 0.64 -0.79 0*4 -0.74 0.96 0 -0.2 0.81 0 0
  0
)")

HEDDLE_EXAMPLES(pad3d_grad, R"(
example float32, constant
attr paddings INTS [1, 0, 0, 1, 0, 0]
attr mode STRING "constant"
attr data_format STRING "NCDHW"
attr value FLOAT 0.5
in X float32 [1, 1, 1, 2, 2] -0.31 -0.37 0.69 0.76
in Out@GRAD float32 [1, 1, 1, 3, 3] 0.35 -0.89 0.12 0.39 0.65 -0.38 0.01 0.7 -0.41
out X@GRAD float32 [1, 1, 1, 2, 2] -0.89 0.12 0.65 -0.38

example float64, constant
attr paddings INTS [1, 0, 0, 1, 0, 0]
attr mode STRING "constant"
attr data_format STRING "NCDHW"
attr value FLOAT 0.5
in X float64 [1, 1, 1, 2, 2] 0.02 0.25 0.79 -0.4
in Out@GRAD float64 [1, 1, 1, 3, 3] -0.49 0.26 0.99 0.78 -0.86 -0.03 -0.24 0.77 -0.54
out X@GRAD float64 [1, 1, 1, 2, 2] 0.26 0.99 -0.86 -0.03

example float64, reflect
attr paddings INTS [1, 0, 0, 1, 0, 0]
attr mode STRING "reflect"
attr data_format STRING "NCDHW"
attr value FLOAT 0.5
in X float64 [1, 1, 1, 2, 2] 1 -0.25 -0 -0
in Out@GRAD float64 [1, 1, 1, 3, 3] -0.98 -0.25 0.46 0.48 -0.55 0.05 0.42 -0.04 -0.87
out X@GRAD float64 [1, 1, 1, 2, 2] -0.29 -0.97 -0.55 0.53

example float64, replicate
attr paddings INTS [1, 0, 0, 1, 0, 0]
attr mode STRING "replicate"
attr data_format STRING "NCDHW"
attr value FLOAT 0.5
in X float64 [1, 1, 1, 2, 2] 0.4 -0.44 -0.16 0.23
in Out@GRAD float64 [1, 1, 1, 3, 3] 0.02 0.36 0.96 -0.36 -0.77 -0.49 0.18 0.01 0.91
out X@GRAD float64 [1, 1, 1, 2, 2] 0.38 0.96 -0.94 0.42000000000000004

example float64, circular
attr paddings INTS [1, 0, 0, 1, 0, 0]
attr mode STRING "circular"
attr data_format STRING "NCDHW"
attr value FLOAT 0.5
in X float64 [1, 1, 1, 2, 2] 0.02 -0.66 -0.46 0.9
in Out@GRAD float64 [1, 1, 1, 3, 3] -0.11 0.41 0.22 -0.44 0.45 -0.4 0.62 -0.16 -0.84
out X@GRAD float64 [1, 1, 1, 2, 2] 0.24999999999999997 -0.10999999999999999 0.45 -0.8400000000000001
)")
