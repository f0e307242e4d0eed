// Products, quotients and logarithms that are 0 where a factor is 0, whatever the other one is.
#include "kernels/elementwise/arithmetic.h"
#include "kernels/elementwise/unary.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

struct DivNoNan {
  static constexpr int64_t kGrain = kElementGrain;
  template <typename T>
  static T Apply(T a, T b) {
    return b == T(0) ? T(0) : a / b;
  }
};
struct MulNoNan {
  static constexpr int64_t kGrain = kElementGrain;
  template <typename T>
  static T Apply(T a, T b) {
    return b == T(0) ? T(0) : MulFn::Apply(a, b);
  }
};
struct Xdivy {
  static constexpr int64_t kGrain = kElementGrain;
  template <typename T>
  static T Apply(T a, T b) {
    return a == T(0) ? T(0) : a / b;
  }
};
struct Xlogy {
  static constexpr int64_t kGrain = kHeavyGrain;
  template <typename T>
  static T Apply(T a, T b) {
    return a == T(0) ? T(0) : a * std::log(b);
  }
};
struct Xlog1py {
  static constexpr int64_t kGrain = kHeavyGrain;
  template <typename T>
  static T Apply(T a, T b) {
    if constexpr (kIsComplex<T>)
      return a == T(0) ? T(0) : a * std::log(T(1) + b);
    else
      return a == T(0) ? T(0) : a * std::log1p(b);
  }
};

template <typename F>
void DefineNoNan(OpDef& op, const char* doc) {
  op.Doc(doc).Input("X").Input("Y").Output("Out").Inplace("X", "Out").Inplace("Y", "Out");
  BinaryKernels<F, SlotsXY, float, double, float16, bfloat16, complex64, complex128>(op);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(div_no_nan) { DefineNoNan<DivNoNan>(op, "x / y, and 0 where y is 0"); }
HEDDLE_OP(mul_no_nan) { DefineNoNan<MulNoNan>(op, "x y, and 0 where y is 0"); }
HEDDLE_OP(xdivy) { DefineNoNan<Xdivy>(op, "x / y, and 0 where x is 0"); }
HEDDLE_OP(xlogy) { DefineNoNan<Xlogy>(op, "x log(y), and 0 where x is 0"); }
HEDDLE_OP(xlog1py) { DefineNoNan<Xlog1py>(op, "x log(1 + y), and 0 where x is 0"); }
