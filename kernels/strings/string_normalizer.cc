// Case and stop words, whatever the system's locale is.
#include <algorithm>

#include "core/interrupts.h"
#include "core/operands/slot_kinds.h"
#include "kernels/strings/letter_case.h"
#include "kernels/strings/string_operand.h"

namespace heddle {
namespace {

Status Normalize(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const auto x, StringsOf(ctx, "X"));
  const Shape& shape = x->shape;
  if (shape.rank() != 1 && !(shape.rank() == 2 && shape[0] == 1))
    return InvalidArgument("'X' has the shape ", shape.ToString(), "; [n] or [1, n] is expected");
  const std::string& action = ctx.Str("case_change_action");
  if (action != "NONE" && action != "LOWER" && action != "UPPER")
    return InvalidArgument("'case_change_action' is '", action, "', expected NONE, LOWER or UPPER");
  const bool exact = ctx.Int("is_case_sensitive") != 0;
  Strings stopped = ctx.Attr<Strings>("stopwords");
  if (!exact)
    for (std::string& word : stopped) word = InCase(word, Case::kLower, false);
  StringTensor out;
  for (const std::string& word : x->elements) {
    LookForInterrupt();
    const std::string compared = exact ? word : InCase(word, Case::kLower, false);
    if (std::find(stopped.begin(), stopped.end(), compared) != stopped.end()) continue;
    out.elements.push_back(
        action == "NONE" ? word
                         : InCase(word, action == "UPPER" ? Case::kUpper : Case::kLower, false));
  }
  if (out.elements.empty()) out.elements.emplace_back();  // never nothing
  out.shape = shape;
  out.shape[shape.rank() - 1] = static_cast<int64_t>(out.elements.size());
  SetStrings(ctx, "Y", std::move(out));
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(string_normalizer) {
  op.Doc("strings without stop words, in upper or lower case");
  op.Input("X", kAnyKind | kOtherOnly).Output("Y", kOtherOnly).Attr("case_change_action", "NONE");
  op.Attr("is_case_sensitive", 0).Attr("stopwords", Strings{}).AnyKernel(Normalize);
}
