// fused_embedding_seq_pool: embeds the ids of each sequence and adds the rows up.
#include <cstring>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "core/operands/any_address.h"
#include "core/operands/slot_kinds.h"
#include "kernels/base/only_value.h"
#include "kernels/sequence/sequence_batch.h"

namespace heddle {
namespace {

// --- fused_embedding_seq_pool ---

// Calls fn(sequence, place in a step, id) for all ids.
template <typename Fn>
Status ForEachId(KernelContext& ctx, Fn fn) {
  const Tensor &ids = ctx.In("Ids"), &w = ctx.In("W");
  HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(ids, "Ids"));
  const Ints all = ToInts(ids);
  const int64_t per_step = RowSize(ids), padding = ctx.Int("padding_idx");
  for (const int64_t s : Watched(SequenceCount(*offsets)))
    for (int64_t i = Begin(*offsets, s) * per_step; i < Begin(*offsets, s + 1) * per_step; ++i) {
      const int64_t id = all[static_cast<size_t>(i)];
      if (id == padding && padding >= 0) continue;
      if (id < 0 || id >= w.dim(0)) return OutOfRange("id ", id, " is not in [0, ", w.dim(0), ")");
      fn(s, i % per_step, id);
    }
  return Status::Ok();
}

template <typename T>
struct EmbeddingSeqPool {
  static Status Run(KernelContext& ctx) {
    const Tensor &ids = ctx.In("Ids"), &w = ctx.In("W");
    HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(ids, "Ids"));
    HEDDLE_RETURN_IF_ERROR(CheckOnlyValue(ctx, "combiner"));
    if (w.rank() != 2)
      return InvalidArgument("W has shape ", w.shape().ToString(), ", expected rank 2");
    const int64_t d = w.dim(1), width = d * RowSize(ids);
    Tensor& out = ctx.Alloc("Out", w.dtype(), Shape{SequenceCount(*offsets), width});
    ZeroAll(out);
    return ForEachId(ctx, [&](int64_t s, int64_t place, int64_t id) {
      T* to = out.mutable_data<T>() + s * width + place * d;
      const auto* row = static_cast<const std::byte*>(w.raw()) + id * d * int64_t{sizeof(T)};
      for (const int64_t k : Watched(d)) {
        T element;
        std::memcpy(&element, row + k * int64_t{sizeof(T)}, sizeof(T));
        to[k] += element;
      }
    });
  }
};

template <typename T>
struct EmbeddingSeqPoolGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor &ids = ctx.In("Ids"), &w = ctx.In("W"), &d_out = ctx.In("Out@GRAD");
    HEDDLE_RETURN_IF_ERROR(CheckOnlyValue(ctx, "combiner"));
    HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(ids, "Ids"));
    const int64_t d = w.dim(1), width = d * RowSize(ids);
    if (d_out.numel() != SequenceCount(*offsets) * width)
      return InvalidArgument("Out@GRAD ", d_out.shape().ToString(), " does not fit Ids");
    if (!ctx.Bool("is_sparse")) {
      Tensor& dw = ctx.Alloc("W@GRAD", w.dtype(), w.shape());
      ZeroAll(dw);
      return ForEachId(ctx, [&](int64_t s, int64_t place, int64_t id) {
        const T* from = d_out.data<T>() + s * width + place * d;
        for (int64_t k = 0; k < d; ++k) dw.mutable_data<T>()[id * d + k] += from[k];
      });
    }
    SelectedRows rows{{}, w.dim(0), ctx.Scratch(w.dtype(), Shape{ids.numel(), d})};
    T* to = rows.value.mutable_data<T>();
    HEDDLE_RETURN_IF_ERROR(ForEachId(ctx, [&](int64_t s, int64_t place, int64_t id) {
      rows.rows.push_back(id);
      to = WatchedCopy(d_out.data<T>() + s * width + place * d, d, to);
    }));
    rows.value.SetMeta(w.dtype(), Shape{std::ssize(rows.rows), d});
    ctx.OutVar("W@GRAD")->mutable_rows() = std::move(rows);
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(fused_embedding_seq_pool) {
  op.Doc("the sum of each sequence's rows of a table")
      .Input("W", kAnyAddress)
      .Input("Ids")
      .Output("Out");
  op.Attr("combiner", "sum").Attr("padding_idx", -1).Attr("is_sparse", false);
  op.Kernels<EmbeddingSeqPool, float, double>();
}

HEDDLE_OP(fused_embedding_seq_pool_grad) {
  op.Input("W", kNoBuffer).Input("Ids").Input("Out@GRAD").Output("W@GRAD", kTakesRows);
  op.Attr("combiner", "sum").Attr("padding_idx", -1).Attr("is_sparse", false);
  op.Kernels<EmbeddingSeqPoolGrad, float, double>();
}
