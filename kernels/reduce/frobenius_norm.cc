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
