// fft_c2c, fft_r2c and fft_c2r: Fourier transforms along several axes, and their gradients.
#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/reduce/axis_lines.h"
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

HEDDLE_EXAMPLES(fft_c2c, R"(
example complex64 axes 1, backward, forward
attr axes LONGS [1]
attr normalization STRING "backward"
attr forward BOOLEAN true
in X complex64 [2, 3] -1.7-0.8j -1-0.1j -1.4-0.6j -1.5+0.7j -0.5-2j -1.9+0.3j
out Out complex64 [2, 3] -4.1000004-1.5j -0.066987306-0.7964101j -0.9330127-0.10358986j -3.9-1j
  -2.2918582+0.33756447j 1.6918584+2.7624354j

example complex64 axes 0 1, ortho, inverse
attr axes LONGS [0, 1]
attr normalization STRING "ortho"
attr forward BOOLEAN false
in X complex64 [2, 3] -1.7-0.8j -1-0.1j -1.4-0.6j -1.5+0.7j -0.5-2j -1.9+0.3j
out Out complex64 [2, 3] -3.2659862-1.0206207j 0.3097974+1.0854692j -0.9629946-0.18732303j
  -0.081649676-0.20412415j -1.0715992-1.1700499j 0.90829986-0.4629431j

example complex64 axes 0, forward, forward
attr axes LONGS [0]
attr normalization STRING "forward"
attr forward BOOLEAN true
in X complex64 [2, 3] -1.7-0.8j -1-0.1j -1.4-0.6j -1.5+0.7j -0.5-2j -1.9+0.3j
out Out complex64 [2, 3] -1.6-0.050000012j -0.75-1.05j -1.65-0.15j -0.100000024-0.75j -0.25+0.95j
  0.25-0.45000002j

example complex128 axes 1, backward, forward
attr axes LONGS [1]
attr normalization STRING "backward"
attr forward BOOLEAN true
in X complex128 [2, 3] -1.5+1.7999999523162842j 1+1.2000000476837158j
  -1.600000023841858+1.899999976158142j -1.899999976158142+0.10000000149011612j
  -0.4000000059604645-0.4000000059604645j 1.100000023841858-1.100000023841858j
out Out complex128 [2, 3] -2.100000023841858+4.899999976158142j
  -1.8062177087852143-2.0016661300918397j -0.5937822673729279+2.50166601088255j
  -1.1999999582767487-1.4000000283122063j -1.6437821869639908+2.1490381478775036j
  -2.856217783233687-0.44903811509494895j

example complex128 axes 0 1, ortho, inverse
attr axes LONGS [0, 1]
attr normalization STRING "ortho"
attr forward BOOLEAN false
in X complex128 [2, 3] -1.5+1.7999999523162842j 1+1.2000000476837158j
  -1.600000023841858+1.899999976158142j -1.899999976158142+0.10000000149011612j
  -0.4000000059604645-0.4000000059604645j 1.100000023841858-1.100000023841858j
out Out complex128 [2, 3] -1.3472193512306998+1.428868995331713j
  -1.4084566227603914+0.8379818294137247j -1.4084565595401188+0.06016437432320726j
  -0.36742348818432047+2.5719642317473492j 0.9236354316348829+1.2046199150949812j
  -0.06631402409412002-1.6945179257020273j

example complex128 axes 0, forward, forward
attr axes LONGS [0]
attr normalization STRING "forward"
attr forward BOOLEAN true
in X complex128 [2, 3] -1.5+1.7999999523162842j 1+1.2000000476837158j
  -1.600000023841858+1.899999976158142j -1.899999976158142+0.10000000149011612j
  -0.4000000059604645-0.4000000059604645j 1.100000023841858-1.100000023841858j
out Out complex128 [2, 3] -1.699999988079071+0.9499999769032001j
  0.29999999701976776+0.40000002086162567j -0.25+0.3999999761581421j
  0.19999998807907104+0.849999975413084j 0.7000000029802322+0.8000000268220901j
  -1.350000023841858+1.5j
)")

HEDDLE_EXAMPLES(fft_c2c_grad, R"(
example complex64 axes 1, backward, forward
attr axes INTS [1]
attr normalization STRING "backward"
attr forward BOOLEAN true
in Out@GRAD complex64 [2, 3] -1.7-0.8j -1-0.1j -1.4-0.6j -1.5+0.7j -0.5-2j -1.9+0.3j
out X@GRAD complex64 [2, 3] -4.1000004-1.5j -0.9330127-0.10358986j -0.066987306-0.7964101j -3.9-1j
  1.6918584+2.7624354j -2.2918582+0.33756447j

example complex64 axes 0 1, ortho, inverse
attr axes INTS [0, 1]
attr normalization STRING "ortho"
attr forward BOOLEAN false
in Out@GRAD complex64 [2, 3] -1.7-0.8j -1-0.1j -1.4-0.6j -1.5+0.7j -0.5-2j -1.9+0.3j
out X@GRAD complex64 [2, 3] -3.2659862-1.0206207j -0.9629946-0.18732303j 0.3097974+1.0854692j
  -0.081649676-0.20412415j 0.90829986-0.4629431j -1.0715992-1.1700499j

example complex64 axes 0, forward, forward
attr axes INTS [0]
attr normalization STRING "forward"
attr forward BOOLEAN true
in Out@GRAD complex64 [2, 3] -1.7-0.8j -1-0.1j -1.4-0.6j -1.5+0.7j -0.5-2j -1.9+0.3j
out X@GRAD complex64 [2, 3] -1.6-0.050000012j -0.75-1.05j -1.65-0.15j -0.100000024-0.75j -0.25+0.95j
  0.25-0.45000002j

example complex128 axes 1, backward, forward
attr axes INTS [1]
attr normalization STRING "backward"
attr forward BOOLEAN true
in Out@GRAD complex128 [2, 3] -1.5+1.7999999523162842j 1+1.2000000476837158j
  -1.600000023841858+1.899999976158142j -1.899999976158142+0.10000000149011612j
  -0.4000000059604645-0.4000000059604645j 1.100000023841858-1.100000023841858j
out X@GRAD complex128 [2, 3] -2.100000023841858+4.899999976158142j
  -0.5937822673729279+2.50166601088255j -1.8062177087852143-2.0016661300918397j
  -1.1999999582767487-1.4000000283122063j -2.856217783233687-0.44903811509494895j
  -1.6437821869639908+2.1490381478775036j

example complex128 axes 0 1, ortho, inverse
attr axes INTS [0, 1]
attr normalization STRING "ortho"
attr forward BOOLEAN false
in Out@GRAD complex128 [2, 3] -1.5+1.7999999523162842j 1+1.2000000476837158j
  -1.600000023841858+1.899999976158142j -1.899999976158142+0.10000000149011612j
  -0.4000000059604645-0.4000000059604645j 1.100000023841858-1.100000023841858j
out X@GRAD complex128 [2, 3] -1.3472193512306998+1.428868995331713j
  -1.4084565595401188+0.06016437432320726j -1.4084566227603914+0.8379818294137247j
  -0.36742348818432047+2.5719642317473492j -0.06631402409412002-1.6945179257020273j
  0.9236354316348829+1.2046199150949812j

example complex128 axes 0, forward, forward
attr axes INTS [0]
attr normalization STRING "forward"
attr forward BOOLEAN true
in Out@GRAD complex128 [2, 3] -1.5+1.7999999523162842j 1+1.2000000476837158j
  -1.600000023841858+1.899999976158142j -1.899999976158142+0.10000000149011612j
  -0.4000000059604645-0.4000000059604645j 1.100000023841858-1.100000023841858j
out X@GRAD complex128 [2, 3] -1.699999988079071+0.9499999769032001j
  0.29999999701976776+0.40000002086162567j -0.25+0.3999999761581421j
  0.19999998807907104+0.849999975413084j 0.7000000029802322+0.8000000268220901j
  -1.350000023841858+1.5j
)")

HEDDLE_EXAMPLES(fft_r2c, R"(
example float32 one-sided
attr axes LONGS [1]
attr normalization STRING "backward"
attr forward BOOLEAN true
attr onesided BOOLEAN true
in X float32 [2, 4] 0.23 0.97 0.85 -0.23 -0.63 0.12 -0.42 0.05
out Out complex64 [2, 3] 1.82+0j -0.62-1.2j 0.34000003+0j -0.87999994+0j -0.21000001-0.06999999j
  -1.2199999+0j

example float32 all, two axes
attr axes LONGS [0, 1]
attr normalization STRING "forward"
attr forward BOOLEAN true
attr onesided BOOLEAN false
in X float32 [3, 2] -0.37 -0.89 -0.02 0.57 -0.12 0.09
out Out complex64 [3, 2] -0.123333335+0j -0.04666666+0j -0.25333333-0.08371578j
  0.15333334+0.05484827j -0.25333333+0.08371578j 0.15333334-0.05484827j

example float64 one-sided
attr axes LONGS [1]
attr normalization STRING "backward"
attr forward BOOLEAN true
attr onesided BOOLEAN true
in X float64 [2, 4] 0.71 0.07 0.3 0.98 -0.45 0.03 0.34 0.37
out Out complex128 [2, 3] 2.06+0j 0.41+0.9099999999999999j -0.040000000000000036+0j
  0.29000000000000004+0j -0.79+0.33999999999999997j -0.51+0j

example float64 all, two axes
attr axes LONGS [0, 1]
attr normalization STRING "forward"
attr forward BOOLEAN true
attr onesided BOOLEAN false
in X float64 [3, 2] -0.84 0.24 0.94 -0.88 -0.51 0.68
out Out complex128 [3, 2] -0.06166666666666666+0j -0.07500000000000001+0j
  -0.11916666666666666+0.01587713240271472j -0.23249999999999998-0.4344560775651933j
  -0.11916666666666666-0.01587713240271472j -0.23249999999999998+0.4344560775651933j
)")

HEDDLE_EXAMPLES(fft_r2c_grad, R"(
example float32 one-sided
attr axes INTS [1]
attr normalization STRING "backward"
attr forward BOOLEAN true
attr onesided BOOLEAN true
in X float32 [2, 4] 0.73 0.17 -0.78 0.84 -0.55 -0.73 -0.76 0.42
in Out@GRAD complex64 [2, 3] -0.4+0j -0.7-1.3j 1.6-0.9j -1.7+0j -1.3-1.1j 1.9+0.7j
out X@GRAD float32 [2, 4] 0.50000006 -0.70000005 1.9000001 -3.3 -1.1 -2.5 1.4999999 -4.7

example float64 one-sided
attr axes INTS [1]
attr normalization STRING "backward"
attr forward BOOLEAN true
attr onesided BOOLEAN true
in X float64 [2, 4] -0.86 0.03 -0.34 -0.95 -0.7 0.97 -0.22 -0.8
in Out@GRAD complex128 [2, 3] 1.5+0j -1.100000023841858-1.399999976158142j
  0.6000000238418579+0.20000000298023224j -1.7999999523162842+0j
  1.600000023841858-1.600000023841858j -1.399999976158142-0.5j
out X@GRAD float64 [2, 4] 1 2.299999952316284 3.200000047683716 -0.5 -1.5999999046325684
  1.2000000476837158 -4.799999952316284 -2
)")

HEDDLE_EXAMPLES(fft_c2r, R"(
example complex64 even length
attr axes LONGS [1]
attr normalization STRING "backward"
attr forward BOOLEAN false
attr last_dim_size LONG 4
in X complex64 [2, 3] -0.4+0j -0.7-1.3j 1.6-0.9j -1.7+0j -1.3-1.1j 1.9+0.7j
out Out float32 [2, 4] -0.049999982 0.14999998 0.65 -1.15 -0.6 -0.34999996 0.6999999 -1.45

example complex64 odd length, two axes
attr axes LONGS [0, 1]
attr normalization STRING "ortho"
attr forward BOOLEAN false
attr last_dim_size LONG 5
in X complex64 [2, 3] -0.4+0j -0.7-1.3j 1.6-0.9j -1.7+0j -1.3-1.1j 1.9+0.7j
out Out float32 [2, 5] 0.28460488 -1.3278409 1.8151895 0.27139944 -4.363745 0.60083276 1.3969569
  -0.84258795 0.9335158 -0.033236943

example complex128 even length
attr axes LONGS [1]
attr normalization STRING "backward"
attr forward BOOLEAN false
attr last_dim_size LONG 4
in X complex128 [2, 3] 1.5+0j -1.100000023841858-1.399999976158142j
  0.6000000238418579+0.20000000298023224j -1.7999999523162842+0j
  1.600000023841858-1.600000023841858j -1.399999976158142-0.5j
out Out float64 [2, 4] -0.025000005960464478 0.9249999821186066 1.0750000178813934
  -0.4749999940395355 2.9802322387695312e-8 0.7000000178813934 -1.5999999940395355
  -0.9000000059604645

example complex128 odd length, two axes
attr axes LONGS [0, 1]
attr normalization STRING "ortho"
attr forward BOOLEAN false
attr last_dim_size LONG 5
in X complex128 [2, 3] 1.5+0j -1.100000023841858-1.399999976158142j
  0.6000000238418579+0.20000000298023224j -1.7999999523162842+0j
  1.600000023841858-1.600000023841858j -1.399999976158142-0.5j
out Out float64 [2, 5] -0.28460494417840937 2.328212507802245 0.42774027039531765 -1.441847366946487
  -1.5038420407033486 0.6008327101952473 -0.8879934591384595 3.1626333367486574 2.4692312453895973
  -0.12694576931179088
)")

HEDDLE_EXAMPLES(fft_c2r_grad, R"(
example float32 even length
attr axes INTS [1]
attr normalization STRING "backward"
attr forward BOOLEAN false
attr last_dim_size LONG 4
in Out@GRAD float32 [2, 4] -0.11 -0.51 0.64 -0.86 -0.2 0.82 -0.63 -0.91
out X@GRAD complex64 [2, 3] -0.21000001+0j -0.375-0.17500001j 0.475+0j -0.23+0j 0.215-0.865j
  -0.18499999+0j

example float64 even length
attr axes INTS [1]
attr normalization STRING "backward"
attr forward BOOLEAN false
attr last_dim_size LONG 4
in Out@GRAD float64 [2, 4] 0.74 0.79 -0.86 0.87 -0.15 -0.9 0.75 -0.23
out X@GRAD complex128 [2, 3] 0.385+0j 0.8+0.03999999999999998j -0.44500000000000006+0j
  -0.13250000000000003+0j -0.45+0.335j 0.4325+0j
)")
