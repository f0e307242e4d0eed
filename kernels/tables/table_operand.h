// The operand that is a table.
#pragma once

#include "core/kernel_context.h"
#include "core/operands/lookup_table.h"

namespace heddle {

inline Result<SharedTable> TableOf(const KernelContext& ctx) {
  const Value* v = ctx.InVar("table");
  SharedTable table = v == nullptr ? nullptr : TableIn(*v);
  if (table != nullptr) return table;
  return InvalidArgument("'table' holds no table: nothing has initialised it");
}

}  // namespace heddle
