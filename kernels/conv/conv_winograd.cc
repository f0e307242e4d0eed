// Convolutions 3x3 and 5x5 with stride 1 by Winograd's method, channels last.
#include <algorithm>

#include "kernels/conv/conv_backend.h"
#include "kernels/gemm/pack_once.h"
#include "kernels/simd/conv_loops.h"

namespace heddle {

const convloops::ConvLoops* convloops::LoopsFor(const Machine& m) {
  if (m.has(kAvx512) && LoopsForAvx512() != nullptr) return LoopsForAvx512();
  return m.has(kAvx2 | kFma) ? LoopsForAvx2() : nullptr;
}

const convloops::ConvLoops* convloops::BestLoops() {
  static const ConvLoops* const best = LoopsFor(ThisMachine());
  return best;
}

namespace {

using namespace convloops;

int64_t Ceil(int64_t n, int64_t by) { return (n + by - 1) / by; }
int64_t RoundUp(int64_t n, int64_t by) { return Ceil(n, by) * by; }

// The filter as 36 matrices [in_c, out_c], each cut into panels of columns: of two vectors, the
// last one of as many as it needs.
struct PackedFilter {
  BufferRef memory;
  const float* data() const { return static_cast<const float*>(memory->data()); }
};

// G of one dimension: the taps, as a polynomial, at six points (the last one infinity), times a
// factor.
constexpr double kRoot = 0.70710678118654752440;  // 1/√2
template <int kTaps>
struct FilterMatrix {
  double at[kWindow][kTaps] = {};
  constexpr FilterMatrix() {
    constexpr double points[kWindow - 1] = {0, kRoot, -kRoot, 2 * kRoot, -2 * kRoot};
    constexpr double factors[kWindow - 1] = {1, -2. / 3, -2. / 3, 1. / 6, 1. / 6};
    for (int p = 0; p < kWindow - 1; ++p) {
      double power = factors[p];
      for (int k = 0; k < kTaps; ++k, power *= points[p]) at[p][k] = power;
    }
    at[kWindow - 1][kTaps - 1] = 1;
  }
};

// Transforms the filters of one input channel and up to `lanes` output channels, whose taps are
// taps[tap][lane]; point p goes to out + p * point_step.
constexpr int kMostLanes = 16, kMostTaps = 5 * 5;
template <int kTaps>
void TransformFilter(const double (*taps)[kMostLanes], int lanes, float* out, int64_t point_step) {
  static constexpr FilterMatrix<kTaps> g;
  double half[kWindow][kTaps][kMostLanes] = {};
  for (int i = 0; i < kWindow; ++i)
    for (int k = 0; k < kTaps; ++k)
      for (int t = 0; t < kTaps; ++t)
        for (int l = 0; l < kMostLanes; ++l) half[i][k][l] += g.at[i][t] * taps[t * kTaps + k][l];
  for (int i = 0; i < kWindow; ++i)
    for (int j = 0; j < kWindow; ++j) {
      double sums[kMostLanes] = {};
      for (int t = 0; t < kTaps; ++t)
        for (int l = 0; l < kMostLanes; ++l) sums[l] += half[i][t][l] * g.at[j][t];
      std::copy_n(sums, lanes, out + (i * kWindow + j) * point_step);
    }
}

void PackFilter(const PrepareContext& ctx, const Tensor& filter, const ConvLoops& loops,
                PackedFilter* packed) {
  const int64_t out_c = filter.dim(0), in_c = filter.dim(1), kernel = filter.dim(2);
  const int64_t width = RoundUp(out_c, loops.lanes), point_step = width * in_c;
  const int64_t taps_of_one = kernel * kernel;
  packed->memory = PackMemory(ctx, static_cast<size_t>(kPoints * point_step) * sizeof(float));
  float* to = static_cast<float*>(packed->memory->data());
  const float* w = filter.data<float>();
  for (int64_t o = 0; o < width; o += loops.lanes) {
    const int64_t first = o / loops.panel * loops.panel;  // of the panel
    const int64_t panel = std::min<int64_t>(loops.panel, width - first);
    for (int64_t c = 0; c < in_c; ++c) {
      double taps[kMostTaps][kMostLanes] = {};
      for (int64_t l = 0; l < std::min<int64_t>(loops.lanes, out_c - o); ++l)
        for (int64_t k = 0; k < taps_of_one; ++k)
          taps[k][l] = w[((o + l) * in_c + c) * taps_of_one + k];
      (kernel == 3 ? TransformFilter<3>
                   : TransformFilter<5>)(taps, loops.lanes,
                                         to + first * in_c + c * panel + o - first, point_step);
    }
  }
}

class WinogradConv final : public ConvRunner {
 public:
  WinogradConv(const PrepareContext& ctx, const ConvGeometry& g, const Tensor& filter,
               const Epilogue& epilogue, OutputFn output)
      : g_(g),
        epilogue_(epilogue),
        loops_(*BestLoops()),
        output_(output),
        tile_(TileOf(g.kernel[1])) {
    filter_ = PackOnce<PackedFilter>(
        ctx, filter, loops_.lanes == kMostLanes ? "winograd 16" : "winograd 8",
        [&](const Tensor& plain, PackedFilter* packed) { PackFilter(ctx, plain, loops_, packed); });
    tile_rows_ = Ceil(g.out[1], tile_);
    tile_columns_ = Ceil(g.out[2], tile_);
    tiles_ = g.batch * tile_rows_ * tile_columns_;
    in_width_ = RoundUp(g.in_c, loops_.lanes);
    out_width_ = RoundUp(g.out_c, loops_.lanes);
    // As many tiles at a time as fit the cache of a core, and few enough for all threads to have
    // some.
    const int64_t fit = kCacheBytes / (kPoints * (in_width_ + out_width_) * 4) / loops_.rows;
    const int64_t most = std::clamp<int64_t>(fit, 2, 8) * loops_.rows;
    const int64_t threads = ctx.threads();
    alone_ = tiles_ >= threads * kFewTiles;
    blocks_ = Ceil(tiles_, most);
    if (alone_) blocks_ = RoundUp(blocks_, threads);
    block_ = Ceil(tiles_, blocks_);
  }

  std::string name() const override {
    return StrCat("winograd ", tile_, "x", tile_, ", ", VectorsOf(loops_));
  }
  bool reads_filter() const override { return false; }

  void Run(const KernelContext& ctx, const ConvOperands& o) const override {
    // A thread has its blocks for itself when there are enough of them; else all share each step.
    const int64_t threads = alone_ ? std::min<int64_t>(ctx.threads(), blocks_) : 1;
    const int64_t floats = kPoints * (InStep() + OutStep());
    Tensor scratch = ctx.CallScratch(DType::kF32, {threads * floats});
    if (!alone_) {
      const auto split = [&](int64_t n, int64_t grain, auto&& fn) {
        ctx.ParallelFor(n, grain, fn);
      };
      for (int64_t b = 0; b < blocks_; ++b) Block(o, b, scratch.mutable_data<float>(), split);
      return;
    }
    const auto whole = [](int64_t n, int64_t, auto&& fn) { fn(int64_t{0}, n); };
    ctx.ParallelFor(threads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t)
        for (int64_t b = t * blocks_ / threads; b < (t + 1) * blocks_ / threads; ++b)
          Block(o, b, scratch.mutable_data<float>() + t * floats, whole);
    });
  }

 private:
  static constexpr int64_t kCacheBytes = 640 << 10;
  static constexpr int64_t kFewTiles = 20;

  // The 36 matrices are a little further apart than they are large, so that their rows do not
  // compete for the same places in the caches.
  int64_t InStep() const { return block_ * in_width_ + kMostLanes; }
  int64_t OutStep() const { return block_ * out_width_ + kMostLanes; }

  template <typename Split>
  void Block(const ConvOperands& o, int64_t block, float* in, const Split& split) const {
    const int64_t first = block * block_, count = std::min(block_, tiles_ - first);
    if (count <= 0) return;
    float* out = in + kPoints * InStep();
    split(count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t)
        loops_.input(InputOf(static_cast<const float*>(o.src), first + t), g_.in_c,
                     in + t * in_width_, InStep());
    });
    split(kPoints, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p)
        for (int64_t c = 0; c < out_width_; c += loops_.panel)
          loops_.multiply[out_width_ - c > loops_.lanes](
              count, g_.in_c, in + p * InStep(), in_width_,
              filter_->data() + (p * out_width_ + c) * g_.in_c, out + p * OutStep() + c,
              out_width_);
    });
    split(count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t)
        output_(out + t * out_width_, OutStep(), g_.out_c,
                epilogue_.bias ? static_cast<const float*>(o.bias) : nullptr, epilogue_,
                OutputOf(o, first + t));
    });
  }

  struct Place {
    int64_t image, row, column;  // of the tile's first output pixel
  };
  Place PlaceOf(int64_t tile) const {
    return {tile / (tile_rows_ * tile_columns_), tile / tile_columns_ % tile_rows_ * tile_,
            tile % tile_columns_ * tile_};
  }
  // The part of a window that begins at `at` and lies in [0, size).
  static void Inside(int64_t at, int64_t size, int* begin, int* end) {
    *begin = static_cast<int>(std::clamp<int64_t>(-at, 0, kWindow));
    *end = static_cast<int>(std::clamp<int64_t>(size - at, 0, kWindow));
  }
  InputTile InputOf(const float* src, int64_t tile) const {
    const Place p = PlaceOf(tile);
    const int64_t y = p.row - g_.pad_lo[1], x = p.column - g_.pad_lo[2];
    InputTile t{};
    t.pixel_step = g_.in_c;
    t.row_step = g_.in[2] * t.pixel_step;
    t.data = src + (p.image * g_.in[1] + y) * t.row_step + x * t.pixel_step;
    Inside(y, g_.in[1], &t.row_begin, &t.row_end);
    Inside(x, g_.in[2], &t.column_begin, &t.column_end);
    return t;
  }
  OutputTile OutputOf(const ConvOperands& o, int64_t tile) const {
    const Place p = PlaceOf(tile);
    OutputTile t{};
    t.pixel_step = t.residual_pixel_step = g_.out_c;
    t.row_step = t.residual_row_step = g_.out[2] * t.pixel_step;
    const int64_t at = (p.image * g_.out[1] + p.row) * t.row_step + p.column * t.pixel_step;
    t.data = static_cast<float*>(o.dst) + at;
    if (epilogue_.residual) t.residual = static_cast<const float*>(o.residual) + at;
    t.rows = static_cast<int>(std::min<int64_t>(tile_, g_.out[1] - p.row));
    t.columns = static_cast<int>(std::min<int64_t>(tile_, g_.out[2] - p.column));
    return t;
  }

  const ConvGeometry g_;
  const Epilogue epilogue_;
  const ConvLoops& loops_;
  const OutputFn output_;
  std::shared_ptr<const PackedFilter> filter_;
  const int64_t tile_;  // rows and columns of the output that a window gives
  int64_t tile_rows_, tile_columns_, tiles_, in_width_, out_width_, blocks_, block_;
  bool alone_;
};

OutputFn OutputFor(const ConvCase& c, const Machine& m) {
  const ConvLoops* const loops = LoopsFor(m);
  return loops != nullptr ? loops->OutputFor(c.epilogue.activation, c.g.kernel[1]) : nullptr;
}

}  // namespace

bool WinogradCovers(const ConvCase& c, const Machine& m) {
  const ConvGeometry& g = c.g;
  const std::array<int64_t, 3> one{1, 1, 1};
  return c.dtype == DType::kF32 && c.direction == ConvDirection::kForward && c.filter != nullptr &&
         g.channels_last && g.spatial == 2 && g.groups == 1 && g.kernel[1] == g.kernel[2] &&
         (g.kernel[1] == 3 || g.kernel[1] == 5) && g.stride == one && g.dilation == one &&
         !c.empty() && OutputFor(c, m) != nullptr;
}

std::unique_ptr<ConvRunner> MakeWinogradConv(const PrepareContext& ctx, const ConvCase& c) {
  return std::make_unique<WinogradConv>(ctx, c.g, *c.filter, c.epilogue,
                                        OutputFor(c, ThisMachine()));
}

}  // namespace heddle
