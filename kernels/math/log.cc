// log, log2, log10 and log1p.
#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

constexpr double kLn2 = 0.69314718055994530942;
constexpr double kLn10 = 2.30258509299404568402;

struct Log : UnaryOp {
  static constexpr GradReads kReads = kReadsX;
  template <typename T>
  T Forward(T x) const {
    return fast::Log(x);
  }
  template <typename T>
  T Grad(T x, T dy) const {
    return dy / fast::Conj(x);
  }
};

struct LogGradGrad : UnaryOp {
  static constexpr Key kIns[] = {"X", "grad_out", "grad_x@GRAD"};
  static constexpr Key kOuts[] = {"X@GRAD", "grad_out@GRAD"};
  template <typename T>
  std::array<T, 2> operator()(T x, T dy, T ddx) const {
    return {-dy * ddx / (x * x), ddx / x};
  }
};

struct Log2 : SlowUnaryOp {
  static constexpr GradReads kReads = kReadsX;
  template <typename T>
  T Forward(T x) const {
    if constexpr (kIsComplex<T>)
      return std::log(x) / T(kLn2);
    else
      return std::log2(x);
  }
  template <typename T>
  T Grad(T x, T dy) const {
    return dy / fast::Conj(x * T(kLn2));
  }
};

struct Log10 : SlowUnaryOp {
  static constexpr GradReads kReads = kReadsX;
  template <typename T>
  T Forward(T x) const {
    return std::log10(x);
  }
  template <typename T>
  T Grad(T x, T dy) const {
    return dy / fast::Conj(x * T(kLn10));
  }
};

struct Log1p : SlowUnaryOp {
  static constexpr GradReads kReads = kReadsX;
  template <typename T>
  T Forward(T x) const {
    if constexpr (kIsComplex<T>)
      return std::log(x + T(1));
    else
      return std::log1p(x);
  }
  template <typename T>
  T Grad(T x, T dy) const {
    return dy / fast::Conj(x + T(1));
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(log) { DefineFloatUnary<Log, complex64, complex128>(op, "Natural logarithm."); }
HEDDLE_OP(log_grad) { DefineUnaryGrad<Log, complex64, complex128>(op); }
HEDDLE_OP(log_grad_grad) { DefineMap<LogGradGrad, complex64, complex128>(op); }
HEDDLE_OP(log2) { DefineFloatUnary<Log2, complex64, complex128>(op, "Logarithm to base 2."); }
HEDDLE_OP(log2_grad) { DefineUnaryGrad<Log2, complex64, complex128>(op); }
HEDDLE_OP(log10) { DefineFloatUnary<Log10, complex64, complex128>(op, "Logarithm to base 10."); }
HEDDLE_OP(log10_grad) { DefineUnaryGrad<Log10, complex64, complex128>(op); }
HEDDLE_OP(log1p) {
  DefineFloatUnary<Log1p, complex64, complex128>(op, "log(1 + x), exact near 0.");
}
HEDDLE_OP(log1p_grad) { DefineUnaryGrad<Log1p, complex64, complex128>(op); }

HEDDLE_TILE(log) { return UnaryTile<Log>(); }
HEDDLE_TILE(log_grad) { return UnaryGradTile<Log>(); }
