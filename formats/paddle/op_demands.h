// Paddle's definition of an operator demands more of a file than heddle's does. The writer looks
// these demands up in a generated table (scripts/paddle_demands.py).
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "proto/framework.pb.h"

namespace heddle::paddle {

// Paddle 2.6 has no operator of this name.
bool IsForeign(std::string_view op);

// Output slots that have to name a variable, also when nobody reads it.
struct DemandedOutput {
  std::string_view slot;
  bool list = false;
};
std::vector<DemandedOutput> DemandedOutputs(std::string_view op);

// Attributes, with their texts, that follow from the operator's name and have to be there.
std::vector<std::pair<std::string_view, std::string_view>> DemandedTexts(std::string_view op);

// The type that Paddle gives an attribute; -1: the one that its value suggests.
proto::AttrType DemandedType(std::string_view op, std::string_view attribute);

}  // namespace heddle::paddle
