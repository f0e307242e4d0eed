#include <cmath>
#include <random>

#include "core/interrupts.h"
#include "kernels/optimizer/optimizer.h"

namespace heddle {
namespace {

Status InferDpsgd(ShapeContext& ctx) { return InferUpdate(ctx, {{"Param", "ParamOut"}}); }

// One normally distributed number by the polar method, Paddle's for a given seed.
template <typename T>
float Gaussian(unsigned seed) {
  std::minstd_rand engine(seed);
  std::uniform_real_distribution<T> uniform(T(0), T(1));
  float v, square;
  do {
    v = 2 * static_cast<float>(uniform(engine)) - 1;
    const float w = 2 * static_cast<float>(uniform(engine)) - 1;
    square = v * v + w * w;
  } while (square >= 1 || square == 0);
  return v * std::sqrt(-2 * std::log(square) / square);
}

template <typename T>
struct Dpsgd {
  static Status Run(KernelContext& ctx) {
    const Tensor &param = ctx.In("Param"), &grad = ctx.In("Grad");
    HEDDLE_ASSIGN_OR_RETURN(const double lr, ScalarOf(ctx, "LearningRate"));
    if (grad.numel() != param.numel() || grad.dtype() != param.dtype())
      return InvalidArgument("Grad ", grad.shape().ToString(), " does not fit Param ",
                             param.shape().ToString());
    const T *p = param.data<T>(), *g = grad.data<T>();
    T* to = ctx.Out("ParamOut").template mutable_data<T>();
    float norm = 0;
    for (const auto part : Stretches(grad.numel()))
      for (int64_t i = part.begin; i < part.end; ++i) norm += static_cast<float>(g[i] * g[i]);
    norm = std::sqrt(norm);
    const auto clip = static_cast<float>(ctx.Float("clip"));
    const T scale = static_cast<T>(norm > clip ? norm / clip : 1.0f);
    const int64_t given = ctx.Int("seed");
    const auto seed =
        static_cast<unsigned>(given != 0 ? static_cast<uint64_t>(given) : ctx.random()());
    const T noise = static_cast<T>(Gaussian<T>(seed) * static_cast<float>(ctx.Float("sigma"))) /
                    static_cast<T>(ctx.Float("batch_size"));
    for (const auto part : Stretches(param.numel()))
      for (int64_t i = part.begin; i < part.end; ++i)
        to[i] = p[i] - static_cast<T>(lr) * (g[i] / scale + noise);
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(dpsgd) {
  op.Doc("param -= lr (grad, shrunk to a norm of `clip`, + one normal number sigma / batch_size)");
  op.Input("Param").Input("Grad").Input("LearningRate").Output("ParamOut");
  op.Attr("clip", 10.0).Attr("batch_size", 16.0).Attr("sigma", 1.0).Attr("seed", 0);
  op.Traits(kRandom).InferShape(InferDpsgd).Kernels<Dpsgd, float, double>();
}
