// Which element-wise operator is which Element, and its attributes as numbers.
#pragma once

#include <string_view>

#include "core/op_context.h"
#include "device/cuda/grid/element_ops.h"

namespace heddle::HEDDLE_GRID {

struct ElementOp {
  std::string_view name;
  Element op;
  ElementArgs (*args)(const OpContext& attrs) = nullptr;  // none: there are no attributes
  std::string_view reads = {};  // of a gradient: "X" or "Out"; of others empty
};

// With one operand, or a gradient with two. nullptr: none.
const ElementOp* FindElementOp(std::string_view name);
// gelu is two functions, by its attribute.
Element ElementOf(const ElementOp& op, const OpContext& attrs);
// With two operands that broadcast. False: none.
bool FindBroadcastOp(std::string_view name, Element* op);

}  // namespace heddle::HEDDLE_GRID
