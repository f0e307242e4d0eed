// randperm: a random permutation.
#include <numeric>

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

Status RunRandperm(KernelContext& ctx) {
  Tensor& out = ctx.Out("Out");
  OpRandom random(ctx, ctx.Int("seed"));
  const bool known = VisitDType<int32_t, int64_t, float, double>(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* y = out.mutable_data<T>();
    std::iota(y, y + out.numel(), T(0));
    std::shuffle(y, y + out.numel(), *random);
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

HEDDLE_EXAMPLES(randperm, R"(
example int32
random
attr n INT 50
attr dtype INT 2
attr seed INT 7
out Out int32 [50] mean 24.5 0 var 208.25 0 range 0 49 count 50

example int64
random
attr n INT 50
attr dtype INT 3
attr seed INT 7
out Out int64 [50] mean 24.5 0 var 208.25 0 range 0 49 count 50
)")
