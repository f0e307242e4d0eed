#include "core/shapes.h"
#include "kernels/common/gemm_ops.h"

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
