#include <algorithm>
#include <vector>

#include "core/shapes.h"

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
  for (const auto& [begin, end] : s.spans)
    for (int64_t t = begin; t < end; ++t)
      for (int64_t k = 0; k < std::min(taps, end - t); ++k) fn(t, t + k, k);
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
    std::fill_n(out, x.numel(), T(0));
    ForTaps(s, filter.dim(0), [&](int64_t t, int64_t u, int64_t k) {
      for (int64_t i = 0; i < s.width; ++i)
        out[t * s.width + i] += x.data<T>()[u * s.width + i] * filter.data<T>()[k * s.width + i];
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
    if (dx) std::fill_n(dx->mutable_data<T>(), dx->numel(), T(0));
    if (df) std::fill_n(df->mutable_data<T>(), df->numel(), T(0));
    ForTaps(s, filter.dim(0), [&](int64_t t, int64_t u, int64_t k) {
      for (int64_t i = 0; i < s.width; ++i) {
        const T g = grad[t * s.width + i];
        if (dx) dx->mutable_data<T>()[u * s.width + i] += g * filter.data<T>()[k * s.width + i];
        if (df) df->mutable_data<T>()[k * s.width + i] += g * x.data<T>()[u * s.width + i];
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

HEDDLE_EXAMPLES(row_conv, R"(
example float32 7x2
in Filter float32 [3, 2] 0.574 0.155 0.295 0.714 0.434 0.854
in X float32 [7, 2] lod [[0, 2, 5, 7]] 0.34 0.209 0.925 0.47 0.795 0.6 0.405 0.665 0.73 0.144 0.079
  0.86 0.535 0.274
out Out float32 [7, 2] lod [[0, 2, 5, 7]] 0.46803498 0.367975 0.53095 0.072850004 0.892625 0.690786
  0.44782 0.205891 0.41902 0.022319999 0.20317101 0.32893598 0.30709 0.042469997

example float32 2x4x3
in Filter float32 [4, 3] 0.531 0.832 0.229 0.38 0.606 0.455 0.154 0.079 0.681 0.756 0.305 0.907
in X float32 [2, 4, 3] 0.48 0.4 0.041 0.84 0.44 0.56 0.68 0.959 0.281 0.161 0.52 0.241 0.081 0.72
  0.361 0.201 0.64 0.121 0.8 0.6 0.919 0.879 0.321 0.76
out Out float32 [2, 4, 3] 0.800516 0.83380103 0.674137 0.729234 0.98831403 0.420216 0.42226002
  1.113008 0.17400399 0.085491 0.43264 0.055189 0.907115 1.1321851 1.452883 0.546097 0.921439
  0.9634141 0.75882 0.693726 0.55625105 0.466749 0.26707202 0.17404
)")

HEDDLE_EXAMPLES(row_conv_grad, R"(
example float32 2x4x3
in Filter float32 [4, 3] 0.154 0.845 0.691 0.077 0.538 0.614 0.307 0.922 0.768 0.461 0.231 0.384
in Out@GRAD float32 [2, 4, 3] -0.7 0.1 -0 -0.9 -0 0.6 -0.6 -0 0 -0.4 0.5 0.3 0.6 -0.2 0.4 0.1 -0.6
  -0.7 0.2 -0.6 0.8 -0.9 0.2 0.5
in X float32 [2, 4, 3] 0.249 0.916 0.171 0.289 0.955 0.837 0.132 0.72 0.759 0.68 0.602 0.445 0.641
  0.21 0.484 0.524 0.406 0.367 0.563 0.876 0.093 0.053 0.328 0.798
out Filter@GRAD float32 [4, 3] -0.2837 -0.35300002 1.0458 -0.34779996 -0.7081 1.1755 -0.3613 -0.3
  -0.25439993 -0.4442 -0.0053999983 0.3192
out X@GRAD float32 [2, 4, 3] -0.1078 0.08450001 0 -0.1925 0.053799998 0.4146 -0.37660003 0.0922
  0.36840004 -0.7068 0.4456 0.6681 0.0924 -0.16900001 0.2764 0.0616 -0.6146 -0.23809996 0.22270001
  -1.0142 0.4302 0.1841 -0.75319993 0.45270005
)")
