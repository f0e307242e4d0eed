// Activations in the terms of the fused operators' attributes.
#pragma once

#include <optional>
#include <string>

#include "core/programs/ir.h"

namespace heddle::passes {

struct FusedActivation {
  std::string name;  // fuse_activation
  double alpha = 0, beta = 0;
};

// `op` as an activation of fused operators; nullopt: they do not have it, or compute another value
// for some x, including infinities and NaN.
std::optional<FusedActivation> AsActivation(const ir::Op& op);

// Sets fuse_activation, fuse_alpha and fuse_beta.
void SetActivation(const FusedActivation& activation, ir::Op* fused);

}  // namespace heddle::passes
