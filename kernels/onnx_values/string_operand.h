// Operands of operators on strings. They are values of another kind than tensors
// (heddle/string_tensor.h): slots take any kind.
#pragma once

#include <memory>
#include <string>

#include "core/op_context.h"
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

}  // namespace heddle
