// Convolution by its definition, channels last: sums stay in registers for some pixels and one
// panel of channels at a time, and what they multiply is read where it lies.
#include <algorithm>
#include <limits>

#include "kernels/common/conv_backend.h"
#include "kernels/common/conv_loops.h"
#include "kernels/common/pack_once.h"

namespace heddle {
namespace {

using convloops::ConvLoops;
using convloops::DirectBlock;

int64_t Ceil(int64_t n, int64_t by) { return (n + by - 1) / by; }

// The filter as panels [row][column][channel in][channel out]: of two vectors, the last one of as
// many as it needs.
struct PackedPanels {
  BufferRef memory;
  const float* data() const { return static_cast<const float*>(memory->data()); }
};

void PackPanels(const PrepareContext& ctx, const Tensor& filter, int64_t lanes,
                PackedPanels* packed) {
  const int64_t out_c = filter.dim(0), in_c = filter.dim(1), taps = filter.dim(2) * filter.dim(3);
  const int64_t width = Ceil(out_c, lanes) * lanes, depth = in_c * taps;
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
             const Epilogue& epilogue, const ConvLoops& loops)
      : g_(g), late_(epilogue), loops_(loops), panels_(Ceil(g.out_c, 2 * loops.lanes)) {
    packed_ = PackOnceInParts<PackedPanels>(
        ctx, filter, loops.lanes == 16 ? "panels 16" : "panels 8",
        [&](PackedPanels* packed) { PackPanels(ctx, filter, loops.lanes, packed); });
    low_ = -std::numeric_limits<float>::infinity();
    high_ = -low_;
    bias_ = epilogue.bias;
    late_.bias = false;
    if (!late_.linear() && Cuts(epilogue)) {
      low_ = epilogue.activation == Activation::kClip ? epilogue.alpha : 0.f;
      if (epilogue.activation == Activation::kClip) high_ = epilogue.beta;
      late_.activation = Activation::kNone;
    }
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
          const int64_t next =
              lines > 1 ? std::min(stop, (at / g_.out[1] + 1) * g_.out[1]) : stop;
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
  static bool Cuts(const Epilogue& e) {
    return e.activation == Activation::kRelu || e.activation == Activation::kClip;
  }
  int64_t lanes() const { return loops_.lanes; }

  // Units of work: parts of the output's lines, whose input stays in a core's cache while the
  // panels pass, by groups of panels where there are too few lines.
  void Divide(int64_t threads) {
    constexpr int64_t kCacheBytes = 256 << 10;
    constexpr double kLeastWork = 1 << 18;  // multiplications that are worth a hand-over
    const int64_t in_bytes = g_.batch * g_.in_size() * g_.in_c * 4;
    const int64_t filter_bytes = g_.out_c * g_.in_c * g_.kernel_size() * 4;
    const int64_t lines = g_.batch * g_.out[1];
    const int64_t most = lines > 1 ? lines : Ceil(g_.out[2], 2 * loops_.rows);
    const int64_t wanted =
        std::clamp<int64_t>(static_cast<int64_t>(g_.work() / kLeastWork), 1, 4 * threads);
    parts_ = std::min(most, Ceil(in_bytes, kCacheBytes));
    if (filter_bytes <= in_bytes) parts_ = std::min(most, std::max(parts_, wanted));
    groups_ = std::clamp<int64_t>(Ceil(wanted, parts_), 1, panels_);
    // A stretch that stays in the first cache while the panels pass, unless those come from afar.
    constexpr int64_t kNearBytes = 24 << 10, kFarBytes = 1 << 20;
    const int64_t one = lines > 1 ? g_.stride[1] * g_.in[2] : loops_.rows;
    step_ = std::max<int64_t>(1, kNearBytes / (one * g_.in_c * 4));
    if (lines == 1) step_ *= loops_.rows;
    if (filter_bytes > kFarBytes) step_ = lines * g_.out[2];
  }

  // The taps that meet the image from output position `at` on.
  Range Inside(int d, int64_t at) const {
    const int64_t first = at * g_.stride[d] - g_.pad_lo[d], step = g_.dilation[d];
    const int64_t begin = first < 0 ? std::min(g_.kernel[d], Ceil(-first, step)) : 0;
    const int64_t end = std::clamp<int64_t>(Ceil(g_.in[d] - first, step), begin, g_.kernel[d]);
    return {begin, end};
  }
  // The output positions whose taps all meet the image.
  Range Inner(int d) const {
    const int64_t begin = std::min(g_.out[d], Ceil(g_.pad_lo[d], g_.stride[d]));
    const int64_t room = g_.in[d] + g_.pad_lo[d] - (g_.kernel[d] - 1) * g_.dilation[d] - 1;
    const int64_t end = room < 0 ? 0 : room / g_.stride[d] + 1;
    return {begin, std::clamp<int64_t>(end, begin, g_.out[d])};
  }

  // Lines of one image: columns at the borders downwards where all rows' taps are in the image, all
  // else along the lines.
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
    DirectBlock b{};
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
    if (bias_) b.bias = static_cast<const float*>(o.bias) + channel;
    b.out = static_cast<float*>(o.dst) + pixel * g_.out_c + channel;
    b.out_step = out_pixels * g_.out_c;
    if (late_.residual) {
      b.residual = static_cast<const float*>(o.residual) + pixel * g_.out_c + channel;
      b.residual_step = out_pixels * g_.out_c;
    }
    b.channels = static_cast<int>(channels);
    b.low = low_;
    b.high = high_;
    loops_.direct[wide > lanes()](b, count);
    if (late_.activation != Activation::kNone || late_.linear())
      ApplyEpilogue(late_, count, channels, b.out_step, nullptr, false, b.out);
  }

  ConvGeometry g_;
  Epilogue late_;  // what the loops do not do
  const ConvLoops& loops_;
  const int64_t panels_;
  std::shared_ptr<const PackedPanels> packed_;
  Range inner_rows_, inner_columns_;
  int64_t parts_, groups_, step_;
  float low_, high_;
  bool bias_;
};

}  // namespace

std::unique_ptr<ConvRunner> MakeDirectConv(const PrepareContext& ctx, const ConvGeometry& g,
                                           ConvDirection direction, const Tensor* filter,
                                           const Epilogue& epilogue) {
  if (direction != ConvDirection::kForward || filter == nullptr || !g.channels_last ||
      g.spatial != 2 || g.groups != 1 || g.batch * g.in_c * g.in_size() == 0 ||
      g.out_c * g.out_size() == 0)
    return nullptr;
  const ConvLoops* loops = convloops::BestLoops();
  if (loops == nullptr) return nullptr;
  return std::make_unique<DirectConv>(ctx, g, *filter, epilogue, *loops);
}

}  // namespace heddle
