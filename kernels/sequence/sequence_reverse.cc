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

HEDDLE_EXAMPLES(sequence_reverse, R"(
example float32 10x3
in X float32 [10, 3] lod [[0, 4, 6, 8, 10]] 0.01 0.07 0.7 0.2 -0.24 -0.31 0.26 -0.37 -0.18 0.32
  -0.93 -0.56 -0.05 -0.74 -0.68 0.89 -0.81 0.64 -0.43 0.45 0.51 -0.12 0.39 -0.62 0.57 -0.49 0.76
  0.83 -0.87 0.13
out Y float32 [10, 3] lod [[0, 4, 6, 8, 10]] 0.32 -0.93 -0.56 0.26 -0.37 -0.18 0.2 -0.24 -0.31 0.01
  0.07 0.7 0.89 -0.81 0.64 -0.05 -0.74 -0.68 -0.12 0.39 -0.62 -0.43 0.45 0.51 0.83 -0.87 0.13 0.57
  -0.49 0.76

example float64 10x3
in X float64 [10, 3] lod [[0, 4, 6, 8, 10]] 0.01 0.07 0.7 0.2 -0.24 -0.31 0.26 -0.37 -0.18 0.32
  -0.93 -0.56 -0.05 -0.74 -0.68 0.89 -0.81 0.64 -0.43 0.45 0.51 -0.12 0.39 -0.62 0.57 -0.49 0.76
  0.83 -0.87 0.13
out Y float64 [10, 3] lod [[0, 4, 6, 8, 10]] 0.32 -0.93 -0.56 0.26 -0.37 -0.18 0.2 -0.24 -0.31 0.01
  0.07 0.7 0.89 -0.81 0.64 -0.05 -0.74 -0.68 -0.12 0.39 -0.62 -0.43 0.45 0.51 0.83 -0.87 0.13 0.57
  -0.49 0.76

example int32 10x3
in X int32 [10, 3] lod [[0, 4, 6, 8, 10]] 0*30
out Y int32 [10, 3] lod [[0, 4, 6, 8, 10]] 0*30

example int64 10x3
in X int64 [10, 3] lod [[0, 4, 6, 8, 10]] 0*30
out Y int64 [10, 3] lod [[0, 4, 6, 8, 10]] 0*30
)")
