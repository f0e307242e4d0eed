#include "kernels/elementwise/arithmetic.h"
#include "kernels/reduce/reduce_op.h"

namespace heddle {
namespace {

struct ProdGrad {
  static constexpr bool kReadsValues = true;
  template <typename T>
  static T Apply(T x, T out, T dout, double) {
    return DivFn::Apply(MulFn::Apply(dout, out), x);
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(reduce_prod) {
  DefineReduce<ProdReduction, float, double, int32_t, int64_t, float16, bfloat16>(
      op, "product over axes");
}

HEDDLE_OP(reduce_prod_grad) {
  DefineReduceGrad<ProdGrad, float, double, float16, bfloat16>(op, "gradient of reduce_prod");
}

HEDDLE_EXAMPLES(reduce_prod, R"(
example float64 4x3x2, dim , reduce_all
attr dim INTS []
attr reduce_all BOOLEAN true
in X float64 [4, 3, 2] 0.599 0.917 0.241 0.4 0.48 0.956 0.877 0.559 0.321 0.718 0.638 0.042 0.44
  0.082 0.162 0.36 0.519 0.678 0.122 0.837 0.797 0.201 0.758 0.281
out Out float64 [] 1.897926796410617e-10

example float32 4x2x1, dim 0 2
attr dim INTS [0, 2]
in X float32 [4, 2, 1] 0.732 1.116 0.828 1.212 1.307 1.02 0.924 0.636
out Out float32 [2] 0.73196286 0.8774535

example float32 1x4, dim 0 1
attr dim INTS [0, 1]
in X float32 [1, 4] 0.741 0.886 0.814 0.959
out Out float32 [] 0.51250124

example float32 4
in X float32 [4] 0.755 0.938 1.303 1.12
out Out float32 [] 1.0335041

example int32 4x2x1, dim 0 2
attr dim INTS [0, 2]
in X int32 [4, 2, 1] 1*8
out Out int32 [2] 1 1

example int64 4x2x1, dim 0 2
attr dim INTS [0, 2]
in X int64 [4, 2, 1] 1*8
out Out int64 [2] 1 1
)")

HEDDLE_EXAMPLES(reduce_prod_grad, R"(
example float64 1x4, dim 0 1
attr dim INTS [0, 1]
in Out float64 [] 0.5125012652759999
in Out@GRAD float64 [] 0.3
in X float64 [1, 4] 0.741 0.814 0.959 0.886
out X@GRAD float64 [1, 4] 0.20749039079999998 0.18888253019999998 0.16032364919999997
  0.17353315979999998

example float64 4x2x1, dim 0 2
attr dim INTS [0, 2]
in Out float64 [2] 0.46719819187199996 1.3747126377600003
in Out@GRAD float64 [2] -0.8 -0.3
in X float64 [4, 2, 1] 0.636 0.924 1.212 1.02 0.732 1.307 0.828 1.116
out X@GRAD float64 [4, 2, 1] -0.5876706816 -0.4463352720000001 -0.3083816448 -0.40432724640000006
  -0.5105991168 -0.3155423040000001 -0.45139921920000003 -0.36954640800000005

example float64 4, dim , reduce_all
attr dim INTS []
attr reduce_all BOOLEAN true
in Out float64 [] 0.041794867199999995
in Out@GRAD float64 [] 0.3
in X float64 [4] 0.212 0.604 0.8 0.408
out X@GRAD float64 [4] 0.05914368 0.02075904 0.015673075199999997 0.03073152

example float32 1x4, dim 0 1
attr dim INTS [0, 1]
in Out float32 [] 0.51250124
in Out@GRAD float32 [] 0.3
in X float32 [1, 4] 0.741 0.814 0.959 0.886
out X@GRAD float32 [1, 4] 0.2074904 0.18888251 0.16032365 0.17353316
)")
