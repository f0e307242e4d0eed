// logical_and, logical_or and logical_xor: anything but 0 is true.
#include <complex>

#include "kernels/elementwise/binary_op.h"
#include "kernels/elementwise/scalar_step.h"

namespace heddle {
namespace {

struct LogicalAnd {
  static constexpr int64_t kGrain = kElementGrain;
  template <typename T>
  static bool Apply(T a, T b) {
    return (a != T(0)) & (b != T(0));
  }
};
struct LogicalOr {
  static constexpr int64_t kGrain = kElementGrain;
  template <typename T>
  static bool Apply(T a, T b) {
    return (a != T(0)) | (b != T(0));
  }
};
struct LogicalXor {
  static constexpr int64_t kGrain = kElementGrain;
  template <typename T>
  static bool Apply(T a, T b) {
    return (a != T(0)) != (b != T(0));
  }
};

template <typename F>
void DefineLogical(OpDef& op, const char* doc) {
  DefinePredicate<F, bool, float, double, int32_t, int64_t, int8_t, int16_t, float16, bfloat16,
                  std::complex<float>, std::complex<double>>(op, doc);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(logical_and) { DefineLogical<LogicalAnd>(op, "x and y"); }
HEDDLE_OP(logical_or) { DefineLogical<LogicalOr>(op, "x or y"); }
HEDDLE_OP(logical_xor) { DefineLogical<LogicalXor>(op, "exactly one of x and y"); }

HEDDLE_SCALAR(logical_and) = {2, &MakeBoolScalar<LogicalAnd>};
HEDDLE_SCALAR(logical_or) = {2, &MakeBoolScalar<LogicalOr>};
