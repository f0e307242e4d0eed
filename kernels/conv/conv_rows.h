// Convolutions with channels last, one row of the output at a time, shared by conv_direct.cc,
// conv_depthwise.cc and conv_chain.cc. Each row has an address of its own, so that chains of
// convolutions keep only the rows that are needed next.
//
// Ownership: packed filters belong to the plans that share them (core/memory/buffer_slab.h).
// Threads: all of it is immutable after construction; Run is re-entrant.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "kernels/conv/conv.h"
#include "kernels/simd/microkernels.h"

namespace heddle::convrows {

using simd::DepthwiseTileFn;
using simd::DirectTile;
using simd::Microkernels;

// The filter as panels [row][column][channel in][channel out], two vectors wide; the last one is
// one or two vectors wide.
struct PackedPanels {
  static constexpr int kPackingVersion = 1;  // see PackOnce
  BufferRef memory;
  const float* data() const { return static_cast<const float*>(memory->data()); }
};
std::shared_ptr<const PackedPanels> PanelsOf(const PrepareContext& ctx, const Tensor& filter,
                                             const Microkernels& kernels);

// An epilogue as the direct loops take it.
struct DirectEpilogue {
  explicit DirectEpilogue(const Epilogue& epilogue);
  // Sets the epilogue of a tile, except bias and residual.
  void Set(DirectTile* block) const;
  // Applies the part of the epilogue that the microkernel leaves out.
  void Finish(int64_t pixels, int64_t channels, int64_t step, float* out) const {
    if (late.activation != Activation::kNone || late.linear())
      ApplyEpilogue(late, pixels, channels, step, nullptr, false, out);
  }

  Epilogue loops, late;
};

// A pointwise convolution of stride 1 without padding.
class PointwiseRows {
 public:
  // filter: [out_c, in_c, 1, 1].
  PointwiseRows(const PrepareContext& ctx, const Tensor& filter, const Epilogue& epilogue,
                const Microkernels& kernels);
  // `pixels` consecutive ones. The residual is null, or where the epilogue wants one, as large as
  // `out`, and may be `out`.
  void Run(const float* in, int64_t pixels, const float* bias, const float* residual,
           float* out) const;

 private:
  void Stretch(const float* in, int64_t pixels, const float* bias, const float* residual,
               float* out) const;

  const Microkernels& kernels_;
  const DirectEpilogue epilogue_;
  const int64_t in_c_, out_c_;
  std::shared_ptr<const PackedPanels> packed_;
};

// A depthwise convolution 3x3 or 5x5 whose rows are two steps apart at most.
class DepthwiseRows {
 public:
  static constexpr int kMostRows = 5;
  using InputRows = std::array<const float*, kMostRows>;

  static bool Takes(const ConvGeometry& g, const Epilogue& epilogue, const Microkernels& kernels);
  // Precondition: Takes().
  DepthwiseRows(const PrepareContext& ctx, const ConvGeometry& g, const Tensor& filter,
                const Epilogue& epilogue, const Microkernels& kernels);
  // Rows [first, last) of the input that row `y` of the output reads.
  std::pair<int64_t, int64_t> Seen(int64_t y) const;
  // Row `y` of the output. in: the rows of Seen(y); `out` is none of them.
  void Run(const InputRows& in, int64_t y, const float* bias, float* out) const;

  int64_t work() const { return g_.out[2] * padded_ * kernel_ * kernel_; }  // of a row

 private:
  struct PackedTaps;
  static constexpr size_t kMostPixels = kMostRows * (7 * 2 + 5);
  using Pixels = std::array<const float*, kMostPixels>;

  PackedTaps* Pack(const Tensor& filter) const;
  void FindPixels(const InputRows& in, int rows, int64_t x, Pixels* pixels) const;

  const ConvGeometry g_;
  const Epilogue epilogue_;
  const int64_t kernel_, padded_;
  std::shared_ptr<const PackedTaps> packed_;
  std::vector<float> zeros_;
  DepthwiseTileFn run_;
  int64_t stretch_, columns_;
};

}  // namespace heddle::convrows
