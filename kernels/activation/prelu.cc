#include "core/dtype_of.h"
#include "core/interrupts.h"
#include "core/shapes.h"

namespace heddle {
namespace {

// Which element of Alpha belongs to element i of X: (i / inner) % period.
struct AlphaIndex {
  int64_t inner = 1, period = 1;
  int64_t operator()(int64_t i) const { return i / inner % period; }
};

Result<AlphaIndex> AlphaIndexOf(const OpContext& ctx, const Shape& x) {
  const std::string& mode = ctx.Str("mode");
  AlphaIndex index;
  if (mode == "all") return index;
  if (mode == "channel") {
    if (x.rank() < 2)
      return InvalidArgument("X has shape ", x.ToString(), ", mode 'channel' needs rank 2 or more");
    const bool last = ctx.Str("data_format") == "NHWC" || x.rank() == 2;
    index.period = x.dim(last ? -1 : 1);
    if (!last) index.inner = x.Product(2, x.rank());
  } else if (mode == "element") {
    if (x.rank() < 1) return InvalidArgument("X is a scalar, mode 'element' needs dimensions");
    index.period = x.Product(1, x.rank());
  } else {
    return InvalidArgument("mode is '", mode, "', expected all, channel or element");
  }
  return index;
}

Status CheckAlpha(const OpContext& ctx, const Shape& x, const Shape& alpha) {
  if (!x.is_static() || !alpha.is_static()) return Status::Ok();
  HEDDLE_ASSIGN_OR_RETURN(const AlphaIndex index, AlphaIndexOf(ctx, x));
  if (alpha.numel() == index.period || x.numel() == 0) return Status::Ok();
  return InvalidArgument("Alpha has shape ", alpha.ToString(), ", expected ", index.period,
                         " elements for X ", x.ToString());
}

Status PreluShape(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckAlpha(ctx, ctx.InShape("X"), ctx.InShape("Alpha")));
  return SameShape(ctx);
}

template <typename T>
struct Prelu {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const AlphaIndex index, AlphaIndexOf(ctx, in.shape()));
    const T* x = in.data<T>();
    const T* alpha = ctx.In("Alpha").data<T>();
    T* out = ctx.Out("Out").mutable_data<T>();
    if (in.numel() == 0) return Status::Ok();
    // Stretches that share one element of Alpha, or one element of Alpha each.
    const int64_t row = index.inner > 1 || index.period == 1 ? index.inner : index.period;
    const int64_t width = index.period == 1 ? in.numel() : row;
    ctx.ParallelFor(in.numel() / width, 1 + 65536 / width, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T* from = x + r * width;
        T* to = out + r * width;
        if (index.inner > 1 || index.period == 1) {
          const T a = alpha[index(r * width)];
          for (int64_t i = 0; i < width; ++i) to[i] = from[i] > T(0) ? from[i] : a * from[i];
        } else {
          for (int64_t i = 0; i < width; ++i) to[i] = from[i] > T(0) ? from[i] : alpha[i] * from[i];
        }
      }
    });
    return Status::Ok();
  }
};

Status PreluGradShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  HEDDLE_RETURN_IF_ERROR(CheckAlpha(ctx, x, ctx.InShape("Alpha")));
  const Shape& grad = ctx.InShape("Out@GRAD");
  if (x.is_static() && grad.is_static() && !(x == grad))
    return InvalidArgument("Out@GRAD has shape ", grad.ToString(), ", X ", x.ToString());
  if (ctx.HasOut("X@GRAD")) ctx.SetOut("X@GRAD", x, ctx.InDType("X"));
  if (ctx.HasOut("Alpha@GRAD"))
    ctx.SetOut("Alpha@GRAD", ctx.InShape("Alpha"), ctx.InDType("Alpha"));
  return Status::Ok();
}

template <typename T>
struct PreluGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const AlphaIndex index, AlphaIndexOf(ctx, in.shape()));
    const T* x = in.data<T>();
    const T* alpha = ctx.In("Alpha").data<T>();
    const T* grad = ctx.In("Out@GRAD").data<T>();
    if (Tensor* t = ctx.OutOpt("X@GRAD")) {
      T* to = t->mutable_data<T>();
      for (const auto part : Stretches(in.numel()))
        for (int64_t i = part.begin; i < part.end; ++i)
          to[i] = x[i] > T(0) ? grad[i] : alpha[index(i)] * grad[i];
    }
    if (Tensor* t = ctx.OutOpt("Alpha@GRAD")) {
      T* to = t->mutable_data<T>();
      for (const auto part : Stretches(t->numel()))
        for (int64_t i = part.begin; i < part.end; ++i) to[i] = T(0);
      for (const auto part : Stretches(in.numel()))
        for (int64_t i = part.begin; i < part.end; ++i)
          if (!(x[i] > T(0))) to[index(i)] += x[i] * grad[i];
    }
    return Status::Ok();
  }
};

void Attrs(OpDef& op) { op.Attr("mode", "all").Attr("data_format", "NCHW"); }

}  // namespace
}  // namespace heddle

HEDDLE_OP(prelu) {
  op.Doc("x where positive, else Alpha * x; one Alpha for all, per channel or per element");
  op.Input("X").Input("Alpha").Output("Out").InferShape(PreluShape);
  Attrs(op);
  op.Kernels<Prelu, float, double>();
}
HEDDLE_OP(prelu_grad) {
  op.Input("X").Input("Alpha").Input("Out@GRAD");
  op.Output("X@GRAD", kOptional).Output("Alpha@GRAD", kOptional).InferShape(PreluGradShape);
  Attrs(op);
  op.Kernels<PreluGrad, float, double>();
}

HEDDLE_EXAMPLES(prelu, R"(
example float64 1x3x4, data_format NHWC, mode channel
attr data_format STRING "NHWC"
attr mode STRING "channel"
in Alpha float64 [1, 1, 1, 4] -0.895 -0.601 -0.797 -0.699
in X float64 [1, 3, 4] 0.08 0.38 -0.39 -0.23 0.84 -0.85 -0.69 -0.08 0.54 0.23 -0.54 0.69
out Out float64 [1, 3, 4] 0.08 0.38 0.31083000000000005 0.16077 0.84 0.5108499999999999 0.54993
  0.05592 0.54 0.23 0.43038000000000004 0.69

example float32 1x3x3x2, mode channel
attr mode STRING "channel"
in Alpha float32 [3] 0.129 0.178 0.155
in X float32 [1, 3, 3, 2] -1.07 1.55 1.15 -0.87 0.54 -0.27 -1.28 1.76 0.95 -0.47 1.35 -0.06 0.75
  -1.48 -1.68 -0.67 0.34 0.14
out Out float32 [1, 3, 3, 2] -0.13803 1.55 1.15 -0.112229995 0.54 -0.03483 -0.22783999 1.76 0.95
  -0.08366 1.35 -0.01068 0.75 -0.22940001 -0.2604 -0.10385001 0.34 0.14

example float64 1x4x3
in Alpha float64 [1] -0.747
in X float64 [1, 4, 3] -0.08 0.69 -0.54 0.38 -0.69 0.54 0.08 0.23 0.84 -0.23 -0.39 -0.85
out Out float64 [1, 4, 3] 0.05976 0.69 0.40338 0.38 0.5154299999999999 0.54 0.08 0.23 0.84
  0.17181000000000002 0.29133000000000003 0.63495

example float32 1x3x3x4, mode element
attr mode STRING "element"
in Alpha float32 [1, 3, 3, 4] 0.334 0.203 0.384 0.283 0.233 0.434 0.424 0.455 0.143 0.163 0.465
  0.394 0.444 0.243 0.223 0.213 0.273 0.354 0.173 0.374 0.404 0.183 0.122 0.263 0.153 0.344 0.293
  0.193 0.304 0.314 0.364 0.253 0.414 0.132 0.324 0.112
in X float32 [1, 3, 3, 4] -1.86 -1.24 -1.03 -1.14 1.36 -0.72 0.53 0.32 0.42 0.01 -0.93 0.22 -1.45
  1.46 0.84 1.15 1.57 -1.66 0.63 0.94 1.67 -1.55 -0.51 -0.3 -1.76 -0.2 0.11 -0.82 -0.62 1.25 0.73
  -0.41 -0.1 1.77 1.05 -1.34
out Out float32 [1, 3, 3, 4] -0.62123996 -0.25171998 -0.39552 -0.32261997 1.36 -0.31248 0.53 0.32
  0.42 0.01 -0.43245 0.22 -0.6438 1.46 0.84 1.15 1.57 -0.58764 0.63 0.94 1.67 -0.28364998 -0.06222
  -0.07890001 -0.26928 -0.0688 0.11 -0.15826 -0.18847999 1.25 0.73 -0.10372999 -0.0414 1.77 1.05
  -0.15008001
)")

HEDDLE_EXAMPLES(prelu_grad, R"(
example float64 1x3x4, data_format NHWC, mode channel
attr data_format STRING "NHWC"
attr mode STRING "channel"
in Alpha float64 [1, 1, 1, 4] -0.616 -0.807 -0.903 -0.711
in Out@GRAD float64 [1, 3, 4] -0.8 -0.6 -0.5 -0.7 0.7 -0.2 0.1 0.5 -0.5 0.9 0.9 -0
in X float64 [1, 3, 4] -0.54 0.38 -0.23 -0.38 0.08 -0.08 -0.84 0.23 0.53 0.69 0.84 -0.69
out Alpha@GRAD float64 [1, 1, 1, 4] 0.43200000000000005 0.016 0.031 0.26599999999999996
out X@GRAD float64 [1, 3, 4] 0.4928 -0.6 0.4515 0.4976999999999999 0.7 0.16140000000000002 -0.0903
  0.5 -0.5 0.9 0.9 0

example float64 1x3x3x2, mode channel
attr mode STRING "channel"
in Alpha float64 [3] 0.123 0.119 0.219
in Out@GRAD float64 [1, 3, 3, 2] 0.6 -0.2 0.7 0.6 0.6 -0.3 0.9 -0.3 0.6 0.8 -0.9 -1 0.1 -0.8 0.9
  -0.2 -0.3 -0.1
in X float64 [1, 3, 3, 2] -1.07 1.76 1.35 0.95 -0.47 -1.28 -0.67 0.34 -0.87 -0.06 0.14 1.55 -1.48
  0.75 1.15 0.54 -1.68 -0.27
out Alpha@GRAD float64 [3] -0.5399999999999999 -1.173 0.383
out X@GRAD float64 [1, 3, 3, 2] 0.07379999999999999 -0.2 0.7 0.6 0.07379999999999999
  -0.036899999999999995 0.1071 -0.3 0.07139999999999999 0.0952 -0.9 -1 0.021900000000000003 -0.8 0.9
  -0.2 -0.0657 -0.021900000000000003

example float32 1x3x4, data_format NHWC, mode channel
attr data_format STRING "NHWC"
attr mode STRING "channel"
in Alpha float32 [1, 1, 1, 4] -0.616 -0.807 -0.903 -0.711
in Out@GRAD float32 [1, 3, 4] -0.8 -0.6 -0.5 -0.7 0.7 -0.2 0.1 0.5 -0.5 0.9 0.9 -0
in X float32 [1, 3, 4] -0.54 0.38 -0.23 -0.38 0.08 -0.08 -0.84 0.23 0.53 0.69 0.84 -0.69
out Alpha@GRAD float32 [1, 1, 1, 4] 0.432 0.016 0.031000003 0.266
out X@GRAD float32 [1, 3, 4] 0.4928 -0.6 0.4515 0.4977 0.7 0.1614 -0.0903 0.5 -0.5 0.9 0.9 0
)")
