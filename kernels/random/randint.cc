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

HEDDLE_EXAMPLES(bernoulli, R"(
example float32
random
in X float32 [40, 50] 0.25*2000
out Out float32 [40, 50] mean 0.25 0.05 range 0 1 count 2

example float64
random
in X float64 [40, 50] 0.25*2000
out Out float64 [40, 50] mean 0.25 0.05 range 0 1 count 2
)")

HEDDLE_EXAMPLES(seed, R"(
example given
attr seed INT 42
out Out int32 [1] 42

example drawn
random
attr seed INT 0
out Out int32 [1] ?
)")
