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
