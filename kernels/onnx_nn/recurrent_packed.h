// ONNX's recurrent networks with constant weights: packed once in the order in which kernels/rnn
// streams them.
#pragma once

#include <memory>
#include <vector>

#include "kernels/onnx_nn/recurrent.h"
#include "kernels/rnn/rnn_inference.h"

namespace heddle {

// Without packed weights (an attribute, a dtype or a weight is of another kind) RunRecurrent runs.
struct RecurrentState final : KernelState {
  std::vector<std::unique_ptr<const PackedRnn>> packed;  // one per direction
};

template <RecurrentKind kKind>
Result<std::unique_ptr<KernelState>> PrepareRecurrent(PrepareContext& ctx);

// Whether the state holds packed weights.
inline bool IsPacked(const KernelContext& ctx) {
  return ctx.has_state() && !ctx.State<RecurrentState>().packed.empty();
}
Status RunPacked(KernelContext& ctx, const RecurrentConfig& config);

// The sequences' lengths, checked; all steps where the operand is absent.
Result<std::vector<int64_t>> SequenceLengths(const KernelContext& ctx,
                                             const RecurrentConfig& config);

}  // namespace heddle
