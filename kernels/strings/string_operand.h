// Operands of operators on strings. They are values of another kind than tensors
// (heddle/string_tensor.h): slots take any kind.
#pragma once

#include <memory>
#include <string>

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
