// Products and convolutions of 8-bit integers on every processor: operands minus their zero points
// are 16-bit integers, of which pairs of products are added in 32 bits.
#include <algorithm>
#include <cstring>

#include "core/interrupts.h"
#include "core/memory/lazy_buffer.h"
#include "kernels/base/work_space.h"
#include "kernels/integers/select.h"
#include "kernels/simd/int16.h"

namespace heddle {
namespace {

using simd::kWordPanel;
using simd::kWordRows;

constexpr int64_t kTileRows = 16;  // of the first operand, widened at a time

int64_t PairsOf(int64_t terms) { return (terms + 1) / 2; }
int64_t PanelsOf(int64_t columns) { return (columns + kWordPanel - 1) / kWordPanel; }

// A matrix of 16-bit integers in panels of columns: [panel][pair][column][2], zeros at the ends.
struct WordMatrix {
  int64_t terms = 0, columns = 0;
  int64_t size() const { return PanelsOf(columns) * PairsOf(terms) * 2 * kWordPanel; }
  int64_t Place(int64_t k, int64_t c) const {
    return ((c / kWordPanel * PairsOf(terms) + k / 2) * kWordPanel + c % kWordPanel) * 2 + k % 2;
  }
};

struct ByteReader {
  const uint8_t* bytes;
  bool is_signed;
  int16_t operator()(int64_t at, int32_t zero) const {
    const int32_t v = is_signed ? int32_t{static_cast<int8_t>(bytes[at])} : int32_t{bytes[at]};
    return static_cast<int16_t>(v - zero);
  }
};
int32_t ZeroAt(std::span<const int32_t> zero, int64_t at) {
  return zero.empty() ? 0 : zero[zero.size() == 1 ? 0 : static_cast<size_t>(at)];
}

// to[i] = from[i * step] - zero.
void Widen(const ByteReader& from, int64_t at, int64_t step, int64_t n, int32_t zero, int16_t* to) {
  if (step != 1) {
    for (int64_t i = 0; i < n; ++i) to[i] = from(at + i * step, zero);
  } else if (from.is_signed) {
    const auto* const x = reinterpret_cast<const int8_t*>(from.bytes) + at;
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<int16_t>(x[i] - zero);
  } else {
    const uint8_t* const x = from.bytes + at;
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<int16_t>(x[i] - zero);
  }
}

// sums[r][c] for the rows of `a`, of which each has an even number of terms.
void Multiply(const WordMatrix& m, const int16_t* a, int64_t rows, const int16_t* panels,
              int32_t* sums, int64_t sums_step) {
  static const simd::WordSumsFn tile = simd::BestWordSums();
  const int64_t pairs = PairsOf(m.terms);
  for (int64_t p = 0; p < PanelsOf(m.columns); ++p)
    for (int64_t r = 0; r < rows; r += kWordRows)
      tile(a + r * 2 * pairs, 2 * pairs, pairs, panels + p * pairs * 2 * kWordPanel,
           static_cast<int>(std::min<int64_t>(kWordRows, rows - r)),
           sums + r * sums_step + p * kWordPanel, sums_step);
}

// fn(sums, rows): work space for kTileRows rows of so many sums and of so many widened operands.
template <typename Fn>
void WithTiles(int64_t sums, int64_t terms, const Fn& fn) {
  constexpr size_t kOnStack = 24 << 10;
  const auto first = static_cast<size_t>(kTileRows * sums) * sizeof(int32_t);
  const auto second = static_cast<size_t>(kTileRows * terms) * sizeof(int16_t);
  WithWorkSpace<kOnStack>(first + second, [&](std::byte* work) {
    fn(reinterpret_cast<int32_t*>(work), reinterpret_cast<int16_t*>(work + first));
  });
}

class WordConv final : public IntegerRunner {
 public:
  explicit WordConv(const IntegerConvCase& c)
      : g_(c.g), x_signed_(c.x == DType::kI8), result_(c.result) {
    const BorrowedContents contents(c.w);
    const ByteReader w{static_cast<const uint8_t*>(contents.tensor().raw()),
                       c.w.dtype() == DType::kI8};
    const int64_t channels = g_.in_c / g_.groups, taps = g_.kernel_size();
    if (Depthwise()) {
      words_.resize(static_cast<size_t>(taps * g_.out_c));
      for (const int64_t o : Watched(g_.out_c))
        for (int64_t t = 0; t < taps; ++t)
          words_[static_cast<size_t>(t * g_.out_c + o)] = w(o * taps + t, ZeroAt(c.w_zero, o));
      return;
    }
    matrix_ = {channels * taps, g_.out_c / g_.groups};
    words_.resize(static_cast<size_t>(matrix_.size() * g_.groups));
    for (const int64_t o : Watched(g_.out_c)) {
      const int64_t group = o / matrix_.columns, column = o % matrix_.columns;
      int16_t* const to = words_.data() + group * matrix_.size();
      for (int64_t i = 0; i < channels; ++i)
        for (int64_t t = 0; t < taps; ++t)
          to[matrix_.Place(t * channels + i, column)] =
              w((o * channels + i) * taps + t, ZeroAt(c.w_zero, o));
    }
  }

  std::string name() const override { return Depthwise() ? "words, depthwise" : "words"; }

  void Run(const KernelContext& ctx, const IntegerOperands& o) const override {
    const int64_t pixels = g_.batch * g_.out_size();
    ctx.ParallelFor(pixels, kTileRows, [&](int64_t begin, int64_t end) {
      const int64_t width = Depthwise() ? g_.out_c : PanelsOf(matrix_.columns) * kWordPanel;
      WithTiles(width, Depthwise() ? 0 : 2 * PairsOf(matrix_.terms),
                [&](int32_t* sums, int16_t* rows) {
                  for (int64_t at = begin; at < end; at += kTileRows) {
                    LookForInterrupt();
                    const int64_t n = std::min(kTileRows, end - at);
                    if (Depthwise())
                      DepthwiseTile(o, at, n, sums);
                    else
                      Tile(o, at, n, rows, sums);
                  }
                });
    });
  }

 private:
  bool Depthwise() const { return g_.groups > 1 && g_.groups == g_.in_c && g_.out_c == g_.in_c; }

  // fn(tap, offset of the pixel in the image; negative: padding) for each tap of output pixel `at`.
  template <typename Fn>
  void ForEachTap(int64_t at, const Fn& fn) const {
    const int64_t image = at / g_.out_size(), place = at % g_.out_size();
    const std::array<int64_t, 3> out{place / (g_.out[1] * g_.out[2]), place / g_.out[2] % g_.out[1],
                                     place % g_.out[2]};
    int64_t tap = 0;
    for (int64_t z = 0; z < g_.kernel[0]; ++z)
      for (int64_t y = 0; y < g_.kernel[1]; ++y)
        for (int64_t x = 0; x < g_.kernel[2]; ++x, ++tap) {
          const int64_t d = out[0] * g_.stride[0] - g_.pad_lo[0] + z * g_.dilation[0];
          const int64_t h = out[1] * g_.stride[1] - g_.pad_lo[1] + y * g_.dilation[1];
          const int64_t w = out[2] * g_.stride[2] - g_.pad_lo[2] + x * g_.dilation[2];
          const bool inside =
              d >= 0 && d < g_.in[0] && h >= 0 && h < g_.in[1] && w >= 0 && w < g_.in[2];
          const int64_t pixel = (d * g_.in[1] + h) * g_.in[2] + w;
          fn(tap, inside ? (image * g_.in_size() + pixel) * g_.in_c : -1);
        }
  }

  void Tile(const IntegerOperands& o, int64_t at, int64_t n, int16_t* rows, int32_t* sums) const {
    const ByteReader x{static_cast<const uint8_t*>(o.x), x_signed_};
    const int64_t channels = g_.in_c / g_.groups, step = 2 * PairsOf(matrix_.terms);
    const int64_t width = PanelsOf(matrix_.columns) * kWordPanel;
    for (int64_t group = 0; group < g_.groups; ++group) {
      for (int64_t r = 0; r < n; ++r) {
        int16_t* const to = rows + r * step;
        to[step - 1] = 0;
        ForEachTap(at + r, [&](int64_t tap, int64_t pixel) {
          if (pixel < 0)
            std::memset(to + tap * channels, 0, static_cast<size_t>(channels) * sizeof(*to));
          else
            Widen(x, pixel + group * channels, 1, channels, o.x_zero, to + tap * channels);
        });
      }
      Multiply(matrix_, rows, n, words_.data() + group * matrix_.size(), sums, width);
      Store(o, at, n, group * matrix_.columns, matrix_.columns, sums, width);
    }
  }

  void DepthwiseTile(const IntegerOperands& o, int64_t at, int64_t n, int32_t* sums) const {
    const int64_t c = g_.out_c;
    std::memset(sums, 0, static_cast<size_t>(n * c) * sizeof(*sums));
    for (int64_t r = 0; r < n; ++r)
      ForEachTap(at + r, [&](int64_t tap, int64_t pixel) {
        if (pixel < 0) return;
        const int16_t* const w = words_.data() + tap * c;
        if (x_signed_)
          AddTap(static_cast<const int8_t*>(o.x) + pixel, o.x_zero, w, c, sums + r * c);
        else
          AddTap(static_cast<const uint8_t*>(o.x) + pixel, o.x_zero, w, c, sums + r * c);
      });
    Store(o, at, n, 0, c, sums, c);
  }
  template <typename T>
  static void AddTap(const T* x, int32_t zero, const int16_t* w, int64_t n, int32_t* sums) {
    for (int64_t i = 0; i < n; ++i) sums[i] += (x[i] - zero) * w[i];
  }

  void Store(const IntegerOperands& o, int64_t at, int64_t n, int64_t first, int64_t columns,
             const int32_t* sums, int64_t sums_step) const {
    const int64_t place = at * g_.out_c + first;
    StoreResults(
        result_,
        {n, columns, sums, sums_step, result_.scaled() ? o.factor + first : nullptr,
         result_.offset ? o.offset + first : nullptr,
         static_cast<uint8_t*>(o.out) + place * static_cast<int64_t>(SizeOf(result_.dtype)),
         g_.out_c});
  }

  const ConvGeometry g_;
  const bool x_signed_;
  const IntegerResult result_;
  WordMatrix matrix_;
  std::vector<int16_t> words_;  // the filter: panels of each group, or [tap][channel]
};

class WordGemm final : public IntegerRunner {
 public:
  explicit WordGemm(const IntegerGemmCase& c)
      : g_(c.g),
        x_signed_(c.x == DType::kI8),
        y_signed_(c.y == DType::kI8),
        y_zero_(c.y_zero.begin(), c.y_zero.end()),
        result_(c.result),
        matrix_{g_.one.k, g_.one.n} {
    if (c.constant_y == nullptr || g_.dims.rank() != 0) return;
    const BorrowedContents contents(*c.constant_y);
    words_.resize(static_cast<size_t>(matrix_.size()));
    PackPanels(static_cast<const uint8_t*>(contents.tensor().raw()), 0, PanelsOf(g_.one.n),
               words_.data());
  }

  std::string name() const override { return "words"; }

  void Run(const KernelContext& ctx, const IntegerOperands& o) const override {
    Tensor hold;
    const int16_t* panels = words_.data();
    int64_t packed_y = -1;
    for (int64_t n = 0; n < g_.batch; ++n) {
      const BatchedGemm::Offsets at = g_.OffsetsOf(n);
      if (words_.empty() && packed_y != at.b) {
        if (!hold.initialized()) hold = ctx.CallScratch(DType::kI16, {matrix_.size()});
        auto* const to = hold.mutable_data<int16_t>();
        ctx.ParallelFor(PanelsOf(g_.one.n), 4, [&](int64_t begin, int64_t end) {
          PackPanels(static_cast<const uint8_t*>(o.y) + at.b, begin, end, to);
        });
        packed_y = at.b;
        panels = to;
      }
      ctx.ParallelFor(g_.one.m, kTileRows, [&](int64_t begin, int64_t end) {
        WithTiles(PanelsOf(g_.one.n) * kWordPanel, 2 * PairsOf(g_.one.k),
                  [&](int32_t* sums, int16_t* a) { Rows(o, at, begin, end, panels, sums, a); });
      });
    }
  }

 private:
  void PackPanels(const uint8_t* bytes, int64_t begin, int64_t end, int16_t* to) const {
    const ByteReader y{bytes, y_signed_};
    const GemmDims& d = g_.one;
    const int64_t each = PairsOf(d.k) * 2 * kWordPanel;
    std::memset(to + begin * each, 0, static_cast<size_t>((end - begin) * each) * sizeof(*to));
    for (const int64_t k : Watched(d.k))
      for (int64_t c = begin * kWordPanel; c < std::min(end * kWordPanel, d.n); ++c)
        to[matrix_.Place(k, c)] = y(d.trans_b ? c * d.ldb + k : k * d.ldb + c, ZeroAt(y_zero_, c));
  }

  void Rows(const IntegerOperands& o, const BatchedGemm::Offsets& at, int64_t begin, int64_t end,
            const int16_t* panels, int32_t* sums, int16_t* a) const {
    const GemmDims& d = g_.one;
    const int64_t step = 2 * PairsOf(d.k), width = PanelsOf(d.n) * kWordPanel;
    const ByteReader x{static_cast<const uint8_t*>(o.x), x_signed_};
    for (int64_t i = begin; i < end; i += kTileRows) {
      LookForInterrupt();
      const int64_t n = std::min(kTileRows, end - i);
      for (int64_t r = 0; r < n; ++r) {
        if (step > 0) a[r * step + step - 1] = 0;
        Widen(x, at.a + (d.trans_a ? i + r : (i + r) * d.lda), d.trans_a ? d.lda : 1, d.k, o.x_zero,
              a + r * step);
      }
      Multiply(matrix_, a, n, panels, sums, width);
      StoreResults(result_, {n, d.n, sums, width, o.factor, result_.offset ? o.offset : nullptr,
                             static_cast<uint8_t*>(o.out) +
                                 (at.c + i * d.ldc) * static_cast<int64_t>(SizeOf(result_.dtype)),
                             d.ldc});
    }
  }

  const BatchedGemm g_;
  const bool x_signed_, y_signed_;
  const std::vector<int32_t> y_zero_;
  const IntegerResult result_;
  const WordMatrix matrix_;
  std::vector<int16_t> words_;  // of a constant
};

}  // namespace

std::unique_ptr<IntegerRunner> MakeWordConv(const IntegerConvCase& c) {
  return std::make_unique<WordConv>(c);
}
std::unique_ptr<IntegerRunner> MakeWordGemm(const IntegerGemmCase& c) {
  return std::make_unique<WordGemm>(c);
}

}  // namespace heddle
