#include <cmath>

#include "kernels/common/reduce_op.h"

namespace heddle {
namespace {

struct RootOfSquares : SumReduction {
  template <typename A, typename T>
  static A Load(T x) {
    const A a = static_cast<A>(x);
    return a * a;
  }
  template <typename A>
  static A Finish(A a, int64_t) {
    return std::sqrt(a);
  }
};

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
