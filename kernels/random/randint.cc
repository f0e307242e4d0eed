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

HEDDLE_EXAMPLES(randint, R"(
example int32
random
attr shape LONGS [40, 50]
attr low INT -2
attr high INT 4
attr seed INT 7
attr dtype INT 2
out Out int32 [40, 50] mean 0.5 0.2 var 2.9167 0.3 range -2 3 count 6

example int64
random
attr shape LONGS [40, 50]
attr low INT -2
attr high INT 4
attr seed INT 7
attr dtype INT 3
out Out int64 [40, 50] mean 0.5 0.2 var 2.9167 0.3 range -2 3 count 6

example shape from a tensor
random
attr shape LONGS []
attr low INT 0
attr high INT 2
attr seed INT 7
attr dtype INT 3
in ShapeTensor int32 [2] 20 30
out Out int64 [20, 30] mean 0.5 0.1 range 0 1 count 2
)")
