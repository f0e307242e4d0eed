// The epilogue of a matrix product or a convolution: parsed from attributes, and applied to its
// results.
#pragma once

#include <cstdint>
#include <string_view>

#include "heddle/status.h"
#include "kernels/simd/epilogue.h"

namespace heddle {

// From the attributes fuse_activation, fuse_alpha, fuse_beta of the fused operators. Both 0 give
// the usual constants: hard_swish 1/6, 0.5; hard_sigmoid 0.2, 0.5; swish 1. gelu with alpha 1 is
// the tanh form. hard_swish_divided_last is x min(max(x + 3, 0), 6) / 6, whose product may
// overflow: its division is the epilogue's scale, which a further scale is multiplied with.
Result<Epilogue> ParseEpilogue(std::string_view activation, double alpha, double beta, bool bias,
                               bool residual);

// Takes the activation and what follows it out of `epilogue`; returns them as an epilogue of their
// own.
Epilogue TakeActivation(Epilogue* epilogue);

// Activations that heddle applies to what oneDNN has computed: oneDNN's limits, its logistic
// function and its leaky relu of slope 0 turn NaN into a number, and its GELU infinity into NaN.
bool FollowsOnednn(const Epilogue& epilogue);
// The cycles that this takes per result, which is read and written again. Measured after nine
// convolutions with 1x1 filters (8 to 128 terms per sum, 8,000 to 800,000 results): 0.07 to 0.14
// cycles more than with relu inside oneDNN. oneDNN's elu of slope 0, a relu that keeps NaN, takes
// 0.9 more.
constexpr double kCyclesToFollow = 0.12;

// Applies an epilogue, but for the residual, to `rows` rows of `width` elements in place,
// `row_step` elements apart. The bias has one element per column, or, with `bias_per_row`, per row.
void ApplyEpilogue(const Epilogue& epilogue, int64_t rows, int64_t width, int64_t row_step,
                   const float* bias, bool bias_per_row, float* c);

// y = activation(x) of n elements; x may be y.
void ActivateMany(Activation activation, float alpha, const float* x, int64_t n, float* y);

}  // namespace heddle
