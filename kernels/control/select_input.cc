// select_input and select_output: where the two branches of a condition come together, and the way
// back of their gradients.
#include "kernels/index/index_value.h"

namespace heddle {
namespace {

Status SelectInput(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t branch, ScalarIn(ctx, "Mask"));
  if (branch < 0 || branch >= ctx.InCount("X"))
    return OutOfRange("'Mask' is ", branch, ", but 'X' names ", ctx.InCount("X"), " variables");
  const Value* x = ctx.InVar("X", static_cast<int>(branch));
  if (x == nullptr || !x->initialized())
    return InvalidArgument("'X' [", branch, "], which 'Mask' selects, holds nothing");
  CopyValue(ctx, *x, ctx.OutVar("Out"));
  return Status::Ok();
}

Status SelectOutput(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t branch, ScalarIn(ctx, "Mask"));
  if (branch < 0 || branch >= ctx.OutCount("Out"))
    return OutOfRange("'Mask' is ", branch, ", but 'Out' names ", ctx.OutCount("Out"),
                      " variables");
  const Value* x = ctx.InVar("X");
  Value* out = ctx.OutVar("Out", static_cast<int>(branch));
  if (x != nullptr && out != nullptr) CopyValue(ctx, *x, out);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(select_input) {
  op.Doc("The variable of X that Mask names; the others may hold nothing.")
      .Input("X", kList | kOptional | kAnyKind)
      .Input("Mask")
      .Output("Out")
      .AnyKernel(SelectInput);
}
HEDDLE_OP(select_output) {
  op.Doc("X goes to the variable of Out that Mask names.")
      .Input("X", kAnyKind)
      .Input("Mask")
      .Output("Out", kList | kOptional)
      .AnyKernel(SelectOutput);
}

HEDDLE_EXAMPLES(select_input, R"(
example the second
in X float32 [2] -0.51 0.64
in X float32 [3] -0.86 -0.2 0.82
in Mask int32 [1] 1
out Out float32 [3] -0.86 -0.2 0.82

example the first, int64
in X int64 [2] 2 7
in X int64 [3] 2 2 7
in Mask int32 [1] 0
out Out int64 [2] 2 7
)")

HEDDLE_EXAMPLES(select_output, R"(
example to the second
in X float32 [2, 2] 1 2 3 4
in Mask int32 [1] 1
in a float32 [1] 9
op select_output X=X Mask=Mask -> Out=a,b
out b float32 [2, 2] 1 2 3 4
out a float32 [1] 9
)")
