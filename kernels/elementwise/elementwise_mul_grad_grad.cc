// Second and third derivatives of elementwise_mul.
#include "kernels/base/full_operands.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/elementwise/binary_op.h"
#include "kernels/elementwise/convert.h"

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
  op.Input("DDX", kOptional).Input("DDY", kOptional).Input("D_DX", kOptional);
  op.Input("D_DY", kOptional).Input("D_DDOut", kOptional).Attr("axis", -1);
  op.Output("D_X", kOptional).Output("D_Y", kOptional).Output("D_DOut", kOptional);
  op.Output("D_DDX", kOptional).Output("D_DDY", kOptional);
  op.InferShape(&InferThird).Prepare(&PrepareBroadcast<SlotsXY>);
  op.Kernels<Third, float, double, bool, int32_t, int64_t, std::complex<float>,
             std::complex<double>>();
  op.Kernel(DType::kBF16, RunInFloat);
}

HEDDLE_EXAMPLES(elementwise_mul_grad_grad, R"(
example complex128 2
in DDX complex128 [2] 0.2-2j 1.2+0.9j
in DDY complex128 [2] 0.1+0.8j -0.9+0.1j
in DOut complex128 [2] 1+1.1j 0.3-1.3j
in X complex128 [2] -0.8+0j 0.1+1.8j
in Y complex128 [2] 1.1-0.7j -2-0.6j
out DDOut complex128 [2] -1.26-2.9800000000000004j -2.13-4.13j
out X@GRAD complex128 [2] -0.7800000000000001+0.91j -0.14+1.2000000000000002j
out Y@GRAD complex128 [2] -2+2.22j -0.8100000000000002-1.83j

example float64 scalar
in DDX float64 [] 0.504
in DDY float64 [] 0.692
in DOut float64 [] 0.704
in X float64 [] 0.983
in Y float64 [] 0.716
out DDOut float64 [] 1.0411
out X@GRAD float64 [] 0.48716799999999993
out Y@GRAD float64 [] 0.35481599999999996

example float64 4x3
in DDX float64 [4, 3] 0.058 0.135 0.083 0.07 0.109 0.096 0.032 0.122 0.147 0.16 0.173 0.045
in DDY float64 [] 37.6
in DOut float64 [4, 3] 0.401 0.312 0.222 0.103 0.371 0.074 0.252 0.341 0.163 0.193 0.282 0.133
in X float64 [4, 3] 0.652 0.377 0.239 0.171 0.859 0.927 0.79 0.308 0.583 0.721 0.446 0.515
in Y float64 [] 0.432
out DDOut float64 [4, 3] 24.540256 14.23352 9.022256 6.459840000000001 32.345488 34.896672
  29.717824000000004 11.633504 21.984303999999998 27.178720000000002 16.844336000000002 19.38344
out X@GRAD float64 [4, 3] 15.077600000000002 11.731200000000001 8.3472 3.8728 13.9496 2.7824
  9.475200000000001 12.821600000000002 6.1288 7.2568 10.6032 5.000800000000001
out Y@GRAD float64 [] 0.29783499999999996

example bool 2
in DDX bool [2] 1 1
in DDY bool [2] 1 1
in DOut bool [2] 1 1
in X bool [2] 1 1
in Y bool [2] 1 1
out DDOut bool [2] 1 1
out X@GRAD bool [2] 1 1
out Y@GRAD bool [2] 1 1

example bfloat16
in X bfloat16 [2, 2] 1 -2 0.5 3
in Y bfloat16 [2, 2] 2 0.25 -1 1
in DOut bfloat16 [2, 2] 0.5 1 1.5 -2
in DDX bfloat16 [2, 2] 1 2 -1 0.5
in DDY bfloat16 [2, 2] 3 -1 1 0.25
out X@GRAD bfloat16 [2, 2] 1.5 -1 1.5 -0.5
out Y@GRAD bfloat16 [2, 2] 0.5 2 -1.5 -1
out DDOut bfloat16 [2, 2] 5 2.5 1.5 1.25
)")

HEDDLE_EXAMPLES(elementwise_mul_triple_grad, R"(
example float32
attr axis INT -1
in X float32 [2, 3] 0.18 0.4 -0.62 -0.91 -0.59 -0.79
in Y float32 [2, 3] 0.45 0.36 -0.05 -0.1 -0.96 0.51
in DOut float32 [2, 3] 0.2 0.92 0.33 0.21 -0.1 -0.55
in DDX float32 [2, 3] 0.34 0.47 -0.48 -0.81 0.92 -0.5
in DDY float32 [2, 3] -0.44 0.54 0.6 0.09 -0.23 -0.24
in D_DX float32 [2, 3] -0.43 0.48 -0.52 -0.12 0.77 -0.42
in D_DY float32 [2, 3] 0.57 0.52 -0.16 -0.55 -0.16 -0.87
in D_DDOut float32 [2, 3] 0.19 0.67 0.78 -0.6 0 0.79
out D_X float32 [2, 3] -0.0836 0.36180001 0.468 -0.054000005 -0 -0.1896
out D_Y float32 [2, 3] 0.0646 0.3149 -0.3744 0.48600003 0 -0.395
out D_DOut float32 [2, 3] 0.38300002 0.5036 -0.23520002 0.4347 -0.3243 0.5358
out D_DDX float32 [2, 3] 0.1995 0.7196 -0.091800004 -0.055499993 0.016 0.8814
out D_DDY float32 [2, 3] -0.0518 0.7096 -0.6552 0.52080005 -0.077 -0.39310002

example float64
attr axis INT -1
in X float64 [2, 3] -0.33 0.19 -0.76 -0.82 -0.23 -0.67
in Y float64 [2, 3] -0.9 -0.51 -0.16 -0.1 0.33 -0.38
in DOut float64 [2, 3] 0.49 0.01 0.29 -0.47 -0.68 0.84
in DDX float64 [2, 3] -0.91 0.3 -0.17 -0.51 -0.99 -0.2
in DDY float64 [2, 3] -0.58 0.86 0.8 0.44 0.96 0.32
in D_DX float64 [2, 3] -0.28 0.43 0.59 0.55 -0.8 0.23
in D_DY float64 [2, 3] 0.45 0.83 0.87 0.98 -0.5 -0.31
in D_DDOut float64 [2, 3] -0.55 0.93 -0.61 0.71 -0.2 0.75
out D_X float64 [2, 3] 0.319 0.7998000000000001 -0.488 0.3124 -0.192 0.24
out D_Y float64 [2, 3] 0.5005000000000001 0.279 0.1037 -0.3621 0.198 -0.15000000000000002
out D_DOut float64 [2, 3] -0.24710000000000001 0.6187999999999999 0.32409999999999994
  -0.25780000000000003 -0.273 0.1356
out D_DDX float64 [2, 3] 0.7155 -0.4660000000000001 0.3499 -0.5316 0.274 -0.5454
out D_DDY float64 [2, 3] 0.044300000000000006 0.18100000000000002 0.6347 -0.8407 0.5900000000000001
  -0.3093

example bool
attr axis INT -1
in X bool [2, 3] 1*6
in Y bool [2, 3] 1*6
in DOut bool [2, 3] 1*6
in DDX bool [2, 3] 1*6
in DDY bool [2, 3] 1*6
in D_DX bool [2, 3] 1*6
in D_DY bool [2, 3] 1*6
in D_DDOut bool [2, 3] 1*4 0 1
out D_X bool [2, 3] 1*4 0 1
out D_Y bool [2, 3] 1*4 0 1
out D_DOut bool [2, 3] 1*6
out D_DDX bool [2, 3] 1*6
out D_DDY bool [2, 3] 1*6

example bfloat16
attr axis INT -1
in X bfloat16 [2, 2] 1 -2 0.5 3
in Y bfloat16 [2, 2] 2 0.25 -1 1
in DOut bfloat16 [2, 2] 0.5 1 1.5 -2
in DDX bfloat16 [2, 2] 1 2 -1 0.5
in DDY bfloat16 [2, 2] 3 -1 1 0.25
in D_DX bfloat16 [2, 2] 0.5 1 2 -1
in D_DY bfloat16 [2, 2] 1 0.5 -1 2
in D_DDOut bfloat16 [2, 2] 2 -0.5 1 1
out D_X bfloat16 [2, 2] 6 0.5 1 0.25
out D_Y bfloat16 [2, 2] 2 -1 -1 0.5
out D_DOut bfloat16 [2, 2] 2.5 0 3 0.75
out D_DDX bfloat16 [2, 2] 4.5 0.375 -2.5 -3
out D_DDY bfloat16 [2, 2] 2.25 2 3.5 5
)")
