// The epilogue of heddle's fused products and convolutions: scale * f(x + bias) + shift, in place.
#pragma once

#include <string_view>

#include "core/op_context.h"
#include "device/cuda/grid/element_ops.h"
#include "device/cuda/grid/queue.h"

namespace heddle::HEDDLE_GRID {

struct Activation {
  Element op = Element::kScale;  // times 1 plus 0
  ElementArgs args{1, 0, 0};
  bool none = true;
};

// As fuse_activation, fuse_alpha and fuse_beta of the fused operators say.
Result<Activation> ActivationOf(const OpContext& ctx);

struct EpilogueBody {
  float* c;
  const float* bias;  // may be null; element i's is number i / inner % channels
  int64_t inner, channels;
  Element op;
  ElementArgs args;
  float scale, shift;
  HEDDLE_BODY void operator()(int64_t i) const {
    float x = c[i];
    if (bias != nullptr) x += bias[i / inner % channels];
    c[i] = scale * Compute(op, x, 0, args) + shift;
  }
};

// Over `n` elements; launches nothing when the epilogue is the identity.
Status RunEpilogue(Queue& queue, float* c, int64_t n, const float* bias, int64_t inner,
                   int64_t channels, const Activation& activation, float scale = 1,
                   float shift = 0);
// out = f(sums + bias + residual) in 16 bits; bias along the last dimension, of `columns` elements.
// It and the residual may be null.
Status RunEpilogue(Queue& queue, const float* sums, const Tensor* residual, const Tensor* bias,
                   int64_t columns, const Activation& activation, Tensor& out);

}  // namespace heddle::HEDDLE_GRID
