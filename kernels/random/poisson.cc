// poisson and exponential: numbers drawn element by element.
#include <random>

#include "core/shapes.h"
#include "kernels/elementwise/convert.h"

namespace heddle {
namespace {

template <typename T>
struct Poisson {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    T* y = ctx.Out("Out").mutable_data<T>();
    for (int64_t i = 0; i < x.numel(); ++i) {
      const T mean = x.data<T>()[i];
      if (!(mean >= T(0))) return InvalidArgument("X[", i, "], ", mean, ", is not a mean");
      if (mean == T(0)) {
        ctx.random()();  // as many draws as for any other mean
        y[i] = T(0);
      } else {
        y[i] = static_cast<T>(std::poisson_distribution<>(static_cast<double>(mean))(ctx.random()));
      }
    }
    return Status::Ok();
  }
};

template <typename T>
struct Exponential {
  static Status Run(KernelContext& ctx) {
    Tensor& out = ctx.Out("Out");
    const double lambda = ctx.Float("lambda");
    if (!(lambda > 0)) return InvalidArgument("lambda must be positive, but is ", lambda);
    std::exponential_distribution<T> draw(static_cast<T>(lambda));
    for (int64_t i = 0; i < out.numel(); ++i) out.mutable_data<T>()[i] = draw(ctx.random());
    return Status::Ok();
  }
};

Status RunZeroGrad(KernelContext& ctx) {
  FillElements(ctx, ctx.Out("X@GRAD"), 0);
  return Status::Ok();
}

void DefineZeroGrad(OpDef& op) {
  op.Input("Out@GRAD", kNoBuffer).Output("X@GRAD").InferShape(SameShape).AnyKernel(RunZeroGrad);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(poisson) {
  op.Doc("Numbers of the Poisson distributions with means X.").Input("X").Output("Out");
  op.Traits(kRandom).InferShape(SameShape).Kernels<Poisson, float, double>();
}
HEDDLE_OP(poisson_grad) { DefineZeroGrad(op); }
HEDDLE_OP(exponential) {
  op.Doc("Overwrites X with numbers of the exponential distribution.").Input("X").Output("Out");
  op.Traits(kRandom).Attr("lambda", 1.0).InferShape(SameShape);
  op.Kernels<Exponential, float, double>();
}
HEDDLE_OP(exponential_grad) { DefineZeroGrad(op); }
