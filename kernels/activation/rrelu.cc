#include <random>

#include "core/shapes.h"
#include "kernels/elementwise/unary.h"

namespace heddle {
namespace {

// Negative elements are multiplied by a random slope, kept in Noise; all others by 1.
template <typename T>
struct Rrelu {
  static Status Run(KernelContext& ctx) {
    using C = ComputeType<T>;
    const Tensor& x = ctx.In("X");
    T* y = ctx.Out("Out").mutable_data<T>();
    Tensor* noise = ctx.OutOpt("Noise");
    const C low = static_cast<C>(ctx.Float("lower")), high = static_cast<C>(ctx.Float("upper"));
    // Paddle takes the mean of the two in single precision.
    const float mean = (static_cast<float>(low) + static_cast<float>(high)) / 2.0f;
    const bool is_test = ctx.Bool("is_test");
    std::uniform_real_distribution<C> even(low, high);
    for (int64_t i = 0; i < x.numel(); ++i) {
      const C v = static_cast<C>(x.data<T>()[i]);
      const C drawn = is_test ? static_cast<C>(mean) : even(ctx.random());
      const C slope = v < C(0) ? drawn : C(1);
      y[i] = static_cast<T>(v * slope);
      if (noise != nullptr) noise->mutable_data<T>()[i] = static_cast<T>(slope);
    }
    return Status::Ok();
  }
};

struct RreluGrad : UnaryOp {
  static constexpr Key kIns[] = {"Noise", "Out@GRAD"};
  static constexpr Key kOuts[] = {"X@GRAD"};
  template <typename T>
  T operator()(T noise, T dy) const {
    return noise * dy;
  }
};

Status RreluShape(ShapeContext& ctx) {
  const double low = ctx.Float("lower"), high = ctx.Float("upper");
  if (!(low >= 0 && low <= high && high <= 1))
    return InvalidArgument("lower ", low, " and upper ", high, " must be ordered within [0, 1]");
  HEDDLE_RETURN_IF_ERROR(SameShape(ctx));
  if (ctx.HasOut("Noise")) ctx.SetOut("Noise", ctx.InShape("X"), ctx.InDType("X"));
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(rrelu) {
  op.Doc("x, times a random slope where negative.").Input("X").Output("Out");
  op.Output("Noise", kOptional).Traits(kRandom).Attr("is_test", false);
  op.Attr("lower", 0.125).Attr("upper", double{1.0f / 3.0f}).InferShape(RreluShape);
  op.Kernels<Rrelu, float, double, float16, bfloat16>();
}
HEDDLE_OP(rrelu_grad) {
  DefineMap<RreluGrad>(op).Input("X", kOptional | kNoBuffer).Inplace("Out@GRAD", "X@GRAD");
  op.Attr("is_test", false).Attr("lower", 0.125).Attr("upper", double{1.0f / 3.0f});
}

HEDDLE_EXAMPLES(rrelu, R"(
example test, float32
attr is_test BOOLEAN true
attr lower FLOAT 0.1
attr upper FLOAT 0.3
in X float32 [2, 3] 0 -0.29 -0.71 0.53 0.73 -0.07
out Out float32 [2, 3] 0 -0.058 -0.142 0.53 0.73 -0.014
out Noise float32 [2, 3] 1 0.2 0.2 1 1 0.2

example test, float64
attr is_test BOOLEAN true
attr lower FLOAT 0.1
attr upper FLOAT 0.3
in X float64 [2, 3] 0.88 0.39 0.44 0.21 0.75 0.76
out Out float64 [2, 3] 0.88 0.39 0.44 0.21 0.75 0.76
out Noise float64 [2, 3] 1*6

example training
random
attr lower FLOAT 0.1
attr upper FLOAT 0.3
in X float32 [40, 50] -1*2000
out Out float32 [40, 50] mean -0.2 0.02 var 0.003333 0.0005 range -0.3 -0.1
out Noise float32 [40, 50] mean 0.2 0.02 range 0.1 0.3
)")

HEDDLE_EXAMPLES(rrelu_grad, R"(
example noise
in Noise float32 [2, 2] 1 0.2 0.3 1
in Out@GRAD float32 [2, 2] 0.52 -0.96 0.23 0.3
in X float32 [2, 2] 1 -2 -3 4
out X@GRAD float32 [2, 2] 0.52 -0.192 0.069000006 0.3

example float64
in Noise float64 [2, 2] 1 0.2 0.3 1
in Out@GRAD float64 [2, 2] 0.44 0.15 0.99 0.22
in X float64 [2, 2] 1 -2 -3 4
out X@GRAD float64 [2, 2] 0.44 0.03 0.297 0.22
)")
