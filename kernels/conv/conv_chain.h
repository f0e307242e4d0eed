// Pointwise and depthwise convolutions in sequence, channels last.
//
// By stripes of rows (conv_chain.cc): each thread computes a contiguous range of the rows of the
// last one and keeps only those rows of the intermediate results that are needed next. Rows at the
// border of two ranges are computed twice. Two pointwise ones in bfloat16 (pointwise_pair.cc) or in
// 8-bit integers (pointwise_pair_int8.cc): some pixels at a time.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/machine.h"
#include "kernels/conv/conv.h"

namespace heddle {

inline constexpr size_t kMostChainStages = 8;

struct ChainStage {
  ConvGeometry geometry;
  Epilogue epilogue;
  const Tensor* filter;  // null: not a constant
};

// A pointwise convolution of stride 1 without padding, channels last.
bool IsPointwiseStage(const ConvGeometry& g);

// Immutable; Run is re-entrant.
class ConvChain {
 public:
  virtual ~ConvChain() = default;
  // biases: one for each stage. residual: the last stage's, or null. `dst` overlaps none of them,
  // but for the residual.
  virtual void Run(const KernelContext& ctx, const float* src, std::span<const float* const> biases,
                   const float* residual, float* dst) const = 0;
};

// Stripes cover pointwise stages of stride 1 and depthwise ones 3x3 or 5x5, with constant filters.
// Only the last stage may have a residual, if it is pointwise.
bool StripesCover(const std::vector<ChainStage>& stages, const Machine& m);
// They pay where intermediate results would not fit L2 (conv_stripes.h) while the kept rows and the
// filters do. Precondition: StripesCover().
bool StripesAreCheaper(const std::vector<ChainStage>& stages);
// Precondition: StripesCover() on this machine.
std::unique_ptr<ConvChain> MakeConvChain(const PrepareContext& ctx,
                                         const std::vector<ChainStage>& stages);

// Two pointwise stages with constant filters. The first has neither residual nor factor.
bool IsPointwisePair(const std::vector<ChainStage>& stages);
// Pairs pay unless pixels or channels are too few for whole tiles.
bool PairIsCheaper(const std::vector<ChainStage>& stages);

// Pairs that may multiply in bfloat16, on machines that do so.
bool PairCovers(const std::vector<ChainStage>& stages, const Machine& m);
// Precondition: PairCovers() on this machine.
std::unique_ptr<ConvChain> MakePointwisePair(const PrepareContext& ctx,
                                             const std::vector<ChainStage>& stages);

// Pairs that may multiply 8-bit integers, on machines that do so.
bool Int8PairCovers(const std::vector<ChainStage>& stages, const Machine& m);
// Rounding pixels takes as long as the multiplications of some 100 channels save.
bool Int8PairIsCheaper(const std::vector<ChainStage>& stages);
// Precondition: Int8PairCovers() on this machine.
std::unique_ptr<ConvChain> MakeInt8Pair(const PrepareContext& ctx,
                                        const std::vector<ChainStage>& stages);

}  // namespace heddle
