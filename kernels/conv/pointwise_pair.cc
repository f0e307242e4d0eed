// Two pointwise convolutions in sequence that multiply in bfloat16. A thread takes some pixels
// through both: what is in between stays in its caches, rounded once.
#include <algorithm>

#include "core/half.h"
#include "core/interrupts.h"
#include "kernels/base/ceil_div.h"
#include "kernels/conv/conv_chain.h"
#include "kernels/gemm/pack_once.h"
#include "kernels/simd/bf16.h"

namespace heddle {
namespace {

using simd::Bf16Kernels;
using simd::Bf16Tile;
using simd::kBf16Panel;
using simd::kBf16Rows;

// A filter as panels of output channels, [pair of input channels][channel][2], with zeros for
// missing channels.
struct Bf16Panels {
  static constexpr int kPackingVersion = 1;  // see PackOnce
  BufferRef memory;
  const uint16_t* data() const { return static_cast<const uint16_t*>(memory->data()); }
};

int64_t RoundUp(int64_t n, int64_t step) { return CeilDiv(n, step) * step; }

std::shared_ptr<const Bf16Panels> PanelsOf(const PrepareContext& ctx, const Tensor& filter,
                                           int64_t depth) {
  return PackOnce<Bf16Panels>(
      ctx, filter, StrCat("bf16 panels ", depth), [&](const Tensor& in, Bf16Panels* packed) {
        const int64_t out_c = in.dim(0), in_c = in.dim(1), width = RoundUp(out_c, kBf16Panel);
        packed->memory = PackMemory(ctx, static_cast<size_t>(width * depth) * sizeof(uint16_t));
        auto* to = static_cast<bfloat16*>(packed->memory->data());
        const float* w = in.data<float>();
        for (int64_t first = 0; first < width; first += kBf16Panel)
          for (int64_t k = 0; k < depth; k += 2)
            for (int64_t o = first; o < first + kBf16Panel; ++o)
              for (int64_t c = k; c < k + 2; ++c)
                *to++ = bfloat16(o < out_c && c < in_c ? w[o * in_c + c] : 0.f);
      });
}

class PointwisePair final : public ConvChain {
 public:
  PointwisePair(const PrepareContext& ctx, const std::vector<ChainStage>& stages,
                const Bf16Kernels& kernels)
      : kernels_(kernels),
        pixels_(stages[0].geometry.batch * stages[0].geometry.out_size()),
        in_c_(stages[0].geometry.in_c),
        between_c_(stages[0].geometry.out_c),
        out_c_(stages[1].geometry.out_c),
        in_step_(RoundUp(in_c_, 2)),
        between_step_(RoundUp(between_c_, kBf16Panel)),
        first_(stages[0].epilogue),
        late_(stages[1].epilogue),
        first_filter_(PanelsOf(ctx, *stages[0].filter, in_step_)),
        second_filter_(PanelsOf(ctx, *stages[1].filter, between_step_)) {
    late_.bias = late_.residual = false;
    // Rows of a block, so many that panels are read from L1 several times, and rows from L2.
    constexpr int64_t kNearNumbers = 64 << 10, kMostTiles = 4;
    const int64_t tile = kBf16Rows * (in_step_ + between_step_);
    block_ = std::clamp<int64_t>(kNearNumbers / tile, 1, kMostTiles) * kBf16Rows;
  }

  void Run(const KernelContext& ctx, const float* src, std::span<const float* const> biases,
           const float* residual, float* dst) const override {
    const int64_t blocks = CeilDiv(pixels_, block_);
    const int64_t parts = std::min<int64_t>(blocks, ctx.threads());
    const int64_t numbers = block_ * (in_step_ + between_step_);
    Tensor memory = ctx.CallScratch(DType::kBF16, {parts * numbers});
    auto* const kept = static_cast<uint16_t*>(memory.mutable_raw());
    ctx.ParallelFor(parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        uint16_t *in = kept + part * numbers, *between = in + block_ * in_step_;
        std::fill_n(in, block_ * in_step_, uint16_t{0});
        for (const int64_t b : Watched(part * blocks / parts, (part + 1) * blocks / parts))
          Block(src, biases, residual, dst, b * block_, in, between);
      }
    });
  }

 private:
  // Pixels from `begin` on. in, between: the thread's rows.
  void Block(const float* src, std::span<const float* const> biases, const float* residual,
             float* dst, int64_t begin, uint16_t* in, uint16_t* between) const {
    const int64_t rows = std::min(block_, pixels_ - begin);
    if (in_c_ == in_step_)
      kernels_.round(src + begin * in_c_, rows * in_c_, in);
    else
      for (int64_t r = 0; r < rows; ++r)
        kernels_.round(src + (begin + r) * in_c_, in_c_, in + r * in_step_);
    const auto hidden = kernels_.hidden[static_cast<int>(first_.activation)];
    for (int64_t c = 0; c < between_c_; c += kBf16Panel)
      for (int64_t r = 0; r < rows; r += kBf16Rows)
        hidden(
            Tile(in + r * in_step_, in_step_, *first_filter_, c, biases[0], rows - r, between_c_),
            first_, between + r * between_step_ + c, between_step_);
    float* const out = dst + begin * out_c_;
    const float* const add = residual != nullptr ? residual + begin * out_c_ : nullptr;
    for (int64_t c = 0; c < out_c_; c += kBf16Panel)
      for (int64_t r = 0; r < rows; r += kBf16Rows) {
        const int64_t at = r * out_c_ + c;
        kernels_.sums(Tile(between + r * between_step_, between_step_, *second_filter_, c,
                           biases[1], rows - r, out_c_),
                      add != nullptr ? add + at : nullptr, out + at, out_c_);
      }
    if (!late_.empty()) ApplyEpilogue(late_, rows, out_c_, out_c_, nullptr, false, out);
  }

  // The results of channels from c on.
  Bf16Tile Tile(const uint16_t* a, int64_t step, const Bf16Panels& filter, int64_t c,
                const float* bias, int64_t rows, int64_t channels) const {
    return {a,
            step,
            step / 2,
            filter.data() + c * step,
            bias + c,
            static_cast<int>(std::min<int64_t>(rows, kBf16Rows)),
            static_cast<int>(std::min<int64_t>(channels - c, kBf16Panel))};
  }

  const Bf16Kernels& kernels_;
  const int64_t pixels_, in_c_, between_c_, out_c_;
  const int64_t in_step_, between_step_;  // numbers of a pixel, rounded up
  const Epilogue first_;
  Epilogue late_;  // what follows the residual
  const std::shared_ptr<const Bf16Panels> first_filter_, second_filter_;
  int64_t block_;
};

}  // namespace

bool IsPointwisePair(const std::vector<ChainStage>& stages) {
  if (stages.size() != 2) return false;
  for (const auto& [g, epilogue, filter] : stages)
    if (filter == nullptr || !IsPointwiseStage(g) || g.batch * g.in_c * g.in_size() == 0 ||
        g.out_c == 0)
      return false;
  return !stages[0].epilogue.linear() && !stages[0].epilogue.residual;
}

bool PairCovers(const std::vector<ChainStage>& stages, const Machine& m) {
  return simd::Bf16KernelsFor(m) != nullptr && IsPointwisePair(stages) && stages[0].epilogue.bf16 &&
         stages[1].epilogue.bf16;
}

bool PairIsCheaper(const std::vector<ChainStage>& stages) {
  const ConvGeometry &first = stages[0].geometry, &second = stages[1].geometry;
  const auto all = [](int64_t n, int64_t step) { return static_cast<double>(RoundUp(n, step)); };
  const int64_t pixels = first.batch * first.out_size();
  const double between = all(first.out_c, kBf16Panel);
  const double done =
      all(pixels, kBf16Rows) * between * (all(first.in_c, 2) + all(second.out_c, kBf16Panel));
  constexpr double kLeastWork = 1 << 18;  // less is done before pixels are rounded
  constexpr double kMostWaste = 1.5;
  const double work = first.work() + second.work();
  return work >= kLeastWork && done <= kMostWaste * work;
}

std::unique_ptr<ConvChain> MakePointwisePair(const PrepareContext& ctx,
                                             const std::vector<ChainStage>& stages) {
  return std::make_unique<PointwisePair>(ctx, stages, *simd::Bf16KernelsFor(ThisMachine()));
}

}  // namespace heddle
