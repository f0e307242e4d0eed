// What may follow a matrix product or a convolution inside the same kernel.
#pragma once

#include <cstdint>
#include <string_view>

#include "heddle/status.h"

namespace heddle {

enum class Activation : uint8_t {
  kNone,
  kRelu,
  kLeakyRelu,    // x < 0 ? alpha * x : x
  kClip,         // min(max(x, alpha), beta); relu6 is clip 0, 6
  kHardSwish,    // x * min(max(alpha * x + beta, 0), 1)
  kHardSigmoid,  // min(max(alpha * x + beta, 0), 1)
  kSwish,        // x * sigmoid(alpha * x)
  kSigmoid,
  kGeluErf,
  kGeluTanh,
  kTanh,
  kMish,  // x * tanh(log(1 + exp(x)))
};

// out = scale * activation(product + bias + residual) + shift
struct Epilogue {
  bool bias = false;
  bool residual = false;
  Activation activation = Activation::kNone;
  float alpha = 0, beta = 0;
  float scale = 1, shift = 0;
  bool bf16 = false;  // a constant operand may be rounded to bfloat16, and the other one with it
  bool int8 = false;  // a constant matrix may be rounded to 8-bit integers

  bool linear() const { return scale != 1.f || shift != 0.f; }
  bool empty() const { return !bias && !residual && activation == Activation::kNone && !linear(); }
};

// From the attributes fuse_activation, fuse_alpha, fuse_beta of the fused operators. Both 0 give
// the usual constants: hard_swish 1/6, 0.5; hard_sigmoid 0.2, 0.5; swish 1. gelu with alpha 1 is
// the tanh form.
Result<Epilogue> ParseEpilogue(std::string_view activation, double alpha, double beta, bool bias,
                               bool residual);

// Applies an epilogue, but for the residual, to `rows` rows of `width` elements in place,
// `row_step` elements apart. The bias has one element per column, or, with `bias_per_row`, per row.
void ApplyEpilogue(const Epilogue& epilogue, int64_t rows, int64_t width, int64_t row_step,
                   const float* bias, bool bias_per_row, float* c);

// y = activation(x) of n elements in the processor's widest vectors; x may be y. False, with
// nothing done, where there are no such loops.
bool ActivateMany(Activation activation, float alpha, const float* x, int64_t n, float* y);

}  // namespace heddle
