#include "core/interrupts.h"
#include "kernels/pool/windows.h"

namespace heddle {
namespace {

// The shape whose positions the indices name.
template <typename Context>
Result<Shape> IndexedShape(const Context& ctx) {
  const Shape& x = ShapeIn(ctx, "X");
  HEDDLE_ASSIGN_OR_RETURN(const Shape in, SpatialOf(x, "X"));
  const int rank = in.rank();
  HEDDLE_ASSIGN_OR_RETURN(const Shape kernel, KernelOf(ctx, nullptr, rank));
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts strides,
                          ListOr(ctx.IntList("strides"), rank, 1, "strides"));
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts pads, ListOr(ctx.IntList("pads"), 2 * rank, 0, "pads"));
  ShortInts dims{x[0], x[1]};
  for (int i = 0; i < rank; ++i) {
    const auto at = static_cast<size_t>(i);
    dims.push_back((in[i] - 1) * strides[at] + kernel[i] - pads[at] -
                   pads[at + static_cast<size_t>(rank)]);
  }
  return MakeShape(dims, "the result");
}

Status OnnxMaxUnpoolShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"X", "I"}) || !Known(ctx, "output_shape")) return ctx.Defer();
  if (!(ctx.InShape("X") == ctx.InShape("I")))
    return InvalidArgument("X ", ctx.InShape("X").ToString(), " and I ",
                           ctx.InShape("I").ToString(), " must have one shape");
  HEDDLE_ASSIGN_OR_RETURN(Shape out, IndexedShape(ctx));
  if (ctx.HasIn("output_shape")) {
    HEDDLE_ASSIGN_OR_RETURN(const ShortInts wanted, IntsIn(ctx, "output_shape"));
    HEDDLE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(wanted, "output_shape"));
    bool good = shape.rank() == out.rank();
    for (int i = 0; good && i < out.rank(); ++i) good = shape[i] >= out[i];
    if (!good)
      return InvalidArgument("output_shape is ", shape.ToString(), ", expected at least ",
                             out.ToString());
    out = shape;
  }
  ctx.SetOut("output", out, ctx.InDType("X"));
  return Status::Ok();
}

Status OnnxMaxUnpool(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  const Tensor& index = ctx.In("I");
  Tensor& out = ctx.Out("output");
  if (index.dtype() != DType::kI64)
    return InvalidArgument("I is ", Name(index.dtype()), ", expected int64");
  HEDDLE_ASSIGN_OR_RETURN(const Shape indexed, IndexedShape(ctx));
  ZeroBytes(ctx, out.mutable_raw(), out.bytes());
  const auto strides = RowMajorStrides(out.shape());
  const size_t size = SizeOf(x.dtype());
  const auto* from = static_cast<const std::byte*>(x.raw());
  auto* to = static_cast<std::byte*>(out.mutable_raw());
  const int64_t* at = index.data<int64_t>();
  for (const int64_t i : Watched(x.numel())) {
    if (at[i] < 0 || at[i] >= indexed.numel())
      return OutOfRange("I holds ", at[i], ", expected 0 to ", indexed.numel() - 1);
    int64_t rest = at[i], place = 0;
    for (int axis = indexed.rank() - 1; axis >= 0; --axis) {
      place += rest % indexed[axis] * strides[axis];
      rest /= indexed[axis];
    }
    std::memcpy(to + static_cast<size_t>(place) * size, from + static_cast<size_t>(i) * size, size);
  }
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_max_unpool) {
  op.Doc("zeros, and the elements of X at the positions I, the indices of a max pooling");
  op.Input("X").Input("I").Input("output_shape", kOptional | kShapeValue).Output("output");
  op.Attr("kernel_shape", Ints{}).Attr("strides", Ints{}).Attr("pads", Ints{});
  op.InferShape(OnnxMaxUnpoolShape).KernelKey("X").AnyKernel(OnnxMaxUnpool);
}
