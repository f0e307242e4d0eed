#include <algorithm>
#include <utility>

#include "core/shapes.h"
#include "kernels/base/check.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/gemm_ops.h"

namespace heddle {
namespace {

// Product of dimensions, -1 where one is unknown.
int64_t Fold(const Shape& s, int begin, int end) {
  int64_t n = 1;
  for (int i = begin; i < end; ++i) {
    if (s[i] < 0) return -1;
    n *= s[i];
  }
  return n;
}

Result<MatmulShapes> View(const OpContext& ctx, const Shape& x, const Shape& y) {
  const int64_t xc = ctx.Int("x_num_col_dims"), yc = ctx.Int("y_num_col_dims");
  if (xc < 1 || xc >= x.rank() || yc < 1 || yc >= y.rank())
    return InvalidArgument("x_num_col_dims = ", xc, " and y_num_col_dims = ", yc,
                           " must split the dimensions of X ", x.ToString(), " and Y ",
                           y.ToString());
  const int xs = static_cast<int>(xc), ys = static_cast<int>(yc);
  HEDDLE_ASSIGN_OR_RETURN(MatmulShapes s,
                          MatmulShapesOf({Fold(x, 0, xs), Fold(x, xs, x.rank())},
                                         {Fold(y, 0, ys), Fold(y, ys, y.rank())}, false, false));
  s.result = Shape();
  for (int i = 0; i < xs; ++i) s.result.push_back(x[i]);
  for (int i = ys; i < y.rank(); ++i) s.result.push_back(y[i]);
  return s;
}
struct NoFactor {
  double operator()(const OpContext&) const { return 1; }
};
using Family = MatmulFamily<View, NoFactor>;

Status MulShape(ShapeContext& ctx) {
  if (!ctx.InShape("X").known_rank() || !ctx.InShape("Y").known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const MatmulShapes s, View(ctx, ctx.InShape("X"), ctx.InShape("Y")));
  if (ctx.InDType("X") != ctx.InDType("Y"))
    return InvalidArgument("X is ", Name(ctx.InDType("X")), ", but Y is ", Name(ctx.InDType("Y")));
  ctx.SetOut("Out", s.result, ctx.InDType("X"));
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

// The gradients of mul_grad's results, given the gradients DDX and DDY of those.
Status DoubleGradShape(ShapeContext& ctx) {
  if (ctx.HasOut("DX")) ctx.SetOut("DX", ctx.InShape("X"), ctx.InDType("X"));
  if (ctx.HasOut("DY")) ctx.SetOut("DY", ctx.InShape("Y"), ctx.InDType("Y"));
  if (ctx.HasOut("DDOut")) ctx.SetOut("DDOut", ctx.InShape("DOut"), ctx.InDType("DOut"));
  return Status::Ok();
}

template <typename T>
struct DoubleGrad {
  struct Sizes {
    int64_t m, k, n;
  };
  // to = op(a) op(b), or zeros where one of them is missing; added to what `to` holds on demand.
  static void Set(const GemmDims& d, const Tensor* a, const Tensor* b, Tensor* to,
                  bool add = false) {
    T* out = to->mutable_data<T>();
    if (a != nullptr && b != nullptr)
      Gemm<T>(d, T(1), a->data<T>(), b->data<T>(), add ? T(1) : T(0), out);
    else if (!add)
      std::fill_n(out, d.m * d.n, T(0));
  }

  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &y = ctx.In("Y"), &grad = ctx.In("DOut");
    const Tensor *ddx = ctx.InOpt("DDX"), *ddy = ctx.InOpt("DDY");
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&x, &y, &grad, ddx, ddy}));
    HEDDLE_RETURN_IF_ERROR(View(ctx, x.shape(), y.shape()).status());
    const int split = static_cast<int>(ctx.Int("x_num_col_dims"));
    const Sizes s{x.shape().Product(0, split), x.shape().Product(split, x.rank()),
                  y.shape().Product(static_cast<int>(ctx.Int("y_num_col_dims")), y.rank())};
    if (s.k * s.n != y.numel() || s.m * s.n != grad.numel())
      return InvalidArgument("X ", x.shape().ToString(), ", Y ", y.shape().ToString(), " and DOut ",
                             grad.shape().ToString(), " do not fit");
    if ((ddx != nullptr && ddx->numel() != x.numel()) ||
        (ddy != nullptr && ddy->numel() != y.numel()))
      return InvalidArgument("DDX and DDY must have the shapes of X ", x.shape().ToString(),
                             " and Y ", y.shape().ToString());
    if (Tensor* to = ctx.OutOpt("DX"))
      Set(GemmDims::Dense(s.m, s.k, s.n, false, true), &grad, ddy, to);
    if (Tensor* to = ctx.OutOpt("DY"))
      Set(GemmDims::Dense(s.k, s.n, s.m, true, false), ddx, &grad, to);
    if (Tensor* to = ctx.OutOpt("DDOut")) {
      Set(GemmDims::Dense(s.m, s.n, s.k), ddx, &y, to);
      Set(GemmDims::Dense(s.m, s.n, s.k), &x, ddy, to, true);
    }
    return Status::Ok();
  }
};

void Attrs(OpDef& op) { op.Attr("x_num_col_dims", 1).Attr("y_num_col_dims", 1); }

}  // namespace
}  // namespace heddle

HEDDLE_OP(mul) {
  op.Doc("product of X and Y seen as matrices, split at x_num_col_dims and y_num_col_dims");
  Family::Define(op);
  Attrs(op);
  op.InferShape(MulShape);
}
HEDDLE_OP(mul_grad) {
  Family::DefineGrad(op);
  Attrs(op);
}
HEDDLE_OP(mul_grad_grad) {
  op.Input("X").Input("Y").Input("DOut");
  op.Input("DDX", kOptional).Input("DDY", kOptional);
  op.Output("DX", kOptional).Output("DY", kOptional).Output("DDOut", kOptional);
  Attrs(op);
  op.InferShape(DoubleGradShape).Kernels<DoubleGrad, float, double>();
}

HEDDLE_EXAMPLES(mul, R"(
example float32 2x2x4, x_num_col_dims 2
attr x_num_col_dims INT 2
in X float32 [2, 2, 4] 0.764 0.187 0.533 0.879 0.706 0.245 0.072 0.302 0.129 0.821 0.591 0.418 0.937
  0.648 0.475 0.36
in Y float32 [4, 1] -0.248 -0.07 0.108 0.286
out Out float32 [2, 2, 1] 0.10639602 -0.09808998 0.09391402 -0.123476

example float64 3x4
in X float64 [3, 4] 0.537 0.69 0.308 0.384 0.919 0.079 0.155 0.461 0.767 0.614 0.231 0.843
in Y float64 [4, 2] 0.448 0.665 0.882 0.123 0.556 0.773 0.231 0.34
out Out float64 [3, 2] 1.109108 0.8106190000000001 0.674061 0.8974070000000001 1.208333 1.05076

example float64 3x2x2x3, x_num_col_dims 2, y_num_col_dims 2
attr x_num_col_dims INT 2
attr y_num_col_dims INT 2
in X float64 [3, 2, 2, 3] 0.486 0.969 0.271 0.781 0.593 0.405 0.647 0.083 0.539 0.163 0.136 0.351
  0.217 0.942 0.056 0.727 0.244 0.19 0.324 0.566 0.808 0.298 0.512 0.459 0.861 0.62 0.029 0.7 0.915
  0.674 0.432 0.11 0.378 0.835 0.754 0.888
in Y float64 [3, 2, 1, 2, 3] 0.384 0.49 0.039 0.411 0.092 0.437 0.808 0.967 0.755 0.676 0.543 0.835
  0.066 0.649 0.782 0.225 0.464 0.888 0.914 0.517 0.941 0.278 0.702 0.119 0.57 0.172 0.331 0.251
  0.198 0.145 0.358 0.729 0.596 0.304 0.623 0.861
out Out float64 [3, 2, 1, 2, 3] 2.1842960000000002 2.15206 2.135055 1.404846 1.614614
  1.7897739999999998 0.703246 1.1106439999999997 0.916991 0.6294540000000001 0.714716 1.172004
  1.7197379999999998 1.6099249999999996 1.6415760000000001 1.059689 1.2344899999999999
  1.2166099999999997 1.363606 1.807215 1.795276 1.0484720000000003 1.308587 1.836603
  2.2361400000000002 2.050877 1.887626 1.408677 1.5218 1.715998 1.79059 1.772107 1.960051 1.028298
  1.563552 1.5895610000000002

example float32 3x2
in X float32 [3, 2] -1.29 -0.78 -1.29 -0.78 -1.29 -0.78
in Y float32 [2, 3] -0.17 -0.47 0.43 -0.77 0.74 0.13
out Out float32 [3, 3] 0.8198999 0.0291 -0.65610003 0.8198999 0.0291 -0.65610003 0.8198999 0.0291
  -0.65610003
)")

HEDDLE_EXAMPLES(mul_grad, R"(
example float64 4x3
in Out@GRAD float64 [4, 1] -0.2 0.3 0.9 -0.8
in X float64 [4, 3] 0.528 0.377 0.453 0.227 0.755 0.83 0.151 0.906 0.679 0.302 0.076 0.604
in Y float64 [3, 1] 0.3264884414131358 0.3965018903980803 0.1319393575420485
out Y@GRAD float64 [3, 1] -0.14320000000000005 0.9057 0.28630000000000005

example float32 4x3
in Out@GRAD float32 [4, 1] -0.2 0.3 0.9 -0.8
in X float32 [4, 3] 0.528 0.377 0.453 0.227 0.755 0.83 0.151 0.906 0.679 0.302 0.076 0.604
in Y float32 [3, 1] 0.32648844 0.3965019 0.13193935
out Y@GRAD float32 [3, 1] -0.1432 0.9057 0.28630003
)")

HEDDLE_EXAMPLES(mul_grad_grad, R"(
example 2-D
in DDX float64 [2, 3] -0.2 0 -0.8 0.2 -0.6 0.8
in DDY float64 [3, 2] 0.5 0.8 0.8 -0.9 0.4 0
in DOut float64 [2, 2] 0.1 -0.7 0.3 -0
in X float64 [2, 3] 0.38 0.09 -0.58 0.91 0.38 -0.52
in Y float64 [3, 2] 0.25 0.97 0.59 -0.99 -0.74 0.65
out DDOut float64 [2, 2] 0.572 -0.49099999999999994 -0.34499999999999986 1.694
out DX float64 [2, 3] -0.5099999999999999 0.71 0.04000000000000001 0.15 0.24 0.12
out DY float64 [3, 2] 0.039999999999999994 0.13999999999999999 -0.18 0 0.15999999999999998
  0.5599999999999999

example flattened
attr x_num_col_dims INT 2
in DDX float64 [2, 1, 3] -0.8 0.3 -0.3 0.3 0.3 0.5
in DDY float64 [3, 1, 2] 0.6 -0.1 0.1 -0.3 -0.9 -0.1
in DOut float64 [2, 1, 1, 2] 0.2 -0.9 0.2 0.9
in X float64 [2, 1, 3] -0.18 -0.09 -0.33 0.29 0.32 -0.14
in Y float64 [3, 1, 2] 0.89 -0.54 -0.86 -0.46 0.1 -0.55
out DDOut float64 [2, 1, 1, 2] -0.82 0.5370000000000001 0.391 -0.686
out DX float64 [2, 1, 3] 0.21000000000000002 0.29000000000000004 -0.09000000000000001
  0.029999999999999985 -0.25 -0.27
out DY float64 [3, 1, 2] -0.10000000000000003 0.9900000000000001 0.12 0 0.04000000000000001 0.72
)")
