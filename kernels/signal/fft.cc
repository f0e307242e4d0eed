// fft_c2c, fft_r2c and fft_c2r: Fourier transforms along several axes, and their gradients.
#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/axis_lines.h"
#include "kernels/signal/fft_transform.h"

namespace heddle {
namespace {

using Wide = Fft::Value;

DType ComplexOf(DType real) { return real == DType::kF32 ? DType::kC64 : DType::kC128; }
DType RealOf(DType t) { return t == DType::kC64 ? DType::kF32 : DType::kF64; }

// The attribute `axes`, made non-negative; the last of them is the one that is halved.
Result<std::vector<int>> AxesOf(const OpContext& ctx, const Shape& x) {
  std::vector<int> axes;
  for (const int64_t axis : ctx.IntList("axes")) {
    HEDDLE_ASSIGN_OR_RETURN(const int a, NormalAxis(axis, x.rank()));
    if (x.rank() == 0) return InvalidArgument("a scalar has no axes to transform");
    if (x[a] == 0)
      return InvalidArgument("axis ", axis, " of ", x.ToString(), " has no values to transform");
    axes.push_back(a);
  }
  if (axes.empty()) return InvalidArgument("'axes' is empty");
  return axes;
}

// A tensor of complex values in double precision, with what is done to it in steps.
class Spectrum {
 public:
  Spectrum(const KernelContext& ctx, const Shape& shape)
      : ctx_(ctx), shape_(shape), hold_(ctx.Scratch(DType::kC128, shape)) {}
  Wide* data() { return hold_.mutable_data<Wide>(); }

  template <typename T>
  void Load(const T* from) {
    WatchedCopy(from, shape_.numel(), data());
  }
  // Transforms along `axes`, in the order that does not matter.
  void Transform(std::span<const int> axes, bool forward) {
    for (const int axis : axes) {
      const AxisLines lines = AxisLines::Of(shape_, axis);
      if (shape_.numel() == 0) return;
      const Fft fft(lines.n, forward);
      const int64_t grain = std::max<int64_t>(1, 4096 / lines.n);
      ctx_.ParallelFor(lines.lines(), grain, [&](int64_t begin, int64_t end) {
        std::vector<Wide> line(static_cast<size_t>(lines.n)), work;
        for (int64_t l = begin; l < end; ++l) {
          Wide* at = data() + lines.Begin(l);
          for (int64_t i = 0; i < lines.n; ++i) line[static_cast<size_t>(i)] = at[i * lines.inner];
          fft.Run(line.data(), &work);
          for (int64_t i = 0; i < lines.n; ++i) at[i * lines.inner] = line[static_cast<size_t>(i)];
        }
      });
    }
  }
  template <typename T>
  void StoreReal(double scale, T* to) {
    const Wide* from = data();
    for (const auto part : Stretches(shape_.numel()))
      for (int64_t i = part.begin; i < part.end; ++i)
        to[i] = static_cast<T>(from[i].real() * scale);
  }
  // `to` is as long or shorter along `axis`.
  template <typename T>
  void Store(double scale, int axis, int64_t n, std::complex<T>* to) {
    const AxisLines lines = AxisLines::Of(shape_, axis);
    for (const int64_t o : Watched(lines.outer))
      for (int64_t i = 0; i < n * lines.inner; ++i)
        to[o * n * lines.inner + i] =
            static_cast<std::complex<T>>(data()[o * lines.n * lines.inner + i] * scale);
  }
  // Loads what is `n` long along `axis`, the rest being zeros.
  template <typename T>
  void LoadPadded(const std::complex<T>* from, int axis, int64_t n) {
    const AxisLines lines = AxisLines::Of(shape_, axis);
    for (const int64_t o : Watched(lines.outer)) {
      Wide* to = data() + o * lines.n * lines.inner;
      WatchedCopy(from + o * n * lines.inner, n * lines.inner, to);
      WatchedFill(to + n * lines.inner, (lines.n - n) * lines.inner, Wide(0));
    }
  }
  // Completes lines of which the first half is there to those of a real signal's spectrum.
  void Mirror(int axis) {
    const AxisLines lines = AxisLines::Of(shape_, axis);
    for (const int64_t l : Watched(lines.lines())) {
      Wide* at = data() + lines.Begin(l);
      for (int64_t i = lines.n / 2 + 1; i < lines.n; ++i)
        at[i * lines.inner] = std::conj(at[(lines.n - i) * lines.inner]);
    }
  }

 private:
  const KernelContext& ctx_;
  Shape shape_;
  Tensor hold_;
};

// Number of values a transform's scale is about.
double CountOf(const Shape& shape, std::span<const int> axes) {
  double n = 1;
  for (const int a : axes) n *= static_cast<double>(shape[a]);
  return n;
}

// --- complex to complex ---
Status ComplexShape(ShapeContext& ctx) {
  const bool grad = ctx.def().FindInput("X") < 0;
  const Key in = grad ? Key("Out@GRAD") : Key("X"), out = grad ? Key("X@GRAD") : Key("Out");
  if (!ctx.InShape(in).known_rank()) return ctx.Defer();
  HEDDLE_RETURN_IF_ERROR(AxesOf(ctx, ctx.InShape(in)).status());
  ctx.SetOut(out, ctx.InShape(in), ctx.InDType(in));
  return Status::Ok();
}

// The gradient is the transform in the other direction, scaled as the forward one.
template <typename T>
Status RunComplex(KernelContext& ctx, Key from, Key to, bool forward) {
  const Tensor& x = ctx.In(from);
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(ctx, x.shape()));
  HEDDLE_ASSIGN_OR_RETURN(
      const double scale,
      FftScale(ctx.Str("normalization"), ctx.Bool("forward"), CountOf(x.shape(), axes)));
  Spectrum values(ctx, x.shape());
  values.Load(x.data<T>());
  values.Transform(axes, forward);
  values.Store(scale, axes[0], x.shape()[axes[0]], ctx.Out(to).template mutable_data<T>());
  return Status::Ok();
}
template <typename T>
struct ComplexFft {
  static Status Run(KernelContext& ctx) {
    return RunComplex<T>(ctx, "X", "Out", ctx.Bool("forward"));
  }
};
template <typename T>
struct ComplexFftGrad {
  static Status Run(KernelContext& ctx) {
    return RunComplex<T>(ctx, "Out@GRAD", "X@GRAD", !ctx.Bool("forward"));
  }
};

// --- real to complex ---
Status RealShape(ShapeContext& ctx) {
  Shape out = ctx.InShape("X");
  if (!out.known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(ctx, out));
  if (ctx.Bool("onesided") && out[axes.back()] >= 0) out[axes.back()] = out[axes.back()] / 2 + 1;
  ctx.SetOut("Out", out, ComplexOf(ctx.InDType("X")));
  return Status::Ok();
}

// With a real signal of `shape`, of which `last` values are kept along the last axis.
template <typename T>
Status RealToComplex(KernelContext& ctx, const Tensor& x, bool forward, double scale, int axis,
                     std::span<const int> axes, Tensor& out) {
  Spectrum values(ctx, x.shape());
  values.Load(x.data<T>());
  values.Transform(axes, forward);
  values.Store(scale, axis, out.shape()[axis], out.mutable_data<std::complex<T>>());
  return Status::Ok();
}

template <typename T>
struct RealFft {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(ctx, x.shape()));
    HEDDLE_ASSIGN_OR_RETURN(
        const double scale,
        FftScale(ctx.Str("normalization"), ctx.Bool("forward"), CountOf(x.shape(), axes)));
    return RealToComplex<T>(ctx, x, ctx.Bool("forward"), scale, axes.back(), axes, ctx.Out("Out"));
  }
};

Status RealGradShape(ShapeContext& ctx) {
  const Shape &x = ctx.InShape("X"), &grad = ctx.InShape("Out@GRAD");
  if (!x.is_static() || !grad.is_static()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(ctx, x));
  Shape want = x;
  if (ctx.Bool("onesided")) want[axes.back()] = x[axes.back()] / 2 + 1;
  if (!(want == grad))
    return InvalidArgument("Out@GRAD has shape ", grad.ToString(), ", expected ", want.ToString());
  ctx.SetOut("X@GRAD", x, RealOf(ctx.InDType("Out@GRAD")));
  return Status::Ok();
}

template <typename C>
struct RealFftGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& grad = ctx.In("Out@GRAD");
    Tensor& out = ctx.Out("X@GRAD");
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(ctx, out.shape()));
    HEDDLE_ASSIGN_OR_RETURN(
        const double scale,
        FftScale(ctx.Str("normalization"), ctx.Bool("forward"), CountOf(out.shape(), axes)));
    Spectrum values(ctx, out.shape());
    values.LoadPadded(grad.data<C>(), axes.back(), grad.shape()[axes.back()]);
    values.Transform(axes, !ctx.Bool("forward"));
    values.StoreReal(scale, out.mutable_data<typename C::value_type>());
    return Status::Ok();
  }
};

// --- complex to real ---
Status ToRealShape(ShapeContext& ctx) {
  Shape out = ctx.InShape("X");
  if (!out.known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(ctx, out));
  const int64_t half = out[axes.back()], wanted = ctx.Int("last_dim_size");
  const int64_t n = wanted > 0 ? wanted : half >= 0 ? 2 * (half - 1) : -1;
  if (half >= 0 && (n < 1 || n / 2 + 1 != half))
    return InvalidArgument("a real signal of ", n, " values has ", n / 2 + 1,
                           " of them as its spectrum, not ", half);
  out[axes.back()] = n;
  ctx.SetOut("Out", out, RealOf(ctx.InDType("X")));
  return Status::Ok();
}

template <typename C>
struct ToRealFft {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    Tensor& out = ctx.Out("Out");
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(ctx, x.shape()));
    HEDDLE_ASSIGN_OR_RETURN(
        const double scale,
        FftScale(ctx.Str("normalization"), ctx.Bool("forward"), CountOf(out.shape(), axes)));
    const bool forward = ctx.Bool("forward");
    const std::span<const int> all(axes);
    Spectrum values(ctx, out.shape());
    values.LoadPadded(x.data<C>(), axes.back(), x.shape()[axes.back()]);
    values.Transform(all.first(all.size() - 1), forward);
    values.Mirror(axes.back());
    values.Transform(all.last(1), forward);
    values.StoreReal(scale, out.mutable_data<typename C::value_type>());
    return Status::Ok();
  }
};

Status ToRealGradShape(ShapeContext& ctx) {
  Shape out = ctx.InShape("Out@GRAD");
  if (!out.known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(ctx, out));
  if (out[axes.back()] >= 0) out[axes.back()] = out[axes.back()] / 2 + 1;
  ctx.SetOut("X@GRAD", out, ComplexOf(ctx.InDType("Out@GRAD")));
  return Status::Ok();
}

// Values of the half that stand for two of the whole count twice.
template <typename T>
struct ToRealFftGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& grad = ctx.In("Out@GRAD");
    Tensor& out = ctx.Out("X@GRAD");
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(ctx, grad.shape()));
    HEDDLE_ASSIGN_OR_RETURN(
        const double scale,
        FftScale(ctx.Str("normalization"), ctx.Bool("forward"), CountOf(grad.shape(), axes)));
    HEDDLE_RETURN_IF_ERROR(
        RealToComplex<T>(ctx, grad, !ctx.Bool("forward"), scale, axes.back(), axes, out));
    const AxisLines lines = AxisLines::Of(out.shape(), axes.back());
    const int64_t twice = grad.shape()[axes.back()] - lines.n;
    auto* x = out.mutable_data<std::complex<T>>();
    for (const int64_t o : Watched(lines.outer))
      for (int64_t i = lines.inner; i < (1 + twice) * lines.inner; ++i)
        x[o * lines.n * lines.inner + i] *= T(2);
    return Status::Ok();
  }
};

OpDef& DeclareFft(OpDef& op) {
  return op.Attr("axes", Ints{}).Attr("normalization", "backward").Attr("forward", true);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(fft_c2c) {
  DeclareFft(op).Doc("Fourier transform of complex values along `axes`");
  op.Input("X").Output("Out").InferShape(ComplexShape);
  op.Kernels<ComplexFft, std::complex<float>, std::complex<double>>();
}
HEDDLE_OP(fft_c2c_grad) {
  DeclareFft(op).Input("Out@GRAD").Output("X@GRAD").InferShape(ComplexShape);
  op.Kernels<ComplexFftGrad, std::complex<float>, std::complex<double>>();
}
HEDDLE_OP(fft_r2c) {
  DeclareFft(op).Doc("Fourier transform of real values; onesided: without the mirrored half");
  op.Input("X").Output("Out").Attr("onesided", true).InferShape(RealShape);
  op.Kernels<RealFft, float, double>();
}
HEDDLE_OP(fft_r2c_grad) {
  DeclareFft(op).Input("X", kNoBuffer).Input("Out@GRAD").Output("X@GRAD");
  op.Attr("onesided", true).InferShape(RealGradShape).KernelKey("Out@GRAD");
  op.Kernels<RealFftGrad, std::complex<float>, std::complex<double>>();
}
HEDDLE_OP(fft_c2r) {
  DeclareFft(op).Doc("the real signal of a spectrum's first half");
  op.Input("X").Output("Out").Attr("last_dim_size", 0).InferShape(ToRealShape);
  op.Kernels<ToRealFft, std::complex<float>, std::complex<double>>();
}
HEDDLE_OP(fft_c2r_grad) {
  DeclareFft(op).Input("Out@GRAD").Output("X@GRAD").Attr("last_dim_size", 0);
  op.InferShape(ToRealGradShape).Kernels<ToRealFftGrad, float, double>();
}
