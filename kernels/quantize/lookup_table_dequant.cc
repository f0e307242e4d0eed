// lookup_table_dequant: rows of an embedding table that is stored in 8 bits with a range per row.
#include <cstring>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "core/operands/any_address.h"
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

// Rows of W: the smallest and the largest value, then bytes that divide the way between them.
Status LookupDequantized(KernelContext& ctx) {
  const Tensor &w = ctx.In("W"), &ids = ctx.In("Ids");
  if (w.rank() != 2 || w.dim(1) < 2 || w.dtype() != DType::kF32 || ids.rank() < 1)
    return InvalidArgument("W must be float32 [N, at least 2], not ", w.shape().ToString());
  const int64_t width = (w.dim(1) - 2) * 4, padding = ctx.Int("padding_idx");
  if (ids.dim(-1) != 1)
    return InvalidArgument("the last dimension of Ids must be 1, not ", ids.shape().ToString());
  Shape shape = ids.shape();
  shape[shape.rank() - 1] = width;
  float* to = ctx.Alloc("Out", DType::kF32, shape).mutable_data<float>();
  for (int64_t id : ToInts(ids)) {
    LookForInterrupt();
    if (padding >= 0 && id == padding) {
      to = WatchedFill(to, width, 0.f);
      continue;
    }
    if (id < 0 || id >= w.dim(0)) return OutOfRange("id ", id, " is not in [0, ", w.dim(0), ")");
    float limits[2];
    const auto* row = static_cast<const uint8_t*>(w.raw()) + id * w.dim(1) * 4;
    std::memcpy(limits, row, sizeof(limits));
    const float scale = (limits[1] - limits[0]) / 256.f;
    for (int64_t i = 0; i < width; ++i)
      *to++ = scale * static_cast<float>(row[sizeof(limits) + static_cast<size_t>(i)]) + limits[0];
  }
  if (ids.has_lod()) ctx.Out("Out").set_lod(ids.lod());
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(lookup_table_dequant) {
  op.Doc("rows of a table whose values are bytes between two floats")
      .Input("W", kAnyAddress)
      .Input("Ids");
  op.Output("Out").Attr("padding_idx", -1).AnyKernel(LookupDequantized);
}
