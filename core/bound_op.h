// An operator call whose operands are slots of a frame.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/attr.h"
#include "core/id_list.h"

namespace heddle {

class OpDef;

inline constexpr uint32_t kNoSlot = ~0u;

// BoundOp: an operator call with operands resolved to slots of a frame. Immutable; owned by a Plan.
struct BoundOp {
  const OpDef* def = nullptr;
  const AttrValue* attrs = nullptr;  // in the definition's order; those of the program's operator,
                                     // which outlives this, or a copy that the owner keeps
  IdList in_begin;                   // per input slot of the definition, + end
  IdList out_begin;                  // likewise
  IdList in;                         // frame slots, kNoSlot where empty
  IdList out;
  // A range of the run's arena that no value uses while the operator runs, in units of 64 bytes.
  struct Spare {
    uint32_t begin = 0, size = 0;
  };
  Spare spare = {};
  // Memory that the next instruction reads first (its KernelState::Facts::prefetch); the kernel may
  // prefetch it.
  std::span<const std::byte> ahead = {};
};

}  // namespace heddle
