// The inner loops that heddle writes for each instruction set, as one table of functions, and their
// operands. Convolutions, products, attention, recurrent layers and activations are built on them.
//
// Ownership: tables are constants of the program; operands belong to the caller. Threads: all
// functions are re-entrant. Errors: none; preconditions are not checked.
#pragma once

#include <cstdint>

#include "kernels/simd/attention_head.h"
#include "kernels/simd/epilogue.h"
#include "kernels/simd/isa.h"
#include "kernels/simd/recurrent_step.h"

namespace heddle::simd {

// c = a times one panel of a packed matrix: [rows, depth] x [depth, panel].
using GemmTileFn = void (*)(int64_t rows, int64_t depth, const float* a, int64_t a_step,
                            const float* panel, float* c, int64_t c_step);

// Winograd convolutions F(4x4, 3x3) and F(2x2, 5x5): a window of 6x6 pixels of the input gives 4x4
// or 2x2 of the output by 36 products per pair of channels instead of 144 or 100. A set of windows
// is transformed to 36 matrices [window, channel], each is multiplied with a matrix of the
// transformed filter, and the products are transformed back. Only the last step differs between the
// two. Rows alone are convolved by F(4, 3) and F(2, 5): six pixels of a row, six products instead
// of 12 or 10.
constexpr int kWinogradWindow = 6, kWinogradPoints = kWinogradWindow * kWinogradWindow;
// Rows of the output that a window gives.
constexpr int WinogradTileOf(int64_t kernel) {
  return kWinogradWindow + 1 - static_cast<int>(kernel);
}

constexpr float kWinogradMost = 4e9f;

// A window of the input, steps in floats. Pixels outside of the given rows and columns are 0.
struct WinogradInput {
  const float* data;  // where the window's first pixel is, or would be
  int64_t row_step, pixel_step;
  int row_begin, row_end, column_begin, column_end;
};

struct WinogradOutput {
  float* data;
  int64_t row_step, pixel_step;
  const float* residual;  // may be null, or `data`
  int64_t residual_row_step, residual_pixel_step;
  int rows, columns;  // at most those that a window gives
};

using WinogradOutputFn = void (*)(const float* m, int64_t point_step, int64_t channels,
                                  const float* bias, const Epilogue& epilogue,
                                  const WinogradOutput& tile);

// Depthwise convolution: some pixels of a row of the output, all channels.
struct DepthwiseTile {
  // The pixels of the input that the outputs see, [row of the kernel][column]; zeros stand for
  // pixels outside of the image.
  const float* const* pixels;
  int rows;             // rows of the kernel that meet the image, from `filter` on
  const float* filter;  // [row][column][channel], channels padded to vectors
  int64_t filter_step;  // between taps
  const float* bias;    // may be null
  float* out;
  int64_t channels;
};
// The number of output pixels that a call may compute.
constexpr int kDepthwisePixels[3] = {8, 4, 1};
using DepthwiseTileFn = void (*)(const DepthwiseTile& tile, const Epilogue& epilogue);

// Convolution to at most 8 channels: a row of the output, pixel by pixel in vectors. Rows of the
// input may be read up to kPlaneSlack floats beyond what the row's last pixel sees.
constexpr int64_t kPlaneSlack = 128;
struct PlaneTile {
  const float* in;  // in the first plane: what the first tap of the first output pixel reads
  int64_t planes, plane_step;
  int64_t rows, row_step, columns, column_step;  // taps of a plane
  const float* filter;                           // [plane][row][column][channels of the tile]
  int64_t filter_plane_step;
  const float* bias;  // of the tile's channels
  float* out;
  int64_t out_step;  // between channels
  int channels;      // of the tile that are stored
};
using PlaneTileFn = void (*)(const PlaneTile& tile, int64_t pixels);

// Convolution by its definition: some pixels of the output at equal distances, which see the same
// taps, and the channels of one panel of the filter. A product is the case of one tap: pixels are
// rows of A, channels are columns of B.
struct DirectTile {
  const float* pixels;           // what the first tap of the first output pixel reads
  int64_t pixel_step;            // from there to what that tap of the next output pixel reads
  const float* filter;           // [row][column][channel in][panel], from the first tap on
  int64_t rows, columns, depth;  // taps; depth: consecutive floats that a tap reads
  int64_t row_step, column_step, filter_row_step, filter_column_step;  // between taps
  const float* bias;                                                   // may be null
  const float* residual;                                               // may be null, or `out`
  int64_t residual_step;
  float* out;
  int64_t out_step;
  int channels;  // of the panel, the last vector may be partly used
  // The epilogue of a sum: it is cut to [low, high], if gated multiplied with
  // min(max(gate_factor x + gate_offset, 0), gate_limit), and if linear it becomes scale x + shift.
  // NaN stays; with nan_is_low it becomes `low`, and there is no `high`.
  float low, high;
  bool nan_is_low, gated, linear;
  float gate_factor, gate_offset, gate_limit, scale, shift;
  // For Microkernels::gemm_prefetch_tile: memory to prefetch, and the step for each row of the
  // filter.
  const float* ahead;
  int64_t ahead_step;
};
using DirectTileFn = void (*)(DirectTile tile, int64_t pixels);

struct Microkernels {
  Isa isa;
  int lanes;      // floats in a vector: rows of matrices are padded to a multiple
  int panel;      // columns of a packed matrix that are multiplied at a time: two vectors
  int tile_rows;  // most rows that are multiplied at a time

  GemmTileFn gemm_tile[2];      // [vectors of the panel - 1]
  DirectTileFn direct_tile[2];  // [vectors of the panel - 1]
  // direct_tile for two vectors and one tap, which prefetches what is `ahead` meanwhile.
  DirectTileFn gemm_prefetch_tile;
  // Rows of integers of some vectors, times a factor for each column, to floats.
  void (*widen_int8)(int64_t rows, int vectors, const int8_t* from, const float* factors,
                     float* to);

  // Transforms one window to its row in the 36 or 6 matrices, which are point_step apart; padding
  // becomes 0. False: a pixel is NaN, infinite or of the order of kWinogradMost, so that it, or its
  // rounding error, would reach results whose windows do not contain it. Index: 1 for windows of
  // one row.
  bool (*winograd_input[2])(const WinogradInput& tile, int64_t channels, float* out,
                            int64_t point_step);
  struct WinogradOutputs {
    Activation activation;
    WinogradOutputFn run[2][2];  // [of one row][for kernels 3x3, 5x5]
  };
  WinogradOutputs
      winograd_outputs[11];  // one for each activation that they and depthwise_tile fuse

  // [kernel 3x3, 5x5][stride 1, 2][index into kDepthwisePixels]
  DepthwiseTileFn depthwise_tile[2][2][3];

  PlaneTileFn plane_tile[4];  // for 1, 2, 4, 8 channels

  // The epilogue without bias and residual, applied to `rows` rows of `width` floats, `step` apart.
  // `data` is `from`, or lies apart from it.
  void (*activate)(const Epilogue& epilogue, int64_t rows, int64_t width, int64_t step,
                   const float* from, float* data);
  // y = exp(x - top); returns the sum of y. y may be x.
  float (*exp_sum)(const float* x, int64_t n, float top, float* y);
  // Whether no element of `rows` rows of `width` floats, `step` apart, is infinite or NaN.
  bool (*is_finite)(const float* x, int64_t rows, int64_t width, int64_t step);

  // Attention of some queries of one head; `work` has AttentionWork() elements.
  void (*attention)(const AttentionHead& head, float* work);
  StripKernel recurrent[4];  // [RnnMode]

  // rounds * multiply_adds_per_round multiply-adds of numbers in registers, for the core's peak
  // rate. Returns a number that depends on all of them.
  float (*multiply_adds)(int rounds);
  int multiply_adds_per_round;

  // kernel: 3 or 5. nullptr: Winograd and depthwise tiles don't fuse this activation.
  WinogradOutputFn WinogradOutputFor(Activation a, int64_t kernel = 3, bool row = false) const {
    for (const WinogradOutputs& o : winograd_outputs)
      if (o.activation == a) return o.run[row][kernel == 5];
    return nullptr;
  }
  const StripKernel& RecurrentFor(RnnMode mode) const { return recurrent[static_cast<int>(mode)]; }
};

// The table for one instruction set; nullptr when the build has none. Calling its functions takes
// such a processor.
const Microkernels* PortableMicrokernels();
const Microkernels* Avx2Microkernels();
const Microkernels* Avx512Microkernels();
// The best table for a machine, which need not be this one, to read what it covers. Never null.
const Microkernels* MicrokernelsFor(const Machine& machine);
// The instruction set of that table: "avx2".
std::string_view VectorsOf(const Machine& machine);
// The best table for this processor. Never null.
const Microkernels* BestMicrokernels();

}  // namespace heddle::simd
