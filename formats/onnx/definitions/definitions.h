// ONNX defines each version of an operator: the types of operands, results and attributes. Nodes
// are checked against a table of these definitions, which scripts/onnx_op_definitions.py makes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/onnx/node_lowering.h"

namespace heddle::onnx {

// The texts of a row of the table, in the words of the script that makes it.
struct OpDefinition {
  std::string_view inputs, outputs, types, attributes;
};

// The definition that holds in this opset of the domain; nothing: the table lacks the operator, or
// it is newer than the opset.
std::optional<OpDefinition> DefinitionOf(std::string_view domain, std::string_view op_type,
                                         int64_t opset);

// Operator and opset of each row of the table. Operators outside of ONNX's own domain are called
// "domain:op".
std::vector<std::pair<std::string_view, int64_t>> AllDefinitions();

// Checks a node against the definition of its operator: how many inputs and outputs there are,
// which attributes of which types, and the types of inputs as far as they are known. Everything
// wrong is reported as an error of the node. True: nothing is, or there is no definition.
bool CheckDefinition(NodeLowering& n);

// The same for what the definitions say in words alone: ranks of operands, values of attributes.
bool CheckDemands(NodeLowering& n);

// Gives results of the node, which has been lowered, the types that the definition says.
void SetDefinedTypes(NodeLowering& n);

}  // namespace heddle::onnx
