// Logic of two operands that broadcast, and the negation.
#include "core/kernel_context.h"
#include "device/cuda/grid/broadcast.h"

namespace heddle::HEDDLE_GRID {
namespace {

#define HEDDLE_PREDICATE(name, expression)    \
  struct name {                               \
    template <typename T>                     \
    HEDDLE_BODY static bool Apply(T a, T b) { \
      return expression;                      \
    }                                         \
  }
HEDDLE_PREDICATE(And, a != T(0) && b != T(0));
HEDDLE_PREDICATE(Or, a != T(0) || b != T(0));
HEDDLE_PREDICATE(Xor, (a != T(0)) != (b != T(0)));
#undef HEDDLE_PREDICATE

struct NotBody {
  const bool* x;
  bool* out;
  HEDDLE_BODY void operator()(int64_t i) const { out[i] = !x[i]; }
};
Status LogicalNot(Queue& queue, KernelContext& ctx) {
  Tensor& out = ctx.Out("Out");
  return Each(queue, out.numel(), NotBody{ctx.In("X").data<bool>(), out.mutable_data<bool>()});
}

}  // namespace
}  // namespace heddle::HEDDLE_GRID

HEDDLE_CUDA_KERNEL(logical_and) { kernel = {Predicate<And>, SameDTypes, kPlain}; }
HEDDLE_CUDA_KERNEL(logical_or) { kernel = {Predicate<Or>, SameDTypes, kPlain}; }
HEDDLE_CUDA_KERNEL(logical_xor) { kernel = {Predicate<Xor>, SameDTypes, kPlain}; }
HEDDLE_CUDA_KERNEL(logical_not) { kernel = {LogicalNot, nullptr, Of(DType::kBool)}; }
