// Products with a constant matrix by heddle's own loops: the convolution of one tap.
#include <algorithm>
#include <limits>

#include "kernels/common/conv_loops.h"
#include "kernels/common/gemm_matmul.h"
#include "kernels/common/pack_once.h"

namespace heddle {
namespace {

using convloops::ConvLoops;
using convloops::DirectBlock;

int64_t Ceil(int64_t n, int64_t by) { return (n + by - 1) / by; }

// B as panels of columns [k][panel]: of two vectors, the last one of as many as it needs.
struct PackedColumns {
  BufferRef memory;
  const float* data() const { return static_cast<const float*>(memory->data()); }
};

void PackColumns(const PrepareContext& ctx, const Tensor& b, const GemmDims& d, int64_t lanes,
                 PackedColumns* packed) {
  const int64_t width = Ceil(d.n, lanes) * lanes;
  packed->memory = PackMemory(ctx, static_cast<size_t>(width * d.k) * sizeof(float));
  float* to = static_cast<float*>(packed->memory->data());
  // Rows as they lie in memory, some at a time: columns of B if it is transposed.
  const int64_t rows = d.trans_b ? d.n : d.k, length = d.trans_b ? d.k : d.n;
  const int64_t part = std::max<int64_t>(1, kPackBytes / (4 * d.ldb));
  for (int64_t begin = 0; begin < rows; begin += part) {
    const int64_t end = std::min(begin + part, rows);
    const BorrowedContents some(b, begin * d.ldb, (end - begin - 1) * d.ldb + length);
    const float* from = some.tensor().data<float>();
    for (int64_t first = 0; first < width; first += 2 * lanes) {
      const int64_t panel = std::min(2 * lanes, width - first);
      float* panel_to = to + first * d.k;
      if (d.trans_b) {
        for (int64_t n = std::max(first, begin); n < std::min(first + panel, end); ++n)
          for (int64_t k = 0; k < d.k; ++k)
            panel_to[k * panel + n - first] = from[(n - begin) * d.ldb + k];
      } else {
        for (int64_t k = begin; k < end; ++k)
          for (int64_t n = first; n < std::min(first + panel, d.n); ++n)
            panel_to[k * panel + n - first] = from[(k - begin) * d.ldb + n];
      }
    }
  }
  for (int64_t first = d.n / (2 * lanes) * 2 * lanes; first < width; first += 2 * lanes) {
    const int64_t panel = std::min(2 * lanes, width - first);
    for (int64_t k = 0; k < d.k; ++k)
      for (int64_t n = d.n; n < first + panel; ++n) to[first * d.k + k * panel + n - first] = 0.f;
  }
}

class PanelGemm final : public GemmRunner {
 public:
  PanelGemm(const PrepareContext& ctx, const GemmDims& d, const Tensor& b, const Epilogue& epilogue,
            const ConvLoops& loops)
      : d_(d), late_(epilogue), loops_(loops), width_(2 * loops.lanes) {
    const std::string key = StrCat("columns ", loops.lanes, d.trans_b ? " of rows" : "", " ", d.k,
                                   "x", d.n, " ", d.ldb);
    packed_ = PackOnceInParts<PackedColumns>(ctx, b, key, [&](PackedColumns* packed) {
      PackColumns(ctx, b, d, loops.lanes, packed);
    });
    low_ = -std::numeric_limits<float>::infinity();
    bias_ = epilogue.bias;
    late_.bias = false;
    if (epilogue.activation == Activation::kRelu && !epilogue.linear()) {
      low_ = 0.f;
      late_.activation = Activation::kNone;
    }
  }

  bool reads_b() const override { return false; }

  // Units are a panel for some rows; the next unit has the same panel, which is still near then.
  void Run(const KernelContext& ctx, const float* a, const float* /*b*/, const float* bias,
           const float* residual, float* c) const override {
    constexpr int64_t kCacheBytes = 256 << 10, kUnitWork = 1 << 16;
    const int64_t panels = Ceil(d_.n, width_);
    const int64_t rows = std::clamp<int64_t>(kCacheBytes / (4 * d_.k), loops_.rows, d_.m);
    const int64_t grain = 1 + kUnitWork / (rows * width_ * d_.k);
    const int64_t parts = Ceil(d_.m, rows);
    ctx.ParallelFor(parts * panels, grain, [&](int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t first = unit % parts * rows, count = std::min(rows, d_.m - first);
        Panel(unit / parts * width_, first, count, a, bias, residual, c);
      }
    });
  }

 private:
  void Panel(int64_t column, int64_t first, int64_t count, const float* a, const float* bias,
             const float* residual, float* c) const {
    const int64_t columns = std::min(width_, d_.n - column);
    const bool two = columns > loops_.lanes;
    DirectBlock b{};
    b.pixels = a + first * d_.lda;
    b.pixel_step = d_.lda;
    b.filter = packed_->data() + column * d_.k;
    b.rows = b.columns = 1;
    b.depth = d_.k;
    if (bias_) b.bias = bias + column;
    b.out = c + first * d_.ldc + column;
    b.out_step = b.residual_step = d_.ldc;
    if (late_.residual) b.residual = residual + first * d_.ldc + column;
    b.channels = static_cast<int>(columns);
    b.low = low_;
    b.high = std::numeric_limits<float>::infinity();
    loops_.direct[two](b, count);
    if (late_.activation != Activation::kNone || late_.linear())
      ApplyEpilogue(late_, count, columns, d_.ldc, nullptr, false, b.out);
  }

  const GemmDims d_;
  Epilogue late_;  // what the loops do not do
  const ConvLoops& loops_;
  const int64_t width_;
  std::shared_ptr<const PackedColumns> packed_;
  float low_;
  bool bias_;
};

}  // namespace

std::unique_ptr<GemmRunner> MakePanelGemm(const PrepareContext& ctx, const BatchedGemm& g,
                                          float alpha, const Tensor* constant_b,
                                          const Epilogue& epilogue) {
  constexpr int64_t kLeastWork = 1 << 12;
  const ConvLoops* loops = convloops::BestLoops();
  if (loops == nullptr || constant_b == nullptr || g.batch != 1 || g.sums || g.one.trans_a ||
      alpha != 1.f || g.work() < kLeastWork)
    return nullptr;
  return std::make_unique<PanelGemm>(ctx, g.one, *constant_b, epilogue, *loops);
}

}  // namespace heddle
