// crop_tensor and crop: a box of X.
#include <algorithm>

#include "core/shapes.h"
#include "kernels/strided/index_slice.h"

namespace heddle {
namespace {

// The box from its shape (-1: to the end of X) and offsets. known = false: not decided yet.
Status Box(const Shape& x, const IntArgs& shape, const IntArgs& offsets, SliceSpec* part,
           bool* known) {
  *known = shape.known && shape.n >= 0 && offsets.known && offsets.n >= 0 && x.is_static();
  const bool no_offsets = offsets.n == 0;
  if ((shape.n >= 0 && shape.n != x.rank()) ||
      (offsets.n >= 0 && !no_offsets && offsets.n != x.rank()))
    return InvalidArgument("there are ", shape.n, " sizes and ", offsets.n,
                           " offsets for 'X' of shape ", x.ToString());
  *part = WholeSlice(x);
  for (int i = 0; i < x.rank(); ++i) {
    part->start[i] = no_offsets || !offsets.known ? 0 : offsets[i];
    part->count[i] = shape.n < 0 ? -1 : shape[i];
    if (!*known) continue;
    if (part->count[i] == -1) part->count[i] = x[i] - part->start[i];
    if (part->start[i] < 0 || part->count[i] < 0 || part->start[i] + part->count[i] > x[i])
      return OutOfRange("a box of ", part->count[i], " from ", part->start[i],
                        " does not fit dimension ", i, " of 'X' ", x.ToString());
  }
  return Status::Ok();
}

Status CropTensorBox(const OpContext& ctx, const Shape& x, SliceSpec* part, bool* known) {
  IntArgs shape, offsets;
  HEDDLE_RETURN_IF_ERROR(ReadInts(ctx, "ShapeTensor", "Shape", "shape", &shape));
  HEDDLE_RETURN_IF_ERROR(ReadInts(ctx, "OffsetsTensor", "Offsets", "offsets", &offsets));
  return Box(x, shape, offsets, part, known);
}

// The old crop may take its size from Y.
Status CropBox(const OpContext& ctx, const Shape& x, SliceSpec* part, bool* known) {
  IntArgs shape, offsets;
  if (const Value* y = ctx.InVar("Y"); Holds(y) && y->is_tensor()) {
    const Shape& size = y->tensor().shape();
    shape.n = size.known_rank() ? size.rank() : -1;
    shape.known = size.is_static();
    for (int i = 0; i < shape.n; ++i) shape[i] = size[i];
  } else {
    const Ints& attr = ctx.IntList("shape");
    shape.n = static_cast<int>(std::min(attr.size(), size_t{IntArgs::kMax}));
    for (int i = 0; i < shape.n; ++i) shape[i] = attr[i];
  }
  HEDDLE_RETURN_IF_ERROR(ReadInts(ctx, "Offsets", "offsets", &offsets));
  return Box(x, shape, offsets, part, known);
}

using BoxFn = Status (*)(const OpContext&, const Shape&, SliceSpec*, bool*);

template <BoxFn kBox>
Status CropShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  SliceSpec part;
  bool known = false;
  HEDDLE_RETURN_IF_ERROR(kBox(ctx, x, &part, &known));
  if (!known) return ctx.Defer();
  ctx.SetOut("Out", part.counts(), ctx.InDType("X"));
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

template <BoxFn kBox>
Status Crop(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  SliceSpec part;
  bool known = false;
  HEDDLE_RETURN_IF_ERROR(kBox(ctx, x.shape(), &part, &known));
  CopyOutOf(x.shape(), part, SizeOf(x.dtype())).Run(ctx, x.raw(), ctx.Out("Out").mutable_raw());
  return Status::Ok();
}

// The box has the gradient's shape; only the offsets are needed.
Status RunGrad(const KernelContext& ctx, const IntArgs& offsets) {
  const Tensor& grad = ctx.In("Out@GRAD");
  Tensor& out = ctx.Out("X@GRAD");
  IntArgs shape;
  shape.n = grad.rank();
  for (int i = 0; i < grad.rank(); ++i) shape[i] = grad.dim(i);
  SliceSpec part;
  bool known = false;
  HEDDLE_RETURN_IF_ERROR(Box(out.shape(), shape, offsets, &part, &known));
  ZeroBytes(ctx, out.mutable_raw(), out.bytes());
  CopyInto(out.shape(), part, SizeOf(out.dtype())).Run(ctx, grad.raw(), out.mutable_raw());
  return Status::Ok();
}

Status CropTensorGrad(KernelContext& ctx) {
  IntArgs offsets;
  HEDDLE_RETURN_IF_ERROR(ReadInts(ctx, "OffsetsTensor", "Offsets", "offsets", &offsets));
  return RunGrad(ctx, offsets);
}

Status CropGrad(KernelContext& ctx) {
  IntArgs offsets;
  HEDDLE_RETURN_IF_ERROR(ReadInts(ctx, "Offsets", "offsets", &offsets));
  return RunGrad(ctx, offsets);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(crop_tensor) {
  op.Doc("The box of X of the given shape (-1: the rest) that starts at the offsets.")
      .Input("X")
      .Input("Shape", kOptional | kShapeValue)
      .Input("ShapeTensor", kOptional | kList | kShapeValue)
      .Input("Offsets", kOptional | kShapeValue)
      .Input("OffsetsTensor", kOptional | kList | kShapeValue)
      .Output("Out")
      .Attr("shape", Ints{})
      .Attr("offsets", Ints{})
      .InferShape(CropShape<CropTensorBox>)
      .AnyKernel(Crop<CropTensorBox>);
}
HEDDLE_OP(crop_tensor_grad) {
  op.Input("Out@GRAD")
      .Input("X", kNoBuffer)
      .Input("Shape", kOptional | kNoBuffer)
      .Input("ShapeTensor", kOptional | kList | kNoBuffer)
      .Input("Offsets", kOptional)
      .Input("OffsetsTensor", kOptional | kList)
      .Output("X@GRAD")
      .Attr("offsets", Ints{})
      .InferShape(GradLikeInputs)
      .AnyKernel(CropTensorGrad);
}
HEDDLE_OP(crop) {
  op.Doc("The box of X with Y's shape, or the attribute's, that starts at the offsets.")
      .Input("X")
      .Input("Y", kOptional | kNoBuffer)
      .Input("Offsets", kOptional | kShapeValue)
      .Output("Out")
      .Attr("shape", Ints{})
      .Attr("offsets", Ints{})
      .InferShape(CropShape<CropBox>)
      .AnyKernel(Crop<CropBox>);
}
HEDDLE_OP(crop_grad) {
  op.Input("Out@GRAD")
      .Input("X", kNoBuffer)
      .Input("Y", kOptional | kNoBuffer)
      .Input("Offsets", kOptional)
      .Output("X@GRAD")
      .Attr("offsets", Ints{})
      .InferShape(GradLikeInputs)
      .AnyKernel(CropGrad);
}

HEDDLE_EXAMPLES(crop_tensor, R"(
example float64 4x4, offsets 1 2, shape 2 2
attr offsets INTS [1, 2]
attr shape INTS [2, 2]
in X float64 [4, 4] 0.525 0.293 0.235 0.119 0.698 0.409 0.872 0.061 0.93 0.582 0.756 0.351 0.814
  0.467 0.177 0.64
out Out float64 [2, 2] 0.872 0.061 0.756 0.351

example float32 1x1, offsets 0 0, shape 1 1
attr offsets INTS [0, 0]
attr shape INTS [1, 1]
in X float32 [1, 1] 0.094
out Out float32 [1, 1] 0.094

example float32 1, offsets 0, shape 1
attr offsets INTS [0]
attr shape INTS [1]
in X float32 [1] 0.634
out Out float32 [1] 0.634

example float64 2x3x2x2, offsets 0 0 1 0
attr offsets INTS [0, 0, 1, 0]
in Shape int32 [4] -1 3 -1 2
in X float64 [2, 3, 2, 2] 0.719 0.599 0.16 0.24 0.48 0.32 0.919 0.2 0.839 0.559 0.879 0.12 0.679
  0.799 0.759 0.28 0.639 0.36 0.519 0.08 0.04 0.44 0.4 0.959
out Out float64 [2, 3, 1, 2] 0.16 0.24 0.919 0.2 0.879 0.12 0.759 0.28 0.519 0.08 0.4 0.959

example int64 4x4, offsets 1 2, shape 2 2
attr offsets INTS [1, 2]
attr shape INTS [2, 2]
in X int64 [4, 4] 1 1 0 0 1 1 0 1 0 1 1 1 0 1 0 1
out Out int64 [2, 2] 0 1 1 1
)")

HEDDLE_EXAMPLES(crop_tensor_grad, R"(
example float64 1x1, offsets 0 0
attr offsets INTS [0, 0]
in Out@GRAD float64 [1, 1] -0.2
in X float64 [1, 1] 0.094
out X@GRAD float64 [1, 1] -0.2

example float64 1, offsets 0
attr offsets INTS [0]
in Out@GRAD float64 [1] -0.2
in X float64 [1] 0.634
out X@GRAD float64 [1] -0.2

example float64 2x3x2x2, offsets 0 0 1 0
attr offsets INTS [0, 0, 1, 0]
in Out@GRAD float64 [2, 3, 1, 2] 0.5 0.1 -0.4 0.6 -0 -0.8 -0.2 -0.2 -0.3 -0.8 -0.3 -0.2
in X float64 [2, 3, 2, 2] 0.08 0.759 0.839 0.24 0.28 0.519 0.599 0.679 0.4 0.559 0.48 0.879 0.36
  0.44 0.919 0.16 0.32 0.12 0.719 0.639 0.959 0.2 0.799 0.04
out X@GRAD float64 [2, 3, 2, 2] 0 0 0.5 0.1 0 0 -0.4 0.6 0 0 -0 -0.8 0 0 -0.2 -0.2 0 0 -0.3 -0.8 0 0
  -0.3 -0.2

example float32 1x1, offsets 0 0
attr offsets INTS [0, 0]
in Out@GRAD float32 [1, 1] -0.2
in X float32 [1, 1] 0.094
out X@GRAD float32 [1, 1] -0.2
)")

HEDDLE_EXAMPLES(crop, R"(
example float64 4x4, offsets 1 2, shape 2 2
attr offsets INTS [1, 2]
attr shape INTS [2, 2]
in X float64 [4, 4] 0.351 0.177 0.814 0.582 0.409 0.93 0.293 0.64 0.525 0.756 0.119 0.698 0.061
  0.872 0.467 0.235
out Out float64 [2, 2] 0.293 0.64 0.119 0.698

example float64 4x4, offsets 0 0
attr offsets INTS [0, 0]
in X float64 [4, 4] 0.18 0.763 0.297 0.239 0.064 0.413 0.705 0.646 0.588 0.355 0.53 0.472 0.821 0.88
  0.938 0.122
in Y float64 [4, 4] 0.622 0.903 0.116 0.566 0.734 0.51 0.678 0.847 0.341 0.06 0.397 0.791 0.228
  0.285 0.453 0.172
out Out float64 [4, 4] 0.18 0.763 0.297 0.239 0.064 0.413 0.705 0.646 0.588 0.355 0.53 0.472 0.821
  0.88 0.938 0.122

example float32 4x4, offsets 1 2, shape 2 2
attr offsets INTS [1, 2]
attr shape INTS [2, 2]
in X float32 [4, 4] 0.351 0.177 0.814 0.582 0.409 0.93 0.293 0.64 0.525 0.756 0.119 0.698 0.061
  0.872 0.467 0.235
out Out float32 [2, 2] 0.293 0.64 0.119 0.698
)")

HEDDLE_EXAMPLES(crop_grad, R"(
example float64 4x4, offsets 1 2
attr offsets INTS [1, 2]
in Out@GRAD float64 [2, 2] -0.4 0.3 0.2 0.6
in X float64 [4, 4] 0.362 0.189 0.823 0.592 0.419 0.938 0.304 0.65 0.535 0.765 0.131 0.707 0.074
  0.88 0.477 0.247
out X@GRAD float64 [4, 4] 0*6 -0.4 0.3 0 0 0.2 0.6 0*4

example float64 4x4, offsets 0 0
attr offsets INTS [0, 0]
in Out@GRAD float64 [4, 4] 0.4 0.2 0.4 -0.2 -0.1 -0.2 0 -0.8 0.9 -0 0.9 -0.4 0.5 -0.4 -0.4 0.5
in X float64 [4, 4] 0.765 0.189 0.535 0.88 0.707 0.247 0.074 0.304 0.131 0.823 0.592 0.419 0.938
  0.65 0.477 0.362
out X@GRAD float64 [4, 4] 0.4 0.2 0.4 -0.2 -0.1 -0.2 0 -0.8 0.9 -0 0.9 -0.4 0.5 -0.4 -0.4 0.5

example float32 4x4, offsets 1 2
attr offsets INTS [1, 2]
in Out@GRAD float32 [2, 2] -0.4 0.3 0.2 0.6
in X float32 [4, 4] 0.362 0.189 0.823 0.592 0.419 0.938 0.304 0.65 0.535 0.765 0.131 0.707 0.074
  0.88 0.477 0.247
out X@GRAD float32 [4, 4] 0*6 -0.4 0.3 0 0 0.2 0.6 0*4
)")
