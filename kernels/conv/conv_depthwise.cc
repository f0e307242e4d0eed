// Depthwise convolution 3x3 and 5x5, channels last: several pixels of an output row at a time,
// so that an input pixel is loaded once for all of them.
#include <algorithm>

#include "core/memory/lazy_buffer.h"
#include "kernels/conv/conv_backend.h"
#include "kernels/conv/conv_rows.h"

namespace heddle {
namespace convrows {

// The filter as [row][column][channel], channels padded to vectors.
struct DepthwiseRows::PackedTaps {
  BufferRef memory;
  const float* data() const { return static_cast<const float*>(memory->data()); }
};

bool DepthwiseRows::Takes(const ConvGeometry& g, const Epilogue& epilogue,
                          const Microkernels& kernels) {
  const std::array<int64_t, 3> one{1, 1, 1};
  const int64_t k = g.kernel[2], s = g.stride[2];
  return g.channels_last && g.spatial == 2 && g.depthwise() && g.out_c == g.in_c &&
         g.kernel[1] == k && (k == 3 || k == 5) && s <= 2 && g.dilation == one &&
         // A residual may be the output's memory, and stretches overlap.
         !epilogue.residual && kernels.WinogradOutputFor(epilogue.activation) != nullptr;
}

DepthwiseRows::DepthwiseRows(const PrepareContext& ctx, const ConvGeometry& g, const Tensor& filter,
                             const Epilogue& epilogue, const Microkernels& kernels)
    : g_(g),
      epilogue_(epilogue),
      kernel_(g.kernel[2]),
      padded_((g.in_c + kernels.lanes - 1) / kernels.lanes * kernels.lanes) {
  packed_ =
      ctx.packs().Get<PackedTaps>(filter, kernels.lanes == 16 ? "depthwise 16" : "depthwise 8",
                                  [&] { return Pack(BorrowedContents(filter).tensor()); });
  zeros_.assign(static_cast<size_t>(padded_), 0.f);
  int size = 0;
  while (simd::kDepthwisePixels[size] > g.out[2]) ++size;
  stretch_ = simd::kDepthwisePixels[size];
  run_ = kernels.depthwise_tile[kernel_ == 5][g.stride[2] == 2][size];
  columns_ = (stretch_ - 1) * g.stride[2] + kernel_;
}

DepthwiseRows::PackedTaps* DepthwiseRows::Pack(const Tensor& filter) const {
  auto packed = std::make_unique<PackedTaps>();
  const int64_t taps = kernel_ * kernel_;
  packed->memory = BufferRef::Allocate(static_cast<size_t>(taps * padded_) * sizeof(float));
  if (!packed->memory) throw std::bad_alloc();
  float* to = static_cast<float*>(packed->memory->data());
  std::fill_n(to, taps * padded_, 0.f);
  for (int64_t c = 0; c < g_.in_c; ++c)
    for (int64_t k = 0; k < taps; ++k) to[k * padded_ + c] = filter.data<float>()[c * taps + k];
  return packed.release();
}

std::pair<int64_t, int64_t> DepthwiseRows::Seen(int64_t y) const {
  const int64_t top = y * g_.stride[1] - g_.pad_lo[1];
  const int64_t first = std::clamp<int64_t>(top, 0, g_.in[1]);
  return {first, std::clamp<int64_t>(top + kernel_, first, g_.in[1])};
}

// The last stretch may overlap the one before.
void DepthwiseRows::Run(const InputRows& in, int64_t y, const float* bias, float* out) const {
  const auto [first, last] = Seen(y);
  const int64_t tap = std::clamp<int64_t>(g_.pad_lo[1] - y * g_.stride[1], 0, kernel_);
  Pixels pixels;
  simd::DepthwiseTile r{};
  r.pixels = pixels.data();
  r.rows = static_cast<int>(last - first);
  r.filter = packed_->data() + tap * kernel_ * padded_;
  r.filter_step = padded_;
  r.bias = epilogue_.bias ? bias : nullptr;
  r.channels = g_.in_c;
  for (int64_t x = 0; x < g_.out[2]; x += stretch_) {
    const int64_t at = std::min(x, g_.out[2] - stretch_);
    FindPixels(in, r.rows, at * g_.stride[2] - g_.pad_lo[2], &pixels);
    r.out = out + at * g_.in_c;
    run_(r, epilogue_);
  }
}

// Addresses of the pixels from column x on.
void DepthwiseRows::FindPixels(const InputRows& in, int rows, int64_t x, Pixels* pixels) const {
  const float** to = pixels->data();
  const bool inside = x >= 0 && x + columns_ <= g_.in[2];
  for (size_t row = 0; row < static_cast<size_t>(rows); ++row) {
    if (inside) {
      const float* from = in[row] + x * g_.in_c;
      for (int64_t k = 0; k < columns_; ++k, from += g_.in_c) *to++ = from;
      continue;
    }
    for (int64_t k = x; k < x + columns_; ++k)
      *to++ = k >= 0 && k < g_.in[2] ? in[row] + k * g_.in_c : zeros_.data();
  }
}

}  // namespace convrows

namespace {

using convrows::DepthwiseRows;
using simd::Microkernels;

class DepthwiseConv final : public ConvRunner {
 public:
  DepthwiseConv(const PrepareContext& ctx, const ConvGeometry& g, const Tensor& filter,
                const Epilogue& epilogue, const Microkernels& kernels)
      : g_(g), rows_(ctx, g, filter, epilogue, kernels), vectors_(IsaName(kernels.isa)) {}

  std::string name() const override { return StrCat("depthwise, ", vectors_); }
  bool reads_filter() const override { return false; }

  void Run(const KernelContext& ctx, const ConvOperands& o) const override {
    constexpr int64_t kLeastWork = 30000;  // multiplications that are worth waking a thread
    const int64_t grain = 1 + kLeastWork / rows_.work();
    ctx.ParallelFor(g_.batch * g_.out[1], grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) Row(o, row);
    });
  }

 private:
  void Row(const ConvOperands& o, int64_t row) const {
    const int64_t line = g_.in[2] * g_.in_c;
    const float* image =
        static_cast<const float*>(o.src) + row / g_.out[1] * g_.in_size() * g_.in_c;
    const auto [first, last] = rows_.Seen(row % g_.out[1]);
    DepthwiseRows::InputRows in;
    for (int64_t y = first; y < last; ++y) in[static_cast<size_t>(y - first)] = image + y * line;
    rows_.Run(in, row % g_.out[1], static_cast<const float*>(o.bias),
              static_cast<float*>(o.dst) + row * g_.out[2] * g_.in_c);
  }

  const ConvGeometry g_;
  const DepthwiseRows rows_;
  const std::string_view vectors_;
};

}  // namespace

bool DepthwiseCovers(const ConvCase& c, const Machine& m) {
  const Microkernels* const kernels = simd::MicrokernelsFor(m);
  return c.dtype == DType::kF32 && c.direction == ConvDirection::kForward && c.filter != nullptr &&
         !c.empty() && std::min(c.g.pad_lo[1], c.g.pad_lo[2]) >= 0 &&
         DepthwiseRows::Takes(c.g, c.epilogue, *kernels);
}

std::unique_ptr<ConvRunner> MakeDepthwiseConv(const PrepareContext& ctx, const ConvCase& c) {
  return std::make_unique<DepthwiseConv>(ctx, c.g, *c.filter, c.epilogue,
                                         *simd::BestMicrokernels());
}

}  // namespace heddle
