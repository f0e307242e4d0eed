// Recurrent networks with constant weights: packed once in the order in which kernels/rnn
// streams them.
#pragma once

#include <memory>
#include <memory_resource>
#include <vector>

#include "kernels/base/check.h"
#include "kernels/rnn/recurrent.h"
#include "kernels/rnn/rnn_inference.h"

namespace heddle {

// Without packed weights (an attribute, a dtype or a weight is of another kind) RunRecurrent runs.
struct RecurrentState final : KernelState {
  std::vector<std::unique_ptr<const PackedRnn>> packed;  // one per direction
};

// The kind that the attribute cell names.
Result<RecurrentKind> RecurrentKindOf(const OpContext& ctx);

Result<std::unique_ptr<KernelState>> PrepareRecurrent(PrepareContext& ctx);

// True when the state holds packed weights.
inline bool IsPacked(const KernelContext& ctx) {
  return ctx.has_state() && !ctx.State<RecurrentState>().packed.empty();
}
Status RunPacked(KernelContext& ctx, const RecurrentConfig& config);

// The sequences' lengths, checked; all steps where the operand is absent.
Status SequenceLengths(const KernelContext& ctx, const RecurrentConfig& config,
                       std::pmr::vector<int64_t>* lengths);

template <typename T>
struct RecurrentNetwork {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const RecurrentKind kind, RecurrentKindOf(ctx));
    HEDDLE_RETURN_IF_ERROR(
        CheckDType(kDTypeOf<T>, {&ctx.In("W"), &ctx.In("R"), ctx.InOpt("B"), ctx.InOpt("initial_h"),
                                 ctx.InOpt("initial_c"), ctx.InOpt("P")}));
    HEDDLE_ASSIGN_OR_RETURN(const RecurrentConfig config, RecurrentConfigOf(ctx, kind, false));
    if constexpr (std::is_same_v<T, float>)
      if (IsPacked(ctx)) return RunPacked(ctx, config);
    const RecurrentWeights<T> weights{ctx.In("W").data<T>(), ctx.In("R").data<T>()};
    return RunRecurrent<T>(ctx, config, weights);
  }
};

}  // namespace heddle
