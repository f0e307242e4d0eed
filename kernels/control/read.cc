// Data that a program reads for itself: create_py_reader makes a reader of a queue,
// create_double_buffer_reader one that takes batches ahead, and read takes the next batch.
#include <utility>

#include "core/op_traits.h"
#include "core/operands/slot_kinds.h"
#include "core/readers/reader.h"
#include "core/shapes.h"
#include "heddle/read_only.h"
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

// The slots that the attributes describe, one for each tensor of a batch.
Result<std::vector<ReaderSlot>> SlotsOf(const KernelContext& ctx) {
  const Ints &dims = ctx.IntList("shape_concat"), &ranks = ctx.IntList("ranks"),
             &dtypes = ctx.IntList("dtypes"), &checks = ctx.IntList("need_check_feed");
  std::vector<ReaderSlot> slots(ranks.size());
  size_t at = 0;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const auto rank = static_cast<size_t>(std::max<int64_t>(0, ranks[i]));
    if (dims.size() - at < rank)
      return InvalidArgument("attribute shape_concat has ", dims.size(),
                             " dimensions, fewer than the attribute ranks names");
    if (i >= checks.size() || checks[i] != 0) {
      slots[i].shape = Shape(std::span(dims).subspan(at, rank));
      if (i < dtypes.size()) slots[i].dtype = DTypeFromProto(dtypes[i]);
    }
    at += rank;
  }
  return slots;
}

Status CreateReader(KernelContext& ctx) {
  std::shared_ptr<ReaderQueue> queue = QueueOf(ctx.InVar("blocking_queue"));
  if (queue == nullptr)
    return InvalidArgument(
        "input blocking_queue holds no queue; put heddle::ReaderValue(queue) into its variable of "
        "the scope");
  // A program may make its reader in every step: what a double buffer has taken would be lost.
  const std::shared_ptr<Reader> present = ReaderOf(ctx.OutVar("Out"));
  if (present != nullptr && present->source() == nullptr && present->queue() == queue)
    return Status::Ok();
  HEDDLE_ASSIGN_OR_RETURN(std::vector<ReaderSlot> slots, SlotsOf(ctx));
  ctx.OutVar("Out")->mutable_other() = NewQueueReader(std::move(queue), std::move(slots));
  return Status::Ok();
}

Result<std::shared_ptr<Reader>> ReaderIn(const Value* value) {
  std::shared_ptr<Reader> reader = ReaderOf(value);
  if (reader != nullptr) return reader;
  return InvalidArgument(
      "its reader's variable holds none; run the startup program, or put "
      "heddle::ReaderValue(queue) into the variable of the scope");
}

Status CreateBuffered(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<Reader> reader, ReaderIn(ctx.InVar("UnderlyingReader")));
  const std::shared_ptr<Reader> present = ReaderOf(ctx.OutVar("Out"));
  if (present != nullptr && present->source() == reader.get()) return Status::Ok();
  ctx.OutVar("Out")->mutable_other() = NewBufferedReader(std::move(reader));
  return Status::Ok();
}

Status Read(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<Reader> reader, ReaderIn(ctx.InVar("Reader")));
  HEDDLE_ASSIGN_OR_RETURN(std::optional<Reader::Batch> batch,
                          reader->Next([&ctx] { return ctx.Interrupted(); }));
  if (!batch) return EndOfData();
  const int count = ctx.OutCount("Out");
  if (static_cast<size_t>(count) != batch->size())
    return InvalidArgument("has ", count, " outputs, and the batch that it read has ",
                           batch->size(), " tensors");
  for (int i = 0; i < count; ++i) {
    Value* out = ctx.OutVar("Out", i);
    if (out == nullptr) continue;
    Tensor t = std::exchange((*batch)[static_cast<size_t>(i)], Tensor());
    t = t.Contiguous();
    // Operators may write in place to what nobody else sees.
    if (!t.buffer() || !t.buffer()->unique() || IsReadOnly(t)) t = t.Clone();
    *out = std::move(t);
  }
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(create_py_reader) {
  op.Doc("A reader of the batches in a queue (heddle::ReaderQueue).");
  op.Input("blocking_queue", kAnyKind | kOtherOnly).Output("Out", kAnyKind | kOtherOnly);
  op.Attr("shape_concat", Ints{}).Attr("ranks", Ints{}).Attr("lod_levels", Ints{});
  op.Attr("dtypes", Ints{}).Attr("need_check_feed", Ints{}).Attr("use_data_config", true);
  op.Attr("device_index", 0).Attr("device_count", 1);
  op.Traits(kSideEffect | kScopeOperands).AnyKernel(CreateReader);
}
HEDDLE_OP(create_double_buffer_reader) {
  op.Doc("A reader that takes up to two batches of another one ahead.");
  op.Input("UnderlyingReader", kAnyKind | kOtherOnly)
      .Output("Out", kAnyKind | kOtherOnly)
      .Attr("place", "AUTO");
  op.Traits(kSideEffect).AnyKernel(CreateBuffered);
}
HEDDLE_OP(read) {
  op.Doc(
      "The next batch of a reader; at the end of the data the run fails with a status for that.");
  op.Input("Reader", kAnyKind | kOtherOnly).Output("Out", kList);
  op.Attr("throw_eof_exp", true).Attr("infer_out", true).Attr("drop_last", true);
  op.Traits(kReader).AnyKernel(Read);
}
