// shuffle_batch: rows in random order.
#include <vector>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "core/threads/look_meter.h"
#include "kernels/base/shape_checks.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

// In the units of LookMeter: rows that are read in random order.
constexpr int64_t kSwapWork = 16, kRowWork = 16;

// X seen as rows of its last axis.
struct Rows {
  int64_t count;
  size_t bytes;
  explicit Rows(const Tensor& x)
      : count(x.rank() == 0 ? 1 : x.shape().Product(0, x.rank() - 1)),
        bytes(x.rank() == 0 ? SizeOf(x.dtype())
                            : static_cast<size_t>(x.dim(x.rank() - 1)) * SizeOf(x.dtype())) {}
};

Status ShuffleBatch(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  const Rows rows(x);
  const Tensor* seed = ctx.InOpt("Seed");
  std::minstd_rand0 engine(static_cast<uint32_t>(
      seed != nullptr && seed->numel() > 0 ? ToInts(*seed)[0] : ctx.Int("startup_seed")));
  const auto next_seed = static_cast<int64_t>(engine());  // for the next batch
  std::vector<int64_t> order(static_cast<size_t>(rows.count));
  for (const auto part : Stretches(rows.count))
    for (int64_t i = part.begin; i < part.end; ++i) order[static_cast<size_t>(i)] = i;
  LookMeter meter;
  for (int64_t i = rows.count - 1; i > 0; --i) {
    meter.Did(kSwapWork);
    std::swap(order[static_cast<size_t>(i)],
              order[static_cast<size_t>(static_cast<int64_t>(engine()) % (i + 1))]);
  }
  // ShuffleIdx says where each row of X goes.
  int64_t* index = ctx.Alloc("ShuffleIdx", DType::kI64, Shape{rows.count}).mutable_data<int64_t>();
  for (const auto part : Stretches(rows.count))
    for (int64_t i = part.begin; i < part.end; ++i) index[order[static_cast<size_t>(i)]] = i;
  Tensor& out = ctx.Alloc("Out", x.dtype(), x.shape());
  for (int64_t i = 0; i < rows.count && rows.bytes > 0; ++i) {
    meter.Did(kRowWork);
    WatchedMemcpy(
        out.mutable_data<std::byte>() + static_cast<size_t>(i) * rows.bytes,
        x.data<std::byte>() + static_cast<size_t>(order[static_cast<size_t>(i)]) * rows.bytes,
        rows.bytes);
  }
  if (x.has_lod()) out.set_lod(x.lod());
  if (ctx.HasOut("SeedOut"))
    *ctx.Alloc("SeedOut", DType::kI64, Shape{1}).mutable_data<int64_t>() = next_seed;
  return Status::Ok();
}

Status ShuffleBatchGrad(KernelContext& ctx) {
  const Tensor &d = ctx.In("Out@GRAD"), &index = ctx.In("ShuffleIdx");
  const Rows rows(d);
  const Ints order = ToInts(index);
  if (std::ssize(order) != rows.count) return InvalidArgument("ShuffleIdx does not fit Out@GRAD");
  Tensor& dx = ctx.Alloc("X@GRAD", d.dtype(), d.shape());
  LookMeter meter;
  for (int64_t i = 0; i < rows.count && rows.bytes > 0; ++i) {
    meter.Did(kRowWork);
    const int64_t from = order[static_cast<size_t>(i)];
    if (from < 0 || from >= rows.count) return OutOfRange("ShuffleIdx holds ", from);
    WatchedMemcpy(dx.mutable_data<std::byte>() + static_cast<size_t>(i) * rows.bytes,
                  d.data<std::byte>() + static_cast<size_t>(from) * rows.bytes, rows.bytes);
  }
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(shuffle_batch) {
  op.Doc("rows in random order").Input("X").Input("Seed").Output("Out");
  op.Output("ShuffleIdx").Output("SeedOut", kOptional).Attr("startup_seed", 0);
  op.Traits(kRandom).AnyKernel(ShuffleBatch);
}

HEDDLE_OP(shuffle_batch_grad) {
  op.Input("ShuffleIdx").Input("Out@GRAD").Output("X@GRAD").Attr("startup_seed", 0);
  op.AnyKernel(ShuffleBatchGrad);
}
