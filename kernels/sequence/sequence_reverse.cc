// sequence_reverse: the rows of each sequence in reverse order.
#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

Status Reverse(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(x, "X"));
  Tensor& out = ctx.Out("Y");
  for (const int64_t i : Watched(SequenceCount(*offsets)))
    for (int64_t k = 0, length = Length(*offsets, i); k < length; ++k)
      CopyRows(x, Begin(*offsets, i) + k, 1, out, Begin(*offsets, i) + length - 1 - k);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(sequence_reverse) {
  op.Doc("each sequence backwards").Input("X").Output("Y").InferShape(SameShape).AnyKernel(Reverse);
}
