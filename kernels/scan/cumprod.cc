#include <complex>

#include "core/threads/look_meter.h"
#include "kernels/base/along_line.h"
#include "kernels/base/check.h"
#include "kernels/elementwise/arithmetic.h"

namespace heddle {
namespace {

template <typename T>
struct Cumprod {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const AxisLines lines,
                            AxisLines::At(ctx.In("X").shape(), ctx.Int("dim")));
    const T* x = ctx.In("X").data<T>();
    T* out = ctx.Out("Out").template mutable_data<T>();
    lines.ForEach(ctx, 4, [&](int64_t line) {
      T total(1);
      AlongLine(lines, line,
                [&](int64_t, int64_t at) { out[at] = total = MulFn::Apply(total, x[at]); });
    });
    return Status::Ok();
  }
};

// dx[k] is the sum over i >= k of dout[i] times the product of x[0..i] without x[k]. Past the first
// 0 every such product is 0; at it, the products are those of the others.
template <typename T>
void LineGrad(const AxisLines& lines, int64_t begin, const T* x, const T* out, const T* dout,
              T* dx) {
  int64_t zero = 0;
  LookMeter meter;
  for (; zero < lines.n && x[begin + zero * lines.inner] != T(0); ++zero) meter.Did(1);
  T sum(0);
  for (int64_t k = zero - 1; k >= 0; --k) {
    meter.Did(2);
    const int64_t at = begin + k * lines.inner;
    sum += MulFn::Apply(dout[at], Conj(out[at]));
    dx[at] = sum / Conj(x[at]);
  }
  if (zero == lines.n) return;
  T product = zero == 0 ? T(1) : out[begin + (zero - 1) * lines.inner];
  const int64_t hole = begin + zero * lines.inner;
  T at_hole = MulFn::Apply(dout[hole], Conj(product));
  for (const int64_t i : Watched(zero + 1, lines.n)) {
    const int64_t at = begin + i * lines.inner;
    product = MulFn::Apply(product, x[at]);
    at_hole += MulFn::Apply(dout[at], Conj(product));
    dx[at] = T(0);
  }
  dx[hole] = at_hole;
}

template <typename T>
struct CumprodGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const Tensor& out = ctx.In("Out");
    const Tensor& dout = ctx.In("Out@GRAD");
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&out, &dout}));
    if (out.numel() != x.numel() || dout.numel() != x.numel())
      return InvalidArgument("Out and Out@GRAD must have X's shape ", x.shape().ToString());
    HEDDLE_ASSIGN_OR_RETURN(const AxisLines lines, AxisLines::At(x.shape(), ctx.Int("dim")));
    T* dx = ctx.Out("X@GRAD").template mutable_data<T>();
    lines.ForEach(ctx, 8, [&](int64_t line) {
      LineGrad(lines, lines.Begin(line), x.data<T>(), out.data<T>(), dout.data<T>(), dx);
    });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(cumprod) {
  op.Doc("running product along an axis").Input("X").Output("Out").Inplace("X", "Out");
  op.Attr("dim", -1).InferShape(&SameShape);
  op.Kernels<Cumprod, float, double, int32_t, int64_t, std::complex<float>, std::complex<double>>();
}

HEDDLE_OP(cumprod_grad) {
  op.Doc("gradient of cumprod").Input("X").Input("Out").Input("Out@GRAD").Output("X@GRAD");
  op.Attr("dim", -1).InferShape(&GradLikeInputs);
  op.Kernels<CumprodGrad, float, double, std::complex<float>, std::complex<double>>();
}
