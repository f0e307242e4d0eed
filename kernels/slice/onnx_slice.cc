// ONNX's slices: starts and ends are clamped to the axis, steps may be negative.
#include <limits>

#include "kernels/operands/operands.h"

namespace heddle {
namespace {

struct OnnxRanges {
  std::array<int64_t, Shape::kMaxRank> start{}, step{};
  Shape out;
};

template <typename Context>
Result<OnnxRanges> RangesOf(const Context& ctx) {
  const Shape& x = ShapeIn(ctx, "data");
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts starts, IntsIn(ctx, "starts"));
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts ends, IntsIn(ctx, "ends"));
  HEDDLE_ASSIGN_OR_RETURN(ShortInts axes, IntsIn(ctx, "axes"));
  HEDDLE_ASSIGN_OR_RETURN(ShortInts steps, IntsIn(ctx, "steps"));
  const size_t n = starts.size();
  if (!Has(ctx, "axes")) axes = FirstInts(static_cast<int>(n));
  if (!Has(ctx, "steps")) steps = ShortInts(n, 1);
  if (ends.size() != n || axes.size() != n || steps.size() != n)
    return InvalidArgument("starts, ends, axes and steps have ", n, ", ", ends.size(), ", ",
                           axes.size(), " and ", steps.size(), " elements, expected one number");
  HEDDLE_ASSIGN_OR_RETURN(axes, NormalAxes(axes, x.rank(), "axes"));
  OnnxRanges r;
  r.out = x;
  r.step.fill(1);
  for (size_t i = 0; i < n; ++i) {
    const int axis = static_cast<int>(axes[i]);
    const int64_t d = x[axis], step = steps[i];
    if (step == 0 || step == std::numeric_limits<int64_t>::min())
      return InvalidArgument("steps holds ", step, " for axis ", axis);
    // Below 0 an index counts from the end; far below it stays below.
    const auto clamp = [d](int64_t v, int64_t least, int64_t most) {
      return std::clamp<int64_t>(v < 0 ? (v < -d ? -1 : v + d) : v, least, most);
    };
    const int64_t start =
        step > 0 ? clamp(starts[i], 0, d) : clamp(starts[i], 0, std::max<int64_t>(0, d - 1));
    // The greatest number stands for the end of the axis: backwards, for its beginning.
    const bool all = ends[i] == std::numeric_limits<int32_t>::max() ||
                     ends[i] == std::numeric_limits<int64_t>::max();
    const int64_t end = step > 0 ? clamp(ends[i], 0, d) : all ? -1 : clamp(ends[i], -1, d - 1);
    const int64_t span = step > 0 ? end - start : start - end;
    const int64_t size = step > 0 ? step : -step;
    r.start[axis] = start;
    r.step[axis] = step;
    r.out[axis] = d == 0 || span <= 0 ? 0 : (span - 1) / size + 1;
  }
  return r;
}

Status OnnxSliceShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("data");
  if (!x.is_static() || !Known(ctx, "starts") || !Known(ctx, "ends") || !Known(ctx, "axes") ||
      !Known(ctx, "steps"))
    return SameRank(ctx, "data", "output");
  HEDDLE_ASSIGN_OR_RETURN(const OnnxRanges r, RangesOf(ctx));
  ctx.SetOut("output", r.out, ctx.InDType("data"));
  return Status::Ok();
}

Status OnnxSlice(KernelContext& ctx) {
  const Tensor& x = ctx.In("data");
  HEDDLE_ASSIGN_OR_RETURN(const OnnxRanges r, RangesOf(ctx));
  Tensor& out = ctx.Out("output");
  if (out.numel() == 0) return Status::Ok();
  const auto from = RowMajorStrides(x.shape()), to = RowMajorStrides(out.shape());
  std::array<CopyDim, Shape::kMaxRank> dims;
  int64_t offset = 0;
  for (int i = 0; i < x.rank(); ++i) {
    dims[i] = {out.shape()[i], from[i] * (out.shape()[i] > 1 ? r.step[i] : 1), to[i]};
    offset += r.start[i] * from[i];
  }
  StridedCopy(SizeOf(x.dtype()), std::span(dims.data(), static_cast<size_t>(x.rank())), offset)
      .Run(ctx, x.raw(), out.mutable_raw());
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_slice) {
  op.Doc("elements start, start + step, … before end of chosen axes, all clamped to the axis");
  op.Input("data").Input("starts", kShapeValue).Input("ends", kShapeValue);
  op.Input("axes", kOptional | kShapeValue).Input("steps", kOptional | kShapeValue);
  op.Output("output").InferShape(OnnxSliceShape).AnyKernel(OnnxSlice);
}
