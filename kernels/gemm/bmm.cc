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
out Out float32 [4, 2, 3] -0.0396 0.2772 0.22320001 0.0264 -0.18479998 -0.1488 0.0528 0.0047999998
  -0.041599996 0.18480001 0.0168 -0.14559999 -0.115200005 0.44799998 0.2624 -0.0072000003
  0.027999999 0.0164 0.374 -0.2068 0.242 -0.646 0.3572 -0.418

example float64 2x3x4
in X float64 [2, 3, 4] 0.705 0.665 0.626 0.275 0.47 0.744 0.587 0.236 0.314 0.119 0.509 0.04 0.158
  0.353 0.197 0.08 0.783 0.9 0.822 0.392 0.939 0.548 0.431 0.861
in Y float64 [2, 4, 3] 0.403 0.522 0.284 0.84 0.204 0.045 0.721 0.125 0.959 0.681 0.085 0.602 0.443
  0.324 0.483 0.165 0.244 0.761 0.88 0.8 0.642 0.92 0.363 0.562
out Out float64 [2, 3, 3] 1.481336 0.6052950000000001 0.9960289999999999 1.398313 0.490551
  0.8719649999999999 0.620731 0.255209 0.606742 0.375199 0.32396400000000003 0.516381
  1.5793690000000002 1.273188 1.8111170000000003 1.677797 1.095291 1.6311490000000002
)")

HEDDLE_EXAMPLES(bmm_grad, R"(
example float64 4x2x3
in Out@GRAD float64 [4, 2, 3] 0.9 -0.8 0.4 0.4 -0 0 0.8 -0.8 0.7 -0.3 1 0.5 0.5 0.4 0.5 -1 0.7 0
  -0.8 0.3 0.8 0.7 0.8 0.1
in X float64 [4, 2, 1] 0.16 0.56 -0.64 -0.04 -0.44 0.36 0.76 -0.24
in Y float64 [4, 1, 3] -0.11 0.03 -0.41 0.33 0.62 -0.85 -0.26 0.18 -0.7 0.47 0.77 -0.55
out X@GRAD float64 [4, 2, 1] -0.28700000000000003 -0.044000000000000004 -0.827 0.09600000000000003
  -0.408 0.386 -0.5850000000000001 0.89
out Y@GRAD float64 [4, 1, 3] 0.36800000000000005 -0.128 0.064 -0.5 0.47200000000000003
  -0.46799999999999997 -0.58 0.07599999999999998 -0.22 -0.776 0.035999999999999976
  0.5840000000000001

example float32 4x2x3
in Out@GRAD float32 [4, 2, 3] 0.9 -0.8 0.4 0.4 -0 0 0.8 -0.8 0.7 -0.3 1 0.5 0.5 0.4 0.5 -1 0.7 0
  -0.8 0.3 0.8 0.7 0.8 0.1
in X float32 [4, 2, 1] 0.16 0.56 -0.64 -0.04 -0.44 0.36 0.76 -0.24
in Y float32 [4, 1, 3] -0.11 0.03 -0.41 0.33 0.62 -0.85 -0.26 0.18 -0.7 0.47 0.77 -0.55
out X@GRAD float32 [4, 2, 1] -0.287 -0.044 -0.827 0.096000016 -0.408 0.38599998 -0.58500004 0.89
out Y@GRAD float32 [4, 1, 3] 0.368 -0.128 0.064 -0.5 0.47200003 -0.468 -0.58000004 0.076000005 -0.22
  -0.77599996 0.036 0.584
)")
