// The implementations behind MakeConv. Used by conv.cc and conv_tune.cc alone.
#pragma once

#include "kernels/conv/conv.h"

namespace heddle {

// By the primitives library; nullptr when it is not there or has nothing for this case.
std::unique_ptr<ConvRunner> MakeLibraryConv(const PrepareContext& ctx, const ConvGeometry& g,
                                            ConvDirection direction, const Tensor* filter,
                                            const Epilogue& epilogue);

// Likewise, with the input and the constant filter rounded to bfloat16; nullptr where the processor
// does not multiply such numbers.
std::unique_ptr<ConvRunner> MakeHalfConv(const PrepareContext& ctx, const ConvGeometry& g,
                                         ConvDirection direction, const Tensor* filter,
                                         const Epilogue& epilogue);

// By Winograd's method; nullptr when the case is none for it, or when it is not expected to pay and
// `always` is not said.
std::unique_ptr<ConvRunner> MakeWinogradConv(const PrepareContext& ctx, const ConvGeometry& g,
                                             ConvDirection direction, const Tensor* filter,
                                             const Epilogue& epilogue, bool always = false);

// By the sums as they stand; nullptr for groups, other layouts than channels last and filters that
// are no constants.
std::unique_ptr<ConvRunner> MakeDirectConv(const PrepareContext& ctx, const ConvGeometry& g,
                                           ConvDirection direction, const Tensor* filter,
                                           const Epilogue& epilogue);

// Depthwise convolutions 3x3 and 5x5; nullptr for others.
std::unique_ptr<ConvRunner> MakeDepthwiseConv(const PrepareContext& ctx, const ConvGeometry& g,
                                              ConvDirection direction, const Tensor* filter,
                                              const Epilogue& epilogue);
// Transposed convolutions whose kernel is as large as their stride; nullptr for others.
std::unique_ptr<ConvRunner> MakePatchConv(const PrepareContext& ctx, const ConvGeometry& g,
                                          ConvDirection direction, const Tensor* filter,
                                          const Epilogue& epilogue);

// By the way that is kept for this case, or that turns out fastest now; nullptr when the plan's
// kernels are not tuned or there is no choice.
std::unique_ptr<ConvRunner> MakeTunedConv(const PrepareContext& ctx, const ConvGeometry& g,
                                          ConvDirection direction, const Tensor* filter,
                                          const Epilogue& epilogue);

}  // namespace heddle
