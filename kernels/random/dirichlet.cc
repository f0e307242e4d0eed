// dirichlet: random points of a simplex.
#include <random>

#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

// --- dirichlet ---

Status InferDirichlet(ShapeContext& ctx) {
  const Shape& alpha = ctx.InShape("Alpha");
  if (alpha.known_rank() && alpha.rank() < 1) return InvalidArgument("Alpha has no axis");
  ctx.SetOut("Out", alpha, ctx.InDType("Alpha"));
  return Status::Ok();
}

template <typename T>
struct Dirichlet {
  static Status Run(KernelContext& ctx) {
    const Tensor& alpha = ctx.In("Alpha");
    const int64_t n = alpha.dim(alpha.rank() - 1);
    T* out = ctx.Out("Out").template mutable_data<T>();
    for (int64_t r = 0; n > 0 && r < alpha.numel() / n; ++r) {
      T sum = 0;
      for (const int64_t i : Watched(r * n, (r + 1) * n)) {
        if (!(alpha.data<T>()[i] > 0)) return InvalidArgument("Alpha must be positive");
        sum += out[i] = std::gamma_distribution<T>(alpha.data<T>()[i])(ctx.random());
      }
      for (int64_t i = r * n; i < (r + 1) * n; ++i) out[i] /= sum;
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(dirichlet) {
  op.Doc("points of the simplex, Dirichlet distributed").Input("Alpha").Output("Out");
  op.Traits(kRandom).InferShape(InferDirichlet).Kernels<Dirichlet, float, double>();
}
