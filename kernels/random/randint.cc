// randint: uniform integers of a range.
#include "core/interrupts.h"
#include "kernels/base/shape_arg.h"
#include "kernels/random/random.h"

namespace heddle {
namespace {

Status RandintShape(ShapeContext& ctx) {
  if (ctx.Int("low") >= ctx.Int("high"))
    return InvalidArgument("low ", ctx.Int("low"), " must be less than high ", ctx.Int("high"));
  return ShapeArgShape(ctx);
}

Status RunRandint(KernelContext& ctx) {
  Tensor& out = ctx.Out("Out");
  OpRandom random(ctx, ctx.Int("seed"));
  const bool known = VisitDType<int32_t, int64_t>(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::uniform_int_distribution<T> dist(static_cast<T>(ctx.Int("low")),
                                          static_cast<T>(ctx.Int("high") - 1));
    for (const auto part : Stretches(out.numel()))
      for (int64_t i = part.begin; i < part.end; ++i) out.mutable_data<T>()[i] = dist(*random);
  });
  if (!known) return InvalidArgument("attribute dtype must name int32 or int64");
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(randint) {
  op.Doc("Whole numbers drawn evenly from [low, high).").Output("Out").Traits(kRandom);
  DeclareShapeArg(op);
  op.Attr("low", 0).Attr("high", 0).Attr("dtype", 3).Attr("seed", 0);
  op.InferShape(RandintShape).AnyKernel(RunRandint);
}
