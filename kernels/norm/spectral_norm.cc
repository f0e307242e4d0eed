#include <cmath>

#include "core/dtype_of.h"
#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "core/shapes.h"
#include "kernels/gemm/gemm.h"

namespace heddle {
namespace {

// Beyond any use: the vectors settle within some dozens of steps.
constexpr int64_t kMostIterations = 1 << 16;

Result<int> DimOf(const OpContext& ctx, const Shape& weight) {
  const int64_t dim = ctx.Int("dim");
  if (weight.rank() < 2 || dim < 0 || dim >= weight.rank() || ctx.Int("power_iters") < 0)
    return InvalidArgument("dim is ", dim, " and power_iters ", ctx.Int("power_iters"),
                           " for Weight ", weight.ToString());
  if (ctx.Int("power_iters") > kMostIterations)
    return InvalidArgument("power_iters is ", ctx.Int("power_iters"), ", above the limit of ",
                           kMostIterations);
  return static_cast<int>(dim);
}

Status CheckShapes(const ShapeContext& ctx) {
  const Shape& weight = ctx.InShape("Weight");
  if (!weight.is_static()) return Status::Ok();
  HEDDLE_ASSIGN_OR_RETURN(const int dim, DimOf(ctx, weight));
  if (weight.numel() == 0) return InvalidArgument("Weight is empty: ", weight.ToString());
  const int64_t h = weight[dim], w = weight.numel() / h;
  if (ctx.InShape("U").numel() != h || ctx.InShape("V").numel() != w)
    return InvalidArgument("U ", ctx.InShape("U").ToString(), " and V ",
                           ctx.InShape("V").ToString(), " do not fit Weight ", weight.ToString(),
                           ", expected ", h, " and ", w, " elements");
  return Status::Ok();
}

Status SpectralNormShape(ShapeContext& ctx) {
  if (!ctx.InShape("Weight").known_rank()) return ctx.Defer();
  HEDDLE_RETURN_IF_ERROR(CheckShapes(ctx));
  return SameShape(ctx);
}

// The weight as a matrix with `dim` in front, the iterated vectors and the largest singular value.
template <typename T>
struct Iteration {
  int64_t h = 0, w = 0, inner = 1;
  Tensor hold;
  T *matrix = nullptr, *u = nullptr, *v = nullptr;
  T sigma = T(0);
  Status interrupted;  // an error: the run is to end, and nothing was computed

  // Position of element i of the weight in the matrix.
  int64_t At(int64_t i) const {
    const int64_t outer = i / (inner * h), row = i / inner % h;
    return row * w + outer * inner + i % inner;
  }

  static void Normalise(T* x, int64_t n, T epsilon) {
    T sum(0);
    for (const auto part : Stretches(n))
      for (int64_t i = part.begin; i < part.end; ++i) sum += x[i] * x[i];
    const T norm = std::sqrt(sum) + epsilon;
    for (const auto part : Stretches(n))
      for (int64_t i = part.begin; i < part.end; ++i) x[i] /= norm;
  }

  Iteration(const KernelContext& ctx, int dim) {
    const Tensor& weight = ctx.In("Weight");
    h = weight.dim(dim);
    w = weight.numel() / h;
    inner = weight.shape().Product(dim + 1, weight.rank());
    hold = ctx.Scratch(kDTypeOf<T>, {h * w + h + w});
    matrix = hold.mutable_data<T>();
    u = matrix + h * w;
    v = u + h;
    for (const auto part : Stretches(h * w))
      for (int64_t i = part.begin; i < part.end; ++i) matrix[At(i)] = weight.data<T>()[i];
    WatchedCopy(ctx.In("U").data<T>(), h, u);
    WatchedCopy(ctx.In("V").data<T>(), w, v);
    const T epsilon = static_cast<T>(ctx.Float("eps"));
    for (int64_t i = 0; i < ctx.Int("power_iters"); ++i) {
      interrupted = ctx.Interrupted();
      if (!interrupted.ok()) return;
      Gemm(GemmDims::Dense(w, 1, h, true), T(1), matrix, u, T(0), v);
      Normalise(v, w, epsilon);
      Gemm(GemmDims::Dense(h, 1, w), T(1), matrix, v, T(0), u);
      Normalise(u, h, epsilon);
    }
    for (const int64_t r : Watched(h))
      for (const auto part : Stretches(w))
        for (int64_t c = part.begin; c < part.end; ++c) sigma += u[r] * matrix[r * w + c] * v[c];
  }
};

template <typename T>
struct SpectralNorm {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const int dim, DimOf(ctx, ctx.In("Weight").shape()));
    const Iteration<T> it(ctx, dim);
    HEDDLE_RETURN_IF_ERROR(it.interrupted);
    const T* from = ctx.In("Weight").data<T>();
    T* out = ctx.Out("Out").mutable_data<T>();
    for (const auto part : Stretches(it.h * it.w))
      for (int64_t i = part.begin; i < part.end; ++i) out[i] = from[i] / it.sigma;
    return Status::Ok();
  }
};

Status GradShape(ShapeContext& ctx) {
  const Shape &weight = ctx.InShape("Weight"), &grad = ctx.InShape("Out@GRAD");
  HEDDLE_RETURN_IF_ERROR(CheckShapes(ctx));
  if (weight.is_static() && grad.is_static() && !(weight == grad))
    return InvalidArgument("Out@GRAD has shape ", grad.ToString(), ", Weight ", weight.ToString());
  ctx.SetOut("Weight@GRAD", weight, ctx.InDType("Weight"));
  return Status::Ok();
}

// g (1 - sum(Out) u v^T) / s, element by element: Paddle's gradient. The exact one for fixed u and
// v is (g - sum(g Out) u v^T) / s.
template <typename T>
struct SpectralNormGrad {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const int dim, DimOf(ctx, ctx.In("Weight").shape()));
    const Iteration<T> it(ctx, dim);
    HEDDLE_RETURN_IF_ERROR(it.interrupted);
    const T* weight = ctx.In("Weight").data<T>();
    const T* grad = ctx.In("Out@GRAD").data<T>();
    T* to = ctx.Out("Weight@GRAD").mutable_data<T>();
    T sum(0);
    for (const auto part : Stretches(it.h * it.w))
      for (int64_t i = part.begin; i < part.end; ++i) sum += weight[i] / it.sigma;
    for (const auto part : Stretches(it.h * it.w))
      for (int64_t i = part.begin; i < part.end; ++i) {
        const int64_t at = it.At(i);
        to[i] = grad[i] * (T(1) - it.u[at / it.w] * it.v[at % it.w] * sum) / it.sigma;
      }
    return Status::Ok();
  }
};

void Attrs(OpDef& op) { op.Attr("dim", 0).Attr("power_iters", 1).Attr("eps", 1e-12); }

}  // namespace
}  // namespace heddle

HEDDLE_OP(spectral_norm) {
  op.Doc("Weight divided by its largest singular value, found by power iteration from U and V");
  op.Input("Weight").Input("U").Input("V").Output("Out");
  Attrs(op);
  op.InferShape(SpectralNormShape).Kernels<SpectralNorm, float, double>();
}
HEDDLE_OP(spectral_norm_grad) {
  op.Input("Weight").Input("U").Input("V").Input("Out@GRAD").Output("Weight@GRAD");
  Attrs(op);
  op.InferShape(GradShape).Kernels<SpectralNormGrad, float, double>();
}
