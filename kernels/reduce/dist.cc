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

HEDDLE_EXAMPLES(dist, R"(
example Euclidean, y broadcast
attr p FLOAT 2.0
in X float32 [2, 3] 0.18 0.4 -0.62 -0.91 -0.59 -0.79
in Y float32 [3] 0.45 0.36 -0.05
out Out float32 [] 1.9233044

example p 1
attr p FLOAT 1.0
in X float32 [2, 2] -0.96 0.51 0.2 0.92
in Y float32 [2, 2] 0.33 0.21 -0.1 -0.55
out Out float32 [] 3.36

example p infinite
attr p FLOAT Infinity
in X float32 [2, 2] 0.47 -0.48 -0.81 0.92
in Y float32 [2, 2] -0.5 -0.44 0.54 0.6
out Out float32 [] 1.35

example p 0
attr p FLOAT 0.0
in X float32 [2, 2] -0.23 -0.24 -0.43 0.48
in Y float32 [2, 2] -0.52 -0.12 0.77 -0.42
out Out float32 [] 4
)")

HEDDLE_EXAMPLES(dist_grad, R"(
example Euclidean, y broadcast
in Out float64 [] 1.9233044480788788
in Out@GRAD float64 [] 0.3
in X float64 [2, 3] 0.18 0.4 -0.62 -0.91 -0.59 -0.79
in Y float64 [3] 0.45 0.36 -0.05
out X@GRAD float64 [2, 3] -0.042115017245899854 0.006239261814207391 -0.08890948085245524
  -0.21213490168305113 -0.14818246808742538 -0.11542634356283663
out Y@GRAD float64 [3] 0.254249918928951 0.141943206273218 0.20433582441529186

example p 1
attr p FLOAT 1.0
in Out float64 [] 3.3600000000000003
in Out@GRAD float64 [] 0.6
in X float64 [2, 2] -0.96 0.51 0.2 0.92
in Y float64 [2, 2] 0.33 0.21 -0.1 -0.55
out X@GRAD float64 [2, 2] -0.5999999999993999 0.5999999999993999 0.5999999999993999
  0.5999999999993999
out Y@GRAD float64 [2, 2] 0.5999999999993999 -0.5999999999993999 -0.5999999999993999
  -0.5999999999993999

example p infinite
attr p FLOAT Infinity
in Out float64 [] 1.35
in Out@GRAD float64 [] 0.6
in X float64 [2, 2] 0.47 -0.48 -0.81 0.92
in Y float64 [2, 2] -0.5 -0.44 0.54 0.6
out X@GRAD float64 [2, 2] 0 -0 -0.6 0
out Y@GRAD float64 [2, 2] -0 -0 0.6 -0
)")
