// The operands of a recurrent layer's inner loops. A layer's hidden units are cut into strips,
// which hold some units with all their gates; a step of time is computed strip by strip.
#pragma once

#include <cstdint>

namespace heddle {

enum class RnnMode { kTanh, kRelu, kLstm, kGru };

// One step of time of one strip, for the whole batch. Pointers to states are at the strip's first
// unit; rows are `padded` apart, but where said otherwise.
struct StripStep {
  int64_t batch = 0, hidden = 0, padded = 0, t = 0;
  int64_t unit = 0;                       // the strip's first unit
  const int64_t* lengths = nullptr;       // sequences that ended keep their state and put out zeros
  const float* weights = nullptr;         // [hidden, gates * units]
  bool back = false;                      // reads the weights from the last row to the first
  const float* recurrent_bias = nullptr;  // GRU: [units]
  const float* gates = nullptr;           // the inputs' sums, rows `gates_step` apart
  int64_t gates_step = 0;
  const float* h = nullptr;       // the whole old state
  const float* h_prev = nullptr;  // its part in this strip
  float* h_next = nullptr;
  float* c = nullptr;    // LSTM: cells, replaced
  float* out = nullptr;  // rows `out_step` apart; only units below `hidden`
  int64_t out_step = 0;
};

struct StripKernel {
  int64_t units = 0;  // in a strip
  // out[r] = bias + a[r] * w for `rows` rows; w is [k, gates * units].
  void (*project)(int64_t rows, int64_t k, const float* a, int64_t a_step, const float* w,
                  const float* bias, float* out, int64_t out_step) = nullptr;
  void (*step)(const StripStep&) = nullptr;
};

}  // namespace heddle
