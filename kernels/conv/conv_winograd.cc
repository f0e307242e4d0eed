// Convolutions 3x3, 5x5, 1x3 and 1x5 with stride 1 by Winograd's method, channels last. Those of
// rows may be dilated: a window then takes every `dilation`-th pixel.
#include <algorithm>
#include <vector>

#include "core/interrupts.h"
#include "core/memory/lazy_buffer.h"
#include "kernels/base/ceil_div.h"
#include "kernels/conv/conv_backend.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/pack_once.h"
#include "kernels/simd/microkernels.h"

namespace heddle {

namespace {

using namespace simd;

int64_t RoundUp(int64_t n, int64_t by) { return CeilDiv(n, by) * by; }
bool IsOfRows(const ConvGeometry& g) { return g.kernel[1] == 1; }

// The filter as 36 or 6 matrices [in_c, out_c], each cut into panels of columns two vectors wide;
// the last one is one or two vectors wide.
struct PackedFilter {
  static constexpr int kPackingVersion = 1;  // see PackOnce
  BufferRef memory;
  const float* data() const { return static_cast<const float*>(memory->data()); }
};

// G of one dimension: the taps, as a polynomial, at six points (the last one infinity), times a
// factor.
constexpr double kRoot = 0.70710678118654752440;  // 1/√2
template <int kTaps>
struct FilterMatrix {
  double at[kWinogradWindow][kTaps] = {};
  constexpr FilterMatrix() {
    constexpr double points[kWinogradWindow - 1] = {0, kRoot, -kRoot, 2 * kRoot, -2 * kRoot};
    constexpr double factors[kWinogradWindow - 1] = {1, -2. / 3, -2. / 3, 1. / 6, 1. / 6};
    for (int p = 0; p < kWinogradWindow - 1; ++p) {
      double power = factors[p];
      for (int k = 0; k < kTaps; ++k, power *= points[p]) at[p][k] = power;
    }
    at[kWinogradWindow - 1][kTaps - 1] = 1;
  }
};

// Transforms the filters of one input channel and up to `lanes` output channels, whose taps are
// taps[tap][lane]; point p goes to out + p * point_step.
constexpr int kMostLanes = 16, kMostTaps = 5 * 5;
template <int kTaps>
void TransformFilter(const double (*taps)[kMostLanes], int lanes, float* out, int64_t point_step) {
  static constexpr FilterMatrix<kTaps> g;
  double half[kWinogradWindow][kTaps][kMostLanes] = {};
  for (int i = 0; i < kWinogradWindow; ++i)
    for (int k = 0; k < kTaps; ++k)
      for (int t = 0; t < kTaps; ++t)
        for (int l = 0; l < kMostLanes; ++l) half[i][k][l] += g.at[i][t] * taps[t * kTaps + k][l];
  for (int i = 0; i < kWinogradWindow; ++i)
    for (int j = 0; j < kWinogradWindow; ++j) {
      double sums[kMostLanes] = {};
      for (int t = 0; t < kTaps; ++t)
        for (int l = 0; l < kMostLanes; ++l) sums[l] += half[i][t][l] * g.at[j][t];
      std::copy_n(sums, lanes, out + (i * kWinogradWindow + j) * point_step);
    }
}

// The same for a filter of one row.
template <int kTaps>
void TransformRow(const double (*taps)[kMostLanes], int lanes, float* out, int64_t point_step) {
  static constexpr FilterMatrix<kTaps> g;
  for (int i = 0; i < kWinogradWindow; ++i) {
    double sums[kMostLanes] = {};
    for (int t = 0; t < kTaps; ++t)
      for (int l = 0; l < kMostLanes; ++l) sums[l] += g.at[i][t] * taps[t][l];
    std::copy_n(sums, lanes, out + i * point_step);
  }
}

int64_t PointsOf(bool row) { return row ? kWinogradWindow : kWinogradPoints; }

void PackFilter(const PrepareContext& ctx, const ConvGeometry& g, const Tensor& filter,
                const Microkernels& kernels, PackedFilter* packed) {
  const bool row = IsOfRows(g);
  const int64_t out_c = g.out_c, in_c = g.in_c, kernel = g.kernel[2];
  const int64_t width = RoundUp(out_c, kernels.lanes), point_step = width * in_c;
  const int64_t taps_of_one = g.kernel_size();
  packed->memory = PackMemory(ctx, static_cast<size_t>(PointsOf(row) * point_step) * sizeof(float));
  const auto transform = row           ? kernel == 3 ? TransformRow<3> : TransformRow<5>
                                   : kernel == 3 ? TransformFilter<3>
                                       : TransformFilter<5>;
  float* to = static_cast<float*>(packed->memory->data());
  const float* w = filter.data<float>();
  for (int64_t o = 0; o < width; o += kernels.lanes) {
    const int64_t first = o / kernels.panel * kernels.panel;  // of the panel
    const int64_t panel = std::min<int64_t>(kernels.panel, width - first);
    for (int64_t c = 0; c < in_c; ++c) {
      double taps[kMostTaps][kMostLanes] = {};
      for (int64_t l = 0; l < std::min<int64_t>(kernels.lanes, out_c - o); ++l)
        for (int64_t k = 0; k < taps_of_one; ++k)
          taps[k][l] = w[((o + l) * in_c + c) * taps_of_one + k];
      transform(taps, kernels.lanes, to + first * in_c + c * panel + o - first, point_step);
    }
  }
}

class WinogradConv final : public ConvRunner {
 public:
  WinogradConv(const PrepareContext& ctx, const ConvGeometry& g, const Tensor& filter,
               const Epilogue& epilogue, WinogradOutputFn output)
      : g_(g),
        plain_(filter),
        epilogue_(epilogue),
        kernels_(*BestMicrokernels()),
        output_(output),
        row_(IsOfRows(g)),
        points_(PointsOf(row_)),
        tile_(WinogradTileOf(g.kernel[2])),
        tile_height_(row_ ? 1 : tile_) {
    filter_ = PackOnce<PackedFilter>(
        ctx, filter,
        StrCat("winograd ", row_ ? "row " : "", kernels_.lanes == kMostLanes ? "16" : "8"),
        [&](const Tensor& plain, PackedFilter* packed) {
          PackFilter(ctx, g_, plain, kernels_, packed);
        });
    tile_rows_ = CeilDiv(g.out[1], tile_height_);
    // The columns of a window are `dilation` apart; those between them have windows of their own.
    tile_columns_ = CeilDiv(g.out[2], tile_ * g.dilation[2]) * g.dilation[2];
    tiles_ = g.batch * tile_rows_ * tile_columns_;
    in_width_ = RoundUp(g.in_c, kernels_.lanes);
    out_width_ = RoundUp(g.out_c, kernels_.lanes);
    // As many tiles at a time as fit L2, and few enough that every thread gets some.
    const int64_t fit = kCacheBytes / (points_ * (in_width_ + out_width_) * 4) / kernels_.tile_rows;
    const int64_t most = std::clamp<int64_t>(fit, 2, row_ ? 16 : 8) * kernels_.tile_rows;
    const int64_t threads = ctx.threads();
    alone_ = tiles_ >= threads * kFewTiles;
    blocks_ = CeilDiv(tiles_, most);
    if (alone_) blocks_ = RoundUp(blocks_, threads);
    block_ = CeilDiv(tiles_, blocks_);
  }

  std::string name() const override {
    return StrCat("winograd ", tile_height_, "x", tile_, ", ", IsaName(kernels_.isa));
  }
  bool reads_filter() const override { return false; }

  void Run(const KernelContext& ctx, const ConvOperands& o) const override {
    // A thread has its blocks for itself when there are enough of them; else all share each step.
    const int64_t threads = alone_ ? std::min<int64_t>(ctx.threads(), blocks_) : 1;
    const int64_t floats = points_ * (InStep() + OutStep()) + block_;
    Tensor scratch = ctx.CallScratch(DType::kF32, {threads * floats});
    if (!alone_) {
      const auto split = [&](int64_t n, int64_t grain, auto&& fn) {
        ctx.ParallelFor(n, grain, fn);
      };
      for (const int64_t b : Watched(blocks_)) Block(o, b, scratch.mutable_data<float>(), split);
      return;
    }
    const auto whole = [](int64_t n, int64_t, auto&& fn) { fn(int64_t{0}, n); };
    ctx.ParallelFor(threads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t)
        for (const int64_t b : Watched(t * blocks_ / threads, (t + 1) * blocks_ / threads))
          Block(o, b, scratch.mutable_data<float>() + t * floats, whole);
    });
  }

 private:
  static constexpr int64_t kCacheBytes = 640 << 10;
  static constexpr int64_t kFewTiles = 20;

  // Padding between the matrices of the points keeps their rows from mapping to the same cache
  // sets.
  int64_t InStep() const { return block_ * in_width_ + kMostLanes; }
  int64_t OutStep() const { return block_ * out_width_ + kMostLanes; }

  template <typename Split>
  void Block(const ConvOperands& o, int64_t block, float* in, const Split& split) const {
    const int64_t first = block * block_, count = std::min(block_, tiles_ - first);
    if (count <= 0) return;
    float* const out = in + points_ * InStep();
    float* const faulty = out + points_ * OutStep();  // windows with NaN or infinities
    split(count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t)
        faulty[t] =
            !kernels_.winograd_input[row_](InputOf(static_cast<const float*>(o.src), first + t),
                                           g_.in_c, in + t * in_width_, InStep());
    });
    split(points_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p)
        for (int64_t c = 0; c < out_width_; c += kernels_.panel)
          kernels_.gemm_tile[out_width_ - c > kernels_.lanes](
              count, g_.in_c, in + p * InStep(), in_width_,
              filter_->data() + (p * out_width_ + c) * g_.in_c, out + p * OutStep() + c,
              out_width_);
    });
    split(count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        if (faulty[t] != 0)
          Directly(o, first + t);
        else
          output_(out + t * out_width_, OutStep(), g_.out_c,
                  epilogue_.bias ? static_cast<const float*>(o.bias) : nullptr, epilogue_,
                  OutputOf(o, first + t));
      }
    });
  }

  // Computes a tile directly: Winograd's method would add NaN and infinities to all of its pixels.
  void Directly(const ConvOperands& o, int64_t tile) const {
    const WinogradOutput to = OutputOf(o, tile);
    const Place p = PlaceOf(tile);
    const int64_t taps = g_.kernel_size(), depth = g_.in_c * taps, pixels = to.rows * to.columns;
    std::vector<float> windows(static_cast<size_t>(pixels * depth));
    std::vector<float> sums(static_cast<size_t>(pixels * g_.out_c));
    for (int64_t i = 0; i < pixels; ++i)
      ReadWindow(static_cast<const float*>(o.src), p.image, p.row + i / to.columns,
                 p.column + i % to.columns * g_.dilation[2], windows.data() + i * depth);
    const BorrowedContents filter(plain_);
    if (pixels > 0)
      Gemm(GemmDims::Dense(pixels, g_.out_c, depth, false, true), 1.f, windows.data(),
           filter.tensor().data<float>(), 0.f, sums.data());
    for (int64_t i = 0; i < pixels; ++i) {
      const int64_t row = i / to.columns, column = i % to.columns;
      float* const pixel = to.data + row * to.row_step + column * to.pixel_step;
      const float* const sum = sums.data() + i * g_.out_c;
      const float* const residual =
          to.residual == nullptr
              ? nullptr
              : to.residual + row * to.residual_row_step + column * to.residual_pixel_step;
      for (int64_t c = 0; c < g_.out_c; ++c)
        pixel[c] = sum[c] + (epilogue_.bias ? static_cast<const float*>(o.bias)[c] : 0.f) +
                   (residual != nullptr ? residual[c] : 0.f);
      kernels_.activate(epilogue_, 1, g_.out_c, g_.out_c, pixel, pixel);
    }
  }

  // The input of one output pixel as [channel][tap], the layout of a filter. Padding is 0.
  void ReadWindow(const float* src, int64_t image, int64_t row, int64_t column, float* to) const {
    for (int64_t c = 0; c < g_.in_c; ++c)
      for (int64_t i = 0; i < g_.kernel[1]; ++i)
        for (int64_t j = 0; j < g_.kernel[2]; ++j) {
          const int64_t y = row - g_.pad_lo[1] + i;
          const int64_t x = column - g_.pad_lo[2] + j * g_.dilation[2];
          const bool inside = y >= 0 && y < g_.in[1] && x >= 0 && x < g_.in[2];
          *to++ = inside ? src[((image * g_.in[1] + y) * g_.in[2] + x) * g_.in_c + c] : 0.f;
        }
  }

  struct Place {
    int64_t image, row, column;  // of the tile's first output pixel
  };
  Place PlaceOf(int64_t tile) const {
    const int64_t row = tile / tile_columns_, at = tile % tile_columns_, step = g_.dilation[2];
    const int64_t image = row / tile_rows_;
    return {image, (row - image * tile_rows_) * tile_height_,
            step == 1 ? at * tile_ : at / step * step * tile_ + at % step};
  }
  // How many steps reach beyond n. Most filters are not dilated, and a tile of few channels takes
  // as long as some divisions.
  static int64_t Steps(int64_t n, int64_t step) { return step == 1 ? n : CeilDiv(n, step); }
  // The part of a window that begins at `at`, goes on by `step` and lies in [0, size).
  static void Inside(int64_t at, int64_t step, int64_t size, int* begin, int* end) {
    const auto count = [step](int64_t to) {
      return static_cast<int>(to <= 0 ? 0 : std::min<int64_t>(Steps(to, step), kWinogradWindow));
    };
    *begin = count(-at);
    *end = count(size - at);
  }
  WinogradInput InputOf(const float* src, int64_t tile) const {
    const Place p = PlaceOf(tile);
    const int64_t y = p.row - g_.pad_lo[1], x = p.column - g_.pad_lo[2];
    WinogradInput t{};
    t.pixel_step = g_.dilation[2] * g_.in_c;
    t.row_step = g_.in[2] * g_.in_c;
    t.data = src + (p.image * g_.in[1] + y) * t.row_step + x * g_.in_c;
    Inside(y, 1, g_.in[1], &t.row_begin, &t.row_end);
    Inside(x, g_.dilation[2], g_.in[2], &t.column_begin, &t.column_end);
    return t;
  }
  WinogradOutput OutputOf(const ConvOperands& o, int64_t tile) const {
    const Place p = PlaceOf(tile);
    WinogradOutput t{};
    t.pixel_step = t.residual_pixel_step = g_.dilation[2] * g_.out_c;
    t.row_step = t.residual_row_step = g_.out[2] * g_.out_c;
    const int64_t at = (p.image * g_.out[1] + p.row) * t.row_step + p.column * g_.out_c;
    t.data = static_cast<float*>(o.dst) + at;
    if (epilogue_.residual) t.residual = static_cast<const float*>(o.residual) + at;
    t.rows = static_cast<int>(std::min<int64_t>(tile_height_, g_.out[1] - p.row));
    t.columns = static_cast<int>(std::min<int64_t>(
        tile_, Steps(std::max<int64_t>(g_.out[2] - p.column, 0), g_.dilation[2])));
    return t;
  }

  const ConvGeometry g_;
  const Tensor plain_;  // the filter, which may be absent from memory
  const Epilogue epilogue_;
  const Microkernels& kernels_;
  const WinogradOutputFn output_;
  std::shared_ptr<const PackedFilter> filter_;
  const bool row_;
  const int64_t points_;
  const int64_t tile_, tile_height_;  // columns and rows of the output that a window gives
  int64_t tile_rows_, tile_columns_, tiles_, in_width_, out_width_, blocks_, block_;
  bool alone_;
};

WinogradOutputFn OutputFor(const ConvCase& c, const Machine& m) {
  const Microkernels* const kernels = MicrokernelsFor(m);
  return kernels->WinogradOutputFor(c.epilogue.activation, c.g.kernel[2], IsOfRows(c.g));
}

}  // namespace

bool WinogradCovers(const ConvCase& c, const Machine& m) {
  const ConvGeometry& g = c.g;
  const std::array<int64_t, 3> one{1, 1, 1};
  const bool row = IsOfRows(g) && g.pad_lo[1] == 0 && g.pad_hi[1] == 0;
  const bool square = g.kernel[1] == g.kernel[2] && g.dilation == one;
  return c.dtype == DType::kF32 && c.direction == ConvDirection::kForward && c.filter != nullptr &&
         g.channels_last && g.spatial == 2 && g.groups == 1 && (row || square) &&
         (g.kernel[2] == 3 || g.kernel[2] == 5) && std::min(g.pad_lo[1], g.pad_lo[2]) >= 0 &&
         g.stride == one && !c.empty() && OutputFor(c, m) != nullptr;
}

std::unique_ptr<ConvRunner> MakeWinogradConv(const PrepareContext& ctx, const ConvCase& c) {
  return std::make_unique<WinogradConv>(ctx, c.g, *c.filter, c.epilogue,
                                        OutputFor(c, ThisMachine()));
}

}  // namespace heddle
