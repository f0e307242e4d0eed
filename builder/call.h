// The words of a call (an operator's name, slots and attributes) against the operator's definition.
// Errors say what there is instead.
#pragma once

#include <string>
#include <string_view>

#include "core/ir.h"
#include "heddle/program_builder.h"
#include "heddle/status.h"

namespace heddle::builder {

// An operator that Add() may add.
Result<const OpDef*> OperatorNamed(std::string_view type);
// Positions in the definition.
Result<size_t> InputNamed(const OpDef& def, std::string_view name);
Result<size_t> OutputNamed(const OpDef& def, std::string_view name);
Result<size_t> AttributeNamed(const OpDef& def, std::string_view name);

// The value in the type that the attribute has. Precondition: `value` is no variable.
Result<AttrValue> Converted(const AttrDef& def, const AttributeArgument& value);

// Every required input names variables, and none that takes one variable names several.
Status CheckInputs(const ir::Op& op);

}  // namespace heddle::builder
