#include <algorithm>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "core/shapes.h"

namespace heddle {
namespace {

// X seen as [outer, channels, groups, inner].
struct View {
  int axis = 1;
  int64_t outer = 1, channels = 0, groups = 1, inner = 1;
};

Result<View> ViewOf(const OpContext& ctx, const Shape& x) {
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), x.rank()));
  View v;
  v.axis = axis;
  v.groups = ctx.Int("groups");
  if (x.rank() == 0 || v.groups < 1 || (x[axis] >= 0 && x[axis] % v.groups != 0))
    return InvalidArgument("groups is ", v.groups, ", expected a divisor of dimension ", axis,
                           " of X ", x.ToString());
  v.channels = x[axis] < 0 ? -1 : x[axis] / v.groups;
  v.outer = x.Product(0, axis);
  v.inner = x.Product(axis + 1, x.rank());
  return v;
}

Status MaxoutShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const View v, ViewOf(ctx, x));
  Shape out = x;
  out[v.axis] = v.channels;
  ctx.SetOut("Out", out, ctx.InDType("X"));
  return Status::Ok();
}

template <typename T>
struct Maxout {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const View v, ViewOf(ctx, in.shape()));
    const T* x = in.data<T>();
    T* out = ctx.Out("Out").mutable_data<T>();
    for (const int64_t r : Watched(v.outer * v.channels)) {
      const T* from = x + r * v.groups * v.inner;
      T* to = out + r * v.inner;
      WatchedCopy(from, v.inner, to);
      for (int64_t g = 1; g < v.groups; ++g)
        for (int64_t i = 0; i < v.inner; ++i) to[i] = std::max(to[i], from[g * v.inner + i]);
    }
    return Status::Ok();
  }
};

Status MaxoutGradShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const View v, ViewOf(ctx, x));
  if (x.is_static())
    for (const Key key : {Key("Out"), Key("Out@GRAD")}) {
      const Shape& s = ctx.InShape(key);
      if (s.is_static() && s.numel() * v.groups != x.numel())
        return InvalidArgument(key.name, " has shape ", s.ToString(), ", X ", x.ToString());
    }
  ctx.SetOut("X@GRAD", x, ctx.InDType("X"));
  return Status::Ok();
}

template <typename T>
struct MaxoutGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const View v, ViewOf(ctx, in.shape()));
    const T* x = in.data<T>();
    const T* out = ctx.In("Out").data<T>();
    const T* grad = ctx.In("Out@GRAD").data<T>();
    T* to = ctx.Out("X@GRAD").mutable_data<T>();
    WatchedFill(to, in.numel(), T(0));
    for (const int64_t r : Watched(v.outer * v.channels))
      for (int64_t i = 0; i < v.inner; ++i)
        for (int64_t g = 0; g < v.groups; ++g) {  // to the first that is the maximum
          const int64_t at = (r * v.groups + g) * v.inner + i;
          if (x[at] != out[r * v.inner + i]) continue;
          to[at] = grad[r * v.inner + i];
          break;
        }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(maxout) {
  op.Doc("the largest of each `groups` neighbouring channels");
  op.Input("X").Output("Out").Attr("groups", 1).Attr("axis", 1);
  op.InferShape(MaxoutShape).Kernels<Maxout, float, double>();
}
HEDDLE_OP(maxout_grad) {
  op.Input("X").Input("Out").Input("Out@GRAD").Output("X@GRAD");
  op.Attr("groups", 1).Attr("axis", 1).InferShape(MaxoutGradShape);
  op.Kernels<MaxoutGrad, float, double>();
}

HEDDLE_EXAMPLES(maxout, R"(
example float32 1x2x2x2, groups 2
attr groups INT 2
in X float32 [1, 2, 2, 2] -1.09 -1.52 1.52 0.65 -0.22 0.22 -0.65 1.09
out Out float32 [1, 1, 2, 2] -0.22 0.22 1.52 1.09

example float64 3x2x2x2, groups 2
attr groups INT 2
in X float64 [3, 2, 2, 2] -0.84 0.51 0.67 -0.52 -0.44 0.04 0.2 0.36 -0.2 0.12 -0.04 0.75 -0.28 -0.12
  0.83 -0.68 -0.36 -0.76 0.43 0.28 0.91 -0.6 0.59 -0.92
out Out float64 [3, 1, 2, 2] -0.44 0.51 0.67 0.36 -0.2 0.12 0.83 0.75 0.91 -0.6 0.59 0.28

example float64 3x3x2x4, groups 3
attr groups INT 3
in X float64 [3, 3, 2, 4] 0.2 0.56 -0.61 0.96 -0.37 -0.59 -0.56 -0.31 0.45 0.53 -0.89 -0.97 -0.94
  0.5 0.8 0.91 -0.02 0.94 0.64 0.75 -0.12 0.69 0.37 0.04 0.58 -0.23 -0.7 0.39 0.42 -0.75 0.07 0.28
  -0.48 0.61 0.15 0.23 -0.29 0.88 -0.83 0.72 0.12 -0.72 -0.53 0.47 -0.15 -0.34 -0.18 0.17 -0.4 0.26
  -0.26 0.66 0.01 0.34 -0.8 -0.78 0.77 -0.67 -0.1 -0.64 -0.45 -0.42 -0.04 0.83 0.31 -0.07 -0.86 0.85
  -0.91 -0.21 -0.51 0.09
out Out float64 [3, 1, 2, 4] 0.45 0.94 0.64 0.96 -0.12 0.69 0.8 0.91 0.58 0.61 0.15 0.47 0.42 0.88
  0.07 0.72 0.77 0.26 -0.1 0.85 0.01 0.34 -0.04 0.83
)")

HEDDLE_EXAMPLES(maxout_grad, R"(
example float64 1x2x2x2, groups 2
attr groups INT 2
in Out float64 [1, 1, 2, 2] 0.65 -0.22 0.22 1.52
in Out@GRAD float64 [1, 1, 2, 2] 0.2 -0 0.4 -0.6
in X float64 [1, 2, 2, 2] 0.65 -0.65 0.22 1.09 -1.52 -0.22 -1.09 1.52
out X@GRAD float64 [1, 2, 2, 2] 0.2 0 0.4 0*4 -0.6

example float32 1x2x2x2, groups 2
attr groups INT 2
in Out float32 [1, 1, 2, 2] 0.65 -0.22 0.22 1.52
in Out@GRAD float32 [1, 1, 2, 2] 0.2 -0 0.4 -0.6
in X float32 [1, 2, 2, 2] 0.65 -0.65 0.22 1.09 -1.52 -0.22 -1.09 1.52
out X@GRAD float32 [1, 2, 2, 2] 0.2 0 0.4 0*4 -0.6
)")
