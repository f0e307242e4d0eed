// Convolutions whose taps are moved, each on its own, and weighed.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/base/check.h"
#include "kernels/conv_ops/convolve.h"
#include "kernels/gemm/gemm.h"

namespace heddle {
namespace {

struct DeformPlan {
  Convolution conv;
  int64_t offset_groups = 1;
};

template <typename Context>
Result<DeformPlan> DeformPlanOf(const Context& ctx) {
  DeformPlan p;
  const Shape &x = ShapeIn(ctx, "X"), &w = ShapeIn(ctx, "W"), &offset = ShapeIn(ctx, "offset");
  HEDDLE_RETURN_IF_ERROR(CheckRank(x, 4, "X"));
  HEDDLE_ASSIGN_OR_RETURN(p.conv, ConvolutionOf(ctx, x, w));
  p.offset_groups = ctx.Int("offset_group");
  const Windows& win = p.conv.windows;
  const int64_t taps = win.kernel.numel();
  if (p.offset_groups < 1 || x[1] % p.offset_groups != 0)
    return InvalidArgument("offset_group is ", p.offset_groups, ", expected a divisor of the ",
                           x[1], " channels");
  const Shape offsets{x[0], p.offset_groups * taps * 2, win.out[0], win.out[1]};
  if (!(offset == offsets))
    return InvalidArgument("offset has shape ", offset.ToString(), ", expected ",
                           offsets.ToString());
  const Shape masks{x[0], p.offset_groups * taps, win.out[0], win.out[1]};
  if (Has(ctx, "mask") && !(ShapeIn(ctx, "mask") == masks))
    return InvalidArgument("mask has shape ", ShapeIn(ctx, "mask").ToString(), ", expected ",
                           masks.ToString());
  if (Has(ctx, "B")) HEDDLE_RETURN_IF_ERROR(CheckBias(ShapeIn(ctx, "B"), p.conv.out_channels));
  return p;
}

Status OnnxDeformConvShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"X", "W", "offset", "B", "mask"})) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const DeformPlan p, DeformPlanOf(ctx));
  ctx.SetOut("Y", p.conv.OutShape(), ctx.InDType("X"));
  return Status::Ok();
}

// Between four pixels; 0 outside.
template <typename T>
T Between4(const T* plane, int64_t h, int64_t w, T y, T x) {
  if (!(y > -1 && x > -1 && y < static_cast<T>(h) && x < static_cast<T>(w))) return 0;
  const auto y0 = static_cast<int64_t>(std::floor(y)), x0 = static_cast<int64_t>(std::floor(x));
  const T fy = y - static_cast<T>(y0), fx = x - static_cast<T>(x0);
  const auto at = [&](int64_t r, int64_t c) {
    return r < 0 || c < 0 || r >= h || c >= w ? T(0) : plane[r * w + c];
  };
  return (1 - fy) * ((1 - fx) * at(y0, x0) + fx * at(y0, x0 + 1)) +
         fy * ((1 - fx) * at(y0 + 1, x0) + fx * at(y0 + 1, x0 + 1));
}

template <typename T>
struct OnnxDeformConv {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const DeformPlan p, DeformPlanOf(ctx));
    const Tensor &w = ctx.In("W"), &offset = ctx.In("offset");
    const Tensor *bias = ctx.InOpt("B"), *mask = ctx.InOpt("mask");
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&w, &offset, bias, mask}));
    const Convolution& c = p.conv;
    const int64_t channels = c.in_channels / c.groups, filters = c.out_channels / c.groups;
    const int64_t places = c.windows.out.numel();
    Tensor& out = ctx.Out("Y");
    if (out.numel() == 0 || c.depth() == 0) {
      ZeroBytes(ctx, out.mutable_raw(), out.bytes());
      return Status::Ok();
    }
    T* y = out.template mutable_data<T>();
    Tensor scratch = ctx.Scratch(kDTypeOf<T>, {c.depth(), places});
    T* columns = scratch.mutable_data<T>();
    for (const int64_t n : Watched(c.batch))
      for (int64_t g = 0; g < c.groups; ++g) {
        ctx.ParallelFor(channels, 1, [&](int64_t begin, int64_t end) {
          for (int64_t k = begin; k < end; ++k) Channel(ctx, p, n, g * channels + k, k, columns);
        });
        ParallelGemm<T>(ctx, GemmDims::Dense(filters, places, c.depth()), T(1),
                        w.data<T>() + g * filters * c.depth(), columns, T(0),
                        y + (n * c.out_channels + g * filters) * places);
      }
    if (bias != nullptr) AddBias(bias->data<T>(), c.batch, c.out_channels, places, y);
    return Status::Ok();
  }

  // The samples of one channel, rows of `columns` from `row` taps on.
  static void Channel(const KernelContext& ctx, const DeformPlan& p, int64_t n, int64_t channel,
                      int64_t row, T* columns) {
    const Windows& w = p.conv.windows;
    const Tensor* mask = ctx.InOpt("mask");
    const int64_t taps = w.kernel.numel(), places = w.out.numel();
    const int64_t group = channel / (p.conv.in_channels / p.offset_groups);
    const T* plane =
        ctx.In("X").template data<T>() + (n * p.conv.in_channels + channel) * w.in.numel();
    for (const int64_t k : Watched(taps)) {
      const int64_t tap = (n * p.offset_groups + group) * taps + k;
      const T* dy = ctx.In("offset").template data<T>() + tap * 2 * places;
      const T* dx = dy + places;
      for (int64_t i = 0; i < places; ++i) {
        const int64_t oy = i / w.out[1], ox = i % w.out[1];
        const T y = static_cast<T>(w.Begin(0, oy) + k / w.kernel[1] * w.dilation[0]) + dy[i];
        const T x = static_cast<T>(w.Begin(1, ox) + k % w.kernel[1] * w.dilation[1]) + dx[i];
        const T weight = mask == nullptr ? T(1) : mask->data<T>()[tap * places + i];
        columns[(row * taps + k) * places + i] = weight * Between4(plane, w.in[0], w.in[1], y, x);
      }
    }
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_deform_conv) {
  op.Doc("convolution whose taps offset moves and mask weighs");
  op.Input("X").Input("W").Input("offset").Input("B", kOptional).Input("mask", kOptional);
  op.Output("Y").Attr("group", 1).Attr("offset_group", 1);
  op.Attr("kernel_shape", Ints{}).Attr("pads", Ints{}).Attr("strides", Ints{});
  op.Attr("dilations", Ints{}).InferShape(OnnxDeformConvShape);
  op.Kernels<OnnxDeformConv, float, double>().Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
