// Comparisons of two operands that broadcast.
#include <cmath>

#include "core/kernel_context.h"
#include "device/cuda/grid/broadcast.h"

namespace heddle::HEDDLE_GRID {
namespace {

template <typename T>
HEDDLE_BODY bool Same(T a, T b) {
  if constexpr (std::is_same_v<T, float>)
    return a == b || fabs(static_cast<double>(a - b)) < 1e-8;
  else
    return a == b;
}
#define HEDDLE_PREDICATE(name, expression)    \
  struct name {                               \
    template <typename T>                     \
    HEDDLE_BODY static bool Apply(T a, T b) { \
      return expression;                      \
    }                                         \
  }
HEDDLE_PREDICATE(Less, a < b);
HEDDLE_PREDICATE(LessEqual, a <= b);
HEDDLE_PREDICATE(Greater, a > b);
HEDDLE_PREDICATE(GreaterEqual, a >= b);
HEDDLE_PREDICATE(Equal, Same<T>(a, b));
HEDDLE_PREDICATE(NotEqual, !Same<T>(a, b));
HEDDLE_PREDICATE(Exact, a == b);
HEDDLE_PREDICATE(NotExact, a != b);
#undef HEDDLE_PREDICATE

template <typename F, typename ExactF>
Status Equality(Queue& queue, KernelContext& ctx) {
  return ctx.Bool("exact") ? Predicate<ExactF>(queue, ctx) : Predicate<F>(queue, ctx);
}

}  // namespace
}  // namespace heddle::HEDDLE_GRID

HEDDLE_CUDA_KERNEL(less_than) { kernel = {Predicate<Less>, SameDTypes, kPlain}; }
HEDDLE_CUDA_KERNEL(less_equal) { kernel = {Predicate<LessEqual>, SameDTypes, kPlain}; }
HEDDLE_CUDA_KERNEL(greater_than) { kernel = {Predicate<Greater>, SameDTypes, kPlain}; }
HEDDLE_CUDA_KERNEL(greater_equal) { kernel = {Predicate<GreaterEqual>, SameDTypes, kPlain}; }
HEDDLE_CUDA_KERNEL(equal) { kernel = {Equality<Equal, Exact>, SameDTypes, kPlain}; }
HEDDLE_CUDA_KERNEL(not_equal) { kernel = {Equality<NotEqual, NotExact>, SameDTypes, kPlain}; }
