// The inner loops of heddle's own convolutions with channels last, built for several instruction
// sets: what they and the runners agree on.
//
// Winograd convolutions F(4x4, 3x3) and F(2x2, 5x5), conv_winograd.cc: six by six pixels of input
// give four by four of output, or two by two, by 36 products per pair of channels instead of 144 or
// 100. A set of tiles is transformed to 36 matrices [tile, channel], each multiplied with a matrix
// of the transformed filter, and the products are transformed back. What differs is the last step.
#pragma once

#include <cstdint>

#include "kernels/gemm/gemm_epilogue.h"

namespace heddle {
struct Machine;
}

namespace heddle::convloops {

constexpr int kWindow = 6, kPoints = kWindow * kWindow;
// Rows of the output that a window gives.
constexpr int TileOf(int64_t kernel) { return kWindow + 1 - static_cast<int>(kernel); }

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
  int rows, columns;  // at most those that a window gives
};

using MultiplyFn = void (*)(int64_t rows, int64_t depth, const float* a, int64_t a_step,
                            const float* panel, float* c, int64_t c_step);
using OutputFn = void (*)(const float* m, int64_t point_step, int64_t channels, const float* bias,
                          const Epilogue& epilogue, const OutputTile& tile);

// Depthwise convolution, conv_depthwise.cc: some pixels of a row of the output, all channels.
struct DepthwiseRow {
  // The pixels of the input that the outputs see, [row of the kernel][column]; zeros where there is
  // none.
  const float* const* pixels;
  int rows;             // those of the kernel that meet the image, from `filter` on
  const float* filter;  // [row][column][channel], channels padded to vectors
  int64_t filter_step;  // between taps
  const float* bias;    // may be null
  float* out;
  int64_t channels;
};
// How many pixels of the output a row may have.
constexpr int kDepthwisePixels[3] = {8, 4, 1};
using DepthwiseFn = void (*)(const DepthwiseRow& row, const Epilogue& epilogue);

// Convolution by its definition, conv_direct.cc: some pixels of the output at equal distances,
// which see the same taps, and the channels of one panel of the filter.
struct DirectBlock {
  const float* pixels;           // of the input: what the first of them sees through its first tap
  int64_t pixel_step;            // from there to what the next one sees
  const float* filter;           // [row][column][channel in][panel], from the first tap on
  int64_t rows, columns, depth;  // taps; depth: consecutive floats that a tap sees
  int64_t row_step, column_step, filter_row_step, filter_column_step;  // between taps
  const float* bias;                                                   // may be null
  const float* residual;                                               // may be null, or `out`
  int64_t residual_step;
  float* out;
  int64_t out_step;
  int channels;  // of the panel, the last vector may be partly used
  // What becomes of a sum: it is cut to [low, high], if gated multiplied with
  // min(max(gate_factor x + gate_offset, 0), 1), and if linear it becomes scale x + shift.
  float low, high;
  bool gated, linear;
  float gate_factor, gate_offset, scale, shift;
  // ConvLoops::streamed: what is read next, and how far to go with each row of the filter.
  const float* ahead;
  int64_t ahead_step;
};
using DirectFn = void (*)(DirectBlock block, int64_t pixels);

struct ConvLoops {
  int lanes;  // floats in a vector: rows of matrices are padded to a multiple
  int panel;  // columns of the packed filter that are multiplied at a time: two vectors
  int rows;   // most rows that are multiplied at a time
  // One tile to its row in the 36 matrices, which are point_step apart; padding becomes 0.
  void (*input)(const InputTile& tile, int64_t channels, float* out, int64_t point_step);
  // c = a times panel, [rows, depth] x [depth, vectors of the panel]; [vectors - 1].
  MultiplyFn multiply[2];
  struct Output {
    Activation activation;
    OutputFn run[2];  // for kernels 3x3, 5x5
  };
  Output outputs[10];  // one for each activation that can be fused, here and in `depthwise`

  // [kernel 3x3, 5x5][stride 1, 2][index into kDepthwisePixels]
  DepthwiseFn depthwise[2][2][3];

  // [vectors of the panel - 1]
  DirectFn direct[2];
  // Likewise for two vectors and one tap, and brings what is `ahead` near meanwhile.
  DirectFn streamed;

  // Rows of integers of some vectors, times a factor for each column, to floats.
  void (*widen)(int64_t rows, int vectors, const int8_t* from, const float* factors, float* to);

  // What an epilogue does besides bias and residual, to `rows` rows of `width` floats, `step`
  // apart.
  void (*activate)(const Epilogue& epilogue, int64_t rows, int64_t width, int64_t step,
                   float* data);
  // y = exp(x - top), which may be in place, and the sum of these.
  float (*exp_sum)(const float* x, int64_t n, float top, float* y);

  // kernel: 3 or 5.
  OutputFn OutputFor(Activation a, int64_t kernel = 3) const {
    for (const Output& o : outputs)
      if (o.activation == a) return o.run[kernel == 5];
    return nullptr;
  }
};

// "avx2" or "avx512".
inline const char* VectorsOf(const ConvLoops& loops) {
  return loops.lanes == 16 ? "avx512" : "avx2";
}

// Code for one instruction set; nullptr when the build has none. Calling it takes such a processor.
const ConvLoops* LoopsForAvx2();
const ConvLoops* LoopsForAvx512();
// The best code for a machine, which need not be this one, to read what it covers; nullptr when
// there is none.
const ConvLoops* LoopsFor(const Machine& m);
// The best code for this processor; nullptr when there is none.
const ConvLoops* BestLoops();

}  // namespace heddle::convloops
