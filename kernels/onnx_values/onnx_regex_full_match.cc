#include <locale>
#include <regex>

#include "kernels/onnx_values/string_operand.h"

namespace heddle {
namespace {

// The library takes stack for every character of a text and for every nesting of a pattern: longer
// ones are refused.
constexpr size_t kLongest = 4096;

Status FullMatch(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const auto x, StringsOf(ctx, "X"));
  const std::string& given = ctx.Str("pattern");
  if (given.size() > kLongest)
    return InvalidArgument("'pattern' has ", given.size(), " bytes, expected up to ", kLongest);
  std::regex pattern;
  pattern.imbue(std::locale::classic());
  try {
    pattern.assign(given, std::regex::ECMAScript);
  } catch (const std::regex_error& e) {
    return InvalidArgument("'pattern' ", given, " cannot be read: ", e.what());
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
  op.Doc("whether each whole string matches the pattern");
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
