#include "core/operands/slot_kinds.h"
#include "kernels/onnx_values/sequence_items.h"

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

HEDDLE_EXAMPLES(onnx_sequence_at, R"(
example from both ends
in a float32 [2] 1 2
in b float32 [1] 3
in p int64 [] 0
in q int64 [] -1
var s tensor_array float32
op onnx_sequence_construct inputs=a,b -> output_sequence=s
op onnx_sequence_at input_sequence=s position=p -> tensor=x
op onnx_sequence_at input_sequence=s position=q -> tensor=y
out x float32 [2] 1 2
out y float32 [1] 3
)")
