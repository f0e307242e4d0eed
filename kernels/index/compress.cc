// The slices along an axis, or the elements, for which a condition holds.
#include <vector>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/call_heap.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

Status Compress(KernelContext& ctx) {
  const Tensor& x = ctx.In("input");
  const Tensor& condition = ctx.In("condition");
  if (condition.dtype() != DType::kBool)
    return InvalidArgument("condition is ", Name(condition.dtype()), ", expected bool");
  AxisLines lines{1, x.numel(), 1};
  Shape shape{0};
  int axis = 0;
  if (ctx.Bool("has_axis")) {
    HEDDLE_ASSIGN_OR_RETURN(axis, NormalAxis(ctx.Int("axis"), x.rank()));
    lines = AxisLines::Of(x.shape(), axis);
    if (x.rank() > 0) shape = x.shape();
  }
  if (condition.numel() > lines.n)
    return InvalidArgument("condition has ", condition.numel(), " elements, input ",
                           x.shape().ToString(), " has ", lines.n, " to choose from");
  CallHeap heap(ctx);
  std::pmr::vector<int64_t> chosen(&heap);
  chosen.reserve(static_cast<size_t>(condition.numel()));
  for (const auto part : Stretches(condition.numel()))
    for (int64_t i = part.begin; i < part.end; ++i)
      if (condition.data<bool>()[i]) chosen.push_back(i);
  shape[axis] = static_cast<int64_t>(chosen.size());
  Tensor& out = ctx.Alloc("output", x.dtype(), shape);
  const int64_t row = lines.inner * static_cast<int64_t>(SizeOf(x.dtype()));
  const auto* from = static_cast<const std::byte*>(x.raw());
  auto* to = static_cast<std::byte*>(out.mutable_raw());
  for (const int64_t o : Watched(lines.outer))
    for (const int64_t i : chosen) to = WatchedCopy(from + (o * lines.n + i) * row, row, to);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(compress) {
  op.Doc("the elements, or slices along an axis, for which condition holds; it may be shorter");
  op.Input("input").Input("condition").Output("output");
  op.Attr("has_axis", false).Attr("axis", 0).AnyKernel(Compress);
}
