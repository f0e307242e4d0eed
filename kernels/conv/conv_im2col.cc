// Convolution as matrix products over unrolled windows (im2col): for double precision, for groups
// and gradients in builds without oneDNN, and where oneDNN wants too much work space. Windows of
// some lines of the output are unrolled at a time.
#include <algorithm>

#include "core/interrupts.h"
#include "kernels/conv/conv_backend.h"
#include "kernels/gemm/gemm.h"

namespace heddle {
namespace {

template <typename T>
class UnrolledConv final : public ConvRunner {
 public:
  UnrolledConv(const ConvGeometry& g, ConvDirection direction, const Epilogue& epilogue)
      : g_(g), direction_(direction), epilogue_(epilogue) {
    rows_ = g.in_c / g.groups * g.kernel_size();
    in_channel_ = g.channels_last ? 1 : g.in_size();
    in_pixel_ = g.channels_last ? g.in_c : 1;
    // The windows of one line are kept together.
    const int64_t line = std::max<int64_t>(1, rows_ * g.out[2] * static_cast<int64_t>(sizeof(T)));
    lines_ = std::clamp<int64_t>(kMostBytes / line, 1, std::max<int64_t>(1, g.out[0] * g.out[1]));
  }

  std::string name() const override { return "im2col + gemm"; }

  void Run(const KernelContext& ctx, const ConvOperands& o) const override {
    const int64_t in_image = g_.in_c * g_.in_size(), out_image = g_.out_c * g_.out_size();
    const int64_t filter_size = g_.out_c * rows_;
    const int64_t dst_size =
        direction_ == ConvDirection::kBackwardFilter
            ? filter_size
            : g_.batch * (direction_ == ConvDirection::kForward ? out_image : in_image);
    // A residual is what the products are added to.
    if (epilogue_.residual && o.residual != o.dst)
      std::copy_n(static_cast<const T*>(o.residual), dst_size, static_cast<T*>(o.dst));
    if (direction_ != ConvDirection::kForward && !epilogue_.residual)
      std::fill_n(static_cast<T*>(o.dst), dst_size, T(0));
    if (g_.batch * in_image == 0 || g_.batch * out_image == 0) return Nothing(ctx, o, dst_size);
    Tensor scratch = ctx.Scratch(kDTypeOf<T>, {rows_ * lines_ * g_.out[2]});
    T* columns = scratch.mutable_data<T>();
    const int64_t all_lines = g_.out[0] * g_.out[1];
    for (int64_t n = 0; n < g_.batch; ++n) {
      for (const int64_t group : Watched(g_.groups)) {
        const int64_t in_at = n * in_image + group * (g_.in_c / g_.groups) * in_channel_;
        const int64_t channels = g_.out_c / g_.groups;
        const int64_t out_at =
            n * out_image + group * channels * (g_.channels_last ? 1 : g_.out_size());
        const int64_t filter_at = group * channels * rows_;
        for (int64_t line = 0; line < all_lines; line += lines_)
          One(ctx, o, in_at, out_at, filter_at, {line, std::min(all_lines, line + lines_)},
              columns);
      }
    }
    if constexpr (std::is_same_v<T, float>) {
      if (!epilogue_.empty() && direction_ != ConvDirection::kBackwardFilter) Finish(ctx, o);
    }
  }

 private:
  static constexpr int64_t kMostBytes = 64 << 20;  // of unrolled windows
  struct Lines {
    int64_t begin, end;
  };

  // One side has no elements: the other's are sums over nothing.
  void Nothing(const KernelContext& ctx, const ConvOperands& o, int64_t dst_size) const {
    if (direction_ != ConvDirection::kForward || dst_size == 0) return;
    if (!epilogue_.residual) std::fill_n(static_cast<T*>(o.dst), dst_size, T(0));
    if constexpr (std::is_same_v<T, float>) {
      if (!epilogue_.empty()) Finish(ctx, o);
    }
  }

  // The filter of one group is [channels, rows]; its side of the output [channels, pixels] or, with
  // channels last, [pixels, channels]; the unrolled windows of some lines are [rows, their pixels].
  void One(const KernelContext& ctx, const ConvOperands& o, int64_t in_at, int64_t out_at,
           int64_t filter_at, Lines lines, T* columns) const {
    const int64_t channels = g_.out_c / g_.groups, all = g_.out_size();
    const int64_t pixels = (lines.end - lines.begin) * g_.out[2];
    const bool last = g_.channels_last;
    out_at += lines.begin * g_.out[2] * (last ? g_.out_c : 1);
    const T* src = static_cast<const T*>(o.src);
    const T* filter = static_cast<const T*>(o.filter);
    T* dst = static_cast<T*>(o.dst);
    const T beta = epilogue_.residual ? T(1) : T(0);
    switch (direction_) {
      case ConvDirection::kForward:
        Unroll<true>(ctx, const_cast<T*>(src) + in_at, lines, columns);
        if (last)
          ParallelGemm(ctx, {pixels, channels, rows_, true, true, pixels, rows_, g_.out_c}, T(1),
                       columns, filter + filter_at, beta, dst + out_at);
        else
          ParallelGemm(ctx, {channels, pixels, rows_, false, false, rows_, pixels, all}, T(1),
                       filter + filter_at, columns, beta, dst + out_at);
        return;
      case ConvDirection::kBackwardData:
        ParallelGemm(ctx,
                     {rows_, pixels, channels, true, last, rows_, last ? g_.out_c : all, pixels},
                     T(1), filter + filter_at, src + out_at, T(0), columns);
        Unroll<false>(ctx, dst + in_at, lines, columns);
        return;
      case ConvDirection::kBackwardFilter:
        Unroll<true>(ctx, const_cast<T*>(src) + in_at, lines, columns);
        ParallelGemm(ctx,
                     {channels, rows_, pixels, last, true, last ? g_.out_c : all, pixels, rows_},
                     T(1), filter + out_at, columns, T(1), dst + filter_at);
        return;
    }
  }

  // kRead: windows of the image to columns; otherwise columns are added to the image.
  template <bool kRead>
  void Unroll(const KernelContext& ctx, T* image, Lines lines, T* columns) const {
    const int64_t taps = g_.kernel_size(), pixels = (lines.end - lines.begin) * g_.out[2];
    // Rows of one channel touch the same pixels: a channel is the unit of work.
    const int64_t grain = std::max<int64_t>(1, 32768 / (1 + taps * pixels));
    ctx.ParallelFor(rows_ / taps, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin * taps; row < end * taps; ++row)
        UnrollRow<kRead>(image + row / taps * in_channel_, row % taps, lines,
                         columns + row * pixels);
    });
  }

  template <bool kRead>
  void UnrollRow(T* channel, int64_t tap, Lines lines, T* row) const {
    const int64_t kw = tap % g_.kernel[2], kh = tap / g_.kernel[2] % g_.kernel[1],
                  kd = tap / (g_.kernel[2] * g_.kernel[1]);
    for (int64_t line = lines.begin; line < lines.end; ++line, row += g_.out[2]) {
      const int64_t od = line / g_.out[1], oh = line % g_.out[1];
      const int64_t d = od * g_.stride[0] - g_.pad_lo[0] + kd * g_.dilation[0];
      const int64_t h = oh * g_.stride[1] - g_.pad_lo[1] + kh * g_.dilation[1];
      if (d < 0 || d >= g_.in[0] || h < 0 || h >= g_.in[1]) {
        if (kRead) std::fill_n(row, g_.out[2], T(0));
        continue;
      }
      T* pixels = channel + (d * g_.in[1] + h) * g_.in[2] * in_pixel_;
      int64_t w = kw * g_.dilation[2] - g_.pad_lo[2];
      for (int64_t ow = 0; ow < g_.out[2]; ++ow, w += g_.stride[2]) {
        const bool inside = w >= 0 && w < g_.in[2];
        if (kRead)
          row[ow] = inside ? pixels[w * in_pixel_] : T(0);
        else if (inside)
          pixels[w * in_pixel_] += row[ow];
      }
    }
  }

  void Finish(const KernelContext& ctx, const ConvOperands& o) const {
    const bool forward = direction_ == ConvDirection::kForward;
    const int64_t channels = forward ? g_.out_c : g_.in_c;
    const int64_t pixels = forward ? g_.out_size() : g_.in_size();
    float* c = static_cast<float*>(o.dst);
    const float* bias = static_cast<const float*>(o.bias);
    // Rows are pixels with channels last, else channels.
    const bool last = g_.channels_last;
    const int64_t width = last ? channels : pixels;
    const int64_t per_image = last ? pixels : channels;
    ctx.ParallelFor(g_.batch, 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const int64_t at = n * per_image * width;
        ApplyEpilogue(epilogue_, per_image, width, width, bias, !last, c + at);
      }
    });
  }

  ConvGeometry g_;
  ConvDirection direction_;
  Epilogue epilogue_;
  int64_t rows_, in_channel_, in_pixel_;
  int64_t lines_ = 1;  // of the output, unrolled at a time
};

}  // namespace

std::unique_ptr<ConvRunner> MakeIm2colConv(const PrepareContext&, const ConvCase& c) {
  if (c.dtype == DType::kF64)
    return std::make_unique<UnrolledConv<double>>(c.g, c.direction, c.epilogue);
  return std::make_unique<UnrolledConv<float>>(c.g, c.direction, c.epilogue);
}

}  // namespace heddle
