#include <algorithm>
#include <array>

#include "core/dtype_of.h"
#include "core/interrupts.h"
#include "core/shapes.h"
#include "kernels/gemm/gemm.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

// The grid's spatial size behind OutputShape or the attribute: [d, h, w], d = 1 in two dimensions.
struct GridSize {
  int spatial = 2;
  std::array<int64_t, 3> size{1, 1, 1};
  int64_t pixels() const { return size[0] * size[1] * size[2]; }
};

Result<GridSize> SizeOf(const Ints& shape, const Shape& theta) {
  GridSize g;
  g.spatial = static_cast<int>(shape.size()) - 2;
  if (g.spatial != 2 && g.spatial != 3)
    return InvalidArgument("the output shape has ", shape.size(), " numbers, expected 4 or 5");
  if (theta.rank() != 3 || (theta[1] >= 0 && theta[1] != g.spatial) ||
      (theta[2] >= 0 && theta[2] != g.spatial + 1))
    return InvalidArgument("Theta has shape ", theta.ToString(), ", expected [batch, ", g.spatial,
                           ", ", g.spatial + 1, "]");
  for (int i = 0; i < g.spatial; ++i) {
    g.size[3 - g.spatial + i] = shape[static_cast<size_t>(i) + 2];
    if (shape[static_cast<size_t>(i) + 2] < 1)
      return InvalidArgument("the output shape holds ", shape[static_cast<size_t>(i) + 2],
                             ", expected at least 1");
  }
  return g;
}

Status AffineGridShape(ShapeContext& ctx) {
  const Shape& theta = ctx.InShape("Theta");
  if (!theta.known_rank()) return ctx.Defer();
  Ints shape = ctx.IntList("output_shape");
  if (ctx.HasIn("OutputShape")) {
    const Tensor* t = ctx.InValue("OutputShape");
    if (!t) return ctx.Defer();
    shape = ToInts(*t);
  }
  HEDDLE_ASSIGN_OR_RETURN(const GridSize g, SizeOf(shape, theta));
  Shape out{theta[0]};
  for (int i = 3 - g.spatial; i < 3; ++i) out.push_back(g.size[i]);
  out.push_back(g.spatial);
  ctx.SetOut("Output", out, ctx.InDType("Theta"));
  return Status::Ok();
}

// Homogeneous coordinates of every pixel, x first: [pixels, spatial + 1].
template <typename T>
Tensor BaseGrid(const KernelContext& ctx, const GridSize& g) {
  Tensor base = ctx.Scratch(kDTypeOf<T>, {g.pixels() * (g.spatial + 1)});
  const bool corners = ctx.Bool("align_corners");
  const auto coordinate = [&](int64_t i, int64_t n) {
    const T count = static_cast<T>(n);
    if (corners) return n == 1 ? T(-1) : T(-1) + static_cast<T>(i) * (T(2) / (count - T(1)));
    return (T(2) * static_cast<T>(i) + T(1)) / count - T(1);
  };
  T* to = base.mutable_data<T>();
  for (const int64_t d : Watched(g.size[0]))
    for (int64_t h = 0; h < g.size[1]; ++h)
      for (int64_t w = 0; w < g.size[2]; ++w) {
        *to++ = coordinate(w, g.size[2]);
        *to++ = coordinate(h, g.size[1]);
        if (g.spatial == 3) *to++ = coordinate(d, g.size[0]);
        *to++ = T(1);
      }
  return base;
}

GridSize SizeOfGrid(const Shape& grid) {
  GridSize g;
  g.spatial = grid.rank() - 2;
  for (int i = 0; i < g.spatial; ++i) g.size[3 - g.spatial + i] = grid[i + 1];
  return g;
}

template <typename T>
struct AffineGrid {
  static Status Run(KernelContext& ctx) {
    Tensor& out = ctx.Out("Output");
    const GridSize g = SizeOfGrid(out.shape());
    const Tensor base = BaseGrid<T>(ctx, g);
    const T* theta = ctx.In("Theta").data<T>();
    const int64_t n = g.spatial;
    for (const int64_t b : Watched(out.dim(0)))
      ParallelGemm(ctx, GemmDims::Dense(g.pixels(), n, n + 1, false, true), T(1), base.data<T>(),
                   theta + b * n * (n + 1), T(0), out.mutable_data<T>() + b * g.pixels() * n);
    return Status::Ok();
  }
};

Status AffineGradShape(ShapeContext& ctx) {
  const Shape& grad = ctx.InShape("Output@GRAD");
  if (!grad.known_rank()) return ctx.Defer();
  if (grad.rank() != 4 && grad.rank() != 5)
    return InvalidArgument("Output@GRAD has shape ", grad.ToString(), ", expected rank 4 or 5");
  const int64_t n = grad.rank() - 2;
  if (grad.dim(-1) != n && grad.dim(-1) >= 0)
    return InvalidArgument("Output@GRAD has shape ", grad.ToString(), ", expected ", n,
                           " as its last dimension");
  ctx.SetOut("Theta@GRAD", {grad[0], n, n + 1}, ctx.InDType("Output@GRAD"));
  return Status::Ok();
}

template <typename T>
struct AffineGridGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& grad = ctx.In("Output@GRAD");
    const GridSize g = SizeOfGrid(grad.shape());
    const Tensor base = BaseGrid<T>(ctx, g);
    T* to = ctx.Out("Theta@GRAD").mutable_data<T>();
    const int64_t n = g.spatial;
    for (const int64_t b : Watched(grad.dim(0)))
      Gemm(GemmDims::Dense(n, n + 1, g.pixels(), true), T(1), grad.data<T>() + b * g.pixels() * n,
           base.data<T>(), T(0), to + b * n * (n + 1));
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(affine_grid) {
  op.Doc("where each pixel of the output samples from under an affine map, for grid_sampler");
  op.Input("Theta").Input("OutputShape", kOptional | kShapeValue).Output("Output");
  op.Attr("output_shape", Ints{}).Attr("align_corners", true);
  op.InferShape(AffineGridShape).Kernels<AffineGrid, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(affine_grid_grad) {
  op.Input("Theta", kOptional | kNoBuffer).Input("OutputShape", kOptional);
  op.Input("Output@GRAD").Output("Theta@GRAD").Attr("align_corners", true);
  op.Attr("output_shape", Ints{}).KernelKey("Output@GRAD").InferShape(AffineGradShape);
  op.Kernels<AffineGridGrad, float, double>();
}
