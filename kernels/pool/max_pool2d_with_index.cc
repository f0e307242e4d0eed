#include "kernels/pool/pool.h"

HEDDLE_OP(max_pool2d_with_index) {
  op.Doc("2-D max pooling; Mask holds where in its plane each maximum was");
  DefineMaxPoolWithIndex(op, 2);
}
HEDDLE_OP(max_pool2d_with_index_grad) { DefineMaxPoolWithIndexGrad(op, 2); }

HEDDLE_EXAMPLES(max_pool2d_with_index, R"(
example float32 1x1x3x4, adaptive, ksize 4 4
attr adaptive BOOLEAN true
attr ksize INTS [4, 4]
in X float32 [1, 1, 3, 4] -1.32 0.44 1.03 -0.15 -1.62 1.62 1.32 0.74 -0.74 -0.44 -1.03 0.15
out Mask int32 [1, 1, 4, 4] 0 1 2 3 0 5 6 7 8 5 6 7 8 9 10 11
out Out float32 [1, 1, 4, 4] -1.32 0.44 1.03 -0.15 -1.32 1.62 1.32 0.74 -0.74 1.62 1.32 0.74 -0.74
  -0.44 -1.03 0.15

example float64 2x3x4x4, global_pooling, ksize 3 3, strides 2 2
attr global_pooling BOOLEAN true
attr ksize INTS [3, 3]
attr strides INTS [2, 2]
in X float64 [2, 3, 4, 4] 24.8 65.8 16.7 47.4 9.5 44.3 55.6 43.3 54.5 14.6 85.3 13.6 59.7 31 10.5
  8.5 15.6 20.8 33 76.1 77.1 17.7 46.4 68.9 41.2 86.3 78.1 25.9 35.1 63.8 3.3 7.4 22.8 96.5 89.4
  12.6 94.5 67.9 39.2 19.7 56.6 79.1 6.4 84.2 2.3 61.7 98.6 52.5 45.3 23.8 73 75 48.4 60.7 50.5 53.5
  1.3 38.2 72 26.9 83.2 90.4 30 92.4 51.5 93.5 81.2 11.5 4.4 57.6 36.1 40.2 80.2 88.3 95.5 62.7 28.9
  97.6 5.4 64.8 91.4 42.3 27.9 69.9 49.4 37.1 74 58.6 21.8 18.7 87.3 32 82.2 66.8 70.9 34.1
out Mask int32 [2, 3, 1, 1] 10 9 14 15 13 0
out Out float64 [2, 3, 1, 1] 85.3 86.3 98.6 92.4 97.6 91.4
)")

HEDDLE_EXAMPLES(max_pool2d_with_index_grad, R"(
example int32 1x1x4x4, adaptive, ksize 4 4
attr adaptive BOOLEAN true
attr ksize INTS [4, 4]
in Mask int32 [1, 1, 4, 4] 0 1 2 3 0 1 6 3 8 5 6 7 8 9 10 11
in Out@GRAD float64 [1, 1, 4, 4] 0.9 -0.8 0.4 0.4 -0 0 0.8 -0.8 0.7 -0.3 1 0.5 0.5 0.4 0.5 -1
in X float64 [1, 1, 3, 4] -0.15 1.32 -1.03 0.74 -1.32 1.03 0.15 0.44 1.62 -0.44 -0.74 -1.62
out X@GRAD float64 [1, 1, 3, 4] 0.9 -0.8 0.4 -0.4 0 -0.3 1.8 0.5 1.2 0.4 0.5 -1

example int32 1x1x4x4, adaptive, ksize 4 4, no. 2
attr adaptive BOOLEAN true
attr ksize INTS [4, 4]
in Mask int32 [1, 1, 4, 4] 0 1 2 3 0 1 6 3 8 5 6 7 8 9 10 11
in Out@GRAD float32 [1, 1, 4, 4] 0.9 -0.8 0.4 0.4 -0 0 0.8 -0.8 0.7 -0.3 1 0.5 0.5 0.4 0.5 -1
in X float32 [1, 1, 3, 4] -0.15 1.32 -1.03 0.74 -1.32 1.03 0.15 0.44 1.62 -0.44 -0.74 -1.62
out X@GRAD float32 [1, 1, 3, 4] 0.9 -0.8 0.4 -0.4 0 -0.3 1.8 0.5 1.2 0.4 0.5 -1
)")
