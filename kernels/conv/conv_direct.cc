// Direct convolution, channels last: the sums of some pixels and one panel of channels stay in
// registers, and the input is read in place.
#include <algorithm>
#include <limits>

#include "core/interrupts.h"
#include "kernels/base/ceil_div.h"
#include "kernels/conv/conv_backend.h"
#include "kernels/conv/conv_rows.h"
#include "kernels/gemm/pack_once.h"

namespace heddle {
namespace {

using convrows::DirectEpilogue;
using convrows::PackedPanels;
using simd::DirectTile;
using simd::Microkernels;

void PackPanels(const PrepareContext& ctx, const Tensor& filter, int64_t lanes,
                PackedPanels* packed) {
  const int64_t out_c = filter.dim(0), in_c = filter.dim(1), taps = filter.dim(2) * filter.dim(3);
  const int64_t width = CeilDiv(out_c, lanes) * lanes, depth = in_c * taps;
  packed->memory = PackMemory(ctx, static_cast<size_t>(width * depth) * sizeof(float));
  float* to = static_cast<float*>(packed->memory->data());
  const int64_t part = std::max<int64_t>(1, kPackBytes / (8 * lanes * depth)) * 2 * lanes;
  BorrowedStretches source(filter);
  for (int64_t begin = 0; begin < width; begin += part) {
    const int64_t channels = std::min(part, out_c - begin);
    const float* w = source.Read(begin * depth, channels * depth).data<float>();
    for (int64_t first = 0; first < channels; first += 2 * lanes) {
      const int64_t panel = std::min(2 * lanes, width - begin - first);
      for (int64_t tap = 0; tap < taps; ++tap)
        for (int64_t c = 0; c < in_c; ++c)
          for (int64_t o = first; o < first + panel; ++o)
            *to++ = o < channels ? w[o * depth + c * taps + tap] : 0.f;
    }
  }
}

// [begin, end)
struct Range {
  int64_t begin, end;
};

class DirectConv final : public ConvRunner {
 public:
  DirectConv(const PrepareContext& ctx, const ConvGeometry& g, const Tensor& filter,
             const Epilogue& epilogue, const Microkernels& kernels)
      : g_(g),
        epilogue_(epilogue),
        kernels_(kernels),
        panels_(CeilDiv(g.out_c, 2 * kernels.lanes)) {
    packed_ = convrows::PanelsOf(ctx, filter, kernels);
    // Without borders and steps, the pixels of all images are one line.
    const std::array<int64_t, 3> none{};
    if (g.kernel_size() == 1 && g.stride == std::array<int64_t, 3>{1, 1, 1} && g.pad_lo == none &&
        g.pad_hi == none) {
      g_.in[2] = g_.out[2] = g.batch * g.out_size();
      g_.in[1] = g_.out[1] = g_.batch = 1;
    }
    Divide(ctx.threads());
    inner_rows_ = Inner(1);
    inner_columns_ = Inner(2);
  }

  std::string name() const override { return StrCat("direct, ", IsaName(kernels_.isa)); }
  bool reads_filter() const override { return false; }

  void Run(const KernelContext& ctx, const ConvOperands& o) const override {
    const int64_t lines = g_.batch * g_.out[1], all = lines > 1 ? lines : g_.out[2];
    ctx.ParallelFor(parts_ * groups_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t part = unit / groups_, group = unit % groups_;
        const Range panels{group * panels_ / groups_, (group + 1) * panels_ / groups_};
        const int64_t stop = (part + 1) * all / parts_;
        for (int64_t at = part * all / parts_; at < stop;) {
          // Lines of different images are different calls.
          const int64_t next = lines > 1 ? std::min(stop, (at / g_.out[1] + 1) * g_.out[1]) : stop;
          LookForInterrupt();
          if (lines > 1)
            Lines(o, panels, {at, next});
          else
            Line(o, panels, {at, next});
          at = next;
        }
      }
    });
  }

 private:
  int64_t lanes() const { return kernels_.lanes; }

  // Units of work: parts of the output's lines, whose input stays in a core's cache while the
  // panels pass, by groups of panels where there are too few lines.
  void Divide(int64_t threads) {
    constexpr int64_t kCacheBytes = 256 << 10;
    // Multiplications that are worth waking a thread. To finish and store a result takes as long as
    // kWorkOfResult of them: measured with sums of 8 terms, for which two threads take 0.6 of the
    // time of one.
    constexpr double kLeastWork = 1 << 18, kWorkOfResult = 12;
    const double results = static_cast<double>(g_.batch * g_.out_c * g_.out_size());
    const int64_t in_bytes = g_.batch * g_.in_size() * g_.in_c * 4;
    const int64_t filter_bytes = g_.out_c * g_.in_c * g_.kernel_size() * 4;
    const int64_t lines = g_.batch * g_.out[1];
    const int64_t most = lines > 1 ? lines : CeilDiv(g_.out[2], 2 * kernels_.tile_rows);
    const double work = g_.work() + kWorkOfResult * results;
    const int64_t wanted =
        std::clamp<int64_t>(static_cast<int64_t>(work / kLeastWork), 1, 4 * threads);
    parts_ = std::min(most, CeilDiv(in_bytes, kCacheBytes));
    if (filter_bytes <= in_bytes) parts_ = std::min(most, std::max(parts_, wanted));
    groups_ = std::clamp<int64_t>(CeilDiv(wanted, parts_), 1, panels_);
    // Pixels that stay in L1 from panel to panel, unless the panels come from memory.
    constexpr int64_t kNearBytes = 24 << 10, kFarBytes = 1 << 20;
    const int64_t one = lines > 1 ? g_.stride[1] * g_.in[2] : kernels_.tile_rows;
    step_ = std::max<int64_t>(1, kNearBytes / (one * g_.in_c * 4));
    if (lines == 1) step_ *= kernels_.tile_rows;
    if (filter_bytes > kFarBytes) step_ = lines * g_.out[2];
  }

  // The taps that meet the image from output position `at` on.
  Range Inside(int d, int64_t at) const {
    const int64_t first = at * g_.stride[d] - g_.pad_lo[d], step = g_.dilation[d];
    const int64_t begin = first < 0 ? std::min(g_.kernel[d], CeilDiv(-first, step)) : 0;
    const int64_t end = std::clamp<int64_t>(CeilDiv(g_.in[d] - first, step), begin, g_.kernel[d]);
    return {begin, end};
  }
  // The output positions whose taps all meet the image.
  Range Inner(int d) const {
    // Negative padding leaves out the first pixels, so no tap is outside.
    const int64_t begin =
        std::min(g_.out[d], CeilDiv(std::max<int64_t>(g_.pad_lo[d], 0), g_.stride[d]));
    const int64_t room = g_.in[d] + g_.pad_lo[d] - (g_.kernel[d] - 1) * g_.dilation[d] - 1;
    const int64_t end = room < 0 ? 0 : room / g_.stride[d] + 1;
    return {begin, std::clamp<int64_t>(end, begin, g_.out[d])};
  }

  // Lines of one image. Where the taps of all rows are in the image, the columns at the borders are
  // computed downwards; all else is computed along the lines.
  void Lines(const ConvOperands& o, Range panels, Range lines) const {
    const int64_t image = lines.begin / g_.out[1] * g_.out[1];
    const int64_t from = std::clamp(image + inner_rows_.begin, lines.begin, lines.end);
    const int64_t to = std::clamp(image + inner_rows_.end, from, lines.end);
    for (int64_t at = lines.begin; at < lines.end; at += step_)
      for (int64_t panel = panels.begin; panel < panels.end; ++panel)
        for (int64_t line = at; line < std::min(at + step_, lines.end); ++line) {
          const bool inner = line >= from && line < to;
          Row(o, panel, line, inner ? inner_columns_.begin : 0,
              inner ? inner_columns_.end : g_.out[2]);
        }
    if (from == to) return;
    for (int64_t panel = panels.begin; panel < panels.end; ++panel)
      for (int64_t x = 0; x < g_.out[2]; ++x)
        if (x < inner_columns_.begin || x >= inner_columns_.end)
          Some(o, panel, from, x, to - from, g_.stride[1] * g_.in[2] * g_.in_c, g_.out[2]);
  }

  // Pixels of the only line there is.
  void Line(const ConvOperands& o, Range panels, Range pixels) const {
    for (int64_t at = pixels.begin; at < pixels.end; at += step_)
      for (int64_t panel = panels.begin; panel < panels.end; ++panel)
        Row(o, panel, 0, at, std::min(at + step_, pixels.end));
  }

  // Pixels [begin, end) of one line.
  void Row(const ConvOperands& o, int64_t panel, int64_t line, int64_t begin, int64_t end) const {
    const int64_t from = std::clamp(inner_columns_.begin, begin, end);
    const int64_t to = std::clamp(inner_columns_.end, from, end);
    for (int64_t x = begin; x < from; ++x) Some(o, panel, line, x, 1, 0, 1);
    if (from < to) Some(o, panel, line, from, to - from, g_.stride[2] * g_.in_c, 1);
    for (int64_t x = to; x < end; ++x) Some(o, panel, line, x, 1, 0, 1);
  }

  // `count` pixels that see the same taps, the first at (line, x); the next one is `in_step` floats
  // further in the input and `out_pixels` pixels further in the output.
  void Some(const ConvOperands& o, int64_t panel, int64_t line, int64_t x, int64_t count,
            int64_t in_step, int64_t out_pixels) const {
    const int64_t y = line % g_.out[1], width = 2 * lanes();
    const Range rows = Inside(1, y), columns = Inside(2, x);
    const int64_t channel = panel * width, channels = std::min(width, g_.out_c - channel);
    const int64_t wide = channels > lanes() ? width : lanes();
    const int64_t top = y * g_.stride[1] - g_.pad_lo[1] + rows.begin * g_.dilation[1];
    const int64_t left = x * g_.stride[2] - g_.pad_lo[2] + columns.begin * g_.dilation[2];
    const int64_t pixel = line * g_.out[2] + x;
    DirectTile b{};
    b.rows = std::max<int64_t>(0, rows.end - rows.begin);
    b.columns = columns.end - columns.begin;
    b.pixels = static_cast<const float*>(o.src);
    if (b.rows > 0 && b.columns > 0)
      b.pixels += ((line / g_.out[1] * g_.in[1] + top) * g_.in[2] + left) * g_.in_c;
    b.pixel_step = in_step;
    b.row_step = g_.dilation[1] * g_.in[2] * g_.in_c;
    b.column_step = g_.dilation[2] * g_.in_c;
    b.filter_column_step = g_.in_c * wide;
    b.filter_row_step = g_.kernel[2] * b.filter_column_step;
    b.filter = packed_->data() + channel * g_.in_c * g_.kernel_size() +
               rows.begin * b.filter_row_step + columns.begin * b.filter_column_step;
    b.depth = g_.in_c;
    if (g_.dilation[2] == 1) {  // the taps of a row are one stretch
      b.depth *= b.columns;
      b.columns = 1;
    }
    if (epilogue_.loops.bias) b.bias = static_cast<const float*>(o.bias) + channel;
    b.out = static_cast<float*>(o.dst) + pixel * g_.out_c + channel;
    b.out_step = out_pixels * g_.out_c;
    if (epilogue_.loops.residual) {
      b.residual = static_cast<const float*>(o.residual) + pixel * g_.out_c + channel;
      b.residual_step = out_pixels * g_.out_c;
    }
    b.channels = static_cast<int>(channels);
    epilogue_.Set(&b);
    kernels_.direct_tile[wide > lanes()](b, count);
    epilogue_.Finish(count, channels, b.out_step, b.out);
  }

  ConvGeometry g_;
  const DirectEpilogue epilogue_;
  const Microkernels& kernels_;
  const int64_t panels_;
  std::shared_ptr<const PackedPanels> packed_;
  Range inner_rows_, inner_columns_;
  int64_t parts_, groups_, step_;
};

}  // namespace

namespace convrows {

std::shared_ptr<const PackedPanels> PanelsOf(const PrepareContext& ctx, const Tensor& filter,
                                             const Microkernels& kernels) {
  return PackOnceInParts<PackedPanels>(
      ctx, filter, kernels.lanes == 16 ? "panels 16" : "panels 8",
      [&](PackedPanels* packed) { PackPanels(ctx, filter, kernels.lanes, packed); });
}

DirectEpilogue::DirectEpilogue(const Epilogue& epilogue) : loops(epilogue) {
  switch (epilogue.activation) {
    case Activation::kNone:
    case Activation::kRelu:
    case Activation::kReluKeepsNan:
    case Activation::kClip:
    case Activation::kHardSwish:
      return;
    default:
      late = epilogue;
      late.bias = late.residual = false;
      loops.activation = Activation::kNone;
      loops.scale = 1.f;
      loops.shift = 0.f;
  }
}

void DirectEpilogue::Set(DirectTile* block) const {
  block->high = std::numeric_limits<float>::infinity();
  block->low = -block->high;
  block->nan_is_low = loops.activation == Activation::kRelu;
  if (block->nan_is_low || loops.activation == Activation::kReluKeepsNan) block->low = 0.f;
  if (loops.activation == Activation::kClip) {
    block->low = loops.alpha;
    block->high = loops.beta;
  }
  block->gated = loops.activation == Activation::kHardSwish;
  block->gate_factor = loops.alpha;
  block->gate_offset = loops.beta;
  block->gate_limit = loops.limit;
  block->linear = loops.linear();
  block->scale = loops.scale;
  block->shift = loops.shift;
}

PointwiseRows::PointwiseRows(const PrepareContext& ctx, const Tensor& filter,
                             const Epilogue& epilogue, const Microkernels& kernels)
    : kernels_(kernels),
      epilogue_(epilogue),
      in_c_(filter.dim(1)),
      out_c_(filter.dim(0)),
      packed_(PanelsOf(ctx, filter, kernels)) {}

void PointwiseRows::Run(const float* in, int64_t pixels, const float* bias, const float* residual,
                        float* out) const {
  // The pixels stay in L1 from panel to panel.
  constexpr int64_t kNearBytes = 24 << 10;
  const int64_t rows = kernels_.tile_rows, one = rows * in_c_ * static_cast<int64_t>(sizeof(float));
  const int64_t step = std::max<int64_t>(1, kNearBytes / one) * rows;
  for (int64_t at = 0; at < pixels; at += step)
    Stretch(in + at * in_c_, std::min(step, pixels - at), bias,
            residual ? residual + at * out_c_ : nullptr, out + at * out_c_);
}

void PointwiseRows::Stretch(const float* in, int64_t pixels, const float* bias,
                            const float* residual, float* out) const {
  const int64_t lanes = kernels_.lanes, width = 2 * lanes;
  DirectTile b{};
  b.rows = b.columns = 1;
  b.pixels = in;
  b.pixel_step = b.depth = in_c_;
  b.out_step = b.residual_step = out_c_;
  epilogue_.Set(&b);
  for (int64_t channel = 0; channel < out_c_; channel += width) {
    const int64_t channels = std::min(width, out_c_ - channel);
    b.filter = packed_->data() + channel * in_c_;
    if (epilogue_.loops.bias) b.bias = bias + channel;
    if (epilogue_.loops.residual) b.residual = residual + channel;
    b.out = out + channel;
    b.channels = static_cast<int>(channels);
    kernels_.direct_tile[channels > lanes](b, pixels);
    epilogue_.Finish(pixels, channels, out_c_, b.out);
  }
}

}  // namespace convrows

bool DirectCovers(const ConvCase& c, const Machine&) {
  return c.dtype == DType::kF32 && c.direction == ConvDirection::kForward && c.filter != nullptr &&
         c.g.channels_last && c.g.spatial == 2 && c.g.groups == 1 && !c.empty();
}

std::unique_ptr<ConvRunner> MakeDirectConv(const PrepareContext& ctx, const ConvCase& c) {
  return std::make_unique<DirectConv>(ctx, c.g, *c.filter, c.epilogue, *simd::BestMicrokernels());
}

}  // namespace heddle
