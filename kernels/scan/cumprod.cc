#include <complex>

#include "core/interrupts.h"
#include "core/threads/look_meter.h"
#include "kernels/base/check.h"
#include "kernels/base/convert.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/scan/scan.h"

namespace heddle {
namespace {

Result<AxisLines> ProductLines(const OpContext& ctx, const Shape& x) {
  IntArg axis;
  HEDDLE_RETURN_IF_ERROR(ReadInt(ctx, "AxisTensor", "dim", &axis));
  return AxisLines::At(x, axis.value);
}

template <typename T>
struct Cumprod {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const AxisLines lines, ProductLines(ctx, ctx.In("X").shape()));
    const bool exclusive = ctx.Bool("exclusive"), reverse = ctx.Bool("reverse");
    const T* x = ctx.In("X").data<T>();
    T* out = ctx.Out("Out").template mutable_data<T>();
    lines.ForEach(ctx, 4, [&](int64_t line) {
      const ScanOrder at(lines, line, reverse);
      T total(1);
      for (const int64_t i : Watched(lines.n)) {
        const T next = MulFn::Apply(total, x[at[i]]);
        out[at[i]] = exclusive ? total : next;
        total = next;
      }
    });
    return Status::Ok();
  }
};

// dx[k] is the sum over i >= k of dout[i] times the product of x[0..i] without x[k]. Past the first
// 0 every such product is 0; at it, the products are those of the others.
// An exclusive product is the one of the element before: its gradients move by one place.
template <typename T>
void LineGrad(const ScanOrder& at, int64_t n, bool exclusive, const T* x, const T* out,
              const T* dout, T* dx) {
  const auto grad = [&](int64_t i) {
    return !exclusive ? dout[at[i]] : i + 1 < n ? dout[at[i + 1]] : T(0);
  };
  const auto product_to = [&](int64_t i) {
    return !exclusive ? out[at[i]] : i + 1 < n ? out[at[i + 1]] : T(0);
  };
  int64_t zero = 0;
  LookMeter meter;
  for (; zero < n && x[at[zero]] != T(0); ++zero) meter.Did(1);
  T sum(0);
  for (int64_t k = zero - 1; k >= 0; --k) {
    meter.Did(2);
    sum += MulFn::Apply(grad(k), Conj(product_to(k)));
    dx[at[k]] = sum / Conj(x[at[k]]);
  }
  if (zero == n) return;
  T product = zero == 0 ? T(1) : product_to(zero - 1);
  T at_hole = MulFn::Apply(grad(zero), Conj(product));
  for (const int64_t i : Watched(zero + 1, n)) {
    product = MulFn::Apply(product, x[at[i]]);
    at_hole += MulFn::Apply(grad(i), Conj(product));
    dx[at[i]] = T(0);
  }
  dx[at[zero]] = at_hole;
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
    HEDDLE_ASSIGN_OR_RETURN(const AxisLines lines, ProductLines(ctx, x.shape()));
    T* dx = ctx.Out("X@GRAD").template mutable_data<T>();
    const bool exclusive = ctx.Bool("exclusive"), reverse = ctx.Bool("reverse");
    lines.ForEach(ctx, 8, [&](int64_t line) {
      LineGrad(ScanOrder(lines, line, reverse), lines.n, exclusive, x.data<T>(), out.data<T>(),
               dout.data<T>(), dx);
    });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(cumprod) {
  op.Doc("running product along an axis").Input("X").Output("Out").Inplace("X", "Out");
  op.Input("AxisTensor", kOptional).Attr("dim", -1).Attr("exclusive", false);
  op.Attr("reverse", false).KernelKey("X").InferShape(&SameShape);
  op.Kernels<Cumprod, float, double, int32_t, int64_t, std::complex<float>, std::complex<double>,
             uint8_t, int8_t, int16_t>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}

HEDDLE_OP(cumprod_grad) {
  op.Doc("gradient of cumprod").Input("X").Input("Out").Input("Out@GRAD").Output("X@GRAD");
  op.Input("AxisTensor", kOptional).Attr("dim", -1).Attr("exclusive", false);
  op.Attr("reverse", false).KernelKey("X").InferShape(&GradLikeInputs);
  op.Kernels<CumprodGrad, float, double, std::complex<float>, std::complex<double>>();
}
