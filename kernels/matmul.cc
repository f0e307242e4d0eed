#include "core/shapes.h"
#include "kernels/common/gemm_ops.h"

namespace heddle {
namespace {

Result<MatmulShapes> View(const OpContext& ctx, const Shape& x, const Shape& y) {
  HEDDLE_ASSIGN_OR_RETURN(
      MatmulShapes s, MatmulShapesOf(x, y, ctx.Bool("transpose_X"), ctx.Bool("transpose_Y")));
  if (s.result.rank() == 0) s.result = Shape{1};  // two vectors: this operator gives no scalars
  return s;
}
struct Factor {
  double operator()(const OpContext& ctx) const { return ctx.Float("alpha"); }
};
using Family = MatmulFamily<View, Factor>;

Status MatmulShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  const Shape& y = ctx.InShape("Y");
  if (!x.known_rank() || !y.known_rank()) return ctx.Defer();
  if (ctx.Int("head_number") > 1)
    return Unimplemented("head_number = ", ctx.Int("head_number"), "; only 1 is supported");
  if (ctx.InDType("X") != ctx.InDType("Y"))
    return InvalidArgument("X is ", Name(ctx.InDType("X")), ", but Y is ", Name(ctx.InDType("Y")));
  HEDDLE_ASSIGN_OR_RETURN(const MatmulShapes s, View(ctx, x, y));
  ctx.SetOut("Out", s.result, ctx.InDType("X"));
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

void Attrs(OpDef& op) {
  op.Attr("transpose_X", false).Attr("transpose_Y", false).Attr("alpha", 1.0);
  op.Attr("head_number", 1);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(matmul) {
  op.Doc("alpha times the product of matrices with broadcast batch dimensions");
  Family::Define(op);
  Attrs(op);
  op.InferShape(MatmulShape);
}
HEDDLE_OP(matmul_grad) {
  Family::DefineGrad(op);
  Attrs(op);
}
