// Second derivative of elementwise_div.
#include "kernels/base/full_operands.h"
#include "kernels/elementwise/arithmetic.h"

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

HEDDLE_EXAMPLES(elementwise_div_grad_grad, R"(
example float64 4
in DDX float64 [4] 52 34.7 17.4 69.3
in DDY float64 [4] -158 -475 -633 -316
in DX float64 [4] 52 69.3 17.4 34.7
in Out float64 [4] 5.52 7.33 1.92 3.72
in Y float64 [4] 0.447 0.619 0.791 0.275
out DDOut float64 [4] 2067.4720357941833 5680.856219709208 1558.4829329962072 4526.618181818181
out DOut float64 [4] 8216 32917.5 11014.199999999999 10965.2
out Y@GRAD float64 [4] -107508.54586129753 -393683.3360258481 -27117.603034134 -157073.6509090909

example float64 4x3
in DDX float64 [4, 3] 37.2 47.8 21.3 26.6 63.7 5.4 10.7 31.9 53.1 42.5 16 58.4
in DDY float64 [4, 3] -173 -216 -259 -388 -302 -86 -43 -518 -345 -475 -129 -431
in DX float64 [4, 3] 58.4 42.5 10.7 37.2 63.7 21.3 47.8 5.4 31.9 53.1 16 26.6
in Out float64 [4, 3] 1.35 2.59 3.2 5.05 6.9 1.97 4.43 0.74 7.51 3.82 6.28 5.66
in Y float64 [4, 3] 0.239 0.927 0.171 0.377 0.79 0.721 0.515 0.652 0.308 0.859 0.446 0.583
out DDOut float64 [4, 3] 1132.8451882845188 655.0593311758358 4971.345029239766 5267.904509283819
  2718.3544303797466 242.46879334257974 390.66019417475724 636.840490797546 8584.57792207792
  2161.816065192084 1852.286995515695 4284.493996569468
out DOut float64 [4, 3] 10103.199999999999 9180 2771.2999999999997 14433.6 19237.4 1831.8 2055.4
  2797.2000000000003 11005.5 25222.5 2064 11464.6
out Y@GRAD float64 [4, 3] -66158.1589958159 -27840.021574973027 -53193.39181286549
  -195966.04774535808 -173159.1772151899 -5164.585298196948 -18673.557281553396 -3438.938650306749
  -273848.0357142857 -114792.43306169966 -29636.59192825112 -113967.54030874788

example float32 4
in DDX float32 [4] 52 34.7 17.4 69.3
in DDY float32 [4] -158 -475 -633 -316
in DX float32 [4] 52 69.3 17.4 34.7
in Out float32 [4] 5.52 7.33 1.92 3.72
in Y float32 [4] 0.447 0.619 0.791 0.275
out DDOut float32 [4] 2067.472 5680.856 1558.4829 4526.618
out DOut float32 [4] 8216 32917.5 11014.2 10965.2
out Y@GRAD float32 [4] -107508.55 -393683.34 -27117.602 -157073.66
)")
