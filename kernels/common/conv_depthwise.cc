// Depthwise convolution 3x3 and 5x5, channels last: a stretch of a row of the output at a time, so
// that a pixel of the input is loaded once for all of those that it counts for.
#include <algorithm>
#include <array>
#include <vector>

#include "core/lazy_buffer.h"
#include "kernels/common/conv_backend.h"
#include "kernels/common/conv_loops.h"

namespace heddle {
namespace {

using convloops::ConvLoops;
using convloops::DepthwiseRow;

// The filter as [row][column][channel], channels padded to vectors.
struct PackedTaps {
  BufferRef memory;
  const float* data() const { return static_cast<const float*>(memory->data()); }
};

class DepthwiseConv final : public ConvRunner {
 public:
  DepthwiseConv(const PrepareContext& ctx, const ConvGeometry& g, const Tensor& filter,
                const Epilogue& epilogue, const ConvLoops& loops)
      : g_(g),
        epilogue_(epilogue),
        kernel_(g.kernel[2]),
        padded_((g.in_c + loops.lanes - 1) / loops.lanes * loops.lanes) {
    packed_ =
        ctx.packs().Get<PackedTaps>(filter, loops.lanes == 16 ? "depthwise 16" : "depthwise 8",
                                    [&] { return Pack(BorrowedContents(filter).tensor()); });
    zeros_.assign(static_cast<size_t>(padded_), 0.f);
    int size = 0;
    while (convloops::kDepthwisePixels[size] > g.out[2]) ++size;
    stretch_ = convloops::kDepthwisePixels[size];
    run_ = loops.depthwise[kernel_ == 5][g.stride[2] == 2][size];
    columns_ = (stretch_ - 1) * g.stride[2] + kernel_;
    for (int64_t y = 0; y < kernel_; ++y)
      for (int64_t x = 0; x < columns_; ++x)
        inside_[static_cast<size_t>(y * columns_ + x)] = (y * g.in[2] + x) * g.in_c;
  }

  bool reads_filter() const override { return false; }

  void Run(const KernelContext& ctx, const ConvOperands& o) const override {
    constexpr int64_t kLeastWork = 30000;  // multiplications that are worth a hand-over
    const int64_t work = g_.out[2] * padded_ * kernel_ * kernel_;
    ctx.ParallelFor(g_.batch * g_.out[1], 1 + kLeastWork / work, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) Row(o, row);
    });
  }

 private:
  static constexpr size_t kMostPixels = 5 * (7 * 2 + 5);
  using Pixels = std::array<const float*, kMostPixels>;

  PackedTaps* Pack(const Tensor& filter) const {
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

  // One row of the output; the last stretch may overlap the one before.
  void Row(const ConvOperands& o, int64_t row) const {
    const int64_t out_y = row % g_.out[1], y = out_y * g_.stride[1] - g_.pad_lo[1];
    const int64_t first = std::clamp<int64_t>(-y, 0, kernel_);
    const int64_t last = std::clamp<int64_t>(g_.in[1] - y, first, kernel_);
    const float* image =
        static_cast<const float*>(o.src) + row / g_.out[1] * g_.in_size() * g_.in_c;
    Pixels pixels;
    DepthwiseRow r{};
    r.pixels = pixels.data();
    r.rows = static_cast<int>(last - first);
    r.filter = packed_->data() + first * kernel_ * padded_;
    r.filter_step = padded_;
    r.bias = epilogue_.bias ? static_cast<const float*>(o.bias) : nullptr;
    r.channels = g_.in_c;
    for (int64_t x = 0; x < g_.out[2]; x += stretch_) {
      const int64_t at = std::min(x, g_.out[2] - stretch_);
      FindPixels(image, y + first, r.rows, at * g_.stride[2] - g_.pad_lo[2], &pixels);
      const int64_t to = (row * g_.out[2] + at) * g_.in_c;
      r.out = static_cast<float*>(o.dst) + to;
      run_(r, epilogue_);
    }
  }

  // Those from row y and column x of the image on.
  void FindPixels(const float* image, int64_t y, int rows, int64_t x, Pixels* pixels) const {
    const size_t count = static_cast<size_t>(rows * columns_);
    if (x >= 0 && x + columns_ <= g_.in[2]) {
      const float* from = image + (y * g_.in[2] + x) * g_.in_c;
      for (size_t i = 0; i < count; ++i) (*pixels)[i] = from + inside_[i];
      return;
    }
    size_t i = 0;
    for (int64_t row = y; row < y + rows; ++row)
      for (int64_t k = x; k < x + columns_; ++k)
        (*pixels)[i++] =
            k >= 0 && k < g_.in[2] ? image + (row * g_.in[2] + k) * g_.in_c : zeros_.data();
  }

  const ConvGeometry g_;
  const Epilogue epilogue_;
  const int64_t kernel_, padded_;
  std::shared_ptr<const PackedTaps> packed_;
  std::vector<float> zeros_;
  std::array<int64_t, kMostPixels> inside_{};  // offsets of a stretch's pixels away from borders
  convloops::DepthwiseFn run_;
  int64_t stretch_, columns_;
};

}  // namespace

std::unique_ptr<ConvRunner> MakeDepthwiseConv(const PrepareContext& ctx, const ConvGeometry& g,
                                              ConvDirection direction, const Tensor* filter,
                                              const Epilogue& epilogue) {
  const std::array<int64_t, 3> one{1, 1, 1};
  const int64_t k = g.kernel[2], s = g.stride[2];
  if (direction != ConvDirection::kForward || filter == nullptr || !g.channels_last ||
      g.spatial != 2 || !g.depthwise() || g.out_c != g.in_c || g.kernel[1] != k ||
      (k != 3 && k != 5) || s > 2 || g.dilation != one ||
      epilogue.residual ||  // which may lie where the output does, and stretches overlap

      g.batch * g.in_c * g.in_size() == 0 || g.out_size() == 0)
    return nullptr;
  const ConvLoops* loops = convloops::BestLoops();
  if (loops == nullptr || loops->OutputFor(epilogue.activation) == nullptr) return nullptr;
  return std::make_unique<DepthwiseConv>(ctx, g, *filter, epilogue, *loops);
}

}  // namespace heddle
