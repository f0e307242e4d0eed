#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"
#include "kernels/random/random.h"

namespace heddle {
namespace {

Status SamplingShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  if (x.rank() != 2 || x[1] == 0)
    return InvalidArgument("X has shape ", x.ToString(), ", expected rows of probabilities");
  ctx.SetOut("Out", {x[0]}, DType::kI64);
  return Status::Ok();
}

// The column in which a random number, less the row's probabilities one by one, falls below 0.
template <typename T>
struct SamplingId {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    int64_t* out = ctx.Out("Out").template mutable_data<int64_t>();
    OpRandom random(ctx, ctx.Int("seed"));
    std::uniform_real_distribution<T> draw(static_cast<T>(ctx.Float("min")),
                                           static_cast<T>(ctx.Float("max")));
    for (const int64_t i : Watched(x.dim(0))) {
      const T* row = x.data<T>() + i * x.dim(1);
      T rest = draw(*random);
      out[i] = x.dim(1) - 1;
      for (int64_t k = 0; k < x.dim(1); ++k)
        if ((rest -= row[k]) < 0) {
          out[i] = k;
          break;
        }
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(sampling_id) {
  op.Doc("for each row of probabilities, a column drawn by them").Input("X").Output("Out");
  op.Attr("min", 0.0).Attr("max", 1.0).Attr("seed", 0).Traits(kRandom).InferShape(SamplingShape);
  op.Kernels<SamplingId, float, double>();
}
