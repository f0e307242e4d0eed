#include <algorithm>
#include <utility>

#include "core/shapes.h"
#include "kernels/base/check.h"
#include "kernels/gemm/gemm.h"
#include "kernels/products/gemm_ops.h"

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
