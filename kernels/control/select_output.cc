// select_output: copies X to one of several outputs; the gradient of select_input.
#include "core/operands/slot_kinds.h"
#include "kernels/index/index_value.h"

namespace heddle {
namespace {

// That of the selected output; before the run, of whichever will be.
Status BranchShapes(ShapeContext& ctx) {
  int first = 0, last = ctx.OutCount("Out") - 1;
  if (const Tensor* mask = ctx.InValue("Mask")) {
    HEDDLE_ASSIGN_OR_RETURN(const int64_t branch, ScalarOf(*mask, "Mask"));
    if (branch < 0 || branch > last) return Status::Ok();  // the kernel says so
    first = last = static_cast<int>(branch);
  }
  const Value* x = ctx.InVar("X");
  if (x == nullptr || !x->is_tensor() || !ctx.HasIn("X")) return Status::Ok();
  for (int i = first; i <= last; ++i) {
    ctx.SetOut("Out", ctx.InShape("X"), ctx.InDType("X"), i);
    if (const LoD& lod = ctx.InLoD("X"); !lod.empty()) ctx.SetOutLoD("Out", lod, i);
  }
  return Status::Ok();
}

Status SelectOutput(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t branch, ScalarIn(ctx, "Mask"));
  if (branch < 0 || branch >= ctx.OutCount("Out"))
    return OutOfRange("'Mask' is ", branch, ", but 'Out' names ", ctx.OutCount("Out"),
                      " variables");
  const Value* x = ctx.InVar("X");
  Value* out = ctx.OutVar("Out", static_cast<int>(branch));
  if (x != nullptr && out != nullptr) CopyToOutput(ctx, *x, out);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(select_output) {
  op.Doc("X goes to the variable of Out that Mask names.")
      .Input("X", kAnyKind | kTakesAll)
      .Input("Mask")
      .Output("Out", kList | kOptional | kAnyKind | kTakesAll)
      .InferShape(BranchShapes)
      .AnyKernel(SelectOutput);
}
