// minus: x - y, the older form of elementwise_sub.
#include "kernels/elementwise/arithmetic.h"
#include "kernels/elementwise/binary_op.h"

HEDDLE_OP(minus) {
  op.Doc("x - y").Input("X").Input("Y").Output("Out").Inplace("X", "Out");
  BinaryKernels<SubFn, SlotsXY, float, double, int32_t, int64_t>(op);
}
