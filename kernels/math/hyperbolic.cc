// sinh, cosh, asinh, acosh, atanh.
#include "kernels/elementwise/unary.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

struct Sinh : SlowUnaryOp {
  static constexpr GradReads kReads = kReadsX;
  template <typename T>
  T Forward(T x) const {
    return std::sinh(x);
  }
  template <typename T>
  T Grad(T x, T dy) const {
    return dy * fast::Conj(std::cosh(x));
  }
};

struct Cosh : SlowUnaryOp {
  static constexpr GradReads kReads = kReadsX;
  template <typename T>
  T Forward(T x) const {
    return std::cosh(x);
  }
  template <typename T>
  T Grad(T x, T dy) const {
    return dy * fast::Conj(std::sinh(x));
  }
};

struct Asinh : SlowUnaryOp {
  static constexpr GradReads kReads = kReadsX;
  template <typename T>
  T Forward(T x) const {
    return std::asinh(x);
  }
  template <typename T>
  T Grad(T x, T dy) const {
    return dy * fast::Conj(T(1) / std::sqrt(x * x + T(1)));
  }
};

struct Acosh : SlowUnaryOp {
  static constexpr GradReads kReads = kReadsX;
  template <typename T>
  T Forward(T x) const {
    return std::acosh(x);
  }
  template <typename T>
  T Grad(T x, T dy) const {
    return dy * fast::Conj(T(1) / std::sqrt(x * x - T(1)));
  }
};

struct Atanh : SlowUnaryOp {
  static constexpr GradReads kReads = kReadsX;
  template <typename T>
  T Forward(T x) const {
    return std::atanh(x);
  }
  template <typename T>
  T Grad(T x, T dy) const {
    return dy * fast::Conj(T(1) / (T(1) - x * x));
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(sinh) { DefineUnary<Sinh, complex64, complex128>(op, "Hyperbolic sine."); }
HEDDLE_OP(sinh_grad) { DefineUnaryGrad<Sinh, complex64, complex128>(op); }
HEDDLE_OP(cosh) { DefineUnary<Cosh, complex64, complex128>(op, "Hyperbolic cosine."); }
HEDDLE_OP(cosh_grad) { DefineUnaryGrad<Cosh, complex64, complex128>(op); }
HEDDLE_OP(asinh) { DefineUnary<Asinh, complex64, complex128>(op, "Inverse of sinh."); }
HEDDLE_OP(asinh_grad) { DefineUnaryGrad<Asinh, complex64, complex128>(op); }
HEDDLE_OP(acosh) { DefineUnary<Acosh, complex64, complex128>(op, "Inverse of cosh."); }
HEDDLE_OP(acosh_grad) { DefineUnaryGrad<Acosh, complex64, complex128>(op); }
HEDDLE_OP(atanh) { DefineUnary<Atanh, complex64, complex128>(op, "Inverse of tanh."); }
HEDDLE_OP(atanh_grad) { DefineUnaryGrad<Atanh, complex64, complex128>(op); }
