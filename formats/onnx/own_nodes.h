// For handlers that say an operator in others of ONNX itself: lowers nodes that no file has.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "formats/onnx/node_lowering.h"

namespace heddle::onnx {

using Attributes = std::vector<Attribute>;

Attribute IntAttribute(std::string_view name, int64_t value);
Attribute FloatAttribute(std::string_view name, double value);
Attribute IntsAttribute(std::string_view name, Ints values);
// The node's attributes of these names.
Attributes Taken(const NodeLowering& n, std::initializer_list<std::string_view> names);

// Lowers a node of ONNX's `opset` for operands that are variables; returns its outputs. An operand
// may be kNoDraft.
inline constexpr int kOwnOpset = 19;
std::vector<int> Several(NodeLowering& n, std::string_view op, const std::vector<int>& operands,
                         Attributes attributes, size_t outputs, int opset = kOwnOpset);
// The same for one output.
int One(NodeLowering& n, std::string_view op, const std::vector<int>& operands,
        Attributes attributes = {}, int opset = kOwnOpset);

}  // namespace heddle::onnx
