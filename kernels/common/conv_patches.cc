// Transposed convolution whose kernel is as large as its stride: every pixel of the input has a
// patch of the output to itself, which is its channels times a matrix. Channels last.
#include <algorithm>
#include <cstring>

#include "core/lazy_buffer.h"
#include "kernels/common/conv_backend.h"
#include "kernels/common/conv_loops.h"

namespace heddle {
namespace {

using convloops::ConvLoops;

// The filter as a matrix [channels in, (patch row, patch column, channel out)], cut into panels of
// columns.
struct PackedPatches {
  BufferRef memory;
  const float* data() const { return static_cast<const float*>(memory->data()); }
};

class PatchConv final : public ConvRunner {
 public:
  PatchConv(const PrepareContext& ctx, const ConvGeometry& g, const Tensor& filter,
            const Epilogue& epilogue, const ConvLoops& loops)
      : g_(g), epilogue_(epilogue), loops_(loops) {
    line_ = g.kernel[2] * g.in_c;
    panels_ = (g.kernel[1] * line_ + loops.panel - 1) / loops.panel;
    packed_ =
        ctx.packs().Get<PackedPatches>(filter, loops.panel == 32 ? "patches 32" : "patches 16",
                                       [&] { return Pack(BorrowedContents(filter).tensor()); });
  }

  bool reads_filter() const override { return false; }

  void Run(const KernelContext& ctx, const ConvOperands& o) const override {
    const int64_t rows = g_.batch * g_.out[1];
    const double work = static_cast<double>(g_.out[2] * g_.out_c * panels_ * loops_.panel);
    ctx.ParallelFor(rows, 1 + static_cast<int64_t>(200000 / work), [&](int64_t begin, int64_t end) {
      const int64_t width = panels_ * loops_.panel;
      alignas(64) float results[kChunk * kMostWidth];
      for (int64_t row = begin; row < end; ++row) {
        for (int64_t x = 0; x < g_.out[2]; x += kChunk) {
          const int64_t n = std::min<int64_t>(kChunk, g_.out[2] - x);
          const float* pixels = static_cast<const float*>(o.src) + (row * g_.out[2] + x) * g_.out_c;
          for (int64_t p = 0; p < panels_; ++p)
            loops_.multiply[1](n, g_.out_c, pixels, g_.out_c,
                               packed_->data() + p * g_.out_c * loops_.panel,
                               results + p * loops_.panel, width);
          Scatter(results, width, n, static_cast<float*>(o.dst) + PatchAt(row, x));
        }
        for (int64_t i = 0; i < g_.kernel[1]; ++i)
          Finish(static_cast<const float*>(o.bias),
                 static_cast<float*>(o.dst) + PatchAt(row, 0) + i * OutRow());
      }
    });
  }

  static constexpr int64_t kChunk = 56, kMostWidth = 256;

 private:
  PackedPatches* Pack(const Tensor& filter) const {
    auto packed = std::make_unique<PackedPatches>();
    const auto size = static_cast<size_t>(panels_ * g_.out_c * loops_.panel);
    packed->memory = BufferRef::Allocate(size * sizeof(float));
    if (!packed->memory) throw std::bad_alloc();
    float* to = static_cast<float*>(packed->memory->data());
    std::fill_n(to, size, 0.f);
    const float* w = filter.data<float>();
    const int64_t patch = g_.kernel[1] * g_.kernel[2];
    for (int64_t c = 0; c < g_.out_c; ++c)
      for (int64_t o = 0; o < g_.in_c; ++o)
        for (int64_t k = 0; k < patch; ++k) {
          const int64_t column = k * g_.in_c + o;
          to[(column / loops_.panel * g_.out_c + c) * loops_.panel + column % loops_.panel] = *w++;
        }
    return packed.release();
  }

  int64_t OutRow() const { return g_.in[2] * g_.in_c; }
  // Where the patch of a pixel begins in the output.
  int64_t PatchAt(int64_t row, int64_t x) const {
    return row * g_.kernel[1] * OutRow() + x * line_;
  }

  // The patches of n pixels, one to a row of results, to where they belong.
  void Scatter(const float* results, int64_t width, int64_t n, float* to) const {
    for (int64_t i = 0; i < g_.kernel[1]; ++i) {
      const float* from = results + i * line_;
      float* line = to + i * OutRow();
      if (line_ == 2) {
        for (int64_t x = 0; x < n; ++x) std::memcpy(line + 2 * x, from + x * width, 8);
        continue;
      }
      for (int64_t x = 0; x < n; ++x, from += width, line += line_)
        for (int64_t k = 0; k < line_; ++k) line[k] = from[k];
    }
  }

  void Finish(const float* bias, float* row) const {
    const bool single = g_.in_c == 1;  // the row is one channel's
    ApplyEpilogue(epilogue_, single ? 1 : g_.in[2], single ? g_.in[2] : g_.in_c,
                  single ? g_.in[2] : g_.in_c, bias, single, row);
  }

  const ConvGeometry g_;
  const Epilogue epilogue_;
  const ConvLoops& loops_;
  std::shared_ptr<const PackedPatches> packed_;
  int64_t line_, panels_;
};

}  // namespace

std::unique_ptr<ConvRunner> MakePatchConv(const PrepareContext& ctx, const ConvGeometry& g,
                                          ConvDirection direction, const Tensor* filter,
                                          const Epilogue& epilogue) {
  const std::array<int64_t, 3> none{}, one{1, 1, 1};
  if (direction != ConvDirection::kBackwardData || filter == nullptr || !g.channels_last ||
      g.spatial != 2 || g.groups != 1 || g.kernel != g.stride || g.dilation != one ||
      g.pad_lo != none || g.in[1] != g.out[1] * g.stride[1] || g.in[2] != g.out[2] * g.stride[2] ||
      epilogue.residual || g.batch * g.in_c * g.in_size() == 0 || g.out_c * g.out_size() == 0)
    return nullptr;
  const ConvLoops* loops = convloops::BestLoops();
  const int64_t columns = g.kernel[1] * g.kernel[2] * g.in_c;
  if (loops == nullptr || columns + loops->panel > PatchConv::kMostWidth) return nullptr;
  return std::make_unique<PatchConv>(ctx, g, *filter, epilogue, *loops);
}

}  // namespace heddle
