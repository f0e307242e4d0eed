// select_input: joins the two branches of a condition; the gradient of select_output.
#include "core/operands/slot_kinds.h"
#include "kernels/index/index_value.h"

namespace heddle {
namespace {

// That of the branch, or of all of them.
Status SelectedShape(ShapeContext& ctx) {
  int first = 0, last = ctx.InCount("X") - 1;
  if (const Tensor* mask = ctx.InValue("Mask")) {
    HEDDLE_ASSIGN_OR_RETURN(const int64_t branch, ScalarOf(*mask, "Mask"));
    if (branch < 0 || branch > last) return ctx.Defer();
    first = last = static_cast<int>(branch);
  }
  for (int i = first; i <= last; ++i) {
    const Value* x = ctx.InVar("X", i);
    if (x == nullptr || !x->is_tensor() || !ctx.HasIn("X", i) ||
        !(ctx.InShape("X", i) == ctx.InShape("X", first)) ||
        ctx.InDType("X", i) != ctx.InDType("X", first))
      return ctx.Defer();
  }
  if (first > last) return ctx.Defer();
  ctx.SetOut("Out", ctx.InShape("X", first), ctx.InDType("X", first));
  if (const LoD& lod = ctx.InLoD("X", first); !lod.empty()) ctx.SetOutLoD("Out", lod);
  return Status::Ok();
}

Status SelectInput(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t branch, ScalarIn(ctx, "Mask"));
  if (branch < 0 || branch >= ctx.InCount("X"))
    return OutOfRange("'Mask' is ", branch, ", but 'X' names ", ctx.InCount("X"), " variables");
  const Value* x = ctx.InVar("X", static_cast<int>(branch));
  if (x == nullptr || !x->initialized())
    return InvalidArgument("'X' [", branch, "], which 'Mask' selects, holds nothing");
  CopyToOutput(ctx, *x, ctx.OutVar("Out"));
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(select_input) {
  op.Doc("The variable of X that Mask names; the others may hold nothing.")
      .Input("X", kList | kOptional | kAnyKind | kTakesAll)
      .Input("Mask")
      .Output("Out", kTakesAll)
      .InferShape(SelectedShape)
      .AnyKernel(SelectInput);
}
