// The state of a kernel that holds copies of constant inputs, in an order of its own.
#pragma once

#include <cstdint>

#include "core/op_context.h"

namespace heddle {

struct PackingState : KernelState {
  // Input slots of the definition, as bits, whose contents no run with this state reads: nothing
  // but their addresses. Parameters that are read nowhere else need not be in memory
  // (core/lazy_buffer.h).
  uint32_t packed_inputs = 0;

  void HasPacked(const OpContext& ctx, Key key) {
    if (const int slot = ctx.def().FindInput(key.name); slot >= 0 && slot < 32)
      packed_inputs |= uint32_t{1} << slot;
  }
};

}  // namespace heddle
