// Second derivative of elementwise_div.
#include "kernels/elementwise/arithmetic.h"
#include "kernels/elementwise/full_operands.h"

namespace heddle {
namespace {

// DX is the first derivative dout / y, of X's shape.
template <typename T>
struct DivSecond {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(
        const BroadcastPlan plan,
        MakeBroadcastPlan(ctx.In("DX").shape(), ctx.In("Y").shape(), ctx.Int("axis")));
    FullOperands<T> full(ctx, plan);
    HEDDLE_ASSIGN_OR_RETURN(const T* y, full.LikeY(&ctx.In("Y")));
    HEDDLE_ASSIGN_OR_RETURN(const T* out, full.LikeOut(&ctx.In("Out")));
    HEDDLE_ASSIGN_OR_RETURN(const T* dx, full.LikeX(&ctx.In("DX")));
    HEDDLE_ASSIGN_OR_RETURN(const T* ddx, full.LikeX(ctx.InOpt("DDX")));
    HEDDLE_ASSIGN_OR_RETURN(const T* ddy, full.LikeY(ctx.InOpt("DDY")));
    full.StoreY(ctx.OutOpt("Y@GRAD"),
                [&](int64_t i) { return dx[i] * (out[i] * ddy[i] - ddx[i]) / y[i]; });
    full.StoreOut(ctx.OutOpt("DDOut"),
                  [&](int64_t i) { return (ddx[i] - out[i] * ddy[i]) / y[i]; });
    full.StoreOut(ctx.OutOpt("DOut"), [&](int64_t i) { return -MulFn::Apply(dx[i], ddy[i]); });
    return Status::Ok();
  }
};

Status Infer(ShapeContext& ctx) {
  if (ctx.HasOut("Y@GRAD")) ctx.SetOut("Y@GRAD", ctx.InShape("Y"), ctx.InDType("Y"));
  if (ctx.HasOut("DOut")) ctx.SetOut("DOut", ctx.InShape("Out"), ctx.InDType("Out"));
  if (ctx.HasOut("DDOut")) ctx.SetOut("DDOut", ctx.InShape("Out"), ctx.InDType("Out"));
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(elementwise_div_grad_grad) {
  op.Doc("second derivative of x / y").Input("Y").Input("Out").Input("DX");
  op.Input("DDX", kOptional).Input("DDY", kOptional).Attr("axis", -1);
  op.Output("Y@GRAD", kOptional).Output("DDOut", kOptional).Output("DOut", kOptional);
  op.InferShape(&Infer);
  op.Kernels<DivSecond, float, double, std::complex<float>, std::complex<double>>();
}
