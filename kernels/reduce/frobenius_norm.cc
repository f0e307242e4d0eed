#include "kernels/reduce/reduce_op.h"

namespace heddle {
namespace {

struct Grad {
  static constexpr bool kReadsValues = true;
  template <typename T>
  static T Apply(T x, T out, T dout, double) {
    return x / (out + std::numeric_limits<T>::epsilon()) * dout;
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(frobenius_norm) { DefineReduce<RootOfSquares, float, double>(op, "2-norm over axes"); }

HEDDLE_OP(frobenius_norm_grad) {
  DefineReduceGrad<Grad, float, double>(op, "gradient of frobenius_norm");
}

HEDDLE_EXAMPLES(frobenius_norm, R"(
example float32 4x1, dim 0 1, keep_dim
attr dim INTS [0, 1]
attr keep_dim BOOLEAN true
in X float32 [4, 1] 0.677 0.812 0.767 0.722
out Out float32 [1, 1] 1.492396

example float64 2x3x4x3, dim 1 2
attr dim INTS [1, 2]
in X float64 [2, 3, 4, 3] 1.075 1.36 1.603 1.319 1.062 1.739 1.874 1.048 1.143 1.129 1.495 1.441
  1.536 1.481 1.725 1.102 1.549 1.468 1.278 1.224 1.901 1.387 1.955 1.644 1.942 1.928 1.251 1.793
  1.861 1.332 1.779 1.238 1.116 1.373 1.617 1.454 1.522 1.17 1.183 1.089 1.211 1.671 1.156 1.414
  1.305 1.685 1.265 1.197 1.983 1.4 1.752 1.766 1.346 1.82 1.427 1.698 1.292 1.969 1.576 1.806 1.59
  1.658 1.915 1.834 1.509 1.563 1.63 1.021 1.847 1.035 1.888 1.712
out Out float64 [2, 3] 5.181586533099683 5.248959325428232 5.207940379843072 5.5010982539852895
  5.020634222884595 5.576102133210976
)")

HEDDLE_EXAMPLES(frobenius_norm_grad, R"(
example float64 4x1, dim 0 1, keep_dim
attr dim INTS [0, 1]
attr keep_dim BOOLEAN true
in Out float64 [1, 1] 1.4923960600323227
in Out@GRAD float64 [1, 1] 0.3
in X float64 [4, 1] 0.677 0.722 0.812 0.767
out X@GRAD float64 [4, 1] 0.13608987951594104 0.14513573561375098 0.16322744780937093
  0.15418159171156096

example float64 2x2, dim 0 1
attr dim INTS [0, 1]
in Out float64 [] 1.0430512930819846
in Out@GRAD float64 [] 0.3
in X float64 [2, 2] 0.555 0.471 0.387 0.639
out X@GRAD float64 [2, 2] 0.1596278161046806 0.13546793042397218 0.11130804474326378
  0.18378770178538903

example float32 4x1, dim 0 1, keep_dim
attr dim INTS [0, 1]
attr keep_dim BOOLEAN true
in Out float32 [1, 1] 1.4923961
in Out@GRAD float32 [1, 1] 0.3
in X float32 [4, 1] 0.677 0.722 0.812 0.767
out X@GRAD float32 [4, 1] 0.13608988 0.14513575 0.16322744 0.15418158
)")
