#include "kernels/pool/pool.h"

HEDDLE_OP(pool3d) {
  op.Doc("3-D max or average pooling");
  DefinePool(op, 3);
}
HEDDLE_OP(pool3d_grad) { DefinePoolGrad(op, 3); }

HEDDLE_EXAMPLES(pool3d, R"(
example float32 1x2x3x4x3, adaptive, ceil_mode, ksize 3 3 1, pooling_type avg
attr adaptive BOOLEAN true
attr ceil_mode BOOLEAN true
attr ksize INTS [3, 3, 1]
attr pooling_type STRING "avg"
attr strides INTS [2, 2, 2]
in X float32 [1, 2, 3, 4, 3] -1.71 -0.57 0.41 -0.73 -1.77 0.95 1.5 -1.82 -1.44 -1.5 -0.03 -0.24 0.14
  -0.08 0.9 -1.61 0.19 -0.14 -0.9 -1.12 1.61 -0.46 1.82 0.57 1.77 1.71 -1.01 1.17 1.44 -0.68 1.12
  -1.06 -1.55 -0.52 0.46 -0.19 0.08 -1.33 -1.28 -1.66 -1.17 0.68 -1.39 -0.35 -0.79 0.73 -0.95 -1.22
  1.93 -0.41 1.01 1.06 -0.63 1.28 -0.3 0.79 -0.84 1.88 0.3 1.22 0.35 0.63 1.66 1.33 0.03 0.24 0.52
  -1.93 1.39 -1.88 1.55 0.84
out Out float32 [1, 2, 3, 3, 1] -0.57 -0.5516667 -0.58833337 -0.1 -0.32833332 0.25333333 0.73333335
  0.07333338 -0.28999996 -0.78000003 -0.78 -0.6616667 0.70666665 0.22666664 0.5083333 0.70666665
  0.26333332 0.081666656

example float64 1x3x3x4x3, data_format NDHWC, ksize 3 3 4, padding_algorithm VALID
attr data_format STRING "NDHWC"
attr ksize INTS [3, 3, 4]
attr padding_algorithm STRING "VALID"
attr paddings INTS [1, 1, 1]
attr pooling_type STRING "avg"
attr strides INTS [1, 3, 2]
in X float64 [1, 3, 3, 4, 3] 0.953 0.477 0.073 0.101 0.513 0.917 0.248 0.147 0.413 0.44 0.642 0.037
  0.972 0.486 0.779 0.358 0.385 0.064 0.468 0.275 0.587 0.651 0.303 0.633 0.898 0.193 0.367 0.11
  0.614 0.807 0.678 0.715 0.816 0.77 0.211 0.156 0.568 0.284 0.083 0.138 0.174 0.523 0.33 0.706
  0.834 0.449 0.339 0.596 0.623 0.55 0.028 0.119 0.165 0.935 0.752 0.431 0.202 0.871 0.312 0.541
  0.99 0.229 0.321 0.944 0.504 0.981 0.458 0.733 0.825 0.724 0.293 0.853 0.743 0.559 0.394 0.578
  0.862 0.403 0.798 0.788 0.688 0.046 0.926 0.532 0.605 0.266 0.092 0.422 0.908 0.055 0.348 0.889
  0.009 0.183 0.22 0.963 0.257 0.669 0.843 0.66 0.697 0.238 0.018 0.761 0.376 0.495 0.88 0.128
out Out float64 [1, 1, 1, 1, 3] 0.5212777777777778 0.5029444444444444 0.47477777777777785
)")

HEDDLE_EXAMPLES(pool3d_grad, R"(
example float64 1x1x2x4x3, no exclusive, global_pooling, ksize 1 2 2, paddings 0 1 1
attr exclusive BOOLEAN false
attr global_pooling BOOLEAN true
attr ksize INTS [1, 2, 2]
attr paddings INTS [0, 1, 1]
attr pooling_type STRING "max"
attr strides INTS [2, 2, 2]
in Out float64 [1, 1, 1, 1, 1] 1.81
in Out@GRAD float64 [1, 1, 1, 1, 1] 0.7
in X float64 [1, 1, 2, 4, 3] -1.02 1.65 -1.34 -0.87 1.81 1.34 -1.49 0.87 1.02 0.71 0.39 -0.24 0.55
  -1.18 -0.08 0.08 -0.39 -0.55 0.24 1.49 -1.65 -1.81 -0.71 1.18
out X@GRAD float64 [1, 1, 2, 4, 3] 0*4 0.7 0*19
)")
