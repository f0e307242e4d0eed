#include "core/interrupts.h"
#include "core/operands/slot_kinds.h"
#include "core/shapes.h"
#include "kernels/strings/string_operand.h"

namespace heddle {
namespace {

Status StringEqual(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const auto x, StringsOf(ctx, "x"));
  HEDDLE_ASSIGN_OR_RETURN(const auto y, StringsOf(ctx, "y"));
  HEDDLE_ASSIGN_OR_RETURN(const Shape all, BroadcastShape(x->shape, y->shape, -1));
  bool* to = ctx.Alloc("z", DType::kBool, all).mutable_data<bool>();
  const bool differ = ctx.Bool("differ");
  for (const auto part : Stretches(all.numel()))
    for (int64_t i = part.begin; i < part.end; ++i)
      to[i] = (BroadcastElement(*x, all, i) == BroadcastElement(*y, all, i)) != differ;
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(string_equal) {
  op.Doc("whether texts are the same; with `differ`, whether they are not");
  op.Input("x", kAnyKind | kOtherOnly)
      .Input("y", kAnyKind | kOtherOnly)
      .Output("z")
      .Attr("differ", false);
  op.AnyKernel(StringEqual);
}
