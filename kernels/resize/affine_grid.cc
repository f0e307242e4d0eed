#include <algorithm>
#include <array>

#include "core/dtype_of.h"
#include "core/interrupts.h"
#include "core/shapes.h"
#include "kernels/gemm/gemm.h"

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
}
HEDDLE_OP(affine_grid_grad) {
  op.Input("Theta", kOptional | kNoBuffer).Input("OutputShape", kOptional);
  op.Input("Output@GRAD").Output("Theta@GRAD").Attr("align_corners", true);
  op.Attr("output_shape", Ints{}).KernelKey("Output@GRAD").InferShape(AffineGradShape);
  op.Kernels<AffineGridGrad, float, double>();
}

HEDDLE_EXAMPLES(affine_grid, R"(
example float32 1x2x3, output_shape 1 3 2 2
attr output_shape INTS [1, 3, 2, 2]
in Theta float32 [1, 2, 3] -0.31 -0.1 0.1 0.31 -0.52 -0.72
out Output float32 [1, 2, 2, 2] 0.51 -0.51000005 -0.11000001 0.109999955 0.31 -1.55 -0.31 -0.93

example float32 3x2x3, no align_corners, output_shape 3 3 3 4
attr align_corners BOOLEAN false
attr output_shape INTS [3, 3, 3, 4]
in Theta float32 [3, 2, 3] 0.86 0.66 0.16 0.56 -0.24 0.46 0.76 -0.74 -0.44 -0.54 -0.84 0.06 0.26
  -0.64 0.36 -0.34 -0.04 -0.14
out Output float32 [3, 3, 4, 2] -0.9250001 0.19999999 -0.49500003 0.48000002 -0.06500003 0.76
  0.36499995 1.0400001 -0.48499998 0.03999999 -0.055000007 0.32 0.375 0.6 0.80499995 0.88
  -0.044999957 -0.120000035 0.38500002 0.16 0.81500006 0.44 1.245 0.72 -0.51666665 1.025 -0.13666666
  0.755 0.24333334 0.485 0.6233333 0.21499997 -1.01 0.46500003 -0.63 0.19500001 -0.25 -0.075 0.13
  -0.34500003 -1.5033333 -0.09499997 -1.1233333 -0.365 -0.74333334 -0.635 -0.36333334 -0.90500003
  0.5916667 0.14166667 0.7216667 -0.028333336 0.8516667 -0.19833334 0.9816667 -0.36833334 0.16500002
  0.114999995 0.29500002 -0.055 0.425 -0.225 0.555 -0.39499998 -0.26166666 0.08833332 -0.13166666
  -0.08166666 -0.0016666651 -0.25166667 0.12833333 -0.42166668

example float32 2x2x3, output_shape 2 3 5 5
attr output_shape INTS [2, 3, 5, 5]
in Theta float32 [2, 2, 3] -0.46 0.55 0.41 -0.02 -0.6 -0.17 0.12 0.84 -0.75 0.7 0.26 -0.31
out Output float32 [2, 5, 5, 2] 0.32 0.45 0.09 0.44 -0.14000002 0.43 -0.37000003 0.42000002 -0.6
  0.41000003 0.595 0.15000002 0.365 0.14 0.13499999 0.13000001 -0.095 0.12000002 -0.32500002 0.11
  0.87 -0.15 0.64 -0.16 0.41 -0.17 0.17999999 -0.18 -0.050000012 -0.19 1.145 -0.45 0.91499996
  -0.46000004 0.685 -0.47000003 0.45499998 -0.48000002 0.225 -0.49 1.42 -0.75000006 1.19 -0.76000005
  0.96000004 -0.77000004 0.73 -0.78000003 0.5 -0.79 -1.71 -1.27 -1.65 -0.92 -1.5899999 -0.57 -1.53
  -0.22 -1.47 0.13 -1.29 -1.14 -1.23 -0.78999996 -1.17 -0.44 -1.11 -0.09 -1.05 0.26 -0.87 -1.01
  -0.81 -0.65999997 -0.75 -0.31 -0.69 0.03999999 -0.63 0.39 -0.45000002 -0.88 -0.39000002 -0.53
  -0.33 -0.18 -0.27 0.16999999 -0.21000004 0.52 -0.030000031 -0.75 0.029999971 -0.4 0.089999974
  -0.050000012 0.14999998 0.3 0.20999998 0.65

example float64 1x2x3, output_shape 1 3 2 2
attr output_shape INTS [1, 3, 2, 2]
in Theta float64 [1, 2, 3] -0.31 -0.1 0.1 0.31 -0.52 -0.72
out Output float64 [1, 2, 2, 2] 0.51 -0.51 -0.10999999999999999 0.1100000000000001 0.31 -1.55
  -0.31000000000000005 -0.9299999999999999
)")

HEDDLE_EXAMPLES(affine_grid_grad, R"(
example float64 1x2x2x2, output_shape 1 3 2 2
attr output_shape INTS [1, 3, 2, 2]
in Output@GRAD float64 [1, 2, 2, 2] -0.4 0.6 -0.3 -0.6 -0.8 0.9 0.7 0.7
in Theta float64 [1, 2, 3] -0.52 -0.72 0.31 -0.1 0.1 -0.31
out Theta@GRAD float64 [1, 2, 3] 1.6 0.5999999999999999 -0.8 -1.4000000000000001 1.6 1.6

example float64 3x3x4x2, no align_corners, output_shape 3 3 3 4
attr align_corners BOOLEAN false
attr output_shape INTS [3, 3, 3, 4]
in Output@GRAD float64 [3, 3, 4, 2] 0.9 0.5 -0.9 -0.3 -0.4 -0.2 -0.9 -0.3 0.6 -0.7 0.1 -0.5 -0.9
  -0.6 -0.1 0.3 -0.2 0.8 0.3 0.4 0.1 -0.2 -0.8 -0.2 -0.4 1 0.8 -0.4 -0.6 -0.4 -0.9 0.3 -0.4 0.6 0.7
  -0.3 0.1 -0.1 -0.4 0.1 -0.3 -0.3 -0.8 -0.8 0.4 -0.9 -0.5 -0.7 -0.6 0.5 -0.7 0.3 -1 -0.7 0.1 -0.3
  0.4 1 0.6 -1 1 -0.2 -0 -0.6 1 -0.1 0.8 0.2 0.3 0.7 0.9 -0.2
in Theta float64 [3, 2, 3] -0.54 0.86 0.66 0.46 -0.24 -0.64 -0.34 0.16 -0.44 -0.04 0.06 0.76 -0.74
  0.36 0.56 0.26 -0.84 -0.14
out Theta@GRAD float64 [3, 2, 3] -2.5 0.4666666666666667 -2.2 -0.7500000000000002 0.7333333333333334
  -1 -0.7249999999999999 -0.06666666666666665 -2.3000000000000003 -1.1749999999999998
  -2.1333333333333333 -1.9000000000000001 0.050000000000000044 3.466666666666667 2.8000000000000003
  -1.8000000000000003 0.5333333333333332 -0.4000000000000002

example float32 1x2x2x2, output_shape 1 3 2 2
attr output_shape INTS [1, 3, 2, 2]
in Output@GRAD float32 [1, 2, 2, 2] -0.4 0.6 -0.3 -0.6 -0.8 0.9 0.7 0.7
in Theta float32 [1, 2, 3] -0.52 -0.72 0.31 -0.1 0.1 -0.31
out Theta@GRAD float32 [1, 2, 3] 1.5999999 0.6 -0.8 -1.3999999 1.5999999 1.5999999
)")
