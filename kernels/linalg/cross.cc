// cross: cross products of 3-vectors along an axis.
#include "core/error.h"
#include "kernels/base/check.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/reduce/axis_lines.h"

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

HEDDLE_EXAMPLES(cross, R"(
example float32 3, dim 0
attr dim INT 0
in X float32 [3] 0.178 0.647 0.905
in Y float32 [3] -0.14 0.52 -0.6
out Out float32 [3] -0.8588 -0.019899994 0.18314001

example float32 2x2x3, dim 2
attr dim INT 2
in X float32 [2, 2, 3] -0.05 0.19 -0.41 -0.29 0.54 -0.77 -0.65 -0.17 0.31 0.07 -0.53 0.42
in Y float32 [2, 2, 3] 0.4 0.26 0.13 -0.27 -0 0.66 0.79 -0.67 -0.14 -0.53 0.53 -0.4
out Out float32 [2, 2, 3] 0.13129999 -0.1575 -0.088999994 0.35640004 0.3993 0.14580001 0.23150001
  0.1539 0.5698 -0.010599986 -0.19459999 -0.24379997

example float64 4x3x1, dim -2
attr dim INT -2
in X float64 [4, 3, 1] 0.231 0.692 0.385 0.308 0.538 0.461 0.077 0.615 0.769 0.846 0.923 0.154
in Y float64 [4, 3, 1] 0.923 0.692 0.462 0.154 0.846 0.077 0.538 0.769 0.308 0.385 0.615 0.231
out Out float64 [4, 3, 1] 0.053284 0.24863300000000002 -0.47886399999999996 -0.34858 0.047278
  0.17771599999999996 -0.401941 0.390006 -0.271657 0.11850300000000001 -0.136136 0.164935

example float32 4x3
in X float32 [4, 3] 0.385 0.077 0.308 0.846 0.231 0.154 0.692 0.769 0.538 0.923 0.615 0.462
in Y float32 [4, 3] 0.615 0.769 0.154 0.538 0.385 0.461 0.231 0.923 0.846 0.077 0.308 0.692
out Out float32 [4, 3] -0.22499399 0.13013 0.24871 0.047201 -0.307154 0.20143199 0.15400004
  -0.46115398 0.46107697 0.283284 -0.60314196 0.236929

example int32 3, dim 0
attr dim INT 0
in X int32 [3] 1 1 0
in Y int32 [3] 0 0 0
out Out int32 [3] 0 0 0

example int64 3, dim 0
attr dim INT 0
in X int64 [3] 1 1 0
in Y int64 [3] 0 0 0
out Out int64 [3] 0 0 0
)")

HEDDLE_EXAMPLES(cross_grad, R"(
example float64 3, dim 0
attr dim INT 0
in Out@GRAD float64 [3] 0.2 0.4 -0.4
in X float64 [3] 0.178 0.647 0.905
in Y float64 [3] -0.14 0.52 -0.6
out X@GRAD float64 [3] 0.03199999999999997 -0.176 -0.16000000000000003
out Y@GRAD float64 [3] 0.6208 -0.25220000000000004 0.058200000000000016

example float64 2x2x3, dim 2
attr dim INT 2
in Out@GRAD float64 [2, 2, 3] 0.1 -0.5 0.2 -0.8 0.9 0 0.8 -0.8 -0.8 -1 0.6 -1
in X float64 [2, 2, 3] -0.05 0.19 -0.41 -0.29 0.54 -0.77 -0.65 -0.17 0.31 0.07 -0.53 0.42
in Y float64 [2, 2, 3] 0.4 0.26 0.13 -0.27 -0 0.66 0.79 -0.67 -0.14 -0.53 0.53 -0.4
out X@GRAD float64 [2, 2, 3] 0.117 -0.06700000000000002 -0.226 -0.5940000000000001 -0.528
  -0.24300000000000002 0.42400000000000004 0.5200000000000001 -0.09600000000000009
  -0.29000000000000004 -0.13 0.21200000000000002
out Y@GRAD float64 [2, 2, 3] 0.16699999999999998 0.031 -0.005999999999999998 -0.6930000000000001
  -0.6160000000000001 -0.17100000000000004 -0.384 0.272 -0.656 -0.278 0.35 0.48800000000000004

example float64 4x3
in Out@GRAD float64 [4, 3] 0.1 -0.5 0.2 -0.8 0.9 0 0.8 -0.8 -0.8 -1 0.6 -1
in X float64 [4, 3] 0.385 0.077 0.308 0.846 0.231 0.154 0.692 0.769 0.538 0.923 0.615 0.462
in Y float64 [4, 3] 0.615 0.769 0.154 0.538 0.385 0.461 0.231 0.923 0.846 0.077 0.308 0.692
out X@GRAD float64 [4, 3] 0.2308 -0.1076 -0.3844 -0.41490000000000005 -0.3688 0.7922
  -0.06159999999999999 0.8616000000000001 -0.9232 -0.7232 -0.615 0.3542
out Y@GRAD float64 [4, 3] -0.1694 0.04620000000000001 0.20020000000000002 0.1386 0.1232
  -0.9461999999999999 0.18480000000000002 -0.984 1.1688 0.8922 -0.461 -1.1688

example float32 3, dim 0
attr dim INT 0
in Out@GRAD float32 [3] 0.2 0.4 -0.4
in X float32 [3] 0.178 0.647 0.905
in Y float32 [3] -0.14 0.52 -0.6
out X@GRAD float32 [3] 0.03200002 -0.176 -0.16
out Y@GRAD float32 [3] 0.6208 -0.2522 0.058199994
)")
