// The list of implementations that MakeConv chooses from.
#pragma once

#include <span>
#include <string>

#include "kernels/base/implementations.h"
#include "kernels/conv/conv.h"

namespace heddle {

// Everything that the choice depends on besides the machine. Refers to the caller's values.
struct ConvCase {
  const ConvGeometry& g;
  DType dtype;  // float or double
  ConvDirection direction;
  const Tensor* filter;  // null: it is no constant
  const Epilogue& epilogue;
  int threads;
  bool lean;  // see PrepareContext::lean

  bool empty() const { return g.batch * g.in_c * g.in_size() == 0 || g.out_c * g.out_size() == 0; }
};

using ConvImplementation = Implementation<ConvCase, ConvRunner>;

// The first of equal costs is chosen.
std::span<const ConvImplementation> ConvImplementations();
// The implementation that MakeConv chooses on machine `m` by its cost estimates.
std::string DescribeConv(const ConvCase& c, const Machine& m);

}  // namespace heddle
