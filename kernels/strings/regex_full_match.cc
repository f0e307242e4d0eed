#include "core/operands/slot_kinds.h"
#include "kernels/strings/pattern.h"
#include "kernels/strings/string_operand.h"

namespace heddle {
namespace {

Status FullMatch(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const auto x, StringsOf(ctx, "X"));
  HEDDLE_ASSIGN_OR_RETURN(const std::string given, OneText(ctx, "Pattern", "pattern"));
  HEDDLE_ASSIGN_OR_RETURN(const Pattern pattern, CompiledPattern(given));
  Tensor& out = ctx.Alloc("Y", DType::kBool, x->shape);
  for (size_t i = 0; i < x->elements.size(); ++i)
    out.mutable_data<bool>()[i] = pattern.MatchesAll(x->elements[i]);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(regex_full_match) {
  op.Doc("whether each whole string matches the pattern (RE2's syntax)");
  op.Input("X", kAnyKind | kOtherOnly)
      .Input("Pattern", kOptional | kAnyKind | kOtherOnly)
      .Output("Y")
      .Attr("pattern", "")
      .AnyKernel(FullMatch);
}
