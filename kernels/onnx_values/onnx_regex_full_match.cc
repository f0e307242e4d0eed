#include <regex>

#include "kernels/onnx_values/string_operand.h"

namespace heddle {
namespace {

// The library's matcher takes stack for every character: longer texts are refused.
constexpr size_t kLongest = 4096;

Status FullMatch(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const auto x, StringsOf(ctx, "X"));
  std::regex pattern;
  try {
    pattern.assign(ctx.Str("pattern"), std::regex::ECMAScript);
  } catch (const std::regex_error& e) {
    return InvalidArgument("'pattern' ", ctx.Str("pattern"), " cannot be read: ", e.what());
  }
  Tensor& out = ctx.Alloc("Y", DType::kBool, x->shape);
  for (size_t i = 0; i < x->elements.size(); ++i) {
    const std::string& text = x->elements[i];
    if (text.size() > kLongest)
      return InvalidArgument("element ", i, " has ", text.size(), " bytes; up to ", kLongest,
                             " are matched");
    try {
      out.mutable_data<bool>()[i] = std::regex_match(text, pattern);
    } catch (const std::regex_error& e) {
      return ResourceExhausted("element ", i, " cannot be matched: ", e.what());
    }
  }
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_regex_full_match) {
  op.Doc("whether each whole string is of the pattern");
  op.Input("X", kAnyKind).Output("Y").Attr("pattern", "").AnyKernel(FullMatch);
}

HEDDLE_EXAMPLES(onnx_regex_full_match, R"(
example numbers of two digits
in a int64 [3] 12 3 456
op onnx_cast_string input=a -> output=s
attr from INT 7
attr to INT 8
op onnx_regex_full_match X=s -> Y=m
attr pattern STRING "[0-9]{2}"
out m bool [3] 1 0 0
)")
