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

HEDDLE_EXAMPLES(solve, R"(
example float64 3x4
in X float64 [3, 3] 0.716 0.528 0.434 0.903 0.152 0.246 0.622 0.81 0.34
in Y float64 [3, 4] 0.489 0.559 0.348 0.699 0.84 0.138 0.418 0.629 0.208 0.77 0.91 0.278
out Out float64 [3, 4] 0.9575121146184813 -0.10668222383400082 0.8802203231265701 0.2550954978819126
  -0.5892903798064568 0.8542491128321803 1.472428320396238 -0.719509774781152 0.26397844808980814
  0.4247487112667128 -2.441658766193175 2.0650985820299512

example float64 2x3x3
in X float64 [2, 3, 3] 0.256 0.948 0.849 0.75 0.404 0.207 0.355 0.602 0.306 0.503 0.553 0.898 0.157
  0.701 0.8 0.651 0.108 0.454
in Y float64 [1, 3, 3] 0.506 0.351 0.428 0.389 0.545 0.234 0.273 0.467 0.312
out Out float64 [2, 3, 3] 0.40039474707563893 0.4547099024322366 0.04852992294998443
  -0.055973267670897026 0.8490559878438433 0.5569655848907262 0.5377639605425758 -0.6717441831550248
  -0.13242289134464605 -0.2146528376917817 3.063369839816717 -0.16360001174047806
  -0.5964321206659585 5.395128559930346 -0.9355275495682769 1.0509992651305582 -4.647417731702996
  1.1443625176132712

example float64 2x3x4
in X float64 [3, 3] 0.34 0.246 0.716 0.528 0.622 0.434 0.152 0.903 0.81
in Y float64 [2, 3, 4] 0.403 0.801 0.642 0.602 0.244 0.204 0.841 0.085 0.96 0.363 0.323 0.522 0.284
  0.124 0.483 0.562 0.721 0.881 0.443 0.761 0.682 0.164 0.92 0.045
out Out float64 [2, 3, 4] -0.7667769577391117 0.26031144521917593 1.5203112473334357
  -0.3203020425938459 0.5213855406434142 -0.7725278639103498 -0.07940475969434525
  -0.37385324585227375 0.7478258695991874 1.2605250881947296 0.20199405976458218 1.1213276438010713
  0.5538032831147688 1.5820539685051374 -0.2661939489988472 1.7420392739626072 0.7836514846404573
  0.6271207039445811 0.4988969216772193 -0.2969719782658968 -0.13557455514046637 -0.7935335788577007
  0.6295772345349331 0.05972311942196113

example float64 3x4x4
in X float64 [3, 4, 4] 0.716 0.553 0.309 0.35 0.898 0.106 0.512 0.756 0.594 0.634 0.695 0.675 0.269
  0.655 0.37 0.289 0.086 0.939 0.147 0.208 0.573 0.39 0.126 0.98 0.33 0.817 0.065 0.228 0.837 0.492
  0.878 0.533 0.431 0.472 0.959 0.614 0.248 0.776 0.025 0.858 0.919 0.411 0.167 0.187 0.797 0.736
  0.045 0.451
in Y float64 [3, 4] 0.843 0.081 0.31 0.538 0.615 0.691 0.386 0.233 0.92 0.462 0.157 0.767
out Out float64 [3, 4] 0.8940193212741256 1.2001671532429612 -0.9412192097751259
  -0.48563866844319353 -0.7230609657476058 0.5000588327447726 0.11993783300586289 0.9134477771879367
  -1.3947537111265078 4.2971645847210995 1.3824416172932892 -2.9851536571288246

example float32 3x4
in X float32 [3, 3] 0.716 0.528 0.434 0.903 0.152 0.246 0.622 0.81 0.34
in Y float32 [3, 4] 0.489 0.559 0.348 0.699 0.84 0.138 0.418 0.629 0.208 0.77 0.91 0.278
out Out float32 [3, 4] 0.95751214 -0.106682286 0.8802205 0.25509542 -0.5892903 0.85424906 1.4724286
  -0.71950984 0.26397836 0.42474893 -2.4416595 2.065099
)")

HEDDLE_EXAMPLES(solve_grad, R"(
example float64 2x3x4
in Out float64 [2, 3, 4] -0.05551175722409679 0.7921541420958028 1.0292537815479381
  0.7803075694028357 -0.0636350095308898 0.8670827694531129 0.36805337029837976 -0.45147304412120914
  1.5560960903335554 -1.1589909401194431 -2.0421149472485443 0.8333584046165168 -0.9619059632304249
  1.8734088066181032 1.844995953034173 0.5162561887042352 -0.12948376192703157 1.1271577685976477
  1.0743334919019312 -0.09085524386799115 3.9564334008535873 -3.9919355008251607 -3.696463562434764
  -0.36329000541459217
in Out@GRAD float64 [2, 3, 4] 0.9 0.1 1 0.6 0.9 -0.1 -0.5 0.3 0.8 -0.4 -0.2 0.3 -0.9 0.4 -0.4 -0.7
  -0.8 0.3 -0.5 -1 0.6 -0 0.5 0.8
in X float64 [3, 3] 0.716 0.528 0.434 0.903 0.152 0.246 0.622 0.81 0.34
in Y float64 [2, 3, 4] 0.602 0.522 0.045 0.682 0.323 0.562 0.483 0.841 0.443 0.801 0.244 0.403 0.96
  0.204 0.284 0.164 0.085 0.881 0.92 0.363 0.642 0.721 0.761 0.124
out X@GRAD float64 [3, 3] -0.5488335416515335 1.3019086314996575 -23.511811696585504
  -2.885612539338582 -1.3882766438222383 14.590636480982546 1.537425412700506 -0.010326125555703447
  11.802734376129473
out Y@GRAD float64 [2, 3, 4] 2.662337676860458 -2.841616361953287 -2.213622093682505
  0.6297499290467029 -0.7858471823657402 1.3471665983412693 2.634417079246948 0.2213742865251806
  -0.4768710143984313 1.4760544643993372 0.33130996224546516 -0.08167512850430446 7.136257839249016
  -1.176789225207889 5.0822353743952196 8.57503638243525 -3.181861183816341 0.680520954873703
  -2.0276875532149723 -3.3004320267415084 -5.042347208868391 1.009759908356744 -3.5496441599901236
  -6.204880915877906

example float32 2x3x4
in Out float32 [2, 3, 4] -0.055511758 0.79215413 1.0292538 0.7803076 -0.06363501 0.8670828
  0.36805338 -0.45147306 1.5560961 -1.158991 -2.042115 0.8333584 -0.96190596 1.8734088 1.844996
  0.5162562 -0.12948376 1.1271578 1.0743335 -0.09085524 3.9564333 -3.9919355 -3.6964636 -0.36329
in Out@GRAD float32 [2, 3, 4] 0.9 0.1 1 0.6 0.9 -0.1 -0.5 0.3 0.8 -0.4 -0.2 0.3 -0.9 0.4 -0.4 -0.7
  -0.8 0.3 -0.5 -1 0.6 -0 0.5 0.8
in X float32 [3, 3] 0.716 0.528 0.434 0.903 0.152 0.246 0.622 0.81 0.34
in Y float32 [2, 3, 4] 0.602 0.522 0.045 0.682 0.323 0.562 0.483 0.841 0.443 0.801 0.244 0.403 0.96
  0.204 0.284 0.164 0.085 0.881 0.92 0.363 0.642 0.721 0.761 0.124
close 2e-05 2e-06
out X@GRAD float32 [3, 3] -0.54883194 1.3019097 -23.511826 -2.885613 -1.3882768 14.590641 1.5374244
  -0.010326266 11.80274
out Y@GRAD float32 [2, 3, 4] 2.6623385 -2.8416176 -2.2136235 0.62975013 -0.78584754 1.347167
  2.6344175 0.22137423 -0.47687152 1.4760551 0.33131078 -0.081675224 7.1362605 -1.1767899 5.082237
  8.575039 -3.1818624 0.6805212 -2.0276883 -3.300433 -5.042349 1.0097603 -3.5496452 -6.204882
)")
