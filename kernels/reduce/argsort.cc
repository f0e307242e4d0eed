#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "core/interrupts.h"
#include "kernels/base/pick_grad.h"

namespace heddle {
namespace {

// Equal elements keep their order; NaN counts as the greatest value.
template <typename T, typename Before>
void SortLine(const T* x, int64_t stride, int64_t n, int64_t* order, Before before) {
  std::iota(order, order + n, int64_t{0});
  // (std::stable_sort would take memory of its own.)
  {
    LookCount looks;
    std::sort(order, order + n, looks.In([=](int64_t a, int64_t b) {
      const T va = x[a * stride], vb = x[b * stride];
      return before(va, vb) || (a < b && !before(vb, va));
    }));
  }
}

template <typename T>
struct Argsort {
  static Status Run(KernelContext& ctx) {
    const Tensor& xt = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const AxisLines lines, AxisLines::At(xt.shape(), ctx.Int("axis")));
    const T* x = xt.data<T>();
    T* out = ctx.Out("Out").template mutable_data<T>();
    int64_t* indices = ctx.Out("Indices").template mutable_data<int64_t>();
    const bool descending = ctx.Bool("descending");
    const int64_t grain = std::max<int64_t>(1, (1 << 11) / std::max<int64_t>(1, lines.n));
    ctx.ParallelFor(lines.lines(), grain, [&](int64_t begin, int64_t end) {
      Tensor scratch = ctx.Scratch(DType::kI64, Shape{lines.n});
      int64_t* order = scratch.mutable_data<int64_t>();
      for (int64_t l = begin; l < end; ++l) {
        const int64_t first = lines.Begin(l);
        if (descending)
          SortLine(x + first, lines.inner, lines.n, order, [](T a, T b) { return Greater(a, b); });
        else
          SortLine(x + first, lines.inner, lines.n, order, [](T a, T b) { return Less(a, b); });
        for (int64_t i = 0; i < lines.n; ++i) {
          out[first + i * lines.inner] = x[first + order[i] * lines.inner];
          indices[first + i * lines.inner] = order[i];
        }
      }
    });
    return Status::Ok();
  }
};

Status Infer(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (x.known_rank()) HEDDLE_RETURN_IF_ERROR(NormalAxis(ctx.Int("axis"), x.rank()).status());
  ctx.SetOut("Out", x, ctx.InDType("X"));
  ctx.SetOut("Indices", x, DType::kI64);
  ctx.ShareLoD("X", "Out");
  ctx.ShareLoD("X", "Indices");
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(argsort) {
  op.Doc("elements sorted along an axis, and where they came from").Input("X").Output("Out");
  op.Output("Indices").Attr("axis", -1).Attr("descending", false).InferShape(&Infer);
  op.Kernels<Argsort, float, double, int32_t, int64_t, int16_t, uint8_t, float16, bfloat16>();
}

HEDDLE_OP(argsort_grad) {
  op.Doc("gradient of argsort");
  DefinePickGradSlots(op);
  op.Attr("axis", -1).Attr("descending", false);
  op.Kernels<PickGrad, float, double, int32_t, int64_t, float16, bfloat16>();
}

HEDDLE_EXAMPLES(argsort, R"(
example float64 4x1, axis 0, descending
attr axis INT 0
attr descending BOOLEAN true
in X float64 [4, 1] 0.2 0.6 0.8 0.4
out Indices int64 [4, 1] 2 1 3 0
out Out float64 [4, 1] 0.8 0.6 0.4 0.2

example float32 2x2, axis -2, descending
attr axis INT -2
attr descending BOOLEAN true
in X float32 [2, 2] -0.72 0.24 -0.24 0.72
out Indices int64 [2, 2] 1 1 0 0
out Out float32 [2, 2] -0.24 0.72 -0.72 0.24

example float32 1x4x4, axis -3, descending
attr axis INT -3
attr descending BOOLEAN true
in X float32 [1, 4, 4] -0.52 -1.14 1.14 0.31 -0.31 1.56 -0.73 0.52 0.1 0.93 -1.35 0.73 -1.56 1.35
  -0.1 -0.93
out Indices int64 [1, 4, 4] 0*16
out Out float32 [1, 4, 4] -0.52 -1.14 1.14 0.31 -0.31 1.56 -0.73 0.52 0.1 0.93 -1.35 0.73 -1.56 1.35
  -0.1 -0.93

example float32 2x3x4, axis 1
attr axis INT 1
in X float32 [2, 3, 4] 5 7 5 6 9 9 1 4 8 3 0 3 2 7 4 6 0 9 8 8 3 8 2 8
out Indices int64 [2, 3, 4] 0 2*4 0 1*4 0 0 1 0 2 0 0 2 0 1 2 1 1 2
out Out float32 [2, 3, 4] 5 3 0 3 8 7 1 4 9 9 5 6 0 7 2 6 2 8 4 8 3 9 8 8

example int32 4x1, axis 0, descending
attr axis INT 0
attr descending BOOLEAN true
in X int32 [4, 1] 1 1 0 0
out Indices int64 [4, 1] 0 1 2 3
out Out int32 [4, 1] 1 1 0 0

example int64 4x1, axis 0, descending
attr axis INT 0
attr descending BOOLEAN true
in X int64 [4, 1] 1 1 0 0
out Indices int64 [4, 1] 0 1 2 3
out Out int64 [4, 1] 1 1 0 0

example float32, indices of sequences
in X float32 [3, 2] lod [[0, 1, 3]] 0.5 -0.5 1 2 0.25 -1
out Out float32 [3, 2] lod [[0, 1, 3]] -0.5 0.5 1 2 -1 0.25
out Indices int64 [3, 2] lod [[0, 1, 3]] 1 0 0 1 1 0
)")

HEDDLE_EXAMPLES(argsort_grad, R"(
example int64 2x2, axis -2, descending
attr axis INT -2
attr descending BOOLEAN true
in Indices int64 [2, 2] 0 1 1 0
in Out@GRAD float64 [2, 2] -0.8 -0.3 0.7 -0.8
in X float64 [2, 2] 0.24 -0.24 -0.72 0.72
out X@GRAD float64 [2, 2] -0.8 -0.8 0.7 -0.3

example int64 3, axis 0, descending
attr axis INT 0
attr descending BOOLEAN true
in Indices int64 [3] 1 0 2
in Out@GRAD float64 [3] 0.2 0.4 -0.4
in X float64 [3] 0 1 0
out X@GRAD float64 [3] 0.4 0.2 -0.4

example int64 2x4x3, axis 2
attr axis INT 2
in Indices int64 [2, 4, 3] 2 1 0 1 2 0 2 0 1 0 2 1 0 2 1 2 0 1 1 0 2 1 2 0
in Out@GRAD float64 [2, 4, 3] 0.7 0.2 0.8 0.9 0.9 0.6 -0.6 -0.9 0.8 -0.4 0.6 -0.5 -0.6 0.8 0.8 0.3
  0.4 0.9 0.5 -0.6 0.3 -0.6 0.4 0.5
in X float64 [2, 4, 3] -0.08 -0.38 -1.74 1.29 -0.23 0.23 0.68 1.74 -0.83 -1.29 0.08 -0.98 -1.59 0.83
  -0.53 -1.14 0.53 -1.44 1.14 0.38 1.59 1.44 -0.68 0.98
out X@GRAD float64 [2, 4, 3] 0.8 0.2 0.7 0.6 0.9 0.9 -0.9 0.8 -0.6 -0.4 -0.5 0.6 -0.6 0.8 0.8 0.4
  0.9 0.3 -0.6 0.5 0.3 0.5 -0.6 0.4

example int64 2x2, axis -2, descending, no. 2
attr axis INT -2
attr descending BOOLEAN true
in Indices int64 [2, 2] 0 1 1 0
in Out@GRAD float32 [2, 2] -0.8 -0.3 0.7 -0.8
in X float32 [2, 2] 0.24 -0.24 -0.72 0.72
out X@GRAD float32 [2, 2] -0.8 -0.8 0.7 -0.3
)")
