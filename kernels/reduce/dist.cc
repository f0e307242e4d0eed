// dist: the p-norm of x - y.
#include <cmath>

#include "core/error.h"
#include "core/interrupts.h"
#include "kernels/base/check.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/elementwise/binary_grad.h"

namespace heddle {
namespace {

// One accumulation step; the operator finishes the sum with a root.
template <typename T>
T Step(T total, T a, T p) {
  if (p == T(0)) return total + T(a != 0);
  if (std::isinf(p)) return p > 0 ? std::max(total, a) : std::min(total, a);
  if (p == T(1)) return total + a;
  if (p == T(2)) return total + a * a;
  return total + std::pow(a, p);
}

template <typename T>
struct Dist {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const Tensor& y = ctx.In("Y");
    HEDDLE_RETURN_IF_ERROR(CheckSameDType(ctx, x, y));
    HEDDLE_ASSIGN_OR_RETURN(const BroadcastPlan plan, MakeBroadcastPlan(x.shape(), y.shape(), -1));
    const T p = static_cast<T>(ctx.Float("p"));
    T total = std::isinf(p) && p < 0 && plan.numel > 0 ? std::numeric_limits<T>::infinity() : T(0);
    const int64_t xs = plan.x_strides[plan.rank - 1], ys = plan.y_strides[plan.rank - 1];
    ForEachRow(plan, 0, plan.rows, [&](int64_t xo, int64_t yo, int64_t) {
      const T* a = x.data<T>() + xo;
      const T* b = y.data<T>() + yo;
      for (const auto part : Stretches(plan.cols))
        for (int64_t i = part.begin; i < part.end; ++i)
          total = Step(total, std::fabs(a[i * xs] - b[i * ys]), p);
    });
    if (p != T(0) && !std::isinf(p))
      total = p == T(2) ? std::sqrt(total) : std::pow(total, T(1) / p);
    *ctx.Out("Out").template mutable_data<T>() = total;
    return Status::Ok();
  }
};

// The gradient of |x - y| to its p-norm, for x or, negated, for y. `arg` points to p, out and dout.
template <typename T>
struct DistGrad {
  struct Scalars {
    T p, out, dout;
  };
  static T One(T diff, const Scalars& s) {
    const T a = std::fabs(diff), sign = static_cast<T>((diff > 0) - (diff < 0));
    if (s.p == T(0) || diff == T(0)) return T(0);
    if (std::isinf(s.p)) return a == s.out ? sign * s.dout : T(0);
    if (s.p == T(1)) return sign * s.dout;
    return sign * std::pow(a / s.out, s.p - T(1)) * s.dout;
  }
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const Tensor& y = ctx.In("Y");
    HEDDLE_RETURN_IF_ERROR(CheckSameDType(ctx, x, y));
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&ctx.In("Out"), &ctx.In("Out@GRAD")}));
    if (ctx.In("Out").numel() != 1 || ctx.In("Out@GRAD").numel() != 1)
      return InvalidArgument("Out and Out@GRAD must have one element");
    const Scalars s{static_cast<T>(ctx.Float("p")), ctx.In("Out").data<T>()[0],
                    ctx.In("Out@GRAD").data<T>()[0]};
    HEDDLE_ASSIGN_OR_RETURN(const BroadcastPlan plan, MakeBroadcastPlan(x.shape(), y.shape(), -1));
    Tensor full = ctx.Scratch(kDTypeOf<T>, Shape{plan.numel});
    T* d = full.template mutable_data<T>();
    const int64_t xs = plan.x_strides[plan.rank - 1], ys = plan.y_strides[plan.rank - 1];
    ForEachRow(plan, 0, plan.rows, [&](int64_t xo, int64_t yo, int64_t at) {
      for (const auto part : Stretches(plan.cols))
        for (int64_t i = part.begin; i < part.end; ++i)
          d[at + i] = One(x.data<T>()[xo + i * xs] - y.data<T>()[yo + i * ys], s);
    });
    constexpr GradLoops kPass = LoopsOf<PassGrad, T>();
    if (Tensor* dx = ctx.OutOpt("X@GRAD"))
      RunBinaryGrad(ctx, plan, kPass, {nullptr, nullptr, nullptr, d}, kDTypeOf<T>, dx, true);
    if (Tensor* dy = ctx.OutOpt("Y@GRAD")) {
      RunBinaryGrad(ctx, plan, kPass, {nullptr, nullptr, nullptr, d}, kDTypeOf<T>, dy, false);
      T* p = dy->mutable_data<T>();
      for (const auto part : Stretches(dy->numel()))
        for (int64_t i = part.begin; i < part.end; ++i) p[i] = -p[i];
    }
    return Status::Ok();
  }
};

Status InferDist(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(BroadcastShape(ctx.InShape("X"), ctx.InShape("Y"), -1).status());
  ctx.SetOut("Out", Shape(), ctx.InDType("X"));
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(dist) {
  op.Doc("p-norm of x - y")
      .Input("X")
      .Input("Y")
      .Output("Out")
      .Attr("p", 2.0)
      .InferShape(&InferDist);
  op.Kernels<Dist, float, double>();
}

HEDDLE_OP(dist_grad) {
  op.Doc("gradient of dist").Input("X").Input("Y").Input("Out").Input("Out@GRAD");
  op.Output("X@GRAD", kOptional).Output("Y@GRAD", kOptional).Attr("p", 2.0);
  op.InferShape(&GradLikeInputs).Kernels<DistGrad, float, double>();
}
