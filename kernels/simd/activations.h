// The number of activations, for tables that have a function for each.
#pragma once

#include "kernels/simd/epilogue.h"

namespace heddle::simd {

constexpr int kActivations = static_cast<int>(Activation::kReluKeepsNan) + 1;

}  // namespace heddle::simd
