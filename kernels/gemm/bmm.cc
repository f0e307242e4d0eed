#include "core/shapes.h"
#include "kernels/gemm/gemm_ops.h"

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

HEDDLE_EXAMPLES(bmm, R"(
example float32 4x1x3
in X float32 [4, 2, 1] 0.36 -0.24 0.16 0.56 -0.64 -0.04 -0.44 0.76
in Y float32 [4, 1, 3] -0.11 0.77 0.62 0.33 0.03 -0.26 0.18 -0.7 -0.41 -0.85 0.47 -0.55
out Out

example float64 2x3x4
in X float64 [2, 3, 4] 0.705 0.665 0.626 0.275 0.47 0.744 0.587 0.236 0.314 0.119 0.509 0.04 0.158
  0.353 0.197 0.08 0.783 0.9 0.822 0.392 0.939 0.548 0.431 0.861
in Y float64 [2, 4, 3] 0.403 0.522 0.284 0.84 0.204 0.045 0.721 0.125 0.959 0.681 0.085 0.602 0.443
  0.324 0.483 0.165 0.244 0.761 0.88 0.8 0.642 0.92 0.363 0.562
out Out
)")

HEDDLE_EXAMPLES(bmm_grad, R"(
example float64 4x2x3
in Out@GRAD float64 [4, 2, 3] 0.9 -0.8 0.4 0.4 -0 0 0.8 -0.8 0.7 -0.3 1 0.5 0.5 0.4 0.5 -1 0.7 0
  -0.8 0.3 0.8 0.7 0.8 0.1
in X float64 [4, 2, 1] 0.16 0.56 -0.64 -0.04 -0.44 0.36 0.76 -0.24
in Y float64 [4, 1, 3] -0.11 0.03 -0.41 0.33 0.62 -0.85 -0.26 0.18 -0.7 0.47 0.77 -0.55
out X@GRAD
out Y@GRAD

example float32 4x2x3
in Out@GRAD float32 [4, 2, 3] 0.9 -0.8 0.4 0.4 -0 0 0.8 -0.8 0.7 -0.3 1 0.5 0.5 0.4 0.5 -1 0.7 0
  -0.8 0.3 0.8 0.7 0.8 0.1
in X float32 [4, 2, 1] 0.16 0.56 -0.64 -0.04 -0.44 0.36 0.76 -0.24
in Y float32 [4, 1, 3] -0.11 0.03 -0.41 0.33 0.62 -0.85 -0.26 0.18 -0.7 0.47 0.77 -0.55
out X@GRAD
out Y@GRAD
)")
