#include "kernels/elementwise/arithmetic.h"
#include "kernels/elementwise/binary_grad.h"
#include "kernels/elementwise/scalar_step.h"
#include "kernels/elementwise/tile_loop.h"

namespace heddle {
namespace {

struct NegatedGrad {
  static constexpr unsigned kUses = 0;
  template <typename T>
  static T Apply(T, T, T, T dout, double) {
    return SubFn::Apply(T(0), dout);
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(elementwise_sub) {
  DefineElementwise<SubFn, float, double, int32_t, int64_t, float16, bfloat16, int16_t,
                    std::complex<float>, std::complex<double>>(op, "x - y");
}

HEDDLE_OP(elementwise_sub_grad) {
  op.Doc("gradient of x - y");
  DefineElementwiseGrad<PassGrad, NegatedGrad, float, double, int32_t, int64_t, float16, bfloat16,
                        int16_t, std::complex<float>, std::complex<double>>(op, 0);
}

HEDDLE_SCALAR(elementwise_sub) = {2, &MakeIntegerScalar<SubFn>};

HEDDLE_TILE(elementwise_sub) { return BinaryTile<SubFn>(); }

HEDDLE_EXAMPLES(elementwise_sub, R"(
example float64 4
in X float64 [4] 0.201 0.598 0.797 0.4
in Y float64 [4] 0.211 0.407 0.603 0.799
out Out float64 [4] -0.009999999999999981 0.191 0.19400000000000006 -0.399

example int64 2x3
in X int64 [2, 3] 0 2 5 0 1 4
in Y int64 [1] 9
out Out int64 [2, 3] -9 -7 -4 -9 -8 -5

example float64 scalar
in X float64 [] 0.983
in Y float64 [] 0.716
out Out float64 [] 0.267

example float32 4x3
in X float32 [4, 3] 0.452 0.828 0.227 0.678 0.152 0.753 0.527 0.602 0.903 0.377 0.302 0.077
in Y float32 [3] 0.273 0.865 0.518
out Out float32 [4, 3] 0.17899999 -0.037 -0.291 0.40499997 -0.713 0.23500001 0.254 -0.263 0.385
  0.104 -0.563 -0.441

example int32 4
in X int32 [4] 1 1 0 0
in Y int32 [4] 1 1 0 1
out Out int32 [4] 0 0 0 -1

example complex64 4
in X complex64 [4] 0.201+0.8j 0.598+0.3j 0.797+0.5j 0.4-0.7j
in Y complex64 [4] 0.211-0.8j 0.407+0.6j 0.603-0.3j 0.799+0.1j
out Out complex64 [4] -0.00999999+1.6j 0.19099998-0.3j 0.194+0.8j -0.39900002-0.8j

example bfloat16 4
in X bfloat16 [4] 0.201 0.598 0.797 0.4
in Y bfloat16 [4] 0.211 0.406 0.6 0.8
out Out bfloat16 [4] -0.00977 0.191 0.195 -0.4
)")

HEDDLE_EXAMPLES(elementwise_sub_grad, R"(
example float64 2x3
in Out@GRAD float64 [2, 3] -0.7 -0.5 0.6 -0.4 -0.6 0.5
in X float64 [2, 1] -0.24 -0.55
in Y float64 [1, 3] 0.29 -0.73 0.5
out X@GRAD float64 [2, 1] -0.6 -0.5
out Y@GRAD float64 [1, 3] 1.1 1.1 -1.1

example float64 4
in Out@GRAD float64 [4] -0.8 -0.3 0.7 -0.8
in X float64 [4] 0.201 0.598 0.4 0.797
in Y float64 [4] 0.799 0.603 0.211 0.407
out X@GRAD float64 [4] -0.8 -0.3 0.7 -0.8
out Y@GRAD float64 [4] 0.8 0.3 -0.7 0.8

example float64 scalar
in Out@GRAD float64 [] -0.6
in X float64 [] 0.304
in Y float64 [] 0.596
out X@GRAD float64 [] -0.6

example float32 2x3
in Out@GRAD float32 [2, 3] -0.7 -0.5 0.6 -0.4 -0.6 0.5
in X float32 [2, 1] -0.24 -0.55
in Y float32 [1, 3] 0.29 -0.73 0.5
out X@GRAD float32 [2, 1] -0.6 -0.5
out Y@GRAD float32 [1, 3] 1.1 1.1 -1.1

example int16 2x3
in Out@GRAD int16 [2, 3] -4 -3 4 -2 -4 3
in X int16 [2, 1] -1 -3
in Y int16 [1, 3] 2 -5 3
out X@GRAD int16 [2, 1] -3 -3
out Y@GRAD int16 [1, 3] 6 7 -7
)")
