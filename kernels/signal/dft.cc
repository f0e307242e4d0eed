// Fourier transforms in pairs: real and imaginary parts are the last dimension.
#include <complex>
#include <vector>

#include "kernels/operands/operands.h"
#include "kernels/signal/fft_transform.h"

namespace heddle {
namespace {

struct DftPlan {
  int axis = 0;
  int64_t length = 0, out = 0;  // of the transform, and of the result's axis
  bool inverse = false, onesided = false;
  int64_t parts = 2;  // of the result
};

template <typename Context>
Result<DftPlan> DftPlanOf(const Context& ctx) {
  const Shape& x = ShapeIn(ctx, "input");
  DftPlan p;
  HEDDLE_ASSIGN_OR_RETURN(const int64_t axis, IntIn(ctx, "axis", -2));
  HEDDLE_ASSIGN_OR_RETURN(p.axis, NormalAxis(axis, x.rank()));
  if (x.rank() < 2 || p.axis == x.rank() - 1 || (x.dim(-1) != 1 && x.dim(-1) != 2))
    return InvalidArgument("input ", x.ToString(), " has no axis ", axis,
                           " before a last dimension of 1 or 2");
  p.inverse = ctx.Int("inverse") != 0;
  p.onesided = ctx.Int("onesided") != 0;
  const int64_t n = x[p.axis];
  HEDDLE_ASSIGN_OR_RETURN(p.length,
                          IntIn(ctx, "dft_length", p.inverse && p.onesided ? 2 * (n - 1) : n));
  if (p.length < 1) return InvalidArgument("the transform's length is ", p.length);
  p.out = p.onesided && !p.inverse ? p.length / 2 + 1 : p.length;
  if (p.onesided && p.inverse) p.parts = 1;
  return p;
}

Status DftShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"input"}) || !Known(ctx, "dft_length") || !Known(ctx, "axis"))
    return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const DftPlan p, DftPlanOf(ctx));
  Shape out = ctx.InShape("input");
  out[p.axis] = p.out;
  out[out.rank() - 1] = p.parts;
  HEDDLE_RETURN_IF_ERROR(MakeShape(Ints(out.begin(), out.end()), "the result").status());
  ctx.SetOut("output", out, ctx.InDType("input"));
  return Status::Ok();
}

template <typename T>
struct Dft {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const DftPlan p, DftPlanOf(ctx));
    const Tensor& x = ctx.In("input");
    const int64_t parts = x.dim(-1), n = x.shape()[p.axis];
    const int64_t outer = x.shape().Product(0, p.axis);
    const int64_t inner = x.shape().Product(p.axis + 1, x.rank() - 1);
    const T* from = x.data<T>();
    T* to = ctx.Out("output").template mutable_data<T>();
    if (outer * inner == 0) return Status::Ok();  // and no tables for a length of any size
    const Fft fft(p.length, !p.inverse);
    const double scale = p.inverse ? 1 / static_cast<double>(p.length) : 1;
    ctx.ParallelFor(outer * inner, 1 + 4096 / p.length, [&](int64_t begin, int64_t end) {
      std::vector<Fft::Value> line(static_cast<size_t>(p.length)), work;
      for (int64_t l = begin; l < end; ++l) {
        const int64_t o = l / inner, k = l % inner;
        std::fill(line.begin(), line.end(), Fft::Value());
        for (int64_t i = 0; i < std::min(n, p.length); ++i) {
          const T* v = from + ((o * n + i) * inner + k) * parts;
          line[static_cast<size_t>(i)] = {static_cast<double>(v[0]),
                                          parts == 2 ? static_cast<double>(v[1]) : 0};
        }
        if (p.inverse && p.onesided) Mirror(n, &line);
        fft.Run(line.data(), &work);
        for (int64_t i = 0; i < p.out; ++i) {
          T* v = to + ((o * p.out + i) * inner + k) * p.parts;
          v[0] = static_cast<T>(line[static_cast<size_t>(i)].real() * scale);
          if (p.parts == 2) v[1] = static_cast<T>(line[static_cast<size_t>(i)].imag() * scale);
        }
      }
    });
    return Status::Ok();
  }

  // Fills in the conjugate half of a real signal's spectrum, of which n values were given.
  static void Mirror(int64_t n, std::vector<Fft::Value>* line) {
    const auto length = static_cast<int64_t>(line->size());
    auto& v = *line;
    for (int64_t i = length / 2 + 1; i < length; ++i)
      v[static_cast<size_t>(i)] = std::conj(v[static_cast<size_t>(length - i)]);
    v[0] = v[0].real();
    if (length % 2 == 0 && n > length / 2)
      v[static_cast<size_t>(length / 2)] = v[static_cast<size_t>(length / 2)].real();
  }
};

struct FramesPlan {
  int64_t step = 1, length = 1, frames = 0, bins = 0;
};

template <typename Context>
Result<FramesPlan> FramesPlanOf(const Context& ctx) {
  const Shape& x = ShapeIn(ctx, "signal");
  FramesPlan p;
  HEDDLE_ASSIGN_OR_RETURN(p.step, IntIn(ctx, "frame_step", 1));
  const bool window = Has(ctx, "window");
  if (x.rank() != 3 || (x[2] != 1 && x[2] != 2))
    return InvalidArgument("signal has shape ", x.ToString(), ", expected [N, length, 1 or 2]");
  const int64_t whole = window ? ShapeIn(ctx, "window").numel() : x[1];
  HEDDLE_ASSIGN_OR_RETURN(p.length, IntIn(ctx, "frame_length", whole));
  if (p.step < 1 || p.length < 1 || p.length > x[1] || (window && whole != p.length))
    return InvalidArgument("frames of ", p.length, " at steps of ", p.step, " do not fit signal ",
                           x.ToString(), " and window");
  const bool onesided = ctx.Int("onesided") != 0;
  if (onesided && x[2] == 2) return InvalidArgument("onesided needs a real signal");
  p.frames = 1 + (x[1] - p.length) / p.step;
  p.bins = onesided ? p.length / 2 + 1 : p.length;
  return p;
}

Status FramedDftShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"signal", "window"}) || !Known(ctx, "frame_step") ||
      !Known(ctx, "frame_length"))
    return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const FramesPlan p, FramesPlanOf(ctx));
  ctx.SetOut("output", {ctx.InShape("signal")[0], p.frames, p.bins, 2}, ctx.InDType("signal"));
  return Status::Ok();
}

template <typename T>
struct FramedDft {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const FramesPlan p, FramesPlanOf(ctx));
    const Tensor& x = ctx.In("signal");
    const Tensor* window = ctx.InOpt("window");
    if (window != nullptr && window->dtype() != x.dtype())
      return InvalidArgument("window is ", Name(window->dtype()), ", signal ", Name(x.dtype()));
    const int64_t parts = x.dim(2);
    T* to = ctx.Out("output").template mutable_data<T>();
    if (x.dim(0) == 0) return Status::Ok();
    const Fft fft(p.length, true);
    ctx.ParallelFor(x.dim(0) * p.frames, 1 + 4096 / p.length, [&](int64_t begin, int64_t end) {
      std::vector<Fft::Value> line(static_cast<size_t>(p.length)), work;
      for (int64_t f = begin; f < end; ++f) {
        const T* from = x.data<T>() + (f / p.frames * x.dim(1) + f % p.frames * p.step) * parts;
        for (int64_t i = 0; i < p.length; ++i) {
          const T w = window == nullptr ? T(1) : window->data<T>()[i];
          line[static_cast<size_t>(i)] = {
              static_cast<double>(from[i * parts] * w),
              parts == 2 ? static_cast<double>(from[i * parts + 1] * w) : 0};
        }
        fft.Run(line.data(), &work);
        for (int64_t i = 0; i < p.bins; ++i) {
          to[(f * p.bins + i) * 2] = static_cast<T>(line[static_cast<size_t>(i)].real());
          to[(f * p.bins + i) * 2 + 1] = static_cast<T>(line[static_cast<size_t>(i)].imag());
        }
      }
    });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(dft) {
  op.Doc("Fourier transform along an axis, of a length, of real or complex numbers");
  op.Input("input").Input("dft_length", kOptional | kShapeValue);
  op.Input("axis", kOptional | kShapeValue).Output("output");
  op.Attr("inverse", 0).Attr("onesided", 0).InferShape(DftShape);
  op.Kernels<Dft, float, double>().Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(framed_dft) {
  op.Doc("Fourier transforms of the frames of a signal, each under a window");
  op.Input("signal").Input("frame_step", kShapeValue).Input("window", kOptional);
  op.Input("frame_length", kOptional | kShapeValue).Output("output").Attr("onesided", 1);
  op.InferShape(FramedDftShape).Kernels<FramedDft, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
