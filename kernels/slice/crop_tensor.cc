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
    const bool starts_inside = part->start[i] >= 0 && part->start[i] <= x[i];
    if (part->count[i] == -1 && starts_inside) part->count[i] = x[i] - part->start[i];
    if (!starts_inside || part->count[i] < 0 || part->count[i] > x[i] - part->start[i])
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
