// GEMM with a packed B by heddle's own microkernels, which it shares with convolutions: a product
// is a convolution with one tap.
#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>

#include "kernels/base/ceil_div.h"
#include "kernels/gemm/gemm_columns.h"
#include "kernels/gemm/gemm_implementations.h"
#include "kernels/gemm/nbit_columns.h"
#include "kernels/simd/microkernels.h"

namespace heddle {
namespace {

using simd::DirectTile;
using simd::Microkernels;

// Products that share a loop; more run one after another.
constexpr size_t kMostTogether = 16;

// Rows of A whose distance is a multiple of this many floats map to the same few cache sets.
constexpr int64_t kMeet = 2048 / sizeof(float);

template <typename Columns>
class PanelGemm final : public GemmRunner {
 public:
  PanelGemm(const BatchedGemm& g, std::shared_ptr<const Columns> packed, const Epilogue& epilogue,
            const Microkernels& kernels)
      : g_(g),
        d_(g_.one),
        late_(epilogue),
        kernels_(kernels),
        width_(2 * kernels.lanes),
        packed_(std::move(packed)) {
    low_ = -std::numeric_limits<float>::infinity();
    bias_ = epilogue.bias;
    late_.bias = false;
    const bool keeps_nan = epilogue.activation == Activation::kReluKeepsNan;
    if ((keeps_nan || epilogue.activation == Activation::kRelu) && !epilogue.linear()) {
      low_ = 0.f;
      nan_is_low_ = !keeps_nan;
      late_.activation = Activation::kNone;
    }
  }

  std::string name() const override { return StrCat(Columns::kName, ", ", IsaName(kernels_.isa)); }
  bool reads_b() const override { return Columns::kReadsB; }

  std::span<const std::byte> ReadsFirst() const override {
    if constexpr (std::is_same_v<Columns, FloatColumns>) {
      const size_t panel =
          sizeof(float) * static_cast<size_t>(d_.k * PanelWidth(d_, kernels_.lanes, 0));
      return {static_cast<const std::byte*>(packed_->memory->data()), panel};
    }
    return {};
  }

  void Run(const KernelContext& ctx, const float* a, const float* b, const float* bias,
           const float* residual, float* c) const override {
    const Operands all{a, b, bias, residual, c};
    const GemmPiece whole{a, d_.lda, d_.k};
    if (g_.batch > 1 || TakesRows()) return Depths(ctx, all, {&whole, 1}, 0, d_.k);
    const int64_t depth = d_.m * d_.k <= kWhole ? d_.k : kDepth, step = depth + kApart;
    Tensor apart = ctx.CallScratch(DType::kF32, {d_.m, step});
    float* const to = apart.mutable_data<float>();
    for (int64_t k = 0; k < d_.k; k += depth) {
      const int64_t count = std::min(depth, d_.k - k);
      ctx.ParallelFor(d_.m, 1 + kUnitWork / count, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) std::copy_n(a + r * d_.lda + k, count, to + r * step);
      });
      const GemmPiece some{to, step, count};
      Depths(ctx, all, {&some, 1}, k, k + count);
    }
  }

  bool joins_others() const override {
    return std::is_same_v<Columns, FloatColumns> && g_.batch == 1 && !late_.residual;
  }
  // A may be read where it lies.
  bool TakesRows() const { return d_.m <= kernels_.tile_rows || d_.lda % kMeet != 0; }

  bool RunPieces(const KernelContext& ctx, std::span<const GemmPiece> a, const float* bias,
                 const float* residual, float* c) const override {
    if (Columns::kInBlocks || g_.batch != 1) return false;
    Depths(ctx, {nullptr, nullptr, bias, residual, c}, a, 0, d_.k);
    return true;
  }

 private:
  static constexpr int64_t kTileRows = 128;
  static constexpr int64_t kUnitWork = 1 << 19;  // less work ends before another thread wakes up
  // Rows that map to the same cache sets are copied with a stride that spreads them: all of A at
  // once (kWhole floats at most), or kDepth columns at a time for all panels.
  static constexpr int64_t kApart = 16, kDepth = 512, kWhole = 1 << 17;
  struct Operands {
    const float *a, *b, *bias, *residual;
    float* c;
  };
  Operands Product(Operands o, int64_t at) const {
    const BatchedGemm::Offsets to = g_.OffsetsOf(at);
    o.a += to.a, o.b += to.b, o.c += to.c;
    if (o.residual != nullptr) o.residual += to.c;
    return o;
  }
  struct Room {
    alignas(64) float panel[Columns::kRoom];
    alignas(64) float sums[Columns::kInBlocks ? kTileRows * 2 * 16 : 1];
  };

  // Rows per unit of work, and whether the next unit takes the next panel. Otherwise the next unit
  // takes the next rows with the same panel, which is still in the cache.
  struct Order {
    int64_t rows;
    bool panels_first;
  };
  Order OrderOf(int64_t depth) const {
    // B stays in the cache as a whole: A and C, which are larger, are then read once.
    constexpr int64_t kNearBytes = 192 << 10, kPassBytes = 192 << 10, kFloat = sizeof(float);
    const int64_t pass =
        kPassBytes / (kFloat * (depth + d_.n)) / kernels_.tile_rows * kernels_.tile_rows;
    if (!Columns::kInBlocks && depth * d_.n * kFloat <= kNearBytes && pass > 0 && d_.m >= 2 * pass)
      return {pass, true};
    const int64_t rows =
        std::max<int64_t>(Columns::kCacheBytes / (kFloat * depth), kernels_.tile_rows);
    return {std::min({d_.m, rows, Columns::kInBlocks ? kTileRows : d_.m}), false};
  }

  // The partition of a product: a unit of work is one panel times some rows.
  struct Split {
    Order order;
    int64_t panels, parts, grain;  // parts: of the rows
  };
  // Of `depth` columns of A, the longest piece of which has `longest`.
  Split SplitOf(int64_t longest, int64_t depth) const {
    const Order order = OrderOf(longest);
    // With few rows the time goes into reading B from memory: one float costs kToRead
    // multiply-adds.
    constexpr int64_t kToRead = 8;
    return {order, CeilDiv(d_.n, width_), CeilDiv(d_.m, order.rows),
            1 + kUnitWork / ((order.rows + kToRead) * width_ * depth)};
  }

  // Adds the products of columns [from, to) of A, stored at `a`.
  void Depths(const KernelContext& ctx, const Operands& o, std::span<const GemmPiece> a,
              int64_t from, int64_t to) const {
    int64_t longest = 0;
    for (const GemmPiece& piece : a) longest = std::max(longest, piece.columns);
    const Split split = SplitOf(longest, to - from);
    const int64_t all = split.parts * split.panels;
    ctx.ParallelFor(g_.batch * all, split.grain, [&](int64_t begin, int64_t end) {
      Room room;
      for (int64_t i = begin; i < end; ++i) {
        if (g_.batch == 1) {
          Unit(ctx, o, a, split, i, from, to, room);
          continue;
        }
        const Operands one = Product(o, i / all);
        const GemmPiece product{one.a, d_.lda, d_.k};
        Unit(ctx, one, {&product, 1}, split, i % all, from, to, room);
      }
    });
  }

  void Unit(const KernelContext& ctx, const Operands& o, std::span<const GemmPiece> a,
            const Split& split, int64_t unit, int64_t from, int64_t to, Room& room) const {
    const bool panels_first = split.order.panels_first;
    const int64_t part = panels_first ? unit / split.panels : unit % split.parts;
    const int64_t column = (panels_first ? unit % split.panels : unit / split.parts) * width_;
    const int64_t first = part * split.order.rows;
    const int64_t count = std::min(split.order.rows, d_.m - first);
    Panel(ctx, o, a, column, first, count, from, room);
    if (to == d_.k) Finish(column, first, count, o.c);
  }

  // Address to prefetch during a block of B: the next block of this panel, of the next panel, or
  // the first bytes that follow the product; may be nullptr.
  const float* Next(const KernelContext& ctx, const Operands& o, bool last, int64_t column,
                    int64_t k, Room& room) const {
    if (!last) return packed_->Block(kernels_, d_, o.b, column, k, room.panel);
    if (column + width_ < d_.n)
      return packed_->Block(kernels_, d_, o.b, column + width_, k, room.panel);
    return reinterpret_cast<const float*>(ctx.ahead().data());
  }

  void Panel(const KernelContext& ctx, const Operands& o, std::span<const GemmPiece> a,
             int64_t column, int64_t first, int64_t count, int64_t from, Room& room) const {
    constexpr float kAny = std::numeric_limits<float>::infinity();
    const int64_t columns = std::min(width_, d_.n - column);
    const bool two = columns > kernels_.lanes;
    DirectTile b{};
    b.rows = b.columns = 1;
    float* const out = o.c + first * d_.ldc + column;
    b.residual_step = d_.ldc;
    if (from > 0) {
      b.residual = out;
    } else {
      if (bias_) b.bias = o.bias + column;
      if (late_.residual) b.residual = o.residual + first * d_.ldc + column;
    }
    b.channels = static_cast<int>(columns);
    b.high = kAny;
    // Blocks of rows are computed one after another while the next part of B is prefetched from
    // memory. A single block takes no longer than the prefetch itself.
    const int64_t blocks = CeilDiv(count, kernels_.tile_rows);
    const bool last_rows = !Columns::kInBlocks && two && blocks > 1 && first + count == d_.m;
    b.ahead_step = CeilDiv(width_, blocks);
    int64_t k = from;
    for (const GemmPiece& piece : a) {
      const bool last = &piece == &a.back();
      if (last_rows) b.ahead = Next(ctx, o, last, column, last ? from : k + piece.columns, room);
      const bool ahead = b.ahead != nullptr;
      b.pixel_step = piece.lda;
      const int64_t rows = Columns::kInBlocks ? Columns::kGroup : piece.columns;
      for (int64_t at = 0; at < piece.columns; at += rows, k += b.depth) {
        b.depth = std::min(rows, piece.columns - at);
        b.pixels = piece.data + first * piece.lda + at;
        b.filter = packed_->Block(kernels_, d_, o.b, column, k, room.panel);
        // Partial sums are kept in a dense buffer, or in C.
        const bool is_last = k + b.depth >= d_.k;
        b.low = is_last ? low_ : -kAny;
        b.nan_is_low = is_last && nan_is_low_;
        const bool wait = Columns::kInBlocks && at + b.depth < piece.columns;
        b.out = wait ? room.sums : out;
        b.out_step = wait ? width_ : d_.ldc;
        (ahead ? kernels_.gemm_prefetch_tile : kernels_.direct_tile[two])(b, count);
        b.bias = nullptr;
        b.residual = wait ? room.sums : out;
        b.residual_step = wait ? width_ : d_.ldc;
      }
    }
  }

  // Applies the part of the epilogue that the microkernel leaves out, to a panel's columns of some
  // rows.
  void Finish(int64_t column, int64_t first, int64_t count, float* c) const {
    if (late_.activation != Activation::kNone || late_.linear())
      ApplyEpilogue(late_, count, std::min(width_, d_.n - column), d_.ldc, nullptr, false,
                    c + first * d_.ldc + column);
  }

 public:
  // The product in units of work, which threads share.
  class Units {
   public:
    Units(const PanelGemm& gemm, const float* a, const GemmPart& part)
        : gemm_(gemm),
          all_{a, nullptr, part.bias, nullptr, part.c},
          whole_{a, gemm.d_.lda, gemm.d_.k},
          split_(gemm.SplitOf(gemm.d_.k, gemm.d_.k)) {}
    int64_t count() const { return split_.parts * split_.panels; }
    int64_t grain() const { return split_.grain; }
    void Run(const KernelContext& ctx, int64_t unit) const {
      Room room;
      gemm_.Unit(ctx, all_, {&whole_, 1}, split_, unit, 0, gemm_.d_.k, room);
    }

   private:
    const PanelGemm& gemm_;
    const Operands all_;
    const GemmPiece whole_;
    const Split split_;
  };

 private:
  const BatchedGemm g_;
  const GemmDims& d_;  // of one product
  Epilogue late_;      // the part of the epilogue that the microkernel leaves out
  const Microkernels& kernels_;
  const int64_t width_;
  std::shared_ptr<const Columns> packed_;
  float low_;
  bool nan_is_low_ = false;
  bool bias_;
};

}  // namespace

void RunTogether(const KernelContext& ctx, std::span<const std::unique_ptr<GemmRunner>> products,
                 const float* a, std::span<const GemmPart> parts) {
  using Panels = PanelGemm<FloatColumns>;
  std::array<std::optional<Panels::Units>, kMostTogether> units;
  std::array<int64_t, kMostTogether + 1> begins{};
  int64_t grain = 1;
  size_t count = 0;
  for (size_t i = 0; i < products.size(); ++i) {
    const auto& product = static_cast<const Panels&>(*products[i]);
    if (!product.TakesRows() || count == kMostTogether) {
      product.Run(ctx, a, nullptr, parts[i].bias, nullptr, parts[i].c);
      continue;
    }
    units[count].emplace(product, a, parts[i]);
    grain = std::max(grain, units[count]->grain());
    begins[count + 1] = begins[count] + units[count]->count();
    ++count;
  }
  ctx.ParallelFor(begins[count], grain, [&](int64_t begin, int64_t end) {
    size_t at = 0;
    for (int64_t i = begin; i < end; ++i) {
      while (begins[at + 1] <= i) ++at;
      units[at]->Run(ctx, i - begins[at]);
    }
  });
}

bool PanelsCover(const GemmCase& c, const Machine&) {
  constexpr int64_t kLeastWork = 1 << 12;  // less does not fill a panel
  const BatchedGemm& g = c.g;
  return c.constant_b != nullptr && g.batch == 1 && !g.sums && !g.one.trans_a && c.alpha == 1.f &&
         g.work() >= kLeastWork;
}

std::unique_ptr<GemmRunner> MakePanelGemm(const PrepareContext& ctx, const GemmCase& c) {
  const Microkernels& kernels = *simd::BestMicrokernels();
  auto packed = PackFloatColumns(ctx, *c.constant_b, c.g.one, kernels.lanes);
  return std::make_unique<PanelGemm<FloatColumns>>(c.g, std::move(packed), c.epilogue, kernels);
}

bool PanelsVariableCover(const GemmCase& c, const Machine&) {
  const BatchedGemm& g = c.g;
  return !g.sums && !g.one.trans_a && g.batch != 0 && IsLarge(g.one);
}

std::unique_ptr<GemmRunner> MakeVariableGemm(const PrepareContext&, const GemmCase& c) {
  auto columns = std::make_shared<const FreshColumns>(FreshColumns{c.alpha});
  return std::make_unique<PanelGemm<FreshColumns>>(c.g, std::move(columns), c.epilogue,
                                                   *simd::BestMicrokernels());
}

bool PiecesPay(const GemmDims& d, std::span<const int64_t> widths, const Machine& m) {
  const Microkernels* const kernels = simd::MicrokernelsFor(m);
  for (const int64_t width : widths)
    if (d.m > kernels->tile_rows && width % kMeet == 0 && width > 0) return false;
  // Each block of sums starts and ends once more per piece, which costs about as much as copying
  // this many floats.
  constexpr int64_t kMoved = 75;
  const int64_t blocks = CeilDiv(d.n, 2 * kernels->lanes) * CeilDiv(d.m, kernels->tile_rows);
  return static_cast<int64_t>(widths.size()) * blocks * kMoved < d.m * d.k;
}

bool PanelsInt8Cover(const GemmCase& c, const Machine&) {
  constexpr int64_t kLeastWeights = 1 << 12;
  const BatchedGemm& g = c.g;
  return c.epilogue.int8 && c.constant_b != nullptr && g.batch == 1 && !g.sums && !g.one.trans_a &&
         g.one.m != 0 && g.one.k * g.one.n >= kLeastWeights;
}

std::unique_ptr<GemmRunner> MakeInt8Gemm(const PrepareContext& ctx, const GemmCase& c) {
  const Microkernels& kernels = *simd::BestMicrokernels();
  auto packed = PackInt8Columns(ctx, *c.constant_b, c.g.one, kernels.lanes, c.alpha);
  return std::make_unique<PanelGemm<Int8Columns>>(c.g, std::move(packed), c.epilogue, kernels);
}

std::unique_ptr<GemmRunner> MakeNbitPanels(const BatchedGemm& g,
                                           std::shared_ptr<const NbitColumns> packed,
                                           const Epilogue& epilogue) {
  return std::make_unique<PanelGemm<NbitColumns>>(g, std::move(packed), epilogue,
                                                  *simd::BestMicrokernels());
}

}  // namespace heddle
