#include "kernels/elementwise/arithmetic.h"
#include "kernels/reduce/in_double.h"
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
  DefineReduceOrInDouble<ProdReduction, ProdInDouble, float, double, int32_t, int64_t, float16,
                         bfloat16, std::complex<float>, std::complex<double>>(op,
                                                                              "product over axes");
}

HEDDLE_OP(reduce_prod_grad) {
  DefineReduceGrad<ProdGrad, float, double, float16, bfloat16>(op, "gradient of reduce_prod");
}
