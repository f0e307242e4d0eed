#include <algorithm>
#include <vector>

#include "core/memory/watched_bytes.h"
#include "core/shapes.h"
#include "core/threads/look_meter.h"

namespace heddle {
namespace {

// Sequences of rows: [begin, end) pairs in a [rows, width] matrix.
struct Sequences {
  std::vector<std::pair<int64_t, int64_t>> spans;
  int64_t width = 0;
};

Status CheckShapes(const ShapeContext& ctx) {
  const Shape &x = ctx.InShape("X"), &filter = ctx.InShape("Filter");
  if (x.known_rank() && x.rank() != 2 && x.rank() != 3)
    return InvalidArgument("X has shape ", x.ToString(), ", expected rank 2 or 3");
  if (filter.known_rank() && filter.rank() != 2)
    return InvalidArgument("Filter has shape ", filter.ToString(), ", expected rank 2");
  if (x.is_static() && filter.is_static() && x.dim(-1) != filter[1])
    return InvalidArgument("X ", x.ToString(), " and Filter ", filter.ToString(),
                           " differ in their last dimension");
  return Status::Ok();
}

Result<Sequences> SequencesOf(const Tensor& x) {
  Sequences s;
  s.width = x.dim(-1);
  if (x.rank() == 3) {
    for (int64_t b = 0; b < x.dim(0); ++b) s.spans.emplace_back(b * x.dim(1), (b + 1) * x.dim(1));
    return s;
  }
  if (!x.has_lod() || x.lod().back().empty() ||
      x.lod().back().back() != static_cast<size_t>(x.dim(0)))
    return InvalidArgument("X of rank 2 needs sequence offsets that end with its ", x.dim(0),
                           " rows");
  const auto& offsets = x.lod().back();
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    if (offsets[i] > offsets[i + 1]) return InvalidArgument("X's sequence offsets decrease");
    s.spans.emplace_back(offsets[i], offsets[i + 1]);
  }
  return s;
}

// Calls fn(row, later row, tap) for every product.
template <typename Fn>
void ForTaps(const Sequences& s, int64_t taps, Fn&& fn) {
  LookMeter meter;
  for (const auto& [begin, end] : s.spans)
    for (int64_t t = begin; t < end; ++t)
      for (int64_t k = 0; k < std::min(taps, end - t); ++k) {
        meter.Did(s.width + 1);
        fn(t, t + k, k);
      }
}

Status RowConvShape(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckShapes(ctx));
  return SameShape(ctx);
}

template <typename T>
struct RowConv {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &filter = ctx.In("Filter");
    HEDDLE_ASSIGN_OR_RETURN(const Sequences s, SequencesOf(x));
    T* out = ctx.Out("Out").mutable_data<T>();
    const T *from = x.data<T>(), *weights = filter.data<T>();
    WatchedFill(out, x.numel(), T(0));
    ForTaps(s, filter.dim(0), [&](int64_t t, int64_t u, int64_t k) {
      for (int64_t i = 0; i < s.width; ++i)
        out[t * s.width + i] += from[u * s.width + i] * weights[k * s.width + i];
    });
    return Status::Ok();
  }
};

Status RowConvGradShape(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckShapes(ctx));
  const Shape &x = ctx.InShape("X"), &grad = ctx.InShape("Out@GRAD");
  if (x.is_static() && grad.is_static() && !(x == grad))
    return InvalidArgument("Out@GRAD has shape ", grad.ToString(), ", X ", x.ToString());
  if (ctx.HasOut("X@GRAD")) ctx.SetOut("X@GRAD", x, ctx.InDType("X"));
  if (ctx.HasOut("Filter@GRAD"))
    ctx.SetOut("Filter@GRAD", ctx.InShape("Filter"), ctx.InDType("Filter"));
  return Status::Ok();
}

template <typename T>
struct RowConvGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &filter = ctx.In("Filter");
    const T* grad = ctx.In("Out@GRAD").data<T>();
    HEDDLE_ASSIGN_OR_RETURN(const Sequences s, SequencesOf(x));
    Tensor *dx = ctx.OutOpt("X@GRAD"), *df = ctx.OutOpt("Filter@GRAD");
    const T *from = x.data<T>(), *weights = filter.data<T>();
    T* const to_x = dx ? dx->mutable_data<T>() : nullptr;
    T* const to_filter = df ? df->mutable_data<T>() : nullptr;
    if (dx) WatchedFill(to_x, dx->numel(), T(0));
    if (df) WatchedFill(to_filter, df->numel(), T(0));
    ForTaps(s, filter.dim(0), [&](int64_t t, int64_t u, int64_t k) {
      for (int64_t i = 0; i < s.width; ++i) {
        const T g = grad[t * s.width + i];
        if (dx) to_x[u * s.width + i] += g * weights[k * s.width + i];
        if (df) to_filter[k * s.width + i] += g * from[u * s.width + i];
      }
    });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(row_conv) {
  op.Doc("look-ahead convolution of each column along the sequence");
  op.Input("X").Input("Filter").Output("Out");
  op.InferShape(RowConvShape).Kernels<RowConv, float, double>();
}
HEDDLE_OP(row_conv_grad) {
  op.Input("X").Input("Filter").Input("Out@GRAD");
  op.Output("X@GRAD", kOptional).Output("Filter@GRAD", kOptional);
  op.InferShape(RowConvGradShape).Kernels<RowConvGrad, float, double>();
}
