#include "core/shapes.h"
#include "kernels/products/gemm_ops.h"

namespace heddle {
namespace {

Result<MatmulShapes> View(const OpContext&, const Shape& x, const Shape& y) {
  if (x.rank() != 3 || y.rank() != 3 || (x[0] >= 0 && y[0] >= 0 && x[0] != y[0]))
    return InvalidArgument("X and Y need three dimensions with the same first one, but are ",
                           x.ToString(), " and ", y.ToString());
  return MatmulShapesOf(x, y, false, false);
}
struct NoFactor {
  double operator()(const OpContext&) const { return 1; }
};
using Family = MatmulFamily<View, NoFactor>;

Status BmmShape(ShapeContext& ctx) {
  if (!ctx.InShape("X").known_rank() || !ctx.InShape("Y").known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const MatmulShapes s, View(ctx, ctx.InShape("X"), ctx.InShape("Y")));
  if (ctx.InDType("X") != ctx.InDType("Y"))
    return InvalidArgument("X is ", Name(ctx.InDType("X")), ", but Y is ", Name(ctx.InDType("Y")));
  ctx.SetOut("Out", s.result, ctx.InDType("X"));
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(bmm) {
  op.Doc("one matrix product per batch");
  Family::Define(op);
  op.InferShape(BmmShape);
}
HEDDLE_OP(bmm_grad) { Family::DefineGrad(op); }
