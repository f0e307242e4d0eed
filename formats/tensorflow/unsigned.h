// Nodes with operands of uint16, uint32 or uint64 (formats/lowering/unsigned_use.h).
#pragma once

#include <optional>
#include <span>

#include "formats/lowering/unsigned_use.h"
#include "formats/tensorflow/node_lowering.h"

namespace heddle::tensorflow {

// Every operator that may have such an operand, in alphabetical order.
std::span<const formats::UnsignedEntry> UnsignedOperators();

// The use of operands of this type; nothing: the operator has no form for them.
std::optional<formats::UnsignedUse> UnsignedUseOf(std::string_view op, int type);

// Lowers a node of UnsignedUse::kOwn with operands of `type`. False: its handler does that.
bool LowerUnsigned(NodeLowering& n, int type);

}  // namespace heddle::tensorflow
