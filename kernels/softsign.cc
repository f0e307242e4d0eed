#include <cmath>

#include "kernels/common/unary.h"

namespace heddle {
namespace {

struct Softsign : UnaryOp {
  static constexpr GradReads kReads = kReadsX;
  template <typename T>
  T Forward(T x) const {
    return x / (T(1) + T(std::abs(x)));
  }
  template <typename T>
  T Grad(T x, T dy) const {
    const T d = T(1) + T(std::abs(x));
    return dy / (d * d);
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(softsign) { DefineUnary<Softsign, complex64, complex128>(op, "x / (1 + |x|)"); }
HEDDLE_OP(softsign_grad) { DefineUnaryGrad<Softsign, complex64, complex128>(op); }
