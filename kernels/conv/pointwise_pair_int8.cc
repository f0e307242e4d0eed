// Two pointwise convolutions in sequence that multiply 8-bit integers. A thread takes a few pixels
// through both: what is in between stays in its caches. Each pixel is rounded with a factor and an
// offset of its own, on the way in and in between.
#include <algorithm>
#include <cmath>

#include "core/interrupts.h"
#include "kernels/base/ceil_div.h"
#include "kernels/conv/conv_chain.h"
#include "kernels/gemm/pack_once.h"
#include "kernels/simd/int8.h"

namespace heddle {
namespace {

using simd::Int8Kernels;
using simd::Int8Tile;
using simd::kInt8Panel;
using simd::kInt8Rows;

constexpr int64_t kGroup = 4, kLine = 64;  // bytes of a cache line

int64_t Padded(int64_t n, int64_t step) { return CeilDiv(n, step) * step; }

// A filter: for each output channel its factor, and the factor times the sum of the channel's
// integers; and panels of output channels, [group of input channels][channel][4]. Missing channels
// are zeros.
struct Int8Panels {
  static constexpr int kPackingVersion = 1;  // see PackOnce
  BufferRef memory;

  static size_t Bytes(int64_t width, int64_t depth) {
    return static_cast<size_t>(width) * (2 * sizeof(float) + static_cast<size_t>(depth));
  }
  const float* factors() const { return static_cast<const float*>(memory->data()); }
  const float* sums(int64_t width) const { return factors() + width; }
  const int8_t* panels(int64_t width) const {
    return reinterpret_cast<const int8_t*>(sums(width) + width);
  }
};

std::shared_ptr<const Int8Panels> PackedInt8(const PrepareContext& ctx, const Tensor& filter,
                                             int64_t depth) {
  return PackOnce<Int8Panels>(
      ctx, filter, StrCat("int8 panels ", depth), [&](const Tensor& in, Int8Panels* packed) {
        const int64_t out_c = in.dim(0), in_c = in.dim(1), width = Padded(out_c, kInt8Panel);
        packed->memory = PackMemory(ctx, Int8Panels::Bytes(width, depth));
        auto* const factors = static_cast<float*>(packed->memory->data());
        float* const sums = factors + width;
        auto* const panels = reinterpret_cast<int8_t*>(sums + width);
        std::fill_n(static_cast<char*>(packed->memory->data()), Int8Panels::Bytes(width, depth), 0);
        for (int64_t o = 0; o < out_c; ++o) {
          const float* const w = in.data<float>() + o * in_c;
          float most = 0;
          for (int64_t c = 0; c < in_c; ++c) most = std::max(most, std::abs(w[c]));
          constexpr float kMost = 127;
          factors[o] = most / kMost;
          int8_t* const to = panels + o / kInt8Panel * kInt8Panel * depth + o % kInt8Panel * kGroup;
          int64_t sum = 0;
          for (int64_t c = 0; c < in_c && most > 0; ++c) {
            const auto q = static_cast<int8_t>(std::nearbyint(w[c] / most * kMost));
            to[c / kGroup * kGroup * kInt8Panel + c % kGroup] = q;
            sum += q;
          }
          sums[o] = factors[o] * static_cast<float>(sum);
        }
      });
}

class Int8Pair final : public ConvChain {
 public:
  Int8Pair(const PrepareContext& ctx, const std::vector<ChainStage>& stages,
           const Int8Kernels& kernels)
      : kernels_(kernels),
        pixels_(stages[0].geometry.batch * stages[0].geometry.out_size()),
        in_c_(stages[0].geometry.in_c),
        between_c_(stages[0].geometry.out_c),
        out_c_(stages[1].geometry.out_c),
        in_step_(Padded(in_c_, kGroup)),
        between_step_(Padded(between_c_, kInt8Panel)),
        first_(stages[0].epilogue),
        late_(stages[1].epilogue),
        first_filter_(PackedInt8(ctx, *stages[0].filter, in_step_)),
        second_filter_(PackedInt8(ctx, *stages[1].filter, between_step_)) {
    late_.bias = late_.residual = false;
  }

  void Run(const KernelContext& ctx, const float* src, std::span<const float* const> biases,
           const float* residual, float* dst) const override {
    const int64_t tiles = CeilDiv(pixels_, kInt8Rows);
    const int64_t parts = std::min<int64_t>(tiles, ctx.threads());
    const int64_t floats = kInt8Rows * between_step_ * static_cast<int64_t>(sizeof(float));
    const int64_t bytes = Padded(floats + kInt8Rows * (in_step_ + between_step_), kLine);
    Tensor memory = ctx.CallScratch(DType::kU8, {parts * bytes});
    auto* const kept = static_cast<uint8_t*>(memory.mutable_raw());
    ctx.ParallelFor(parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        Rows rows{};
        rows.between = reinterpret_cast<float*>(kept + part * bytes);
        rows.in = kept + part * bytes + floats;
        rows.rounded = rows.in + kInt8Rows * in_step_;
        std::fill_n(rows.in, kInt8Rows * in_step_, uint8_t{0});
        for (const int64_t t : Watched(part * tiles / parts, (part + 1) * tiles / parts))
          Tile(src, biases, residual, dst, t * kInt8Rows, &rows);
      }
    });
  }

 private:
  // Buffers of one thread for the pixels of a tile.
  struct Rows {
    uint8_t* in;       // the input, rounded
    float* between;    // results of the first filter
    uint8_t* rounded;  // these, rounded
    float scale[kInt8Rows], offset[kInt8Rows];
  };

  // Pixels from `begin` on.
  void Tile(const float* src, std::span<const float* const> biases, const float* residual,
            float* dst, int64_t begin, Rows* rows) const {
    const int64_t count = std::min<int64_t>(kInt8Rows, pixels_ - begin);
    for (int64_t r = 0; r < count; ++r)
      kernels_.round(src + (begin + r) * in_c_, in_c_, rows->in + r * in_step_, rows->scale + r,
                     rows->offset + r);
    const auto hidden = kernels_.hidden[static_cast<int>(first_.activation)];
    const auto* ahead = reinterpret_cast<const char*>(src + (begin + count) * in_c_);
    for (int64_t c = 0; c < between_c_; c += kInt8Panel) {
      Int8Tile tile =
          TileOf(*rows, rows->in, in_step_, *first_filter_, c, biases[0], count, between_c_);
      tile.ahead = ahead;
      ahead += tile.groups * simd::kInt8Ahead;
      hidden(tile, first_, rows->between + c, between_step_);
    }
    for (int64_t r = 0; r < kInt8Rows; ++r)
      kernels_.round(rows->between + r * between_step_, between_step_,
                     rows->rounded + r * between_step_, rows->scale + r, rows->offset + r);
    float* const out = dst + begin * out_c_;
    const float* const add = residual != nullptr ? residual + begin * out_c_ : nullptr;
    for (int64_t c = 0; c < out_c_; c += kInt8Panel)
      kernels_.sums(
          TileOf(*rows, rows->rounded, between_step_, *second_filter_, c, biases[1], count, out_c_),
          add != nullptr ? add + c : nullptr, out + c, out_c_);
    if (!late_.empty()) ApplyEpilogue(late_, count, out_c_, out_c_, nullptr, false, out);
  }

  // The results of channels from c on.
  static Int8Tile TileOf(const Rows& rows, const uint8_t* a, int64_t step, const Int8Panels& filter,
                         int64_t c, const float* bias, int64_t count, int64_t channels) {
    const int64_t width = Padded(channels, kInt8Panel);
    return {.a = a,
            .a_step = step,
            .groups = step / kGroup,
            .scale = rows.scale,
            .offset = rows.offset,
            .panel = filter.panels(width) + c * step,
            .factors = filter.factors() + c,
            .sums = filter.sums(width) + c,
            .bias = bias + c,
            .rows = static_cast<int>(count),
            .columns = static_cast<int>(std::min<int64_t>(channels - c, kInt8Panel)),
            .ahead = reinterpret_cast<const char*>(filter.panels(width) + c * step)};
  }

  const Int8Kernels& kernels_;
  const int64_t pixels_, in_c_, between_c_, out_c_;
  const int64_t in_step_, between_step_;  // numbers of a pixel, rounded up
  const Epilogue first_;
  Epilogue late_;  // what follows the residual
  const std::shared_ptr<const Int8Panels> first_filter_, second_filter_;
};

}  // namespace

bool Int8PairCovers(const std::vector<ChainStage>& stages, const Machine& m) {
  return simd::Int8KernelsFor(m) != nullptr && IsPointwisePair(stages) && stages[0].epilogue.int8 &&
         stages[1].epilogue.int8;
}

bool Int8PairIsCheaper(const std::vector<ChainStage>& stages) {
  constexpr int64_t kLeastChannels = 80;
  return PairIsCheaper(stages) && stages[0].geometry.in_c >= kLeastChannels;
}

std::unique_ptr<ConvChain> MakeInt8Pair(const PrepareContext& ctx,
                                        const std::vector<ChainStage>& stages) {
  return std::make_unique<Int8Pair>(ctx, stages, *simd::Int8KernelsFor(ThisMachine()));
}

}  // namespace heddle
