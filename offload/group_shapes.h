// Infers the shapes of a group's outputs with the shape functions of its operators.
//
// Threads: any.
#pragma once

#include <optional>
#include <vector>

#include "core/shape_context.h"
#include "offload/group.h"

namespace heddle::offload {

// `inputs`: the group's inputs, with dtype, shape and offsets; their contents are not read.
// nullopt: an operator has no shape function, or its shape depends on contents that only a run
// knows. An error: a shape function rejects its operands.
Result<std::optional<std::vector<ShapeContext::OutMeta>>> ShapesOf(
    const Group& group, const std::vector<Value*>& inputs);

}  // namespace heddle::offload
