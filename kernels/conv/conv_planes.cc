// Convolution to a few channels: each channel of the input becomes a plane, and neighbouring pixels
// are a vector. Loops over channels would leave most of a vector empty.
#include <algorithm>
#include <vector>

#include "core/interrupts.h"
#include "core/memory/lazy_buffer.h"
#include "kernels/base/ceil_div.h"
#include "kernels/conv/conv_backend.h"
#include "kernels/simd/microkernels.h"

namespace heddle {
namespace {

using simd::Microkernels;

// 1, 2, 4 or 8: the smallest tile that has these channels.
int TileOf(int64_t channels) {
  int tile = 0;
  while ((int64_t{1} << tile) < channels) ++tile;
  return tile;
}

class PlanesConv final : public ConvRunner {
 public:
  PlanesConv(const PrepareContext& ctx, const ConvCase& c, const Microkernels& kernels)
      : g_(c.g),
        epilogue_(c.epilogue),
        kernels_(kernels),
        tile_(TileOf(c.g.out_c)),
        width_(c.g.pad_lo[2] + c.g.in[2] + c.g.pad_hi[2] + simd::kPlaneSlack) {
    packed_ = ctx.packs().Get<Taps>(*c.filter, StrCat("planes ", 1 << tile_),
                                    [&] { return Pack(BorrowedContents(*c.filter).tensor()); });
    // Lines of the output whose input stays in a core's own cache.
    constexpr int64_t kCacheFloats = 64 << 10;
    const int64_t line = g_.in_c * width_;
    lines_ = std::clamp<int64_t>((kCacheFloats / line - Reach()) / g_.stride[1] + 1, 1, g_.out[1]);
  }

  std::string name() const override { return StrCat("planes, ", IsaName(kernels_.isa)); }
  bool reads_filter() const override { return false; }

  void Run(const KernelContext& ctx, const ConvOperands& o) const override {
    const int64_t parts = CeilDiv(g_.out[1], lines_);
    const int64_t units = g_.batch * parts, threads = std::min<int64_t>(ctx.threads(), units);
    const int64_t planes = g_.in_c * Rows(lines_) * width_, floats = planes + g_.out_c * g_.out[2];
    Tensor scratch = ctx.CallScratch(DType::kF32, {threads * floats});
    ctx.ParallelFor(threads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        float* const work = scratch.mutable_data<float>() + t * floats;
        std::fill_n(work, planes, 0.f);  // the padding at both ends of a row, and what lies behind
        for (int64_t u = t * units / threads; u < (t + 1) * units / threads; ++u) {
          LookForInterrupt();
          const int64_t from = u % parts * lines_;
          Lines(o, u / parts, from, std::min(from + lines_, g_.out[1]), work, work + planes);
        }
      }
    });
  }

 private:
  struct Taps {  // [channel in][row][column][channel of the tile]
    std::vector<float> values;
  };

  // The number of input rows that one line of the output reads, and that `lines` lines read.
  int64_t Reach() const { return (g_.kernel[1] - 1) * g_.dilation[1] + 1; }
  int64_t Rows(int64_t lines) const { return (lines - 1) * g_.stride[1] + Reach(); }

  Taps* Pack(const Tensor& filter) const {
    const int64_t taps = g_.in_c * g_.kernel_size();
    auto packed = std::make_unique<Taps>();
    packed->values.assign(static_cast<size_t>(taps) << tile_, 0.f);
    for (int64_t c = 0; c < g_.out_c; ++c)
      for (int64_t k = 0; k < taps; ++k)
        packed->values[static_cast<size_t>((k << tile_) + c)] = filter.data<float>()[c * taps + k];
    return packed.release();
  }

  // The rows of an image from `first` on, as planes; those outside of it are 0.
  void CopyRows(const float* image, int64_t first, int64_t rows, float* planes) const {
    const int64_t columns = g_.in[2], step = g_.channels_last ? g_.in_c : 1;
    for (int64_t c = 0; c < g_.in_c; ++c) {
      const float* from = image + (g_.channels_last ? c : c * g_.in_size());
      for (int64_t r = 0; r < rows; ++r) {
        float* to = planes + (c * rows + r) * width_ + g_.pad_lo[2];
        const int64_t y = first + r;
        if (y < 0 || y >= g_.in[1]) {
          std::fill_n(to, columns, 0.f);
          continue;
        }
        const float* line = from + y * columns * step;
        if (step == 1)
          std::copy_n(line, columns, to);
        else
          for (int64_t x = 0; x < columns; ++x) to[x] = line[x * step];
      }
    }
  }

  void Lines(const ConvOperands& o, int64_t image, int64_t from, int64_t to, float* planes,
             float* lines) const {
    const int64_t rows = Rows(to - from), columns = g_.out[2];
    CopyRows(static_cast<const float*>(o.src) + image * g_.in_c * g_.in_size(),
             from * g_.stride[1] - g_.pad_lo[1], rows, planes);
    float bias[8] = {};
    if (epilogue_.bias) std::copy_n(static_cast<const float*>(o.bias), g_.out_c, bias);
    simd::PlaneTile t{};
    t.filter = packed_->values.data();
    t.filter_plane_step = g_.kernel_size() << tile_;
    t.planes = g_.in_c;
    t.plane_step = rows * width_;
    t.rows = g_.kernel[1];
    t.row_step = g_.dilation[1] * width_;
    t.columns = g_.kernel[2];
    t.column_step = g_.dilation[2];
    t.bias = bias;
    t.channels = static_cast<int>(g_.out_c);
    float* out = static_cast<float*>(o.dst) + image * g_.out_c * g_.out_size();
    const bool aside = g_.channels_last && g_.out_c > 1;  // a line becomes pixels afterwards
    for (int64_t y = from; y < to; ++y) {
      t.in = planes + (y - from) * g_.stride[1] * width_;
      t.out = aside ? lines : out + y * columns;
      t.out_step = aside ? columns : g_.out_size();
      kernels_.plane_tile[tile_](t, columns);
      kernels_.activate(epilogue_, g_.out_c, columns, t.out_step, t.out, t.out);
      if (!aside) continue;
      float* pixels = out + y * columns * g_.out_c;
      for (int64_t c = 0; c < g_.out_c; ++c)
        for (int64_t x = 0; x < columns; ++x) pixels[x * g_.out_c + c] = lines[c * columns + x];
    }
  }

  const ConvGeometry g_;
  const Epilogue epilogue_;
  const Microkernels& kernels_;
  const int tile_;       // index into Microkernels::plane_tile
  const int64_t width_;  // of a row of a plane, with its padding
  int64_t lines_ = 1;    // of the output that are computed together
  std::shared_ptr<const Taps> packed_;
};

// Floats of the input rows that one line of the output reads: many, even for a small image, if
// padding or dilation is large.
double FloatsOfLine(const ConvGeometry& g) {
  const double rows = static_cast<double>(g.kernel[1] - 1) * static_cast<double>(g.dilation[1]) + 1;
  const double width = static_cast<double>(g.pad_lo[2]) + static_cast<double>(g.in[2]) +
                       static_cast<double>(g.pad_hi[2]) + simd::kPlaneSlack;
  return static_cast<double>(g.in_c) * rows * width;
}

}  // namespace

bool PlanesCover(const ConvCase& c, const Machine&) {
  constexpr double kMostFloats = 1 << 24;  // of a thread
  const ConvGeometry& g = c.g;
  return c.dtype == DType::kF32 && c.direction == ConvDirection::kForward && c.filter != nullptr &&
         !c.empty() && g.spatial == 2 && g.groups == 1 && g.out_c <= 8 && g.stride[2] == 1 &&
         !c.epilogue.residual && std::min({g.pad_lo[1], g.pad_lo[2], g.pad_hi[2]}) >= 0 &&
         FloatsOfLine(g) <= kMostFloats;
}

std::unique_ptr<ConvRunner> MakePlanesConv(const PrepareContext& ctx, const ConvCase& c) {
  return std::make_unique<PlanesConv>(ctx, c, *simd::BestMicrokernels());
}

}  // namespace heddle
