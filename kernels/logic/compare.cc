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
