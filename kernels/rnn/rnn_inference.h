// Recurrent networks with constant weights: the weights are packed once so that a step streams them
// in order, and nothing is kept for gradients.
#pragma once

#include <array>
#include <memory>
#include <span>

#include "core/kernel_context.h"
#include "kernels/rnn/rnn_pass.h"

namespace heddle {

// The packed weights of one direction of one layer. Columns are ordered in strips: `units` hidden
// units with all their gates, so that the sums of a strip suffice for its part of the new state.
// Immutable.
struct PackedRnn {
  RnnMode mode = RnnMode::kTanh;
  int64_t in = 0, hidden = 0, strips = 0;
  int64_t units = 0;                     // in a strip; columns of units behind `hidden` are zeros
  std::shared_ptr<const Tensor> ih, hh;  // [strips, in or hidden, gates * units]
  Tensor bias;                           // [strips, gates * units], added to the inputs' sums
  Tensor recurrent_bias;  // GRU, [strips, units]: the recurrent bias of the candidate

  int64_t strip_width() const { return RnnGates(mode) * units; }
  int64_t columns() const { return strips * strip_width(); }
  int64_t padded() const { return strips * units; }
};

// Packs weights [gates * hidden, in] and [gates * hidden, hidden] and biases [gates * hidden].
std::unique_ptr<PackedRnn> PackRnn(const PrepareContext& ctx, RnnMode mode, const Tensor& ih,
                                   const Tensor& hh, const Tensor& bias_ih, const Tensor& bias_hh);

struct RnnLayerArgs {
  int64_t steps = 0, batch = 0;
  const int64_t* lengths = nullptr;  // per sequence, or null: all have `steps`
  const float* x = nullptr;          // [steps, batch, in]
  float* out = nullptr;              // [steps, batch, directions * hidden]
  // Per direction, [batch, hidden]: the states before, and where the states after go; these
  // pointers may be null.
  std::array<const float*, 2> h0{}, c0{};
  std::array<float*, 2> last_h{}, last_c{};
};

// Runs one layer, forwards and, where there is a second direction, backwards. Results do not depend
// on the number of threads.
void RunRnnLayer(const KernelContext& ctx, std::span<const PackedRnn* const> directions,
                 const RnnLayerArgs& args);

}  // namespace heddle
