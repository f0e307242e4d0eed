// Products with a constant matrix by heddle's own loops: the convolution of one tap.
#include <algorithm>
#include <limits>

#include "kernels/common/conv_loops.h"
#include "kernels/common/gemm_columns.h"
#include "kernels/common/gemm_matmul.h"

namespace heddle {
namespace {

using convloops::ConvLoops;
using convloops::DirectBlock;

int64_t Ceil(int64_t n, int64_t by) { return (n + by - 1) / by; }

template <typename Columns>
class PanelGemm final : public GemmRunner {
 public:
  PanelGemm(const GemmDims& d, std::shared_ptr<const Columns> packed, const Epilogue& epilogue,
            const ConvLoops& loops)
      : d_(d), late_(epilogue), loops_(loops), width_(2 * loops.lanes), packed_(std::move(packed)) {
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
    constexpr int64_t kUnitWork = 1 << 19;  // less is done before another thread has come to help
    const int64_t panels = Ceil(d_.n, width_);
    const int64_t rows =
        std::min({d_.m, std::max<int64_t>(Columns::kCacheBytes / (4 * d_.k), loops_.rows),
                  Columns::kInBlocks ? kTileRows : d_.m});
    // Of few rows the panels decide, which come from afar: a number takes as long as some products.
    constexpr int64_t kToRead = 8;
    const int64_t grain = 1 + kUnitWork / ((rows + kToRead) * width_ * d_.k);
    const int64_t parts = Ceil(d_.m, rows);
    Tensor apart;
    if (d_.m > loops_.rows && d_.lda % kMeet == 0) {
      apart = ctx.CallScratch(DType::kF32, {d_.m, d_.k + kApart});
      float* const to = apart.mutable_data<float>();
      ctx.ParallelFor(d_.m, 1 + kUnitWork / d_.k, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) std::copy_n(a + r * d_.lda, d_.k, to + r * (d_.k + kApart));
      });
      a = to;
    }
    const int64_t lda = apart.initialized() ? d_.k + kApart : d_.lda;
    ctx.ParallelFor(parts * panels, grain, [&](int64_t begin, int64_t end) {
      Room room;
      int64_t done = begin;  // up to where Finish was called
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t first = unit % parts * rows, count = std::min(rows, d_.m - first);
        Panel(unit / parts * width_, first, count, a, lda, bias, residual, c, room);
        // Some panels of the same rows at once: longer rows to go through.
        if (parts > 1 || unit + 1 - done == kFinished || unit + 1 == end) {
          Finish(done / parts * width_, (unit / parts + 1) * width_, first, count, c);
          done = unit + 1;
        }
      }
    });
  }

 private:
  static constexpr int64_t kTileRows = 128;
  static constexpr int64_t kFinished = 8;  // panels
  // Rows of A that begin a multiple of so many floats apart share few places in the caches; a copy
  // has them so much farther apart.
  static constexpr int64_t kMeet = 2048 / sizeof(float), kApart = 16;
  struct Room {
    alignas(64) float panel[Columns::kRoom];
    alignas(64) float sums[Columns::kInBlocks ? kTileRows * 2 * 16 : 1];
  };

  void Panel(int64_t column, int64_t first, int64_t count, const float* a, int64_t lda, const float* bias,
             const float* residual, float* c, Room& room) const {
    constexpr float kAny = std::numeric_limits<float>::infinity();
    const int64_t columns = std::min(width_, d_.n - column);
    const bool two = columns > loops_.lanes;
    DirectBlock b{};
    b.pixel_step = lda;
    b.rows = b.columns = 1;
    if (bias_) b.bias = bias + column;
    float* const out = c + first * d_.ldc + column;
    b.out_step = b.residual_step = d_.ldc;
    if (late_.residual) b.residual = residual + first * d_.ldc + column;
    b.channels = static_cast<int>(columns);
    b.high = kAny;
    // The rows in registers are done one block after another: meanwhile the next panel, which comes from
    // afar, is asked for. A lone block takes no longer than the panel itself does to come.
    const int64_t blocks = Ceil(count, loops_.rows);
    const bool ahead = !Columns::kInBlocks && two && blocks > 1 && first + count == d_.m &&
                       column + width_ < d_.n;
    if (ahead) {
      b.ahead = packed_->Block(loops_, d_, column + width_, 0, room.panel);
      b.ahead_step = Ceil(width_, blocks);
    }
    const int64_t rows = Columns::kInBlocks ? Columns::kGroup : d_.k;
    for (int64_t k = 0; k < d_.k; k += rows) {
      b.depth = std::min(rows, d_.k - k);
      b.pixels = a + first * lda + k;
      b.filter = packed_->Block(loops_, d_, column, k, room.panel);
      // Sums that are not complete wait beside each other.
      const bool last = k + rows >= d_.k;
      b.low = last ? low_ : -kAny;
      b.out = last ? out : room.sums;
      b.out_step = last ? d_.ldc : width_;
      (ahead ? loops_.streamed : loops_.direct[two])(b, count);
      b.bias = nullptr;
      b.residual = room.sums;
      b.residual_step = width_;
    }
  }

  // What the loops do not do, for columns [begin, end) of some rows.
  void Finish(int64_t begin, int64_t end, int64_t first, int64_t count, float* c) const {
    if (late_.activation != Activation::kNone || late_.linear())
      ApplyEpilogue(late_, count, std::min(end, d_.n) - begin, d_.ldc, nullptr, false,
                    c + first * d_.ldc + begin);
  }

  const GemmDims d_;
  Epilogue late_;  // what the loops do not do
  const ConvLoops& loops_;
  const int64_t width_;
  std::shared_ptr<const Columns> packed_;
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
  auto packed = PackFloatColumns(ctx, *constant_b, g.one, loops->lanes);
  return std::make_unique<PanelGemm<FloatColumns>>(g.one, std::move(packed), epilogue, *loops);
}

int64_t MostPanelRows() {
  const ConvLoops* loops = convloops::BestLoops();
  return loops == nullptr ? 0 : loops->rows;
}

std::unique_ptr<GemmRunner> MakeInt8Gemm(const PrepareContext& ctx, const BatchedGemm& g, float alpha,
                                         const Tensor* constant_b, const Epilogue& epilogue) {
  constexpr int64_t kLeastWeights = 1 << 12;
  const ConvLoops* loops = convloops::BestLoops();
  if (loops == nullptr || constant_b == nullptr || g.batch != 1 || g.sums || g.one.trans_a ||
      g.one.m == 0 || g.one.k * g.one.n < kLeastWeights)
    return nullptr;
  auto packed = PackInt8Columns(ctx, *constant_b, g.one, loops->lanes, alpha);
  return std::make_unique<PanelGemm<Int8Columns>>(g.one, std::move(packed), epilogue, *loops);
}

}  // namespace heddle
