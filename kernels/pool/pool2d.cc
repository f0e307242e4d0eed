#include "kernels/pool/pool.h"

HEDDLE_OP(pool2d) {
  op.Doc("2-D max or average pooling");
  DefinePool(op, 2);
}
HEDDLE_OP(pool2d_grad) { DefinePoolGrad(op, 2); }
HEDDLE_OP(pool2d_double_grad) { DefinePoolDoubleGrad(op, 2); }

HEDDLE_EXAMPLES(pool2d, R"(
example NaN and infinities
dtypes none: the least number depends on the dtype
attr ksize INTS [2, 2]
attr pooling_type STRING "max"
attr strides INTS [2, 2]
in X float32 [1, 1, 4, 6] nan 1 -inf -inf 3 nan 2 3 -inf -inf 1 2 1 2 nan nan inf 1 nan 0.5 nan nan
  0 2
out Out float32 [1, 1, 2, 3] 3 -3.4028235e+38 2 0.5 nan inf

example NaN wins
# node MaxPool X -> Out kernel_shape=[2,2] strides=[2,2]
attr keep_nan BOOLEAN true
attr from_infinity BOOLEAN true
attr ksize INTS [2, 2]
attr pooling_type STRING "max"
attr strides INTS [2, 2]
in X float32 [1, 1, 4, 6] 0.5 1 -inf -inf 3 7 2 3 -inf -inf 1 2 1 2 nan nan inf 1 3 0.5 nan nan 0 2
out Out float32 [1, 1, 2, 3] 3 -inf 7 3 nan inf

example float32 2x1x4x3, ceil_mode, no exclusive, global_pooling, ksize 5 5
attr ceil_mode BOOLEAN true
attr exclusive BOOLEAN false
attr global_pooling BOOLEAN true
attr ksize INTS [5, 5]
attr pooling_type STRING "max"
in X float32 [2, 1, 4, 3] -0.08 -0.4 -1.82 1.35 -0.24 0.24 0.71 1.82 -0.87 -1.35 0.08 -1.03 -1.66
  0.87 -0.55 -1.19 0.55 -1.51 1.19 0.4 1.66 1.51 -0.71 1.03
out Out float32 [2, 1, 1, 1] 1.82 1.66

example float32 1x4x3x2, no exclusive, ksize 3 3, padding_algorithm SAME
attr exclusive BOOLEAN false
attr ksize INTS [3, 3]
attr padding_algorithm STRING "SAME"
attr pooling_type STRING "avg"
attr strides INTS [1, 3]
in X float32 [1, 4, 3, 2] 0.87 0.71 0.56 -0.87 -0.08 1.03 0.4 -1.03 -0.71 -1.51 0.08 -1.82 -1.35
  -0.56 -1.19 -1.67 1.19 1.67 1.35 -0.4 1.82 0.24 -0.24 1.51
out Out float32 [1, 4, 3, 1] 0.21166664 0.36999997 0.10666666 -0.475 -0.76500005 -0.66 -0.795
  -0.31833333 -1.9868216e-8 0.50166667 0.7133333 0.555

example float32 1x3x4x3, adaptive, ceil_mode, ksize 2 1, pooling_type max, strides 2 1
attr adaptive BOOLEAN true
attr ceil_mode BOOLEAN true
attr ksize INTS [2, 1]
attr pooling_type STRING "max"
attr strides INTS [2, 1]
in X float32 [1, 3, 4, 3] 1.54 -1.22 -0.05 -1.54 1.01 1.75 -0.69 0.37 -0.37 1.44 0.05 -0.16 0.27
  -1.33 -0.58 -1.65 0.48 0.16 1.86 0.69 -0.8 -0.27 0.9 -1.44 -0.9 -1.01 -0.48 0.8 1.65 1.22 -1.75
  1.12 1.33 -1.86 -1.12 0.58
out Out float32 [1, 3, 2, 1] 1.54 1.44 0.27 1.86 0.8 -1.75

example float32 3x4x3x3, data_format NHWC, ksize 3 2, padding_algorithm VALID
attr data_format STRING "NHWC"
attr ksize INTS [3, 2]
attr padding_algorithm STRING "VALID"
attr paddings INTS [1, 1]
attr pooling_type STRING "avg"
attr strides INTS [2, 3]
in X float32 [3, 4, 3, 3] 0.27 0.75 0.82 0.13 1.91 1.04 1.37 0.89 0.38 0.71 1.18 0.93 -0.16 -0.09
  1.22 -1.84 -0.49 -0.6 0.24 1.4 -0.31 1.62 -0.93 -0.82 -0.67 0.09 1.66 1.55 0.6 -1.91 -0.13 -0.27
  1.95 0.02 -0.64 -1.51 0.16 -1.95 -0.2 0.49 -1 -1.11 -0.35 0.2 -1.37 0.97 0.05 -1.62 -0.78 1.51
  -1.4 -1.44 1.8 -1.66 -0.05 -0.97 -1.04 1.29 -0.42 -1.88 1.59 -0.86 -1.15 -1.59 0.31 0.46 -0.24
  0.86 -1.18 -0.02 -1.29 -0.53 0.78 1.84 1.44 1 -0.46 -1.22 1.26 1.7 1.48 -0.57 1.33 -0.38 1.73 1.77
  -1.55 -0.89 -1.8 0.35 1.15 -1.73 0.53 1.08 -0.71 -1.26 1.11 0.64 0.67 0.57 -1.48 -1.77 -1.08 -1.7
  1.88 -0.75 0.42 -1.33
out Out float32 [3, 1, 1, 3] 0.46833333 0.7033333 0.48000005 0.34666666 -0.46333337 -1.2083334
  0.8616667 0.34 -0.40666667

example float64 2x1x4x3, ceil_mode, no exclusive, global_pooling, ksize 5 5
attr ceil_mode BOOLEAN true
attr exclusive BOOLEAN false
attr global_pooling BOOLEAN true
attr ksize INTS [5, 5]
attr pooling_type STRING "max"
in X float64 [2, 1, 4, 3] -0.08 -0.4 -1.82 1.35 -0.24 0.24 0.71 1.82 -0.87 -1.35 0.08 -1.03 -1.66
  0.87 -0.55 -1.19 0.55 -1.51 1.19 0.4 1.66 1.51 -0.71 1.03
out Out float64 [2, 1, 1, 1] 1.82 1.66
)")

HEDDLE_EXAMPLES(pool2d_grad, R"(
example float64 1x4x3x1, ceil_mode, data_format NHWC, no exclusive, global_pooling
attr ceil_mode BOOLEAN true
attr data_format STRING "NHWC"
attr exclusive BOOLEAN false
attr global_pooling BOOLEAN true
attr ksize INTS [2, 1]
attr pooling_type STRING "avg"
in Out float64 [1, 1, 1, 1] -1.850371707708594e-17
in Out@GRAD float64 [1, 1, 1, 1] -0.7
in X float64 [1, 4, 3, 1] -1.02 1.02 0.73 -0.15 -1.31 -0.44 0.15 1.6 -1.6 1.31 0.44 -0.73
out X@GRAD float64 [1, 4, 3, 1] -0.058333335071802134*12

example float64 1x3x3x4, ksize 1 3, pooling_type max, strides 1 2
attr ksize INTS [1, 3]
attr pooling_type STRING "max"
attr strides INTS [1, 2]
in Out float64 [1, 3, 3, 1] 0.16 1.44 -0.59 1.22 1.01 1.54 1.86 0.91 0.8
in Out@GRAD float64 [1, 3, 3, 1] -0.3 0.3 -0.9 0.4 0.9 0.9 -0.2 -0.9 -0
in X float64 [1, 3, 3, 4] 0.16 -0.48 -0.16 1.65 1.44 -0.8 0.48 -1.86 -0.69 -1.54 -0.59 0.37 -1.33
  -0.91 1.22 -1.44 1.01 -1.22 -1.76 1.33 1.54 -1.01 0.27 -0.27 -0.05 1.86 -1.65 1.12 -0.37 0.91 0.69
  1.76 0.8 0.59 -1.12 0.05
out X@GRAD float64 [1, 3, 3, 4] -0.3 0 0 0 0.3 0*5 -0.9 0 0 0 0.4 0 0.9 0 0 0 0.9 0*4 -0.2 0 0 0
  -0.9 0*6

example float32 1x4x3x1, ceil_mode, data_format NHWC, no exclusive, global_pooling
attr ceil_mode BOOLEAN true
attr data_format STRING "NHWC"
attr exclusive BOOLEAN false
attr global_pooling BOOLEAN true
attr ksize INTS [2, 1]
attr pooling_type STRING "avg"
in Out float32 [1, 1, 1, 1] -1.8503718e-17
in Out@GRAD float32 [1, 1, 1, 1] -0.7
in X float32 [1, 4, 3, 1] -1.02 1.02 0.73 -0.15 -1.31 -0.44 0.15 1.6 -1.6 1.31 0.44 -0.73
out X@GRAD float32 [1, 4, 3, 1] -0.058333334*12
)")

HEDDLE_EXAMPLES(pool2d_double_grad, R"(
example float64 2x3x4x4, no adaptive, no ceil_mode, data_format NCHW, exclusive
attr adaptive BOOLEAN false
attr ceil_mode BOOLEAN false
attr data_format STRING "NCHW"
attr exclusive BOOLEAN true
attr global_pooling BOOLEAN false
attr ksize INTS [4, 4]
attr padding_algorithm STRING "EXPLICIT"
attr paddings INTS [0, 0]
attr pooling_type STRING "avg"
attr strides INTS [4, 4]
in grad_x@GRAD float64 [2, 3, 4, 4] 0 -0.9 -0.6 0.5 0.1 -0.8 -0.1 0.4 0.3 -0.1 0.8 -0.8 -0.7 -0.8
  0.3 -0.9 -0.1 0.8 -0.8 0.3 -0.5 0.8 -0.7 -0.9 0.3 -0.6 -0 -0.5 0.6 -0.3 0.9 0.2 -0.2 0.3 0.8 -0.6
  0.2 -0.2 -0.6 -0.7 -0 -0.9 -0.2 0.7 -0.2 -0.5 0.9 0.5 1 -0.8 -0.7 0.4 0 -0.7 -0.1 0.4 0 0.4 -0.4
  -0.3 -0.4 0.4 -0.7 -0.5 -0.7 -0.6 0 -0.5 -0.5 -0.3 1 0.4 0 0.4 0.8 0.6 0.9 0.6 -0.4 -0.4 0.4 -0.9
  0.4 -0.1 0.3 0 -0.7 -0.2 0.8 0.7 -0.2 0.3 0.5 0.6 0.3 -0.4
out grad_out@GRAD float64 [2, 3, 1, 1] -0.20625000000000002 -0.03124999999999999
  -0.04375000000000001 -0.12499999999999997 0.08125000000000004 0.11249999999999999

example float32 2x3x4x4, no adaptive, no ceil_mode, data_format NCHW, exclusive
attr adaptive BOOLEAN false
attr ceil_mode BOOLEAN false
attr data_format STRING "NCHW"
attr exclusive BOOLEAN true
attr global_pooling BOOLEAN false
attr ksize INTS [4, 4]
attr padding_algorithm STRING "EXPLICIT"
attr paddings INTS [0, 0]
attr pooling_type STRING "avg"
attr strides INTS [4, 4]
in grad_x@GRAD float32 [2, 3, 4, 4] 0 -0.9 -0.6 0.5 0.1 -0.8 -0.1 0.4 0.3 -0.1 0.8 -0.8 -0.7 -0.8
  0.3 -0.9 -0.1 0.8 -0.8 0.3 -0.5 0.8 -0.7 -0.9 0.3 -0.6 -0 -0.5 0.6 -0.3 0.9 0.2 -0.2 0.3 0.8 -0.6
  0.2 -0.2 -0.6 -0.7 -0 -0.9 -0.2 0.7 -0.2 -0.5 0.9 0.5 1 -0.8 -0.7 0.4 0 -0.7 -0.1 0.4 0 0.4 -0.4
  -0.3 -0.4 0.4 -0.7 -0.5 -0.7 -0.6 0 -0.5 -0.5 -0.3 1 0.4 0 0.4 0.8 0.6 0.9 0.6 -0.4 -0.4 0.4 -0.9
  0.4 -0.1 0.3 0 -0.7 -0.2 0.8 0.7 -0.2 0.3 0.5 0.6 0.3 -0.4
out grad_out@GRAD float32 [2, 3, 1, 1] -0.20625001 -0.031249996 -0.043749996 -0.125 0.08125
  0.11250002
)")
