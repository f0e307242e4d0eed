// Operands of operators on strings. They are values of another kind than tensors
// (heddle/string_tensor.h): slots take any kind.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/kernel_context.h"
#include "heddle/string_tensor.h"

namespace heddle {

inline Result<std::shared_ptr<const StringTensor>> StringsOf(const KernelContext& ctx, Key key,
                                                             int i = 0) {
  const Value* v = ctx.InVar(key, i);
  auto strings = v == nullptr ? nullptr : StringsIn(*v);
  if (strings != nullptr) return strings;
  return InvalidArgument("input '", key.name, "' must hold strings");
}

inline void SetStrings(const KernelContext& ctx, Key key, StringTensor strings) {
  *ctx.OutVar(key) = ValueOf(std::move(strings));
}

inline constexpr std::string_view kWhiteSpace = " \t\r\n\f\v";

// The text without the white space at both ends.
inline std::string_view Stripped(std::string_view text) {
  const size_t begin = text.find_first_not_of(kWhiteSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kWhiteSpace) - begin + 1);
}

// The text of an operand of one string, or of the attribute where there is no operand.
inline Result<std::string> OneText(const KernelContext& ctx, Key operand, Key attribute) {
  if (ctx.InVar(operand) == nullptr) return ctx.Str(attribute);
  HEDDLE_ASSIGN_OR_RETURN(const auto given, StringsOf(ctx, operand));
  if (given->elements.size() != 1)
    return InvalidArgument("'", operand.name, "' has the shape ", given->shape.ToString(),
                           "; one string is expected");
  return given->elements[0];
}

// The element of `operand` for element `i` of a result of shape `all`, to which it is broadcast.
inline const std::string& BroadcastElement(const StringTensor& operand, const Shape& all,
                                           int64_t i) {
  int64_t place = 0, stride = 1;
  for (int d = 1; d <= operand.shape.rank(); ++d) {
    if (operand.shape.dim(-d) != 1) place += i % all.dim(-d) * stride;
    i /= all.dim(-d);
    stride *= operand.shape.dim(-d);
  }
  return operand.elements[static_cast<size_t>(place)];
}

}  // namespace heddle
