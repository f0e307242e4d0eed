// seed: a random seed for other operators.
#include "kernels/base/shape_arg.h"

namespace heddle {
namespace {

Status SeedShape(ShapeContext& ctx) {
  ctx.SetOut("Out", {1}, DType::kI32);
  return Status::Ok();
}

Status RunSeed(KernelContext& ctx) {
  const int64_t fixed = ctx.Int("seed");
  ctx.Out("Out").mutable_data<int32_t>()[0] =
      static_cast<int32_t>(fixed != 0 ? fixed : static_cast<int64_t>(ctx.random()() >> 33));
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(seed) {
  op.Doc("A seed for other operators.").Output("Out").Traits(kRandom).Attr("seed", 0);
  op.InferShape(SeedShape).AnyKernel(RunSeed);
}
