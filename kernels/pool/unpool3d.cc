#include "kernels/pool/pool.h"

HEDDLE_OP(unpool3d) {
  op.Doc("puts each element where Indices says in a larger plane of zeros");
  DefineUnpool(op, 3);
}
HEDDLE_OP(unpool3d_grad) { DefineUnpoolGrad(op, 3); }

HEDDLE_EXAMPLES(unpool3d, R"(
example int32 1x1x1x2x2, ksize 2 2 2, output_size 2 4 4, strides 2 2 2
attr ksize INTS [2, 2, 2]
attr output_size INTS [2, 4, 4]
attr strides INTS [2, 2, 2]
in Indices int32 [1, 1, 1, 2, 2] 1 7 29 15
in X float32 [1, 1, 1, 2, 2] 8 15 13 16
out Out float32 [1, 1, 2, 4, 4] 0 8 0*5 15 0*7 16 0*13 13 0 0

example int32 1x1x1x2x2, ksize 2 2 2, output_size 2 4 4, strides 2 2 2, no. 2
attr ksize INTS [2, 2, 2]
attr output_size INTS [2, 4, 4]
attr strides INTS [2, 2, 2]
in Indices int32 [1, 1, 1, 2, 2] 1 7 29 15
in X float64 [1, 1, 1, 2, 2] 8 15 13 16
out Out float64 [1, 1, 2, 4, 4] 0 8 0*5 15 0*7 16 0*13 13 0 0

example float32
attr ksize INTS [1, 2, 2]
attr strides INTS [1, 2, 2]
attr paddings INTS [0, 0, 0]
attr output_size INTS [1, 2, 4]
attr unpooling_type STRING "max"
in X float32 [1, 1, 1, 1, 2] -0.23 -0.63
in Indices int32 [1, 1, 1, 1, 2] 5 2
out Out float32 [1, 1, 1, 2, 4] 0 0 -0.63 0 0 -0.23 0 0

example float64
attr ksize INTS [1, 2, 2]
attr strides INTS [1, 2, 2]
attr paddings INTS [0, 0, 0]
attr output_size INTS [1, 2, 4]
attr unpooling_type STRING "max"
in X float64 [1, 1, 1, 1, 2] 0.99 -0.3
in Indices int32 [1, 1, 1, 1, 2] 5 2
out Out float64 [1, 1, 1, 2, 4] 0 0 -0.3 0 0 0.99 0 0
)")

HEDDLE_EXAMPLES(unpool3d_grad, R"(
example float32
attr ksize INTS [1, 2, 2]
attr strides INTS [1, 2, 2]
attr paddings INTS [0, 0, 0]
attr output_size INTS [1, 2, 4]
attr unpooling_type STRING "max"
in X float32 [1, 1, 1, 1, 2] -0.64 -0.51
in Indices int32 [1, 1, 1, 1, 2] 5 2
in Out float32 [1, 1, 1, 2, 4] 0.4 0.05 -0.9 0.44 -0.01 0.71 -0.01 -0.21
in Out@GRAD float32 [1, 1, 1, 2, 4] -0.74 -0.31 0.26 -0.67 0.47 -0.28 -0.26 -0.49
out X@GRAD float32 [1, 1, 1, 1, 2] -0.28 0.26

example float64
attr ksize INTS [1, 2, 2]
attr strides INTS [1, 2, 2]
attr paddings INTS [0, 0, 0]
attr output_size INTS [1, 2, 4]
attr unpooling_type STRING "max"
in X float64 [1, 1, 1, 1, 2] 0.14 -0.31
in Indices int32 [1, 1, 1, 1, 2] 5 2
in Out float64 [1, 1, 1, 2, 4] -0.16 -0.78 -0.71 -0.38 -0.43 -0.07 0.58 -0.34
in Out@GRAD float64 [1, 1, 1, 2, 4] -0.19 0.9 0.76 0.09 0.52 -0.42 -0.86 0.9
out X@GRAD float64 [1, 1, 1, 1, 2] -0.42 0.76
)")
