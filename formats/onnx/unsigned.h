// Nodes with operands of uint16, uint32 or uint64 (formats/lowering/unsigned_use.h).
#pragma once

#include <optional>
#include <span>

#include "formats/lowering/unsigned_use.h"
#include "formats/onnx/node_lowering.h"

namespace heddle::onnx {

// The table of all operators that may have such an operand, in alphabetical order.
std::span<const formats::UnsignedEntry> UnsignedOperators();

// The use of the node's operands of this type; nothing: the operator does not allow them.
std::optional<formats::UnsignedUse> UnsignedUseOf(const NodeLowering& n, int type);

// Lowers a node of UnsignedUse::kOwn with operands of `type`. False: its handler has to.
bool LowerUnsigned(NodeLowering& n, int type);

}  // namespace heddle::onnx
