// ONNX's recurrent networks RNN, GRU and LSTM.
//
// The inputs' products of all steps are one matrix product; each step then multiplies the state of
// the whole batch. Sequences of different length run side by side; the products behind the end of
// one are computed and not kept.
#pragma once

#include <array>

#include "kernels/base/short_list.h"
#include "kernels/gemm/gemm.h"
#include "kernels/operands/operands.h"

namespace heddle {

enum class RecurrentKind { kRnn, kGru, kLstm };

// An activation of a gate, one of those that ONNX names.
struct GateFunction {
  enum Kind : uint8_t {
    kSigmoid,
    kTanh,
    kRelu,
    kAffine,
    kLeakyRelu,
    kThresholdedRelu,
    kScaledTanh,
    kHardSigmoid,
    kElu,
    kSoftsign,
    kSoftplus
  };
  Kind kind = kTanh;
  double alpha = 0, beta = 0;

  // x[i] becomes the function of it, for n elements.
  template <typename T>
  void Apply(T* x, int64_t n) const;
};

struct RecurrentConfig {
  RecurrentKind kind = RecurrentKind::kRnn;
  int64_t steps = 0, batch = 0, in = 0, hidden = 0, directions = 1;
  bool batch_first = false, reverse = false;  // reverse: of the only direction
  double clip = 0;                            // 0: none
  bool input_forget = false, linear_before_reset = false;
  // Of all directions, one after another: up to three each.
  using Functions = ShortList<GateFunction, 6>;
  Functions functions;

  int64_t gates() const {
    return kind == RecurrentKind::kLstm ? 4 : kind == RecurrentKind::kGru ? 3 : 1;
  }
  size_t functions_per_direction() const {
    return kind == RecurrentKind::kLstm ? 3 : kind == RecurrentKind::kGru ? 2 : 1;
  }
};

// Checks operands and attributes against each other. `transposed`: W and R are
// [directions, in or hidden, gates * hidden].
template <typename Context>
Result<RecurrentConfig> RecurrentConfigOf(const Context& ctx, RecurrentKind kind, bool transposed);

// Attributes but layout, which some operators have besides, slots X to initial_h, and outputs Y and
// Y_h.
void DeclareRecurrent(OpDef& op, RecurrentKind kind);
Status RecurrentShape(ShapeContext& ctx, RecurrentKind kind, bool transposed);

// Weights of all directions, [directions, gates * hidden, in or hidden] or transposed.
template <typename T>
struct RecurrentWeights {
  const T *w = nullptr, *r = nullptr;
  bool transposed = false;
  bool quantize = false;  // round what is multiplied with them to 8 bits first
};

// Runs the network; the operands are those of the operator's slots.
template <typename T>
Status RunRecurrent(KernelContext& ctx, const RecurrentConfig& config,
                    const RecurrentWeights<T>& weights);

}  // namespace heddle
