// Checks the names and values of a call (operator, slots and attributes) against the operator's
// definition. Errors list the valid names.
#pragma once

#include <string>
#include <string_view>

#include "core/programs/ir.h"
#include "heddle/program_builder.h"
#include "heddle/status.h"

namespace heddle::builder {

// Finds an operator that Add() may add.
Result<const OpDef*> OperatorNamed(std::string_view type);
// These return a position in the definition.
Result<size_t> InputNamed(const OpDef& def, std::string_view name);
Result<size_t> OutputNamed(const OpDef& def, std::string_view name);
Result<size_t> AttributeNamed(const OpDef& def, std::string_view name);

// Converts a value to the attribute's type. Precondition: `value` is not a variable.
Result<AttrValue> Converted(const AttrDef& def, const AttributeArgument& value);

// Fails if a required input names no variable, or an input for one variable names several.
Status CheckInputs(const ir::Op& op);

}  // namespace heddle::builder
