// Winograd convolution F(4x4, 3x3): what the runner (conv_winograd.cc) and its inner loops, built for
// several instruction sets, agree on.
//
// Six by six pixels of input give four by four of output, by 36 products per pair of channels
// instead of 144. A set of tiles is transformed to 36 matrices [tile, channel], each multiplied with
// a matrix of the transformed filter, and the products are transformed back.
#pragma once

#include <cstdint>

#include "kernels/common/gemm_epilogue.h"

namespace heddle::winograd {

constexpr int kTile = 4, kWindow = 6, kPoints = kWindow * kWindow;

// A window of the input, steps in floats. Pixels outside of the given rows and columns are 0.
struct InputTile {
  const float* data;  // where the window's first pixel is, or would be
  int64_t row_step, pixel_step;
  int row_begin, row_end, column_begin, column_end;
};

struct OutputTile {
  float* data;
  int64_t row_step, pixel_step;
  const float* residual;  // may be null, or `data`
  int64_t residual_row_step, residual_pixel_step;
  int rows, columns;  // at most kTile
};

using OutputFn = void (*)(const float* m, int64_t point_step, int64_t channels, const float* bias,
                          const Epilogue& epilogue, const OutputTile& tile);

struct Loops {
  int lanes;  // floats in a vector: rows of matrices are padded to a multiple
  int panel;  // columns of the packed filter that are multiplied at a time
  int rows;   // most rows that are multiplied at a time
  // One tile to its row in the 36 matrices, which are point_step apart; padding becomes 0.
  void (*input)(const InputTile& tile, int64_t channels, float* out, int64_t point_step);
  // c = a times panel, [rows, depth] x [depth, panel].
  void (*multiply)(int64_t rows, int64_t depth, const float* a, int64_t a_step, const float* panel,
                   float* c, int64_t c_step);
  struct Output {
    Activation activation;
    OutputFn run;
  };
  Output outputs[6];  // one for each activation that can be fused

  OutputFn OutputFor(Activation a) const {
    for (const Output& o : outputs)
      if (o.activation == a) return o.run;
    return nullptr;
  }
};

// Code for one instruction set; nullptr when the build has none. Calling it takes such a processor.
const Loops* LoopsForAvx2();
const Loops* LoopsForAvx512();
// The best code for this processor; nullptr when there is none.
const Loops* BestLoops();

}  // namespace heddle::winograd
