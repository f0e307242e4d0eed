#include "kernels/reduce/in_double.h"
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

HEDDLE_OP(frobenius_norm) {
  DefineReduceOrInDouble<RootOfSquares, RootInDouble, float, double>(op, "2-norm over axes");
  op.Kernel(DType::kI32, &RunInDouble<RootInDouble, int32_t>);
  op.Kernel(DType::kI64, &RunInDouble<RootInDouble, int64_t>);
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}

HEDDLE_OP(frobenius_norm_grad) {
  DefineReduceGrad<Grad, float, double>(op, "gradient of frobenius_norm");
}
