#include "kernels/elementwise/arithmetic.h"
#include "kernels/elementwise/binary_grad.h"
#include "kernels/elementwise/scalar_step.h"
#include "kernels/elementwise/tile_loop.h"

HEDDLE_OP(elementwise_add) {
  DefineElementwise<AddFn, float, double, int32_t, int64_t, float16, bfloat16, int16_t, int8_t,
                    uint8_t, std::complex<float>, std::complex<double>>(op, "x + y");
}

HEDDLE_OP(grad_add) {
  DefineElementwise<AddFn, float, double, int32_t, int64_t, float16, bfloat16, int16_t,
                    std::complex<float>, std::complex<double>>(
      op, "sum of two gradients of one variable");
}

HEDDLE_OP(elementwise_add_grad) {
  op.Doc("gradient of x + y");
  DefineElementwiseGrad<PassGrad, PassGrad, float, double, int32_t, int64_t, float16, bfloat16,
                        int16_t, std::complex<float>, std::complex<double>>(op, 0);
}

HEDDLE_SCALAR(elementwise_add) = {2, &MakeIntegerScalar<AddFn>};

HEDDLE_TILE(elementwise_add) { return BinaryTile<AddFn>(); }
HEDDLE_TILE(grad_add) { return BinaryTile<AddFn>(); }

HEDDLE_EXAMPLES(elementwise_add, R"(
example float64 4
in X float64 [4] 0.4 0.797 0.598 0.201
in Y float64 [4] 0.799 0.211 0.407 0.603
out Out float64 [4] 1.199 1.008 1.005 0.804

example float32 3x1x4, axis 0
attr axis INT 0
in X float32 [3, 1, 4] 0.85 -0.65 0.17 0.71 0.58 -0.38 -0.1 0.03 0.44 -0.24 -0.51 0.3
in Y float32 [3, 1] 0.321 0.233 0.389
out Out float32 [3, 1, 4] 1.171 -0.32899997 0.491 1.031 0.81299996 -0.147 0.13299999 0.26299998
  0.829 0.149 -0.12099999 0.689

example float64 4x3
in X float64 [4, 3] 0.239 0.652 0.79 0.515 0.171 0.927 0.859 0.721 0.377 0.446 0.308 0.583
in Y float64 [] 0.432
out Out float64 [4, 3] 0.671 1.084 1.222 0.9470000000000001 0.603 1.359 1.291 1.153
  0.8089999999999999 0.878 0.74 1.015

example float64 4x3, no. 2
in X float64 [] 0.692
in Y float64 [4, 3] 0.583 0.446 0.515 0.308 0.79 0.859 0.239 0.927 0.721 0.377 0.171 0.652
out Out float64 [4, 3] 1.275 1.138 1.2069999999999999 1 1.482 1.551 0.9309999999999999 1.619
  1.4129999999999998 1.069 0.863 1.3439999999999999

example int32 4
in X int32 [4] 1 1 0 0
in Y int32 [4] 1 1 0 1
out Out int32 [4] 2 2 0 1

example int64 4
in X int64 [4] 1 1 0 0
in Y int64 [4] 1 1 0 1
out Out int64 [4] 2 2 0 1

example complex64 4
in X complex64 [4] 0.4+0.8j 0.797+0.3j 0.598+0.5j 0.201-0.7j
in Y complex64 [4] 0.799-0.8j 0.211+0.6j 0.407-0.3j 0.603+0.1j
out Out complex64 [4] 1.199+0j 1.008+0.90000004j 1.005+0.19999999j 0.804-0.59999996j
)")

HEDDLE_EXAMPLES(grad_add, R"(
example float32
in X float32 [2, 3] 3 -6 6 -6 8 2
in Y float32 [2, 3] 2 -3 4 -6 -5 2
out Out float32 [2, 3] 5 -9 10 -12 3 4

example float64
in X float64 [2, 3] -3 8 2 -5 6 -2
in Y float64 [2, 3] -5 -7 -0 2 -1 0
out Out float64 [2, 3] -8 1 2 -3 5 -2

example int32
in X int32 [2, 3] 5 1 2 -5 -7 -7
in Y int32 [2, 3] -8 -6 7 0 4 8
out Out int32 [2, 3] -3 -5 9 -5 -3 1

example int64
in X int64 [2, 3] 5 -7 0 2 8 7
in Y int64 [2, 3] -6 -3 2 -7 -7 -2
out Out int64 [2, 3] -1 -10 2 -5 1 5

example int16
in X int16 [2, 3] 21 -42 42 -42 56 14
in Y int16 [2, 3] 14 -21 28 -42 -35 14
out Out int16 [2, 3] 35 -63 70 -84 21 28
)")

HEDDLE_EXAMPLES(elementwise_add_grad, R"(
example float64 4x3
in Out@GRAD float64 [4, 3] 0.9 0.2 -0.9 0.8 0.3 0.9 -0.7 0.1 0.8 1 0 0.3
in X float64 [4, 3] 0.721 0.652 0.583 0.377 0.515 0.859 0.927 0.171 0.446 0.239 0.79 0.308
in Y float64 [] 0.432
out X@GRAD float64 [4, 3] 0.9 0.2 -0.9 0.8 0.3 0.9 -0.7 0.1 0.8 1 0 0.3
out Y@GRAD float64 [] 3.7

example float64 2x3x4
in Out@GRAD float64 [2, 3, 4] 0.8 0.1 0.3 0.7 -0.6 -0.7 0.5 -0.1 -0.2 0.6 0.6 -0.7 -0.8 -0.3 0.2 0.8
  0.2 -0.2 0.9 0.7 0.5 0.8 -0.8 -0.9
in X float64 [2, 3, 4] 0.133 0.539 0.649 0.575 0.502 0.17 0.87 0.428 0.76 0.391 0.354 0.097 0.797
  0.907 0.833 0.944 0.207 0.465 0.244 0.281 0.612 0.723 0.686 0.318
in Y float64 [1, 1] 0.722
out Y@GRAD float64 [1, 1] 2.4

example float64 3x4
in Out@GRAD float64 [3, 4] -0.8 -0.6 -0.5 -0.7 0.7 -0.2 0.1 0.5 -0.5 0.9 0.9 -0
in X float64 [3, 4] 0.81 -0.82 0.07 0.66 0.52 -0.53 -0.23 -0.08 0.37 -0.38 -0.67 0.22
in Y float64 [4] -0.2 0.152 -0.024 0.328
out X@GRAD float64 [3, 4] -0.8 -0.6 -0.5 -0.7 0.7 -0.2 0.1 0.5 -0.5 0.9 0.9 -0
out Y@GRAD float64 [4] -0.6000000000000001 0.09999999999999998 0.5 -0.19999999999999996

example float32 4x3
in Out@GRAD float32 [4, 3] 0.9 0.2 -0.9 0.8 0.3 0.9 -0.7 0.1 0.8 1 0 0.3
in X float32 [4, 3] 0.721 0.652 0.583 0.377 0.515 0.859 0.927 0.171 0.446 0.239 0.79 0.308
in Y float32 [] 0.432
out X@GRAD float32 [4, 3] 0.9 0.2 -0.9 0.8 0.3 0.9 -0.7 0.1 0.8 1 0 0.3
out Y@GRAD float32 [] 3.6999998

example int16 4x3
in Out@GRAD int16 [4, 3] 6 1 -6 5 2 6 -4 1 5 7 1 2
in X int16 [4, 3] 5 4 4 2 3 6 6 1 3 1 5 2
in Y int16 [] 3
out X@GRAD int16 [4, 3] 6 1 -6 5 2 6 -4 1 5 7 1 2
out Y@GRAD int16 [] 26
)")
