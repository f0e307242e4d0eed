// Attributes of operators on windows.
#pragma once

#include "core/op_context.h"

namespace heddle {

// Reads an attribute that lists two values, or one that stands for both.
inline Status OneOrTwo(const OpContext& ctx, Key attr, int64_t* first, int64_t* second) {
  const Ints& list = ctx.IntList(attr);
  if (list.empty() || list.size() > 2)
    return InvalidArgument("'", attr.name, "' has ", list.size(), " values; expected 2");
  *first = list[0];
  *second = list.back();
  return Status::Ok();
}

}  // namespace heddle
