#include "kernels/base/shape_arg.h"
#include "kernels/elementwise/convert.h"

namespace heddle {
namespace {

// Zeros: results must not depend on what the memory held before.
Status RunEmpty(KernelContext& ctx) {
  FillElements(ctx, ctx.Out("Out"), 0);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(empty) {
  op.Doc("A tensor whose values do not matter.").Output("Out");
  DeclareShapeArg(op);
  op.Attr("dtype", 5).InferShape(ShapeArgShape).AnyKernel(RunEmpty);
}

HEDDLE_EXAMPLES(empty, R"(
example shape 5 0
attr shape LONGS [5, 0]
out Out float32 [5, 0]

example shape 4 8
attr shape LONGS [4, 8]
out Out float32 [4, 8] 180843270000 1.532522e+31 1.7904629e+28 2.9964753e+32 9.011508e-33 3200.6555
  3268.2666 1.156353e-14 1.1432169e+27 1.2091259e-32 2.9602302e+29 4.4136847e+21 4.007087e+24
  1.7841217e+25 1.6930782e+22 1.09026456e+27 2.061647e-19 5.0842705e+31 7.5744925e+23 1.7753804e+28
  2.6799627e+20 2.3635098e-18 2.6263225e+32 7.778281e+31 2.625728e+32 0.002580789 4.9556334e+28
  6.122163e+31 2.2828837e-18 2.9964814e+32 1.4580347e-19 2.7603586e+20
)")
