// The shapes that a group's operators give its outputs, by their own rules.
//
// Threads: any.
#pragma once

#include <optional>
#include <vector>

#include "core/op_context.h"
#include "offload/group.h"

namespace heddle::offload {

// `inputs`: of the group, with dtype, shape and offsets; contents are not looked at. Nothing where
// an operator has no rule, or its shape depends on contents that only a run knows. An error is that
// of the operator whose rule refuses its operands.
Result<std::optional<std::vector<ShapeContext::OutMeta>>> ShapesOf(
    const Group& group, const std::vector<Value*>& inputs);

}  // namespace heddle::offload
