// The list of implementations that MakeGemm chooses from.
#pragma once

#include <span>
#include <string>

#include "kernels/base/implementations.h"
#include "kernels/gemm/gemm_matmul.h"

namespace heddle {

// Everything that the choice depends on besides the machine. Refers to the caller's values.
struct GemmCase {
  const BatchedGemm& g;
  float alpha;
  const Tensor* constant_b;  // null: it is no constant
  const Epilogue& epilogue;
  GemmUse use;
  int threads;
  bool lean;  // see PrepareContext::lean
};

using GemmImplementation = Implementation<GemmCase, GemmRunner>;

// The first of equal costs is chosen.
std::span<const GemmImplementation> GemmImplementations();

}  // namespace heddle
