#include <random>

#include "core/interrupts.h"
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
    for (const int64_t i : Watched(x.numel())) {
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
  DefineMap<RreluGrad>(op).Input("X", kNoBuffer).Inplace("Out@GRAD", "X@GRAD");
  op.Attr("is_test", false).Attr("lower", 0.125).Attr("upper", double{1.0f / 3.0f});
}
