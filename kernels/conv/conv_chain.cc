#include "kernels/conv/conv_chain.h"

#include <algorithm>
#include <optional>

#include "core/interrupts.h"
#include "kernels/conv/conv_rows.h"
#include "kernels/conv/conv_stripes.h"

namespace heddle {
namespace {

using convrows::DepthwiseRows;
using convrows::PointwiseRows;
using simd::Microkernels;

// Bytes of L2 that the kept rows and the filters may take.
constexpr int64_t kNearBytes = 320 << 10;

struct Stage {
  ConvGeometry g;
  std::optional<PointwiseRows> pointwise;
  std::optional<DepthwiseRows> depthwise;
  // Its results: floats per row, rows kept in the buffer, offset of the buffer.
  int64_t row = 0, kept = 1, at = 0;

  // Rows of the input that row y reads.
  std::pair<int64_t, int64_t> Seen(int64_t y) const {
    return depthwise ? depthwise->Seen(y) : std::pair(y, y + 1);
  }
};

// Computes rows of one image on one thread.
class Stripe {
 public:
  Stripe(const std::vector<Stage>& stages, std::span<const float* const> biases, float* memory)
      : stages_(stages), biases_(biases), memory_(memory) {}

  // Rows [begin, end) of the last stage; all pointers are the image's.
  void Run(const float* src, const float* residual, float* dst, int64_t begin, int64_t end) {
    src_ = src;
    residual_ = residual;
    dst_ = dst;
    int64_t row = begin;
    for (size_t i = stages_.size(); i-- > 0; row = stages_[i].Seen(row).first) next_[i] = row;
    Make(stages_.size() - 1, end);
  }

 private:
  // Computes the rows of a stage up to `end`, after the rows that they read.
  void Make(size_t i, int64_t end) {
    const Stage& s = stages_[i];
    for (int64_t& y = next_[i]; y < end; ++y) {
      const auto [first, last] = s.Seen(y);
      if (i > 0) Make(i - 1, last);
      float* const out = i + 1 < stages_.size() ? Kept(i, y) : dst_ + y * s.row;
      if (s.pointwise) {
        const bool sum = residual_ != nullptr && i + 1 == stages_.size();
        s.pointwise->Run(Input(i, y), s.g.out[2], biases_[i], sum ? residual_ + y * s.row : nullptr,
                         out);
        continue;
      }
      DepthwiseRows::InputRows in;
      for (int64_t k = first; k < last; ++k) in[static_cast<size_t>(k - first)] = Input(i, k);
      s.depthwise->Run(in, y, biases_[i], out);
    }
  }

  float* Kept(size_t i, int64_t y) const {
    const Stage& s = stages_[i];
    return memory_ + s.at + y % s.kept * s.row;
  }
  const float* Input(size_t i, int64_t y) const {
    return i > 0 ? Kept(i - 1, y) : src_ + y * stages_[0].g.in[2] * stages_[0].g.in_c;
  }

  const std::vector<Stage>& stages_;
  const std::span<const float* const> biases_;
  float* const memory_;
  std::array<int64_t, kMostChainStages> next_{};  // per stage: the next row to compute
  const float* src_ = nullptr;
  const float* residual_ = nullptr;
  float* dst_ = nullptr;
};

class StripedChain final : public ConvChain {
 public:
  StripedChain(std::vector<Stage> stages, int64_t floats, double work)
      : stages_(std::move(stages)), floats_(floats), work_(work) {}

  void Run(const KernelContext& ctx, const float* src, std::span<const float* const> biases,
           const float* residual, float* dst) const override {
    constexpr double kLeastWork = 1 << 18;  // multiplications that are worth waking a thread
    const ConvGeometry &in = stages_.front().g, &out = stages_.back().g;
    const int64_t rows = in.batch * out.out[1], out_row = stages_.back().row;
    const int64_t in_image = in.in_size() * in.in_c, out_image = out.out[1] * out_row;
    const int64_t parts = std::clamp<int64_t>(static_cast<int64_t>(work_ / kLeastWork), 1,
                                              std::min<int64_t>(rows, ctx.threads()));
    Tensor memory = ctx.CallScratch(DType::kF32, {parts * floats_});
    float* const kept = memory.mutable_data<float>();
    ctx.ParallelFor(parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        Stripe stripe(stages_, biases, kept + part * floats_);
        const int64_t stop = (part + 1) * rows / parts;
        for (int64_t at = part * rows / parts; at < stop;) {
          LookForInterrupt();
          const int64_t image = at / out.out[1], first = image * out.out[1];
          const int64_t next = std::min(stop, first + out.out[1]);
          stripe.Run(src + image * in_image, residual ? residual + image * out_image : nullptr,
                     dst + image * out_image, at - first, next - first);
          at = next;
        }
      }
    });
  }

 private:
  const std::vector<Stage> stages_;
  const int64_t floats_;  // size of the row buffers of a thread
  const double work_;
};

}  // namespace

bool IsPointwiseStage(const ConvGeometry& g) {
  const std::array<int64_t, 3> none{}, one{1, 1, 1};
  return g.channels_last && g.spatial == 2 && g.groups == 1 && g.kernel_size() == 1 &&
         g.stride == one && g.pad_lo == none && g.pad_hi == none;
}

bool StripesCover(const std::vector<ChainStage>& stages, const Machine& m) {
  const Microkernels* const kernels = simd::MicrokernelsFor(m);
  if (stages.empty() || stages.size() > kMostChainStages) return false;
  for (size_t i = 0; i < stages.size(); ++i) {
    const auto& [g, epilogue, filter] = stages[i];
    const bool last = i + 1 == stages.size();
    if (filter == nullptr || g.batch * g.in_c * g.in_size() == 0 || g.out_c * g.out_size() == 0 ||
        !(IsPointwiseStage(g) ? last || !epilogue.residual
                              : DepthwiseRows::Takes(g, epilogue, *kernels)))
      return false;
  }
  return true;
}

bool StripesAreCheaper(const std::vector<ChainStage>& stages) {
  constexpr int64_t kFloat = sizeof(float);
  int64_t floats = 0, filters = 0;
  ConvStripes stripes{.rows = stages.back().geometry.out[1]};
  for (size_t i = 0; i < stages.size(); ++i) {
    const auto& [g, epilogue, filter] = stages[i];
    const bool last = i + 1 == stages.size(), pointwise = IsPointwiseStage(g);
    filters += filter->numel();
    if (pointwise) stripes.largest = std::max(stripes.largest, filter->numel() * kFloat);
    if (last) stripes.project = pointwise;
    if (last) break;
    stripes.between = std::max(stripes.between, g.out_size() * g.out_c * kFloat);
    floats += stages[i + 1].geometry.kernel[1] * g.out[2] * g.out_c;
  }
  return StripesPay(stripes) && (floats + filters) * kFloat <= kNearBytes;
}

std::unique_ptr<ConvChain> MakeConvChain(const PrepareContext& ctx,
                                         const std::vector<ChainStage>& stages) {
  const Microkernels* const kernels = simd::BestMicrokernels();
  int64_t floats = 0;
  double work = 0;
  std::vector<Stage> made(stages.size());
  for (size_t i = 0; i < stages.size(); ++i) {
    const auto& [g, epilogue, filter] = stages[i];
    Stage& s = made[i];
    s.g = g;
    work += g.work();
    if (IsPointwiseStage(g))
      s.pointwise.emplace(ctx, *filter, epilogue, *kernels);
    else
      s.depthwise.emplace(ctx, g, *filter, epilogue, *kernels);
    s.row = g.out[2] * g.out_c;
    s.at = floats;
    if (i + 1 == stages.size()) break;
    s.kept = stages[i + 1].geometry.kernel[1];
    floats += (s.kept * s.row + 15) / 16 * 16;
  }
  return std::make_unique<StripedChain>(std::move(made), floats, work);
}

}  // namespace heddle
