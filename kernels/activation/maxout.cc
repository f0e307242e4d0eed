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
