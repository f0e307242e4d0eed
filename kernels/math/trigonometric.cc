// sin, cos, tan, asin, acos, atan.
#include "kernels/elementwise/unary.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

struct Tan : SlowUnaryOp {
  static constexpr GradReads kReads = kReadsX;
  template <typename T>
  T Forward(T x) const {
    return std::tan(x);
  }
  template <typename T>
  T Grad(T x, T dy) const {
    const T c = std::cos(x);
    return dy / fast::Conj(c * c);
  }
};

struct Asin : SlowUnaryOp {
  static constexpr GradReads kReads = kReadsX;
  template <typename T>
  T Forward(T x) const {
    return std::asin(x);
  }
  template <typename T>
  T Grad(T x, T dy) const {
    return dy * fast::Conj(T(1) / std::sqrt(T(1) - x * x));
  }
};

struct Acos : SlowUnaryOp {
  static constexpr GradReads kReads = kReadsX;
  template <typename T>
  T Forward(T x) const {
    return std::acos(x);
  }
  template <typename T>
  T Grad(T x, T dy) const {
    return -dy * fast::Conj(T(1) / std::sqrt(T(1) - x * x));
  }
};

struct Atan : SlowUnaryOp {
  static constexpr GradReads kReads = kReadsX;
  template <typename T>
  T Forward(T x) const {
    return std::atan(x);
  }
  template <typename T>
  T Grad(T x, T dy) const {
    return dy * fast::Conj(T(1) / (T(1) + x * x));
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(tan) { DefineUnary<Tan, complex64, complex128>(op, "Tangent."); }
HEDDLE_OP(tan_grad) { DefineUnaryGrad<Tan, complex64, complex128>(op); }
HEDDLE_OP(asin) { DefineUnary<Asin, complex64, complex128>(op, "Inverse of sin."); }
HEDDLE_OP(asin_grad) { DefineUnaryGrad<Asin, complex64, complex128>(op); }
HEDDLE_OP(acos) { DefineUnary<Acos, complex64, complex128>(op, "Inverse of cos."); }
HEDDLE_OP(acos_grad) { DefineUnaryGrad<Acos, complex64, complex128>(op); }
HEDDLE_OP(atan) { DefineUnary<Atan, complex64, complex128>(op, "Inverse of tan."); }
HEDDLE_OP(atan_grad) { DefineUnaryGrad<Atan, complex64, complex128>(op); }
