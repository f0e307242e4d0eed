#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/linalg/linalg_factor.h"

namespace heddle {
namespace {

// A right side of fewer axes that matches X without its last axis is a batch of vectors.
bool IsVector(const Shape& x, const Shape& y) {
  if (y.rank() == 1) return true;
  if (y.rank() != x.rank() - 1) return false;
  for (int i = 0; i < y.rank(); ++i)
    if (y[i] != x[i]) return false;
  return true;
}

struct Plan {
  bool vector;
  Shape y;  // as matrices
  Shape out;
  BatchPairs pairs;
};

Result<Plan> MakePlan(const Shape& x, const Shape& y_in) {
  if (x.rank() < 2 || x.dim(-1) != x.dim(-2))
    return InvalidArgument("X must hold square matrices, not ", x.ToString());
  if (y_in.rank() < 1) return InvalidArgument("Y must have at least one axis");
  Plan plan;
  plan.vector = IsVector(x, y_in);
  plan.y = y_in;
  if (plan.vector) plan.y.push_back(1);
  if (plan.y.dim(-2) != x.dim(-1))
    return InvalidArgument("X ", x.ToString(), " and Y ", y_in.ToString(),
                           " do not fit each other");
  HEDDLE_ASSIGN_OR_RETURN(plan.pairs, PairBatches(LeadingAxes(x, 2), LeadingAxes(plan.y, 2)));
  plan.out = plan.pairs.batch;
  plan.out.push_back(x.dim(-1));
  if (!plan.vector) plan.out.push_back(plan.y.dim(-1));
  return plan;
}

Status InferSolution(ShapeContext& ctx) {
  const Shape &x = ctx.InShape("X"), &y = ctx.InShape("Y");
  if (!x.is_static() || !y.is_static()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const Plan plan, MakePlan(x, y));
  if (ctx.InDType("X") != ctx.InDType("Y"))
    return InvalidArgument("X and Y must have the same dtype");
  ctx.SetOut("Out", plan.out, ctx.InDType("X"));
  return Status::Ok();
}

template <typename T>
struct Solve {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &y = ctx.In("Y");
    Tensor& out = ctx.Out("Out");
    if (out.numel() == 0) return Status::Ok();
    HEDDLE_ASSIGN_OR_RETURN(const Plan plan, MakePlan(x.shape(), y.shape()));
    const int64_t n = plan.y.dim(-2), k = plan.y.dim(-1);
    for (const int64_t i : Watched(plan.pairs.count())) {
      const auto at = static_cast<size_t>(i);
      const ConstMatrixMap<T> b(y.data<T>() + plan.pairs.b[at] * n * k, n, k);
      MatrixMap<T>(out.mutable_data<T>() + i * n * k, n, k) =
          LuFactors<T>(MatrixAt<T>(x, plan.pairs.a[at])).Solve(b);
    }
    return Status::Ok();
  }
};

Status InferSolutionGrad(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "Out", "Out@GRAD"));
  const Shape &x = ctx.InShape("X"), &y = ctx.InShape("Y"), &out = ctx.InShape("Out");
  if (x.is_static() && y.is_static() && out.is_static()) {
    HEDDLE_ASSIGN_OR_RETURN(const Plan plan, MakePlan(x, y));
    if (plan.out.numel() != out.numel())
      return InvalidArgument("Out ", out.ToString(), " should have shape ", plan.out.ToString());
  }
  SetOutsLike(ctx, {{"X", "X@GRAD"}, {"Y", "Y@GRAD"}});
  return Status::Ok();
}

template <typename T>
struct SolveGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &y = ctx.In("Y"), &out = ctx.In("Out"),
                 &dout = ctx.In("Out@GRAD");
    Tensor *dx = ctx.OutOpt("X@GRAD"), *dy = ctx.OutOpt("Y@GRAD");
    for (Tensor* t : {dx, dy})
      if (t != nullptr && t->numel() > 0) WatchedMemset(t->mutable_raw(), 0, t->bytes());
    if (out.numel() == 0) return Status::Ok();
    HEDDLE_ASSIGN_OR_RETURN(const Plan plan, MakePlan(x.shape(), y.shape()));
    const int64_t n = plan.y.dim(-2), k = plan.y.dim(-1);
    for (const int64_t i : Watched(plan.pairs.count())) {
      const auto at = static_cast<size_t>(i);
      const LuFactors<T> turned(MatrixAt<T>(x, plan.pairs.a[at]).transpose());
      const ConstMatrixMap<T> z(out.data<T>() + i * n * k, n, k);
      const ConstMatrixMap<T> dz(dout.data<T>() + i * n * k, n, k);
      const Matrix<T> slope = turned.Solve(dz);
      if (dy) MatrixMap<T>(dy->mutable_data<T>() + plan.pairs.b[at] * n * k, n, k) += slope;
      if (dx) AddProduct(MutableMatrixAt<T>(*dx, plan.pairs.a[at]), slope, Turned<T>(z), T(-1));
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(solve) {
  op.Doc("solves X Z = Y")
      .Input("X")
      .Input("Y")
      .Output("Out")
      .InferShape(InferSolution)
      .Kernels<Solve, float, double>();
}

HEDDLE_OP(solve_grad) {
  op.Input("X")
      .Input("Y")
      .Input("Out")
      .Input("Out@GRAD")
      .Output("X@GRAD", kOptional)
      .Output("Y@GRAD", kOptional)
      .InferShape(InferSolutionGrad)
      .Kernels<SolveGrad, float, double>();
}
