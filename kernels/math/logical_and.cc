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

HEDDLE_EXAMPLES(logical_and, R"(
example bool 4x4
in X bool [4, 4] 1 0 1 0 1 1 0 1 0 1 0 1*4 0
in Y bool [4, 4] 0 1 1 1 0 0 0 1 0 0 0 1 1 1 0 1
out Out bool [4, 4] 0 0 1 0*4 1 0 0 0 1 1 1 0 0

example int32 4x2x3
in X int32 [3] 1 0 0
in Y int32 [4, 2, 3] 1 1 0 1 1 0 1 0 1 1 0 1 1 0 0 1 1 1 0 0 1 1 1 0
out Out bool [4, 2, 3] 1 0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0*5 1 0 0

example bool 4x3x3x1
in X bool [4, 3, 3, 1] 0 1 0 1 0 1*4 0 1 0 1 1 0 1 0 0 0 1 1 0 1 0 1 1 0 0 0 1 0 0 1*4
in Y bool [3, 1, 1] 0 1 0
out Out bool [4, 3, 3, 1] 0 0 0 1 0 1 0*6 1 1 0*8 1 0*9 1 0 0 0
)")

HEDDLE_EXAMPLES(logical_or, R"(
example bool 4x2
in X bool [4, 2] 0 1 0 1 0 1 1 1
in Y bool [4, 1] 1 0 1 0
out Out bool [4, 2] 1 1 0 1*5

example bool 3x4x2
in X bool [3, 4, 2] 1 0 1 1 0*6 1 0 1*4 0 0 1*4 0 1
in Y bool [1] 0
out Out bool [3, 4, 2] 1 0 1 1 0*6 1 0 1*4 0 0 1*4 0 1

example int32 2x4x1
in X int32 [2, 4, 1] 1*4 0 1 1 1
in Y int32 [2, 1, 2] 0 1 1 2
out Out bool [2, 4, 2] 1*16

example bool 3x4
in X bool [3, 4] 1 0 1 0 1 1 0 1 0 1 0 1
in Y bool [3, 4] 1 1 1 0 0 1 1 1 0 0 0 1
out Out bool [3, 4] 1 1 1 0 1*4 0 1 0 1
)")

HEDDLE_EXAMPLES(logical_xor, R"(
example int32 6x1
in X int32 [1] 0
in Y int32 [6, 1] 0 2 0 1 1 0
out Out bool [6, 1] 0 1 0 1 1 0

example bool 1x4x3
in X bool [1, 4, 3] 1 0 1 1 0*6 1 0
in Y bool [1, 4, 3] 1*4 0 0 1*4 0 1
out Out bool [1, 4, 3] 0 1 0*4 1*6

example bool 4x1x4
in X bool [4, 1, 4] 1 0 1 0 1 1 0 1 0 1 0 1*4 0
in Y bool [1, 4] 0 1 1 1
out Out bool [4, 1, 4] 1 1 0 1 1 0 1 0 0 0 1 0 1 0 0 1
)")
