// randint, randperm, bernoulli, seed.
#include <algorithm>
#include <numeric>

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
    for (int64_t i = 0; i < out.numel(); ++i) out.mutable_data<T>()[i] = dist(*random);
  });
  if (!known) return InvalidArgument("attribute dtype must name int32 or int64");
  return Status::Ok();
}

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

template <typename T>
struct Bernoulli {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    T* y = ctx.Out("Out").mutable_data<T>();
    std::uniform_real_distribution<T> even(0, 1);
    for (int64_t i = 0; i < x.numel(); ++i) {
      const T p = x.data<T>()[i];
      if (!(p >= T(0) && p <= T(1)))
        return InvalidArgument("X[", i, "], ", p, ", is not a probability");
      y[i] = even(ctx.random()) <= p ? T(1) : T(0);
    }
    return Status::Ok();
  }
};

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

HEDDLE_OP(randint) {
  op.Doc("Whole numbers drawn evenly from [low, high).").Output("Out").Traits(kRandom);
  DeclareShapeArg(op);
  op.Attr("low", 0).Attr("high", 0).Attr("dtype", 3).Attr("seed", 0);
  op.InferShape(RandintShape).AnyKernel(RunRandint);
}
HEDDLE_OP(randperm) {
  op.Doc("A random order of 0 … n - 1.").Output("Out").Traits(kRandom).Attr("n", 0);
  op.Attr("dtype", 3).Attr("seed", 0).InferShape(RandpermShape).AnyKernel(RunRandperm);
}
HEDDLE_OP(bernoulli) {
  op.Doc("1 with probability X, else 0.").Input("X").Output("Out").Traits(kRandom);
  op.InferShape(SameShape).Kernels<Bernoulli, float, double>();
}
HEDDLE_OP(seed) {
  op.Doc("A seed for other operators.").Output("Out").Traits(kRandom).Attr("seed", 0);
  op.InferShape(SeedShape).AnyKernel(RunSeed);
}
