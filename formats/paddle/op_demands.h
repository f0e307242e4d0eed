// What Paddle requires of an operator in a file beyond heddle's own definition of it, from a
// generated table (scripts/paddle_demands.py). The writer fulfils these demands.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "core/programs/ir.h"
#include "proto/framework.pb.h"

namespace heddle::paddle {

// Whether Paddle 2.6 lacks an operator of this name.
bool IsForeign(std::string_view op);
// Whether it lacks the operator, an operand that it has, or an attribute by which it differs from
// Paddle's in more than NaN, infinities and rounding.
bool IsForeign(const ir::Op& op);

// An output slot that must name a variable even when it is not read.
struct DemandedOutput {
  std::string_view slot;
  bool list = false;
};
std::vector<DemandedOutput> DemandedOutputs(std::string_view op);

// Required attributes with string values that follow from the operator's name.
std::vector<std::pair<std::string_view, std::string_view>> DemandedTexts(std::string_view op);

// The type that Paddle declares for an attribute; -1: the type that its value suggests.
proto::AttrType DemandedType(std::string_view op, std::string_view attribute);

}  // namespace heddle::paddle
