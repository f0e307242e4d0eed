// Sequences of tensors grow, shrink and begin. Unlike Paddle's arrays, they are values: each
// operator makes a new one.
#include "core/operands/slot_kinds.h"
#include "kernels/index/index_value.h"
#include "kernels/lists/sequence_items.h"

namespace heddle {
namespace {

// A copy of `items` without item `skipped` and with a place free at `free`; -1: none.
void CopyItems(const KernelContext& ctx, const TensorArray& items, int64_t skipped, int64_t free,
               TensorArray* out) {
  TensorArray made;
  const auto n = static_cast<int64_t>(items.size());
  for (int64_t i = 0; i <= n; ++i) {
    if (i == free) made.emplace_back();
    if (i == n || i == skipped) continue;
    made.emplace_back();
    CopyTensor(ctx, items[static_cast<size_t>(i)], &made.back());
  }
  *out = std::move(made);
}

Status Insert(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const TensorArray* items, SequenceIn(ctx, "input_sequence"));
  const auto n = static_cast<int64_t>(items->size());
  int64_t at = n;
  if (ctx.InOpt("position") != nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(at, ScalarIn(ctx, "position"));
    if (at < -n || at > n)
      return OutOfRange("'position' is ", at, "; a sequence of ", n, " takes ", -n, " to ", n);
    if (at < 0) at += n;
  }
  TensorArray& out = ctx.OutVar("output_sequence")->mutable_array();
  CopyItems(ctx, *items, -1, at, &out);
  CopyTensor(ctx, ctx.In("tensor"), &out[static_cast<size_t>(at)]);
  return Status::Ok();
}

Status Erase(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const TensorArray* items, SequenceIn(ctx, "input_sequence"));
  int64_t at = static_cast<int64_t>(items->size()) - 1;
  if (ctx.InOpt("position") != nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(at, ItemIndex(ctx, items->size()));
  } else if (items->empty()) {
    return OutOfRange("an empty sequence has no item to erase");
  }
  CopyItems(ctx, *items, at, -1, &ctx.OutVar("output_sequence")->mutable_array());
  return Status::Ok();
}

Status Construct(KernelContext& ctx) {
  TensorArray made;
  for (int i = 0; i < ctx.InCount("inputs"); ++i)
    CopyTensor(ctx, ctx.In("inputs", i), &made.emplace_back());
  ctx.OutVar("output_sequence")->mutable_array() = std::move(made);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_sequence_insert) {
  op.Doc("input_sequence with tensor before position, or at its end")
      .Input("input_sequence", kAnyKind | kArrayOnly)
      .Input("tensor")
      .Input("position", kOptional)
      .Output("output_sequence", kArrayOnly)
      .AnyKernel(Insert);
}

HEDDLE_OP(onnx_sequence_erase) {
  op.Doc("input_sequence without the item at position, or without the last one")
      .Input("input_sequence", kAnyKind | kArrayOnly)
      .Input("position", kOptional)
      .Output("output_sequence", kArrayOnly)
      .AnyKernel(Erase);
}

HEDDLE_OP(onnx_sequence_construct) {
  op.Doc("a sequence of the tensors, which may be none")
      .Input("inputs", kList | kOptional)
      .Output("output_sequence", kArrayOnly)
      .AnyKernel(Construct);
}
