// Comparisons of two tensors.
#include <cmath>

#include "kernels/elementwise/binary_op.h"
#include "kernels/elementwise/scalar_step.h"

namespace heddle {
namespace {

#define HEDDLE_COMPARE_FN(name, op)                  \
  struct name {                                      \
    static constexpr int64_t kGrain = kElementGrain; \
    template <typename T>                            \
    static bool Apply(T a, T b) {                    \
      return a op b;                                 \
    }                                                \
  }
HEDDLE_COMPARE_FN(LessFn, <);
HEDDLE_COMPARE_FN(LessEqualFn, <=);
HEDDLE_COMPARE_FN(GreaterFn, >);
HEDDLE_COMPARE_FN(GreaterEqualFn, >=);
#undef HEDDLE_COMPARE_FN

// Floats are the same when they differ by less than 1e-8, as in Paddle.
template <typename T>
bool Same(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return a == b || std::fabs(static_cast<double>(a - b)) < 1e-8;
  else
    return a == b;
}
struct EqualFn {
  static constexpr int64_t kGrain = kElementGrain;
  template <typename T>
  static bool Apply(T a, T b) {
    return Same(a, b);
  }
};
struct NotEqualFn {
  static constexpr int64_t kGrain = kElementGrain;
  template <typename T>
  static bool Apply(T a, T b) {
    return !Same(a, b);
  }
};

// Without a tolerance, where the attribute asks for it.
struct ExactFn {
  static constexpr int64_t kGrain = kElementGrain;
  template <typename T>
  static bool Apply(T a, T b) {
    return a == b;
  }
};
struct NotExactFn {
  static constexpr int64_t kGrain = kElementGrain;
  template <typename T>
  static bool Apply(T a, T b) {
    return a != b;
  }
};
template <typename F, typename Exact>
struct Equality {
  template <typename T>
  struct Kernel {
    static Status Run(KernelContext& ctx) {
      return RunBinaryOp<SlotsXY>(ctx, ctx.Bool("exact") ? BinaryLoop<Exact, T, bool>::kLoops
                                                         : BinaryLoop<F, T, bool>::kLoops);
    }
  };
};

template <typename F>
void DefineCompare(OpDef& op, const char* doc) {
  DefinePredicate<F, float, double, int32_t, int64_t, bool, uint8_t, int8_t, int16_t, float16,
                  bfloat16>(op, doc);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(less_than) { DefineCompare<LessFn>(op, "x < y"); }
HEDDLE_OP(less_equal) { DefineCompare<LessEqualFn>(op, "x <= y"); }
HEDDLE_OP(greater_than) { DefineCompare<GreaterFn>(op, "x > y"); }
HEDDLE_OP(greater_equal) { DefineCompare<GreaterEqualFn>(op, "x >= y"); }
HEDDLE_OP(equal) {
  DefineCompare<EqualFn>(op, "x == y; floats may differ by less than 1e-8, unless exact");
  op.Attr("exact", false);
  op.Kernels<Equality<EqualFn, ExactFn>::Kernel, float, double, float16, bfloat16>();
}
HEDDLE_OP(not_equal) {
  DefineCompare<NotEqualFn>(op,
                            "x != y; floats that differ by less than 1e-8 are equal, unless exact");
  op.Attr("exact", false);
  op.Kernels<Equality<NotEqualFn, NotExactFn>::Kernel, float, double, float16, bfloat16>();
}

HEDDLE_SCALAR(less_than) = {2, &MakeIntegerScalar<LessFn>};
HEDDLE_SCALAR(less_equal) = {2, &MakeIntegerScalar<LessEqualFn>};
HEDDLE_SCALAR(greater_than) = {2, &MakeIntegerScalar<GreaterFn>};
HEDDLE_SCALAR(greater_equal) = {2, &MakeIntegerScalar<GreaterEqualFn>};
HEDDLE_SCALAR(equal) = {2, &MakeIntegerScalar<EqualFn>};
HEDDLE_SCALAR(not_equal) = {2, &MakeIntegerScalar<NotEqualFn>};

HEDDLE_EXAMPLES(less_than, R"(
example int64 4
in X int64 [4] 1 2 3 4
in Y int64 [4] 1 3 2 4
out Out bool [4] 0 1 0 0

example int64 1x4x1
in X int64 [1, 4, 1] 1 2 3 1
in Y int64 [2, 1, 1] 0 1
out Out bool [2, 4, 1] 0*8

example int32 5
in X int32 [5] 0 1 2 3 4
in Y int32 [3, 1] 5 3 2
out Out bool [3, 5] 1*8 0 0 1 1 0 0 0

example int32 1x2x3
in X int32 [1, 2, 3] 0 2 3 1 4 5
in Y int32 [1, 2, 1, 3] 2 3 5 1 4 6
out Out bool [1, 2, 2, 3] 1*4 0 0 1 1 1 0 0 1
)")

HEDDLE_EXAMPLES(less_equal, R"(
example int32 5
in X int32 [5] 2 2 1 1 0
in Y int32 [5] 3*5
out Out bool [5] 1*5

example int32 1x2x1x3
in X int32 [1, 2, 1, 3] 1 3 4 2 5 6
in Y int32 [1, 2, 3] 1 2 4 0 3 5
out Out bool [1, 2, 2, 3] 1 0 1 0 1 1 0*6

example int32 1x2x3
in X int32 [1, 2, 3] 2 4 5 0 1 3
in Y int32 [1, 2, 1, 3] 1 5 6 2 3 4
out Out bool [1, 2, 2, 3] 0 1*6 0 0 1 1 1

example int64 3x4x1
in X int64 [3, 4, 1] 0 0 0 1 1 0 0 1 0*4
in Y int64 [1, 1] 0
out Out bool [3, 4, 1] 1 1 1 0 0 1 1 0 1*4
)")

HEDDLE_EXAMPLES(greater_than, R"(
example int32 5
in X int32 [5] 0 1 2 3 4
in Y int32 [3, 1] 5 3 2
out Out bool [3, 5] 0*9 1 0 0 0 1 1

example int32 4x3x1
in X int32 [4, 3, 1] 0 1 0 0 1 0 0 1 0 0 0 1
in Y int32 [1] 2
out Out bool [4, 3, 1] 0*12

example bool 3
in X bool [3] 0 1 0
in Y bool [1] 1
out Out bool [3] 0 0 0

example float32 2
in X float32 [2] 0.391 0.695
in Y float32 [2] 1 1
out Out bool [2] 0 0
)")

HEDDLE_EXAMPLES(greater_equal, R"(
example int64 5
in X int64 [5] 0 3 0 0 3
in Y int64 [5] 2 0 1 0 2
out Out bool [5] 0 1 0 1 1

example int32 5
in X int32 [5] 0 1 2 3 4
in Y int32 [3, 1] 5 3 2
out Out bool [3, 5] 0*8 1 1 0 0 1 1 1

example float32 4x3
in X float32 [4, 3] 1.14 1.26 1.6 1.84 1.035 1.36 1.03 1.26 1.84 1.61 1.38 1.15
in Y float32 [] 1
out Out bool [4, 3] 1*12

example bool 3
in X bool [3] 0 1 0
in Y bool [1] 1
out Out bool [3] 0 1 0
)")

HEDDLE_EXAMPLES(equal, R"(
example exact
# node Equal X Y -> Out
attr exact BOOLEAN true
in X float32 [2, 4] 1e-9 0 nan 1 inf -0 3 -inf
in Y float32 [2, 4] 0 -0 nan 1 inf 0 3.0000002 inf
out Out bool [2, 4] 0 1 0 1 1 1 0 0

example with a tolerance
in X float32 [2, 4] 1e-9 0 nan 1 inf -0 3 -inf
in Y float32 [2, 4] 0 -0 nan 1 inf 0 3.0000002 inf
out Out bool [2, 4] 1 1 0 1 1 1 0 0

example int64 1x6
in X int64 [1, 6] 0 3 2 2 2 3
in Y int64 [1, 6] 1 0 1 0 1 1
out Out bool [1, 6] 0*6

example int32 5
in X int32 [5] 0 1 2 3 4
in Y int32 [3, 1] 5 3 2
out Out bool [3, 5] 0*8 1 0 0 0 1 0 0

example int32 1x2x1x3
in X int32 [1, 2, 1, 3] 2 3 5 1 4 6
in Y int32 [1, 2, 3] 2 3 5 0 1 4
out Out bool [1, 2, 2, 3] 1 1 1 0*9

example bool 3
in X bool [3] 0 1 0
in Y bool [1] 1
out Out bool [3] 0 1 0
)")

HEDDLE_EXAMPLES(not_equal, R"(
example exact
# given
attr exact BOOLEAN true
in X float32 [2, 4] 1e-9 0 nan 1 inf -0 3 -inf
in Y float32 [2, 4] 0 -0 nan 1 inf 0 3.0000002 inf
out Out bool [2, 4] 1 0 1 0 0 0 1 1

example int64 6
in X int64 [6] 0 3 2 2 2 3
in Y int64 [6] 1 0 1 0 1 1
out Out bool [6] 1*6

example int64 2x2x2x1
in X int64 [2, 2, 2, 1] 1 0 1 1 0 0 1 1
in Y int64 [] -100
out Out bool [2, 2, 2, 1] 1*8

example int32 5
in X int32 [5] 0 1 2 3 4
in Y int32 [3, 1] 5 3 2
out Out bool [3, 5] 1*8 0 1 1 1 0 1 1

example bool 3
in X bool [3] 0 1 0
in Y bool [1] 1
out Out bool [3] 1 0 1
)")
