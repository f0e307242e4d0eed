#include "core/error.h"
#include "kernels/base/check.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/elementwise/binary_grad.h"

namespace heddle {
namespace {

Result<Shape> ResultShape(const Shape& x, const Shape& y, const Shape& weight) {
  HEDDLE_ASSIGN_OR_RETURN(const Shape xy, BroadcastShape(x, y, -1));
  return BroadcastShape(xy, weight, -1);
}

Status CheckOperands(const KernelContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckSameDType(ctx, ctx.In("X"), ctx.In("Y")));
  if (ctx.In("Weight").dtype() == ctx.In("X").dtype()) return Status::Ok();
  return InvalidArgument("Weight is ", Name(ctx.In("Weight").dtype()), ", X is ",
                         Name(ctx.In("X").dtype()));
}

template <typename F, typename T>
Status Combine(const KernelContext& ctx, const Shape& x_shape, const void* x, const Shape& y_shape,
               const void* y, void* out) {
  HEDDLE_ASSIGN_OR_RETURN(const BroadcastPlan plan, MakeBroadcastPlan(x_shape, y_shape, -1));
  RunBinary(ctx, plan, BinaryLoop<F, T, T>::kLoops, x, y, out);
  return Status::Ok();
}

template <typename T>
struct Lerp {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const Tensor& y = ctx.In("Y");
    const Tensor& w = ctx.In("Weight");
    Tensor& out = ctx.Out("Out");
    HEDDLE_RETURN_IF_ERROR(CheckOperands(ctx));
    HEDDLE_ASSIGN_OR_RETURN(const Shape xy, BroadcastShape(x.shape(), y.shape(), -1));
    Tensor diff = ctx.Scratch(x.dtype(), xy);
    HEDDLE_RETURN_IF_ERROR(
        (Combine<SubFn, T>(ctx, y.shape(), y.raw(), x.shape(), x.raw(), diff.mutable_raw())));
    HEDDLE_RETURN_IF_ERROR(
        (Combine<MulFn, T>(ctx, xy, diff.raw(), w.shape(), w.raw(), out.mutable_raw())));
    return Combine<AddFn, T>(ctx, x.shape(), x.raw(), out.shape(), out.raw(), out.mutable_raw());
  }
};

struct OneMinusWeight {  // dout * (1 - w)
  static constexpr int64_t kGrain = kElementGrain;
  template <typename T>
  static T Apply(T dout, T w) {
    return dout * (T(1) - w);
  }
};

template <typename T>
struct LerpGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& dout = ctx.In("Out@GRAD");
    HEDDLE_RETURN_IF_ERROR(CheckOperands(ctx));
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&ctx.In("X")}));
    HEDDLE_ASSIGN_OR_RETURN(const Shape shape, ResultShape(ctx.In("X").shape(), ctx.In("Y").shape(),
                                                           ctx.In("Weight").shape()));
    if (shape != dout.shape())
      return InvalidArgument("Out@GRAD has shape ", dout.shape().ToString(), ", expected ",
                             shape.ToString());
    HEDDLE_RETURN_IF_ERROR((Side<MulFn>(ctx, ctx.OutOpt("Y@GRAD"))));
    return Side<OneMinusWeight>(ctx, ctx.OutOpt("X@GRAD"));
  }

 private:
  // d = the sum of F(dout, weight) over the dimensions in which the operand is repeated.
  template <typename F>
  static Status Side(const KernelContext& ctx, Tensor* d) {
    if (d == nullptr) return Status::Ok();
    const Tensor& dout = ctx.In("Out@GRAD");
    const Tensor& w = ctx.In("Weight");
    Tensor full = ctx.Scratch(dout.dtype(), dout.shape());
    HEDDLE_RETURN_IF_ERROR(
        (Combine<F, T>(ctx, dout.shape(), dout.raw(), w.shape(), w.raw(), full.mutable_raw())));
    HEDDLE_ASSIGN_OR_RETURN(const BroadcastPlan plan,
                            MakeBroadcastPlan(d->shape(), dout.shape(), -1));
    RunBinaryGrad(ctx, plan, LoopsOf<PassGrad, T>(), {nullptr, nullptr, nullptr, full.raw()},
                  dout.dtype(), d, true);
    return Status::Ok();
  }
};

Status InferLerp(ShapeContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape,
                          ResultShape(ctx.InShape("X"), ctx.InShape("Y"), ctx.InShape("Weight")));
  ctx.SetOut("Out", shape, ctx.InDType("X"));
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(lerp) {
  op.Doc("x + weight * (y - x)").Input("X").Input("Y").Input("Weight").Output("Out");
  op.InferShape(&InferLerp).Kernels<Lerp, float, double>();
}

HEDDLE_OP(lerp_grad) {
  op.Doc("gradient of lerp")
      .Input("X")
      .Input("Y")
      .Input("Weight")
      .Input("Out", kOptional | kNoBuffer);
  op.Input("Out@GRAD").Output("X@GRAD", kOptional).Output("Y@GRAD", kOptional);
  op.KernelKey("Out@GRAD").InferShape(&GradLikeInputs).Kernels<LerpGrad, float, double>();
}

HEDDLE_EXAMPLES(lerp, R"(
example float64 4x1
in Weight float64 [4, 1] 0*4
in X float64 [4, 1] 0.6259999871253967 0.4860000014305115 0.6959999799728394 0.41600000858306885
in Y float64 [4, 1] 0.6259999871253967 0.4860000014305115 0.6959999799728394 0.41600000858306885
out Out float64 [4, 1] 0.6259999871253967 0.4860000014305115 0.6959999799728394 0.41600000858306885

example float64 4
in Weight float64 [1] 0.286
in X float64 [4] 52 65 72 88
in Y float64 [4] 15 9.8 14 7.1
out Out float64 [4] 41.418 49.2128 55.412000000000006 64.8626

example float32 4x1
in Weight float32 [4, 1] 0*4
in X float32 [4, 1] 0.626 0.486 0.696 0.416
in Y float32 [4, 1] 0.626 0.486 0.696 0.416
out Out float32 [4, 1] 0.626 0.486 0.696 0.416
)")

HEDDLE_EXAMPLES(lerp_grad, R"(
example float64 2x4
in Out float64 [2, 4] 24.856 23.309600000000003 27.7344 31.4848 10.352 26.504000000000005
  37.32000000000001 38.624
in Out@GRAD float64 [2, 4] 0 0.6 0.1 -0.4 0.6 -0.4 -0.5 -0.3
in Weight float64 [1] 0.696
in X float64 [2, 4] 52 65 72 88 2 62 93 95
in Y float64 [2, 4] 13 5.1 8.4 6.8 14 11 13 14
out X@GRAD float64 [2, 4] 0 0.18240000000000003 0.030400000000000007 -0.12160000000000003
  0.18240000000000003 -0.12160000000000003 -0.15200000000000002 -0.09120000000000002
out Y@GRAD float64 [2, 4] 0 0.41759999999999997 0.0696 -0.2784 0.41759999999999997 -0.2784 -0.348
  -0.20879999999999999

example float32 2x4
in Out float32 [2, 4] 24.856 23.3096 27.7344 31.4848 10.352 26.504 37.32 38.624
in Out@GRAD float32 [2, 4] 0 0.6 0.1 -0.4 0.6 -0.4 -0.5 -0.3
in Weight float32 [1] 0.696
in X float32 [2, 4] 52 65 72 88 2 62 93 95
in Y float32 [2, 4] 13 5.1 8.4 6.8 14 11 13 14
out X@GRAD float32 [2, 4] 0 0.18240002 0.030400002 -0.12160001 0.18240002 -0.12160001 -0.15200001
  -0.09120001
out Y@GRAD float32 [2, 4] 0 0.4176 0.0696 -0.2784 0.4176 -0.2784 -0.348 -0.2088
)")
