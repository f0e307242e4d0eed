// The operations that may follow a matrix product or a convolution inside the same kernel.
#pragma once

#include <cstdint>

namespace heddle {

enum class Activation : uint8_t {
  kNone,
  kRelu,         // x > 0 ? x : 0, which is 0 for NaN
  kLeakyRelu,    // x < 0 ? alpha * x : x
  kClip,         // min(max(x, alpha), beta), NaN stays; relu6 is clip 0, 6
  kHardSwish,    // x * min(max(alpha * x + beta, 0), limit)
  kHardSigmoid,  // min(max(alpha * x + beta, 0), 1)
  kSwish,        // x * sigmoid(alpha * x)
  kSigmoid,
  kGeluErf,
  kGeluTanh,
  kTanh,
  kMish,          // x * tanh(log(1 + exp(x)))
  kReluKeepsNan,  // x < 0 ? 0 : x
};

// out = scale * activation(product + bias + residual) + shift
struct Epilogue {
  bool bias = false;
  bool residual = false;
  Activation activation = Activation::kNone;
  float alpha = 0, beta = 0;
  float limit = 1;  // of the gate in kHardSwish
  float scale = 1, shift = 0;
  bool bf16 = false;  // a constant operand may be rounded to bfloat16, and the other one with it
  bool int8 = false;  // a constant matrix may be rounded to 8-bit integers

  bool linear() const { return scale != 1.f || shift != 0.f; }
  bool empty() const { return !bias && !residual && activation == Activation::kNone && !linear(); }
};

}  // namespace heddle
