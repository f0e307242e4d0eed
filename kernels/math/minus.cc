// minus: x - y, the older form of elementwise_sub.
#include "kernels/elementwise/arithmetic.h"
#include "kernels/elementwise/binary_op.h"

HEDDLE_OP(minus) {
  op.Doc("x - y").Input("X").Input("Y").Output("Out").Inplace("X", "Out");
  BinaryKernels<SubFn, SlotsXY, float, double, int32_t, int64_t>(op);
}

HEDDLE_EXAMPLES(minus, R"(
example float64
in X float64 [2, 3] 8 -5 0 -2 2 6
in Y float64 [2, 3] 5 -1 -6 -1 -8 0
from elementwise_sub X=X Y=Y -> Out=Out
out Out float64 [2, 3] 3 -4 6 -1 10 6

example int32
in X int32 [2, 3] 0 0 -4 0 -6 1
in Y int32 [2, 3] -1 1 7 4 1 8
from elementwise_sub X=X Y=Y -> Out=Out
out Out int32 [2, 3] 1 -1 -11 -4 -7 -7

example int64
in X int64 [2, 3] 0 -5 4 0 -4 -9
in Y int64 [2, 3] 2 5 -3 2 5 -2
from elementwise_sub X=X Y=Y -> Out=Out
out Out int64 [2, 3] -2 -10 7 -2 -9 -7

example float32
in X float32 [2, 3] 1 8 7 -4 -0 7
in Y float32 [2, 3] -8 -2 6 -5 -1 -5
out Out float32 [2, 3] 9 10 1 1 1 12
)")
