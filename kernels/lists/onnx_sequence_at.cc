#include "core/operands/slot_kinds.h"
#include "kernels/lists/sequence_items.h"

namespace heddle {
namespace {

Status At(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const TensorArray* items, SequenceIn(ctx, "input_sequence"));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t at, ItemIndex(ctx, items->size()));
  CopyTensor(ctx, (*items)[static_cast<size_t>(at)], &ctx.OutVar("tensor")->MutableTensor());
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_sequence_at) {
  op.Doc("the item of input_sequence at position, which counts from the end where negative")
      .Input("input_sequence", kAnyKind | kArrayOnly)
      .Input("position")
      .Output("tensor")
      .AnyKernel(At);
}
