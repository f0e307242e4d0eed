// stft: the Fourier transforms of a signal's overlapping, windowed frames.
#include "core/interrupts.h"
#include "core/shapes.h"
#include "kernels/signal/fft_transform.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

struct Frames {
  int64_t batch, signal, n, hop, frames, bins;
};

Result<Frames> FramesOf(const OpContext& ctx, const Shape& x, const Shape& window) {
  const int64_t n = ctx.Int("n_fft"), hop = ctx.Int("hop_length");
  if (x.rank() != 2 || n < 1 || hop < 1 || x[1] < n)
    return InvalidArgument("n_fft ", n, " and hop_length ", hop, " do not suit a signal of shape ",
                           x.ToString());
  if (window.rank() != 1 || window[0] != n)
    return InvalidArgument("Window has shape ", window.ToString(), ", expected [", n, "]");
  return Frames{x[0], x[1], n, hop, 1 + (x[1] - n) / hop, ctx.Bool("onesided") ? n / 2 + 1 : n};
}

Status StftShape(ShapeContext& ctx) {
  const Shape &x = ctx.InShape("X"), &window = ctx.InShape("Window");
  if (!x.is_static() || !window.is_static()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const Frames f, FramesOf(ctx, x, window));
  if (ctx.InDType("Window") != ctx.InDType("X"))
    return InvalidArgument("Window is ", Name(ctx.InDType("Window")), ", X ",
                           Name(ctx.InDType("X")));
  ctx.SetOut("Out", {f.batch, f.bins, f.frames},
             ctx.InDType("X") == DType::kF32 ? DType::kC64 : DType::kC128);
  return Status::Ok();
}

double ScaleOf(const OpContext& ctx, const Frames& f) {
  return ctx.Bool("normalized") ? 1 / std::sqrt(static_cast<double>(f.n)) : 1.0;
}

template <typename T>
struct Stft {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &window = ctx.In("Window");
    HEDDLE_ASSIGN_OR_RETURN(const Frames f, FramesOf(ctx, x.shape(), window.shape()));
    const double scale = ScaleOf(ctx, f);
    const Fft fft(f.n, true);
    auto* out = ctx.Out("Out").template mutable_data<std::complex<T>>();
    ctx.ParallelFor(
        f.batch * f.frames, std::max<int64_t>(1, 4096 / f.n), [&](int64_t begin, int64_t end) {
          std::vector<Fft::Value> line(static_cast<size_t>(f.n)), work;
          for (int64_t i = begin; i < end; ++i) {
            const T* from = x.data<T>() + i / f.frames * f.signal + i % f.frames * f.hop;
            for (int64_t k = 0; k < f.n; ++k)
              line[static_cast<size_t>(k)] = from[k] * window.data<T>()[k];
            fft.Run(line.data(), &work);
            std::complex<T>* to = out + i / f.frames * f.bins * f.frames + i % f.frames;
            for (int64_t k = 0; k < f.bins; ++k)
              to[k * f.frames] = static_cast<std::complex<T>>(line[static_cast<size_t>(k)] * scale);
          }
        });
    return Status::Ok();
  }
};

Status StftGradShape(ShapeContext& ctx) {
  const Shape &x = ctx.InShape("X"), &grad = ctx.InShape("Out@GRAD");
  if (!x.is_static() || !ctx.InShape("Window").is_static() || !grad.is_static()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const Frames f, FramesOf(ctx, x, ctx.InShape("Window")));
  if (!(grad == Shape{f.batch, f.bins, f.frames}))
    return InvalidArgument("Out@GRAD has shape ", grad.ToString());
  ctx.SetOut("X@GRAD", x, ctx.InDType("X"));
  return Status::Ok();
}

// Every frame's gradient goes back to the piece of the signal it was cut from.
template <typename T>
struct StftGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor &window = ctx.In("Window"), &grad = ctx.In("Out@GRAD");
    Tensor& out = ctx.Out("X@GRAD");
    HEDDLE_ASSIGN_OR_RETURN(const Frames f, FramesOf(ctx, out.shape(), window.shape()));
    const double scale = ScaleOf(ctx, f);
    const Fft fft(f.n, false);
    ZeroBytes(ctx, out.mutable_raw(), out.bytes());
    const auto* d = grad.data<std::complex<T>>();
    ctx.ParallelFor(
        f.batch, std::max<int64_t>(1, 4096 / (f.n * f.frames)), [&](int64_t begin, int64_t end) {
          std::vector<Fft::Value> line(static_cast<size_t>(f.n)), work;
          for (int64_t b = begin; b < end; ++b) {
            for (const int64_t i : Watched(f.frames)) {
              const std::complex<T>* from = d + b * f.bins * f.frames + i;
              for (int64_t k = 0; k < f.n; ++k)
                line[static_cast<size_t>(k)] = k < f.bins ? Fft::Value(from[k * f.frames]) : 0;
              fft.Run(line.data(), &work);
              T* to = out.mutable_data<T>() + b * f.signal + i * f.hop;
              for (int64_t k = 0; k < f.n; ++k)
                to[k] += static_cast<T>(line[static_cast<size_t>(k)].real() * scale) *
                         window.data<T>()[k];
            }
          }
        });
    return Status::Ok();
  }
};

OpDef& DeclareStft(OpDef& op) {
  op.Input("X").Input("Window").Attr("n_fft", 1).Attr("hop_length", 1);
  return op.Attr("normalized", false).Attr("onesided", true);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(stft) {
  DeclareStft(op).Doc("Fourier transforms of a signal's windowed frames");
  op.Output("Out").InferShape(StftShape).Kernels<Stft, float, double>();
}
HEDDLE_OP(stft_grad) {
  DeclareStft(op).Input("Out@GRAD").Output("X@GRAD").InferShape(StftGradShape);
  op.Kernels<StftGrad, float, double>();
}
