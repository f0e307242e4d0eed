// cross: cross products of 3-vectors along an axis.
#include "core/error.h"
#include "kernels/base/axis_lines.h"
#include "kernels/base/check.h"
#include "kernels/elementwise/arithmetic.h"

namespace heddle {
namespace {

// dim 9 means the first axis of extent 3.
constexpr int64_t kFirstOfThree = 9;

Result<AxisLines> VectorLines(const OpContext& ctx, const Shape& x) {
  int64_t axis = ctx.Int("dim");
  if (axis == kFirstOfThree) {
    axis = 0;
    while (axis < x.rank() && x[static_cast<int>(axis)] != 3) ++axis;
    if (axis == x.rank()) return InvalidArgument("X ", x.ToString(), " has no axis of extent 3");
  }
  HEDDLE_ASSIGN_OR_RETURN(const AxisLines lines, AxisLines::At(x, axis));
  if (lines.n != 3)
    return InvalidArgument("axis ", axis, " of X ", x.ToString(), " must have extent 3");
  return lines;
}

// out = a × b, with the conjugates of a and b for gradients.
template <bool kConjA, bool kConjB, typename T>
void Cross(const KernelContext& ctx, const AxisLines& lines, const T* a, const T* b, T* out) {
  lines.ForEach(ctx, 4, [&](int64_t line) {
    const int64_t p[3] = {lines.Begin(line), lines.Begin(line) + lines.inner,
                          lines.Begin(line) + 2 * lines.inner};
    T u[3], v[3];
    for (int i = 0; i < 3; ++i) {
      u[i] = kConjA ? Conj(a[p[i]]) : a[p[i]];
      v[i] = kConjB ? Conj(b[p[i]]) : b[p[i]];
    }
    for (int i = 0; i < 3; ++i) {
      const int j = (i + 1) % 3, k = (i + 2) % 3;
      out[p[i]] = SubFn::Apply(MulFn::Apply(u[j], v[k]), MulFn::Apply(u[k], v[j]));
    }
  });
}

template <typename T>
struct CrossKernel {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const Tensor& y = ctx.In("Y");
    HEDDLE_RETURN_IF_ERROR(CheckSameDType(ctx, x, y));
    if (x.shape() != y.shape())
      return InvalidArgument("X has shape ", x.shape().ToString(), ", Y has ",
                             y.shape().ToString());
    HEDDLE_ASSIGN_OR_RETURN(const AxisLines lines, VectorLines(ctx, x.shape()));
    Cross<false, false>(ctx, lines, x.data<T>(), y.data<T>(),
                        ctx.Out("Out").template mutable_data<T>());
    return Status::Ok();
  }
};

template <typename T>
struct CrossGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const Tensor& y = ctx.In("Y");
    const Tensor& dout = ctx.In("Out@GRAD");
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&x, &y}));
    if (x.shape() != y.shape() || x.numel() != dout.numel())
      return InvalidArgument("X, Y and Out@GRAD must have one shape");
    HEDDLE_ASSIGN_OR_RETURN(const AxisLines lines, VectorLines(ctx, x.shape()));
    const T* g = dout.data<T>();
    if (Tensor* d = ctx.OutOpt("X@GRAD"))
      Cross<true, false>(ctx, lines, y.data<T>(), g, d->mutable_data<T>());
    if (Tensor* d = ctx.OutOpt("Y@GRAD"))
      Cross<false, true>(ctx, lines, g, x.data<T>(), d->mutable_data<T>());
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(cross) {
  op.Doc("cross product along an axis of extent 3").Input("X").Input("Y").Output("Out");
  op.Attr("dim", kFirstOfThree).InferShape(&SameShape);
  op.Kernels<CrossKernel, float, double, int32_t, int64_t>();
}

HEDDLE_OP(cross_grad) {
  op.Doc("gradient of cross").Input("X").Input("Y").Input("Out@GRAD").KernelKey("Out@GRAD");
  op.Output("X@GRAD", kOptional).Output("Y@GRAD", kOptional).Attr("dim", kFirstOfThree);
  op.InferShape(&GradLikeInputs).Kernels<CrossGrad, float, double, int32_t, int64_t>();
}
