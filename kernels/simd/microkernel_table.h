// All microkernels for one kind of vector, as a table.
//
// The tiles are written once, for a vector V. Each instruction set has a source that defines a V
// and includes this file (README.md lists what a V has). No function here has external linkage, and
// none of the standard library is instantiated: otherwise the linker might take code that was
// compiled for a newer processor where an older one runs it.
#pragma once

#include "kernels/simd/activation.h"
#include "kernels/simd/attention_tile.h"
#include "kernels/simd/depthwise_tile.h"
#include "kernels/simd/direct_tile.h"
#include "kernels/simd/microkernels.h"
#include "kernels/simd/peak_loop.h"
#include "kernels/simd/plane_tile.h"
#include "kernels/simd/recurrent_tile.h"
#include "kernels/simd/winograd_tile.h"

namespace heddle::simd {
namespace {

template <typename W, Activation kActivation>
constexpr Microkernels::WinogradOutputs WinogradOutputsOf() {
  return {kActivation,
          {{W::template TransformOutput<WinogradTileOf(3), kActivation>,
            W::template TransformOutput<WinogradTileOf(5), kActivation>},
           {W::template TransformRowOutput<WinogradTileOf(3), kActivation>,
            W::template TransformRowOutput<WinogradTileOf(5), kActivation>}}};
}

template <typename V>
constexpr Microkernels TableOf(Isa isa) {
  using W = WinogradTiles<V>;
  using D = DepthwiseTiles<V>;
  using S = DirectTiles<V>;
  Microkernels t{};
  t.isa = isa;
  t.lanes = V::kLanes;
  t.panel = W::kPanel;
  t.tile_rows = V::kRows;
  t.gemm_tile[0] = GemmTiles<V>::template Multiply<1>;
  t.gemm_tile[1] = GemmTiles<V>::template Multiply<2>;
  t.direct_tile[0] = S::template Run<1>;
  t.direct_tile[1] = S::template Run<2>;
  t.gemm_prefetch_tile = S::template Run<2, true>;
  t.widen_int8 = WidenInt8<V>;
  t.winograd_input[0] = W::TransformInput;
  t.winograd_input[1] = W::TransformRowInput;
  t.winograd_outputs[0] = WinogradOutputsOf<W, Activation::kNone>();
  t.winograd_outputs[1] = WinogradOutputsOf<W, Activation::kRelu>();
  t.winograd_outputs[2] = WinogradOutputsOf<W, Activation::kLeakyRelu>();
  t.winograd_outputs[3] = WinogradOutputsOf<W, Activation::kClip>();
  t.winograd_outputs[4] = WinogradOutputsOf<W, Activation::kHardSwish>();
  t.winograd_outputs[5] = WinogradOutputsOf<W, Activation::kHardSigmoid>();
  t.winograd_outputs[6] = WinogradOutputsOf<W, Activation::kSwish>();
  t.winograd_outputs[7] = WinogradOutputsOf<W, Activation::kSigmoid>();
  t.winograd_outputs[8] = WinogradOutputsOf<W, Activation::kTanh>();
  t.winograd_outputs[9] = WinogradOutputsOf<W, Activation::kMish>();
  t.winograd_outputs[10] = WinogradOutputsOf<W, Activation::kReluKeepsNan>();
  t.depthwise_tile[0][0][0] = D::template Row<3, 1, 8>;
  t.depthwise_tile[0][0][1] = D::template Row<3, 1, 4>;
  t.depthwise_tile[0][0][2] = D::template Row<3, 1, 1>;
  t.depthwise_tile[0][1][0] = D::template Row<3, 2, 8>;
  t.depthwise_tile[0][1][1] = D::template Row<3, 2, 4>;
  t.depthwise_tile[0][1][2] = D::template Row<3, 2, 1>;
  t.depthwise_tile[1][0][0] = D::template Row<5, 1, 8>;
  t.depthwise_tile[1][0][1] = D::template Row<5, 1, 4>;
  t.depthwise_tile[1][0][2] = D::template Row<5, 1, 1>;
  t.depthwise_tile[1][1][0] = D::template Row<5, 2, 8>;
  t.depthwise_tile[1][1][1] = D::template Row<5, 2, 4>;
  t.depthwise_tile[1][1][2] = D::template Row<5, 2, 1>;
  t.plane_tile[0] = PlaneTiles<V>::template Run<1>;
  t.plane_tile[1] = PlaneTiles<V>::template Run<2>;
  t.plane_tile[2] = PlaneTiles<V>::template Run<4>;
  t.plane_tile[3] = PlaneTiles<V>::template Run<8>;
  t.activate = ActivationLoops<V>::Run;
  t.exp_sum = ActivationLoops<V>::ExpSum;
  t.is_finite = ActivationLoops<V>::IsFinite;
  t.attention = AttentionTiles<V>::Run;
  t.recurrent[static_cast<int>(RnnMode::kTanh)] = RecurrentTiles<V, RnnMode::kTanh>::Kernel();
  t.recurrent[static_cast<int>(RnnMode::kRelu)] = RecurrentTiles<V, RnnMode::kRelu>::Kernel();
  t.recurrent[static_cast<int>(RnnMode::kLstm)] = RecurrentTiles<V, RnnMode::kLstm>::Kernel();
  t.recurrent[static_cast<int>(RnnMode::kGru)] = RecurrentTiles<V, RnnMode::kGru>::Kernel();
  t.multiply_adds = PeakLoop<V>::Run;
  t.multiply_adds_per_round = PeakLoop<V>::kSums * V::kLanes;
  return t;
}

}  // namespace
}  // namespace heddle::simd
