// Pointwise and depthwise convolutions one behind the other, channels last, by stripes of rows:
// each thread makes a contiguous range of the last one's rows, and of the results in between it
// keeps only the rows that are needed next. Rows at the border of two ranges are computed twice.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/conv/conv.h"

namespace heddle {

inline constexpr size_t kMostChainStages = 8;

struct ChainStage {
  ConvGeometry geometry;
  Epilogue epilogue;
  const Tensor* filter;  // a constant; null: it is none
};

// Immutable; Run is re-entrant.
class ConvChain {
 public:
  virtual ~ConvChain() = default;
  virtual std::string name() const = 0;  // see ConvRunner
  // biases: one for each stage. residual: the last stage's, or null. `dst` overlaps none of them,
  // but for the residual.
  virtual void Run(const KernelContext& ctx, const float* src, std::span<const float* const> biases,
                   const float* residual, float* dst) const = 0;
};

// nullptr for more stages, for others than pointwise ones of stride 1 and depthwise ones 3x3 or
// 5x5, for filters that are no constants, for residuals of stages but the last, a pointwise one,
// and where stripes do not pay (core/conv_stripes.h) or the rows that have to be kept and the
// filters would not stay in a core's own cache.
std::unique_ptr<ConvChain> MakeConvChain(const PrepareContext& ctx,
                                         const std::vector<ChainStage>& stages);

}  // namespace heddle
