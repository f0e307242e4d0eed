// Second and third derivatives of elementwise_mul.
#include "kernels/base/convert.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/elementwise/binary_op.h"
#include "kernels/elementwise/full_operands.h"

namespace heddle {
namespace {

Status SetLike(ShapeContext& ctx, Key in, Key out) {
  if (ctx.HasOut(out)) ctx.SetOut(out, ctx.InShape(in), ctx.InDType(in));
  return Status::Ok();
}

template <typename T>
struct Second {
  static Status Run(KernelContext& ctx) {
    BroadcastPlan local;
    HEDDLE_ASSIGN_OR_RETURN(const BroadcastPlan* plan, PlanOf<SlotsXY>(ctx, &local));
    FullOperands<T> full(ctx, *plan);
    HEDDLE_ASSIGN_OR_RETURN(const T* x, full.LikeX(&ctx.In("X")));
    HEDDLE_ASSIGN_OR_RETURN(const T* y, full.LikeY(&ctx.In("Y")));
    HEDDLE_ASSIGN_OR_RETURN(const T* dout, full.LikeOut(&ctx.In("DOut")));
    HEDDLE_ASSIGN_OR_RETURN(const T* ddx, full.LikeX(ctx.InOpt("DDX")));
    HEDDLE_ASSIGN_OR_RETURN(const T* ddy, full.LikeY(ctx.InOpt("DDY")));
    const auto mul = [](T a, T b) { return MulFn::Apply(a, b); };
    // For complex tensors Paddle conjugates DDX here, but not DDY.
    full.StoreX(ctx.OutOpt("X@GRAD"), [&](int64_t i) { return mul(dout[i], ddy[i]); });
    full.StoreY(ctx.OutOpt("Y@GRAD"), [&](int64_t i) { return mul(dout[i], Conj(ddx[i])); });
    full.StoreOut(ctx.OutOpt("DDOut"),
                  [&](int64_t i) { return mul(ddx[i], y[i]) + mul(x[i], ddy[i]); });
    return Status::Ok();
  }
};

Status InferSecond(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(SetLike(ctx, "X", "X@GRAD"));
  HEDDLE_RETURN_IF_ERROR(SetLike(ctx, "Y", "Y@GRAD"));
  return SetLike(ctx, "DOut", "DDOut");
}

template <typename T>
struct Third {
  static Status Run(KernelContext& ctx) {
    BroadcastPlan local;
    HEDDLE_ASSIGN_OR_RETURN(const BroadcastPlan* plan, PlanOf<SlotsXY>(ctx, &local));
    FullOperands<T> full(ctx, *plan);
    HEDDLE_ASSIGN_OR_RETURN(const T* x, full.LikeX(&ctx.In("X")));
    HEDDLE_ASSIGN_OR_RETURN(const T* y, full.LikeY(&ctx.In("Y")));
    HEDDLE_ASSIGN_OR_RETURN(const T* dout, full.LikeOut(&ctx.In("DOut")));
    HEDDLE_ASSIGN_OR_RETURN(const T* ddx, full.LikeX(ctx.InOpt("DDX")));
    HEDDLE_ASSIGN_OR_RETURN(const T* ddy, full.LikeY(ctx.InOpt("DDY")));
    HEDDLE_ASSIGN_OR_RETURN(const T* d_dx, full.LikeX(ctx.InOpt("D_DX")));
    HEDDLE_ASSIGN_OR_RETURN(const T* d_dy, full.LikeY(ctx.InOpt("D_DY")));
    HEDDLE_ASSIGN_OR_RETURN(const T* d_ddout, full.LikeOut(ctx.InOpt("D_DDOut")));
    const auto mul = [](T a, T b) { return MulFn::Apply(a, Conj(b)); };
    full.StoreX(ctx.OutOpt("D_X"), [&](int64_t i) { return mul(d_ddout[i], ddy[i]); });
    full.StoreY(ctx.OutOpt("D_Y"), [&](int64_t i) { return mul(d_ddout[i], ddx[i]); });
    full.StoreOut(ctx.OutOpt("D_DOut"),
                  [&](int64_t i) { return mul(ddy[i], d_dx[i]) + mul(ddx[i], d_dy[i]); });
    full.StoreX(ctx.OutOpt("D_DDX"),
                [&](int64_t i) { return mul(dout[i], d_dy[i]) + mul(d_ddout[i], y[i]); });
    full.StoreY(ctx.OutOpt("D_DDY"),
                [&](int64_t i) { return mul(dout[i], d_dx[i]) + mul(d_ddout[i], x[i]); });
    return Status::Ok();
  }
};

Status InferThird(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(SetLike(ctx, "X", "D_X"));
  HEDDLE_RETURN_IF_ERROR(SetLike(ctx, "Y", "D_Y"));
  HEDDLE_RETURN_IF_ERROR(SetLike(ctx, "DOut", "D_DOut"));
  HEDDLE_RETURN_IF_ERROR(SetLike(ctx, "X", "D_DDX"));
  return SetLike(ctx, "Y", "D_DDY");
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(elementwise_mul_grad_grad) {
  op.Doc("second derivative of x * y").Input("X").Input("Y").Input("DOut");
  op.Input("DDX", kOptional).Input("DDY", kOptional).Attr("axis", -1);
  op.Output("X@GRAD", kOptional).Output("Y@GRAD", kOptional).Output("DDOut", kOptional);
  op.InferShape(&InferSecond).Prepare(&PrepareBroadcast<SlotsXY>);
  op.Kernels<Second, float, double, bool, int32_t, int64_t, std::complex<float>,
             std::complex<double>>();
  op.Kernel(DType::kBF16, RunInFloat);
}

HEDDLE_OP(elementwise_mul_triple_grad) {
  op.Doc("third derivative of x * y").Input("X").Input("Y").Input("DOut");
  op.Input("DDX").Input("DDY").Input("D_DX", kOptional).Input("D_DY", kOptional);
  op.Input("D_DDOut").Attr("axis", -1);
  op.Output("D_X", kOptional).Output("D_Y", kOptional).Output("D_DOut", kOptional);
  op.Output("D_DDX", kOptional).Output("D_DDY", kOptional);
  op.InferShape(&InferThird).Prepare(&PrepareBroadcast<SlotsXY>);
  op.Kernels<Third, float, double, bool, int32_t, int64_t, std::complex<float>,
             std::complex<double>>();
  op.Kernel(DType::kBF16, RunInFloat);
}
