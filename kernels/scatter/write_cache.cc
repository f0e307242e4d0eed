// A key or value cache with new rows written behind those of before.
#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/index_args.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

Status WriteCacheShape(ShapeContext& ctx) {
  const Shape& cache = ctx.InShape("past_cache");
  const Shape& update = ctx.InShape("update");
  if (!AllStatic(ctx, {"past_cache", "update", "write_indices"}))
    return SameRank(ctx, "past_cache", "present_cache", cache.rank());
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), cache.rank()));
  if (axis == 0) return InvalidArgument("axis is 0, the batch's, expected another one");
  bool fits = cache.rank() == update.rank();
  for (int i = 0; fits && i < cache.rank(); ++i)
    fits = i == axis ? update[i] <= cache[i] : update[i] == cache[i];
  if (!fits || ctx.InDType("update") != ctx.InDType("past_cache"))
    return InvalidArgument("update ", update.ToString(), " does not fit past_cache ",
                           cache.ToString(), " but for axis ", axis);
  if (ctx.HasIn("write_indices")) {
    HEDDLE_RETURN_IF_ERROR(CheckIntDType(ctx.InDType("write_indices"), "write_indices"));
    if (ctx.InShape("write_indices").numel() != cache[0])
      return InvalidArgument("write_indices has shape ", ctx.InShape("write_indices").ToString(),
                             ", expected ", cache[0], " elements");
  }
  ctx.SetOut("present_cache", cache, ctx.InDType("past_cache"));
  return Status::Ok();
}

Status WriteCache(KernelContext& ctx) {
  const Tensor& cache = ctx.In("past_cache");
  const Tensor& update = ctx.In("update");
  const Tensor* write = ctx.InOpt("write_indices");
  Tensor& out = ctx.Out("present_cache");
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), cache.rank()));
  const std::string& mode = ctx.Str("mode");
  if (mode != "linear" && mode != "circular")
    return InvalidArgument("mode is '", mode, "', expected linear or circular");
  const int64_t n = cache.shape()[axis], rows = update.shape()[axis];
  for (const int64_t b : Watched(cache.shape()[0])) {
    const int64_t begin = write == nullptr ? 0 : IntAt(*write, b);
    if (begin < 0 || (mode == "linear" ? begin > n - rows : begin >= std::max<int64_t>(1, n)))
      return OutOfRange("write_indices holds ", begin, ": ", rows, " rows do not fit axis ", axis,
                        " of past_cache ", cache.shape().ToString());
  }
  if (out.raw() != cache.raw()) CopyBytes(ctx, cache.raw(), out.mutable_raw(), cache.bytes());
  const int64_t row =
      cache.shape().Product(axis + 1, cache.rank()) * static_cast<int64_t>(SizeOf(cache.dtype()));
  const int64_t outer = cache.shape().Product(1, axis);
  const auto* from = static_cast<const std::byte*>(update.raw());
  auto* to = static_cast<std::byte*>(out.mutable_raw());
  for (const int64_t i : Watched(cache.shape()[0] * outer)) {
    const int64_t begin = write == nullptr ? 0 : IntAt(*write, i / outer);
    for (int64_t r = 0; r < rows; ++r)
      WatchedMemcpy(to + (i * n + (begin + r) % n) * row, from + (i * rows + r) * row,
                    static_cast<size_t>(row));
  }
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(write_cache) {
  op.Doc("past_cache with update written along an axis from write_indices on, per batch");
  op.Input("past_cache").Input("update").Input("write_indices", kOptional).Output("present_cache");
  op.Attr("axis", -2).Attr("mode", "linear").Inplace("past_cache", "present_cache");
  op.InferShape(WriteCacheShape).KernelKey("past_cache").AnyKernel(WriteCache);
}
