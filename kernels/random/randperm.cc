// randperm: a random permutation.
#include <numeric>

#include "core/interrupts.h"
#include "kernels/base/shape_arg.h"
#include "kernels/random/random.h"

namespace heddle {
namespace {

Status RandpermShape(ShapeContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const DType dtype, CheckedDType(ctx.Int("dtype")));
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, CheckedShape({ctx.Int("n")}, "attribute n"));
  ctx.SetOut("Out", shape, dtype);
  return Status::Ok();
}

// The generator, by a function that looks for interrupts.
template <typename Draw>
struct Watching {
  using result_type = std::mt19937_64::result_type;
  Draw& draw;
  static constexpr result_type min() { return std::mt19937_64::min(); }
  static constexpr result_type max() { return std::mt19937_64::max(); }
  result_type operator()() { return draw(); }
};

Status RunRandperm(KernelContext& ctx) {
  Tensor& out = ctx.Out("Out");
  OpRandom random(ctx, ctx.Int("seed"));
  const bool known = VisitDType<int32_t, int64_t, float, double>(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* y = out.mutable_data<T>();
    std::iota(y, y + out.numel(), T(0));
    LookCount looks;
    auto draw = looks.In([&] { return (*random)(); });
    std::shuffle(y, y + out.numel(), Watching<decltype(draw)>{draw});
  });
  if (!known) return InvalidArgument("no permutations of dtype ", Name(out.dtype()));
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(randperm) {
  op.Doc("A random order of 0 … n - 1.").Output("Out").Traits(kRandom).Attr("n", 0);
  op.Attr("dtype", 3).Attr("seed", 0).InferShape(RandpermShape).AnyKernel(RunRandperm);
}
