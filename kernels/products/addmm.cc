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
