// All inner loops of convolutions for one kind of vector.
//
// They are written once. Each instruction set has a source that defines a vector V and includes
// this file; nothing here has external linkage, and nothing of the standard library is
// instantiated, so that no code for a newer processor gets where an older one runs it.
#pragma once

#include "kernels/simd/conv_depthwise_loops.h"
#include "kernels/simd/conv_direct_loops.h"
#include "kernels/simd/conv_winograd_loops.h"

namespace heddle::convloops {
namespace {

template <typename W, Activation kActivation>
constexpr ConvLoops::Output Output() {
  return {kActivation,
          {W::template TransformOutput<TileOf(3), kActivation>,
           W::template TransformOutput<TileOf(5), kActivation>}};
}

template <typename V>
constexpr ConvLoops TableOf() {
  using W = WinogradLoops<V>;
  using D = DepthwiseLoops<V>;
  using S = DirectLoops<V>;
  return {V::kLanes,
          W::kPanel,
          V::kRows,
          W::TransformInput,
          {W::template Multiply<1>, W::template Multiply<2>},
          {Output<W, Activation::kNone>(), Output<W, Activation::kRelu>(),
           Output<W, Activation::kLeakyRelu>(), Output<W, Activation::kClip>(),
           Output<W, Activation::kHardSwish>(), Output<W, Activation::kHardSigmoid>(),
           Output<W, Activation::kSwish>(), Output<W, Activation::kSigmoid>(),
           Output<W, Activation::kTanh>(), Output<W, Activation::kMish>()},
          {{{D::template Row<3, 1, 8>, D::template Row<3, 1, 4>, D::template Row<3, 1, 1>},
            {D::template Row<3, 2, 8>, D::template Row<3, 2, 4>, D::template Row<3, 2, 1>}},
           {{D::template Row<5, 1, 8>, D::template Row<5, 1, 4>, D::template Row<5, 1, 1>},
            {D::template Row<5, 2, 8>, D::template Row<5, 2, 4>, D::template Row<5, 2, 1>}}},
          {S::template Run<1>, S::template Run<2>},
          S::template Run<2, true>,
          S::Widen,
          ActivateLoops<V>::Run,
          ActivateLoops<V>::ExpSum};
}

}  // namespace
}  // namespace heddle::convloops
