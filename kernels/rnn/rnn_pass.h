// One direction of one layer of a recurrent network over a whole sequence, and its gradient.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/kernel_context.h"
#include "kernels/simd/recurrent_step.h"

namespace heddle {

inline int64_t RnnGates(RnnMode mode) {
  return mode == RnnMode::kLstm ? 4 : mode == RnnMode::kGru ? 3 : 1;
}

// The number of steps in which at least one of `batch` sequences takes part; at most `steps`, and
// `steps` where `lengths` is null.
inline int64_t LongestOf(const int64_t* lengths, int64_t batch, int64_t steps) {
  if (lengths == nullptr) return steps;
  int64_t longest = 0;
  for (int64_t b = 0; b < batch; ++b) longest = std::max(longest, lengths[b]);
  return std::min(longest, steps);
}

struct RnnSizes {
  RnnMode mode = RnnMode::kTanh;
  int64_t steps = 0, batch = 0, in = 0, hidden = 0;
  bool reverse = false;
  const int64_t* lengths = nullptr;  // per sequence, or null: all have `steps`
  int64_t gates() const { return RnnGates(mode) * hidden; }
  // The time of the s-th step.
  int64_t At(int64_t s) const { return reverse ? steps - 1 - s : s; }
  bool Active(int64_t t, int64_t b) const { return lengths == nullptr || t < lengths[b]; }
};

template <typename T>
struct RnnWeights {
  const T *ih, *hh;        // [gates, in], [gates, hidden]
  const T* hh_transposed;  // [hidden, gates]; the forward pass uses this one
  const T *bias_ih, *bias_hh;
};

// The trace of a forward pass: activated gates [steps, batch, gates], the state after each step
// [steps, batch, hidden], LSTM's cells likewise; for GRU `cells` is the candidate's recurrent part.
template <typename T>
struct RnnTrace {
  T *gates, *states, *cells;
};

// `x` is [steps, batch, in]; output rows of `hidden` elements are `out_step` apart. h0 and c0 are
// [batch, hidden].
template <typename T>
void RnnForward(const KernelContext& ctx, const RnnSizes& s, const RnnWeights<T>& w, const T* x,
                const T* h0, const T* c0, const RnnTrace<T>& trace, T* out, int64_t out_step);

template <typename T>
struct RnnGrads {
  const T* out;  // rows `out_step` apart
  int64_t out_step;
  T *h, *c;  // [batch, hidden]: gradient of the last state, replaced by that of the first
  T* x;      // [steps, batch, in], added to; may be null
  T *ih, *hh, *bias_ih, *bias_hh;
};
// `work` has room for 2 * steps * batch * gates elements.
template <typename T>
void RnnBackward(const KernelContext& ctx, const RnnSizes& s, const RnnWeights<T>& w, const T* x,
                 const T* h0, const T* c0, const RnnTrace<T>& trace, const RnnGrads<T>& grads,
                 T* work);

}  // namespace heddle
