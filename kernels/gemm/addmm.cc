// addmm: beta * input + alpha * x y.
#include "core/error.h"
#include "core/interrupts.h"
#include "core/shapes.h"
#include "kernels/base/check.h"
#include "kernels/elementwise/binary_grad.h"
#include "kernels/gemm/gemm.h"

namespace heddle {
namespace {

struct Sizes {
  int64_t m = 0, n = 0, k = 0;
};

Result<Sizes> ProductSizes(const Shape& x, const Shape& y) {
  const bool fits = x.rank() == 2 && y.rank() == 2 && (x[1] == y[0] || x[1] < 0 || y[0] < 0);
  if (!fits)
    return InvalidArgument("X ", x.ToString(), " and Y ", y.ToString(),
                           " are not matrices that can be multiplied");
  return Sizes{x[0], y[1], x[1]};
}

template <typename T>
struct Addmm {
  static Status Run(KernelContext& ctx) {
    const Tensor& input = ctx.In("Input");
    const Tensor& x = ctx.In("X");
    const Tensor& y = ctx.In("Y");
    Tensor& out = ctx.Out("Out");
    if (input.dtype() != x.dtype() || y.dtype() != x.dtype())
      return InvalidArgument("Input, X and Y must have one dtype");
    HEDDLE_ASSIGN_OR_RETURN(const Sizes s, ProductSizes(x.shape(), y.shape()));
    const Shape full{s.m, s.n};
    HEDDLE_ASSIGN_OR_RETURN(const BroadcastPlan plan, MakeBroadcastPlan(full, input.shape(), -1));
    T* o = out.mutable_data<T>();
    const T beta = static_cast<T>(ctx.Float("Beta"));
    ParallelRows(ctx, plan, kElementGrain, [&](int64_t, int64_t yo, int64_t at, int64_t n) {
      const T* from = input.data<T>() + yo;
      const int64_t step = plan.inner == InnerKind::kVectorScalar ? 0 : 1;
      for (int64_t i = 0; i < n; ++i) o[at + i] = beta * from[i * step];
    });
    ParallelGemm(ctx, GemmDims::Dense(s.m, s.n, s.k), static_cast<T>(ctx.Float("Alpha")),
                 x.data<T>(), y.data<T>(), T(1), o);
    return Status::Ok();
  }
};

template <typename T>
struct AddmmGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const Tensor& y = ctx.In("Y");
    const Tensor& dout = ctx.In("Out@GRAD");
    HEDDLE_ASSIGN_OR_RETURN(const Sizes s, ProductSizes(x.shape(), y.shape()));
    if (dout.shape() != Shape{s.m, s.n} || x.dtype() != dout.dtype() || y.dtype() != dout.dtype())
      return InvalidArgument("Out@GRAD ", dout.shape().ToString(), " does not fit X and Y");
    const T alpha = static_cast<T>(ctx.Float("Alpha")), beta = static_cast<T>(ctx.Float("Beta"));
    const T* g = dout.data<T>();
    if (Tensor* dx = ctx.OutOpt("X@GRAD"))
      ParallelGemm(ctx, GemmDims::Dense(s.m, s.k, s.n, false, true), alpha, g, y.data<T>(), T(0),
                   dx->mutable_data<T>());
    if (Tensor* dy = ctx.OutOpt("Y@GRAD"))
      ParallelGemm(ctx, GemmDims::Dense(s.k, s.n, s.m, true, false), alpha, x.data<T>(), g, T(0),
                   dy->mutable_data<T>());
    if (Tensor* di = ctx.OutOpt("Input@GRAD")) {
      HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {di}));
      HEDDLE_ASSIGN_OR_RETURN(const BroadcastPlan plan,
                              MakeBroadcastPlan(dout.shape(), di->shape(), -1));
      RunBinaryGrad(ctx, plan, LoopsOf<PassGrad, T>(), {nullptr, nullptr, nullptr, g}, dout.dtype(),
                    di, false);
      T* d = di->mutable_data<T>();
      for (const auto part : Stretches(di->numel()))
        for (int64_t i = part.begin; i < part.end; ++i) d[i] *= beta;
    }
    return Status::Ok();
  }
};

Status InferAddmm(ShapeContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const Sizes s, ProductSizes(ctx.InShape("X"), ctx.InShape("Y")));
  const Shape out{s.m, s.n};
  HEDDLE_ASSIGN_OR_RETURN(const Shape both, BroadcastShape(out, ctx.InShape("Input"), -1));
  if (both.rank() != 2 || (both.is_static() && out.is_static() && both != out))
    return InvalidArgument("Input ", ctx.InShape("Input").ToString(), " cannot be broadcast to ",
                           out.ToString());
  ctx.SetOut("Out", out, ctx.InDType("X"));
  return Status::Ok();
}

void DefineAttrs(OpDef& op) { op.Attr("Alpha", 1.0).Attr("Beta", 1.0); }

}  // namespace
}  // namespace heddle

HEDDLE_OP(addmm) {
  op.Doc("beta * input + alpha * x y").Input("Input").Input("X").Input("Y").Output("Out");
  DefineAttrs(op);
  op.InferShape(&InferAddmm).Kernels<Addmm, float, double>();
}

HEDDLE_OP(addmm_grad) {
  op.Doc("gradient of addmm").Input("Input", kNoBuffer).Input("X").Input("Y").Input("Out@GRAD");
  op.Output("Input@GRAD", kOptional).Output("X@GRAD", kOptional).Output("Y@GRAD", kOptional);
  DefineAttrs(op);
  op.KernelKey("Out@GRAD").InferShape(&GradLikeInputs).Kernels<AddmmGrad, float, double>();
}

HEDDLE_EXAMPLES(addmm, R"(
example float32 2x4, Alpha 1.66209, Beta 1.17666
attr Alpha FLOAT 1.6620907
attr Beta FLOAT 1.1766642
in Input float32 [4] -0.65 -0.11 -0.38 0.17
in X float32 [2, 2] -0.181 -0.009 -0.353 -0.525
in Y float32 [2, 4] 0.73 0.32 -0.7 0.12 -0.49 -0.09 -0.29 0.52
out Out float32 [2, 4] -0.97711396 -0.22435507 -0.23220746 0.15615372 -0.765563 -0.23864903
  0.21662343 -0.32412398

example float64 4x3
in Input float64 [2, 1] 0.249 0.704
in X float64 [2, 4] 0.111 0.443 0.333 0.554 0.222 0.887 0.776 0.665
in Y float64 [4, 3] 0.552 0.921 0.258 0.626 0.773 0.847 0.11 0.479 0.331 0.7 0.405 0.184
out Out float64 [2, 3] 1.0120200000000001 1.077547 0.8650180000000001 1.9326660000000002 2.235142
  1.891781

example float32 4x4, Alpha 1.86094, Beta 0.595036
attr Alpha FLOAT 1.8609399
attr Beta FLOAT 0.59503627
in Input float32 [1, 1] 0.419
in X float32 [1, 4] 0.12 -0.19 -0.51 0.44
in Y float32 [4, 4] -0.54 -0.07 0.86 0.62 -0.19 -0.65 -0.3 0.28 -0.42 0.39 0.04 0.16 -0.88 -0.77
  0.51 0.74
out Out float32 [1, 4] -0.1260314 -0.537113 0.9270745 0.7428415

example float64 3x4, Alpha 0.5, Beta 2
attr Alpha FLOAT 0.5
attr Beta FLOAT 2.0
in Input float64 [2] 0.702 0.868
in X float64 [3, 4] 0.23 0.154 0.384 0.307 0.077 0.537 0.921 0.844 0.767 0.46 0.69 0.614
in Y float64 [4, 2] 0.665 0.222 0.111 0.886 0.776 0.444 0.554 0.333
out Out float64 [3, 2] 1.7230530000000002 1.9661155000000001 2.050542 2.327426 2.1223555 2.280328
)")

HEDDLE_EXAMPLES(addmm_grad, R"(
example float64 2x4, Alpha 1.66209, Beta 1.17666
attr Alpha FLOAT 1.6620907
attr Beta FLOAT 1.1766642
in Input float64 [4] -0.11 -0.38 -0.65 0.17
in Out@GRAD float64 [2, 4] 0.2 -0.7 -0.7 -0.9 0.2 0.2 -0.5 0.8
in X float64 [2, 2] -0.009 -0.353 -0.525 -0.181
in Y float64 [2, 4] -0.29 -0.09 0.12 0.73 0.52 -0.49 -0.7 0.32
out Input@GRAD float64 [4] 0.47066569328308105 -0.5883321166038512 -1.4119970798492432
  -0.11766642332077024
out X@GRAD float64 [2, 2] -1.2232987251281737 1.0786968377828594 0.7446166152954101
  1.0171994833946227
out Y@GRAD float64 [2, 4] -0.17751128239631653 -0.16404834805727006 0.44676996917724604
  -0.6846151425004006 -0.17751128239631653 0.35053492001295083 0.561121806526184 0.2873754749655723

example float64 4x3, Alpha 0.780093, Beta 0.62919
attr Alpha FLOAT 0.7800929
attr Beta FLOAT 0.6291896
in Input float64 [1, 3] -0.21 0.14 -0.96
in Out@GRAD float64 [4, 3] -0.7 0.1 -0 -0.9 -0 0.6 -0.6 -0 0 -0.4 0.5 0.3
in X float64 [4, 2] 0.54 -0.03 0.73 0.16 0.35 -0.22 -0.6 -0.41
in Y float64 [2, 3] 0.37 -0.01 -0.39 -0.2 -0.58 0.18
out Input@GRAD float64 [1, 3] -1.6358929872512817 0.3775137662887573 0.5662706494331359
out X@GRAD float64 [4, 2] -0.2028241527080536 0.06396761739253996 -0.442312671482563
  0.22466675376892092 -0.17318062269687653 0.09361114740371704 -0.21062508165836336
  -0.12169449162483213
out Y@GRAD float64 [2, 3] -0.7839933595061304 -0.19190285217761993 0.20126396691799164
  0.1349560708403587 -0.16225932216644287 -0.02106250816583632

example float32 2x4, Alpha 1.66209, Beta 1.17666
attr Alpha FLOAT 1.6620907
attr Beta FLOAT 1.1766642
in Input float32 [4] -0.11 -0.38 -0.65 0.17
in Out@GRAD float32 [2, 4] 0.2 -0.7 -0.7 -0.9 0.2 0.2 -0.5 0.8
in X float32 [2, 2] -0.009 -0.353 -0.525 -0.181
in Y float32 [2, 4] -0.29 -0.09 0.12 0.73 0.52 -0.49 -0.7 0.32
out Input@GRAD float32 [4] 0.4706657 -0.5883321 -1.4119971 -0.11766638
out X@GRAD float32 [2, 2] -1.2232987 1.0786968 0.74461675 1.0171995
out Y@GRAD float32 [2, 4] -0.17751127 -0.16404834 0.44676995 -0.68461514 -0.17751126 0.3505349
  0.5611218 0.28737545
)")
