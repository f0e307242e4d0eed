// The middle of a tensor, or the tensor in the middle of zeros.
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

Status CenterCropPadShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("input_data");
  if (!x.is_static() || !Known(ctx, "shape")) return SameRank(ctx, "input_data", "output_data");
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts sizes, IntsIn(ctx, "shape"));
  ShortInts axes = ctx.IntList("axes");
  if (axes.empty()) axes = FirstInts(x.rank());
  HEDDLE_ASSIGN_OR_RETURN(axes, NormalAxes(axes, x.rank(), "axes"));
  if (sizes.size() != axes.size())
    return InvalidArgument("shape has ", sizes.size(), " elements, expected one for each of ",
                           axes.size(), " axes");
  ShortInts dims(x.begin(), x.end());
  for (size_t i = 0; i < axes.size(); ++i) dims[static_cast<size_t>(axes[i])] = sizes[i];
  HEDDLE_ASSIGN_OR_RETURN(const Shape out, MakeShape(dims, "shape"));
  ctx.SetOut("output_data", out, ctx.InDType("input_data"));
  return Status::Ok();
}

Status CenterCropPad(KernelContext& ctx) {
  const Tensor& x = ctx.In("input_data");
  Tensor& out = ctx.Out("output_data");
  ZeroBytes(ctx, out.mutable_raw(), out.bytes());
  const auto from = RowMajorStrides(x.shape()), to = RowMajorStrides(out.shape());
  std::array<CopyDim, Shape::kMaxRank> dims;
  int64_t src = 0, dst = 0;
  for (int i = 0; i < x.rank(); ++i) {
    const int64_t n = x.shape()[i], m = out.shape()[i];
    dims[i] = {std::min(n, m), from[i], to[i]};
    if (n > m) src += (n - m) / 2 * from[i];
    if (m > n) dst += (m - n) / 2 * to[i];
  }
  if (x.numel() > 0 && out.numel() > 0)
    StridedCopy(SizeOf(x.dtype()), std::span(dims.data(), static_cast<size_t>(x.rank())), src, dst)
        .Run(ctx, x.raw(), out.mutable_raw());
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(center_crop_pad) {
  op.Doc("axes cut or filled up with zeros to given sizes, alike on both sides");
  op.Input("input_data").Input("shape", kShapeValue).Output("output_data").Attr("axes", Ints{});
  op.InferShape(CenterCropPadShape).AnyKernel(CenterCropPad);
}
