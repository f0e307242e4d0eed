#include "kernels/reduce/reduce_op.h"

namespace heddle {
namespace {

struct MeanGrad {
  static constexpr bool kReadsValues = false;
  template <typename T>
  static T Apply(T, T, T dout, double count) {
    return static_cast<T>(dout / static_cast<T>(count));
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(reduce_mean) {
  DefineReduce<MeanReduction, float, double, bool, int32_t, int64_t, float16, bfloat16,
               std::complex<float>, std::complex<double>>(op, "mean over axes");
}

HEDDLE_OP(reduce_mean_grad) {
  DefineReduceGrad<MeanGrad, float, double, bool, float16, bfloat16, std::complex<float>,
                   std::complex<double>>(op, "gradient of reduce_mean");
}

HEDDLE_EXAMPLES(reduce_mean, R"(
example float32 4x5, dim -2 1, keep_dim
attr dim INTS [-2, 1]
attr keep_dim BOOLEAN true
in X float32 [4, 5] 0.69 0.88 0.04 -0.43 -0.05 0.41 0.51 0.13 0.32 -0.8 -0.61 -0.15 0.23 -0.89 -0.24
  0.6 -0.71 -0.52 0.79 -0.33
out Out float32 [1, 1] -0.0064999997

example float32 3x5x1, dim 0 1 -1
attr dim INTS [0, 1, -1]
in X float32 [3, 5, 1] 0.79 -0.11 0.23 -0.55 0.68 -0.44 0.45 -0.78 -0.22 0.12 -0.67 -0.33 0.01 0.34
  0.56
out Out float32 [] 0.005333348

example float32 5, dim -1, keep_dim
attr dim INTS [-1]
attr keep_dim BOOLEAN true
in X float32 [5] -0.35 -0.16 0.21 0.03 -0.54
out Out float32 [1] -0.16200002

example float32 3x4x3, dim , reduce_all
attr dim INTS []
attr reduce_all BOOLEAN true
in X float32 [3, 4, 3] -0.07 0.84 -0.47 0.49 0.14 -0.22 0.24 -0.82 0.04 -0.67 -0.72 -0.32 -0.57 0.79
  -0.87 0.39 -0.52 -0.62 -0.37 0.09 0.54 -0.42 -0.01 -0.12 0.64 0.19 -0.92 0.34 0.74 0.29 -0.17
  -0.77 -0.27 0.59 0.44 0.69
out Out float32 [] -0.039999995

example float64 3x5x1, dim 0 1 -1
attr dim INTS [0, 1, -1]
in X float64 [3, 5, 1] 0.79 -0.11 0.23 -0.55 0.68 -0.44 0.45 -0.78 -0.22 0.12 -0.67 -0.33 0.01 0.34
  0.56
out Out float64 [] 0.005333333333333338

example int32 3x5x1, dim 0 1 -1
attr dim INTS [0, 1, -1]
in X int32 [3, 5, 1] 0*15
out Out int32 [] 0

example int64 3x5x1, dim 0 1 -1
attr dim INTS [0, 1, -1]
in X int64 [3, 5, 1] 0*15
out Out int64 [] 0

example complex64 3x5x1, dim 0 1 -1
attr dim INTS [0, 1, -1]
in X complex64 [3, 5, 1] 0.79+0.8j -0.11+0.3j 0.23+0.5j -0.55-0.7j 0.68-0.8j -0.44+0.6j 0.45-0.3j
  -0.78+0.1j -0.22-0.5j 0.12+0.1j -0.67-0.2j -0.33+0.4j 0.01+0.7j 0.34+0.2j 0.56-0.4j
out Out complex64 [] 0.0053333305+0.05333334j

example bool 4x5, dim -2 1, keep_dim
attr dim INTS [-2, 1]
attr keep_dim BOOLEAN true
in X bool [4, 5] 1*20
out Out bool [1, 1] 1
)")

HEDDLE_EXAMPLES(reduce_mean_grad, R"(
example float64 2x4, dim , reduce_all
attr dim INTS []
attr reduce_all BOOLEAN true
in Out@GRAD float64 [] -0.6
in X float64 [2, 4] 0.29645 0.59893 0.62544 0.66385 0.24394999999999997 0.6784300000000001 0.34944
  0.52135
out X@GRAD float64 [2, 4] -0.075*8

example float64 5, dim -1, keep_dim
attr dim INTS [-1]
attr keep_dim BOOLEAN true
in Out@GRAD float64 [1] -0.5
in X float64 [5] 0.21 -0.54 0.03 -0.35 -0.16
out X@GRAD float64 [5] -0.1*5

example float64 3x5x1, dim 0 1 -1
attr dim INTS [0, 1, -1]
in Out@GRAD float64 [] -0.9
in X float64 [3, 5, 1] -0.55 0.45 -0.33 -0.44 -0.78 -0.11 0.34 0.23 -0.22 0.12 0.01 0.56 0.68 0.79
  -0.67
out X@GRAD float64 [3, 5, 1] -0.060000000000000005*15

example float32 2x4, dim , reduce_all
attr dim INTS []
attr reduce_all BOOLEAN true
in Out@GRAD float32 [] -0.6
in X float32 [2, 4] 0.29645 0.59893 0.62544 0.66385 0.24395 0.67843 0.34944 0.52135
out X@GRAD float32 [2, 4] -0.075*8

example bool 2x4, dim , reduce_all
attr dim INTS []
attr reduce_all BOOLEAN true
in Out@GRAD bool [] 1
in X bool [2, 4] 1*8
out X@GRAD bool [2, 4] 1*8
)")
