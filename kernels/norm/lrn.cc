#include "kernels/norm/lrn.h"

#include "core/shapes.h"
#include "core/threads/look_meter.h"
#include "kernels/base/convert.h"

namespace heddle {
namespace {

struct View {
  int64_t batch, channels, pixels;
  int64_t channel_step, pixel_step;
};

Result<View> ViewOf(const OpContext& ctx, const Shape& x) {
  if (x.rank() < 2)
    return InvalidArgument("X has shape ", x.ToString(), ", expected rank 2 or more");
  if (ctx.Int("n") < 1) return InvalidArgument("n is ", ctx.Int("n"), ", expected at least 1");
  const int64_t last = x.dim(-1), pixels = x.Product(2, x.rank());
  if (ctx.Str("data_format") == "NHWC")
    return View{x[0], last, x.Product(1, x.rank() - 1), 1, last};
  return View{x[0], x[1], pixels, pixels, 1};
}

Status LrnShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  HEDDLE_RETURN_IF_ERROR(ViewOf(ctx, x).status());
  ctx.SetOut("Out", x, ctx.InDType("X"));
  if (ctx.HasOut("MidOut")) ctx.SetOut("MidOut", x, ctx.InDType("X"));
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

// Calls fn(image offset, channel) for all channels of all images; they are independent.
template <typename Fn>
void ForChannels(const KernelContext& ctx, const View& v, int64_t window, Fn&& fn) {
  ctx.ParallelFor(v.batch * v.channels, 1 + 16384 / (1 + v.pixels * std::min(window, v.channels)),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i)
                      fn(i / v.channels * v.channels * v.pixels, i % v.channels);
                  });
}

template <typename T>
struct Lrn {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const View v, ViewOf(ctx, in.shape()));
    const T* x = in.data<T>();
    T* out = ctx.Out("Out").mutable_data<T>();
    T* mid = ctx.HasOut("MidOut") ? ctx.Out("MidOut").mutable_data<T>() : nullptr;
    const int64_t n = ctx.Int("n");
    const LrnNorm<T> norm{static_cast<T>(ctx.Float("k")), static_cast<T>(ctx.Float("alpha")), n,
                          (n - 1) / 2};
    WithNegativePower(static_cast<T>(ctx.Float("beta")), [&](auto power) {
      const auto write = [&](int64_t at, int64_t count, const T* sum) {
        if (mid != nullptr) std::copy_n(sum, count, mid + at);
        for (int64_t i = 0; i < count; ++i) out[at + i] = x[at + i] * power(sum[i]);
      };
      if (v.pixel_step == 1) {
        ForChannels(ctx, v, n, [&](int64_t image, int64_t c) {
          T sum[kLrnPiece];
          LookMeter meter;
          for (int64_t p = 0; p < v.pixels; p += kLrnPiece) {
            meter.Did(kLrnPiece * (4 + std::min(n, v.channels)));
            const int64_t count = std::min(kLrnPiece, v.pixels - p);
            norm.OfPixels(x + image + p, c, v.channels, v.channel_step, count, sum);
            write(image + c * v.channel_step + p, count, sum);
          }
        });
        return;
      }
      ctx.ParallelFor(v.batch * v.pixels, 1 + 16384 / (1 + v.channels * std::min(n, v.channels)),
                      [&](int64_t begin, int64_t end) {
                        LookMeter meter;
                        for (int64_t p = begin; p < end; ++p)
                          norm.ForPixel(x + p * v.channels, v.channels,
                                        [&](int64_t c, int64_t count, const T* sum) {
                                          meter.Did(count * (4 + std::min(n, v.channels)));
                                          write(p * v.channels + c, count, sum);
                                        });
                      });
    });
    return Status::Ok();
  }
};

Status LrnGradShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  HEDDLE_RETURN_IF_ERROR(ViewOf(ctx, x).status());
  for (const Key key : {Key("Out"), Key("MidOut"), Key("Out@GRAD")})
    if (x.is_static() && ctx.InShape(key).is_static() && !(ctx.InShape(key) == x))
      return InvalidArgument(key.name, " has shape ", ctx.InShape(key).ToString(), ", X ",
                             x.ToString());
  ctx.SetOut("X@GRAD", x, ctx.InDType("X"));
  return Status::Ok();
}

template <typename T>
struct LrnGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const View v, ViewOf(ctx, in.shape()));
    const T* x = in.data<T>();
    const T* out = ctx.In("Out").data<T>();
    const T* mid = ctx.In("MidOut").data<T>();
    const T* grad = ctx.In("Out@GRAD").data<T>();
    T* to = ctx.Out("X@GRAD").mutable_data<T>();
    // The windows that hold channel c are those of channels from c - before on.
    const int64_t n = ctx.Int("n"), before = n - 1 - (n - 1) / 2;
    const T beta = static_cast<T>(ctx.Float("beta"));
    const T ratio = T(-2) * static_cast<T>(ctx.Float("alpha")) * beta;
    ForChannels(ctx, v, n, [&](int64_t image, int64_t c) {
      const int64_t at = image + c * v.channel_step;
      for (const int64_t p : Watched(v.pixels)) {
        const int64_t i = at + p * v.pixel_step;
        to[i] = std::pow(mid[i], -beta) * grad[i];
      }
      const int64_t first = std::max<int64_t>(0, c - before);
      const int64_t last = std::min(v.channels, c - before + n);
      for (int64_t d = first; d < last; ++d)
        for (const auto piece : Stretches(v.pixels))
          for (int64_t p = piece.begin; p < piece.end; ++p) {
            const int64_t i = at + p * v.pixel_step,
                          j = image + d * v.channel_step + p * v.pixel_step;
            to[i] += ratio * out[j] * grad[j] / mid[j] * x[i];
          }
    });
    return Status::Ok();
  }
};

void Attrs(OpDef& op) {
  op.Attr("n", 5).Attr("k", 2.0).Attr("alpha", 1e-4).Attr("beta", 0.75);
  op.Attr("data_format", "AnyLayout");
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(lrn) {
  op.Doc("local response normalisation across n neighbouring channels");
  op.Input("X").Output("Out").Output("MidOut", kOptional);
  Attrs(op);
  op.Traits(kChannelsLast).InferShape(LrnShape).Kernels<Lrn, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(lrn_grad) {
  op.Input("X").Input("Out").Input("MidOut").Input("Out@GRAD").Output("X@GRAD");
  Attrs(op);
  op.InferShape(LrnGradShape).Kernels<LrnGrad, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
