#include "kernels/pool/pool.h"

HEDDLE_OP(unpool) {
  op.Doc("puts each element where Indices says in a larger plane of zeros");
  DefineUnpool(op, 2);
}
HEDDLE_OP(unpool_grad) { DefineUnpoolGrad(op, 2); }

HEDDLE_EXAMPLES(unpool_grad, R"(
example 2x2
attr data_format STRING "NCHW"
attr ksize INTS [2, 2]
attr output_size INTS [4, 4]
attr paddings INTS [0, 0]
attr strides INTS [2, 2]
attr unpooling_type STRING "max"
in Indices int32 [1, 1, 2, 2] 4 6 12 15
in Out float64 [1, 1, 4, 4] 0*4 5 0 7 0*5 13 0 0 16
in Out@GRAD float64 [1, 1, 4, 4] -0.3 -0.4 -0.4 0.7 -0 0.4 -0.8 0.6 0.1 -0.7 0.2 -0.4 -0.7 -0.9 0.9
  -0.1
in X float64 [1, 1, 2, 2] 5 7 13 16
out X@GRAD float64 [1, 1, 2, 2] -0 -0.8 -0.7 -0.1
)")

HEDDLE_EXAMPLES(unpool, R"(
example float32
attr ksize INTS [2, 2]
attr strides INTS [2, 2]
attr paddings INTS [0, 0]
attr output_size INTS [4, 4]
attr unpooling_type STRING "max"
in X float32 [1, 1, 2, 2] 0.75 0.17 0.3 0.59
in Indices int32 [1, 1, 2, 2] 1 2 9 15
out Out float32 [1, 1, 4, 4] 0 0.75 0.17 0*6 0.3 0*5 0.59

example float64
attr ksize INTS [2, 2]
attr strides INTS [2, 2]
attr paddings INTS [0, 0]
attr output_size INTS [4, 4]
attr unpooling_type STRING "max"
in X float64 [1, 1, 2, 2] 0.86 0.46 -0.73 -0.28
in Indices int32 [1, 1, 2, 2] 1 2 9 15
out Out float64 [1, 1, 4, 4] 0 0.86 0.46 0*6 -0.73 0*5 -0.28
)")
