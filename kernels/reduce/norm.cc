// norm: every line along an axis divided by its 2-norm.
#include <cmath>

#include "core/error.h"
#include "core/operands/unwritten.h"
#include "kernels/base/check.h"
#include "kernels/reduce/along_line.h"

namespace heddle {
namespace {

template <typename T>
struct Norm {
  static Status Run(KernelContext& ctx) {
    const Tensor& xt = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const AxisLines lines, AxisLines::At(xt.shape(), ctx.Int("axis")));
    const T* x = xt.data<T>();
    T* out = ctx.Out("Out").template mutable_data<T>();
    Tensor* nt = ctx.Bool("is_test") ? nullptr : ctx.OutOpt("Norm");
    T* norms = nt != nullptr ? nt->mutable_data<T>() : nullptr;
    const T eps = static_cast<T>(ctx.Float("epsilon"));
    lines.ForEach(ctx, 4, [&](int64_t line) {
      T total = 0;
      AlongLine(lines, line, [&](int64_t, int64_t at) { total += x[at] * x[at]; });
      const T norm = std::sqrt(total + eps);
      AlongLine(lines, line, [&](int64_t, int64_t at) { out[at] = x[at] / norm; });
      if (norms != nullptr) norms[line] = norm;
    });
    return Status::Ok();
  }
};

template <typename T>
struct NormGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& xt = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const AxisLines lines, AxisLines::At(xt.shape(), ctx.Int("axis")));
    const Tensor& nt = ctx.In("Norm");
    const Tensor& dt = ctx.In("Out@GRAD");
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&xt, &nt, &dt}));
    if (nt.numel() != lines.lines() || dt.numel() != xt.numel())
      return InvalidArgument("Norm ", nt.shape().ToString(), " and Out@GRAD ",
                             dt.shape().ToString(), " do not fit X ", xt.shape().ToString());
    const T* x = xt.data<T>();
    const T* dout = dt.data<T>();
    T* dx = ctx.Out("X@GRAD").template mutable_data<T>();
    lines.ForEach(ctx, 4, [&](int64_t line) {
      const T norm = nt.data<T>()[line];
      T dot = 0;
      AlongLine(lines, line, [&](int64_t, int64_t at) { dot += x[at] * dout[at]; });
      const T along = dot / (norm * norm);
      AlongLine(lines, line,
                [&](int64_t, int64_t at) { dx[at] = (dout[at] - x[at] * along) / norm; });
    });
    return Status::Ok();
  }
};

Status InferNormAlong(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  ctx.SetOut("Out", x, ctx.InDType("X"));
  ctx.ShareLoD("X", "Out");
  Shape norm = x;
  if (x.known_rank()) {
    HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), x.rank()));
    if (x.rank() > 0) norm[axis] = 1;
  }
  if (!ctx.Bool("is_test")) ctx.SetOut("Norm", norm, ctx.InDType("X"));  // not written in a test
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(norm) {
  op.Doc("x divided by its 2-norm along an axis")
      .Input("X")
      .Output("Out")
      .Output("Norm", kOptional | kMayBeUnwritten);
  op.Attr("axis", -1).Attr("epsilon", 1e-10).Attr("is_test", false);
  op.InferShape(&InferNormAlong).Kernels<Norm, float, double>();
}

HEDDLE_OP(norm_grad) {
  op.Doc("gradient of norm").Input("X").Input("Norm").Input("Out@GRAD").Output("X@GRAD");
  op.Attr("axis", -1).Attr("epsilon", 1e-10).Attr("is_test", false).KernelKey("Out@GRAD");
  op.InferShape(&GradLikeInputs).Kernels<NormGrad, float, double>();
}

HEDDLE_EXAMPLES(norm, R"(
example float32 4x1x1, axis -1
attr axis INT -1
in X float32 [4, 1, 1] 0.645 0.818 0.905 0.732
out Norm float32 [4, 1, 1] 0.645 0.818 0.905 0.732
out Out float32 [4, 1, 1] 1*4

example float32 3x4, axis -1
attr axis INT -1
in X float32 [3, 4] 0.932 0.273 0.633 0.873 0.813 0.393 0.513 0.573 0.753 0.453 0.333 0.693
out Norm float32 [3, 1] 1.4511964 1.1861349 1.1676284
out Out float32 [3, 4] 0.64222866 0.18812063 0.43619183 0.60157263 0.6854195 0.33132824 0.43249717
  0.48308164 0.644897 0.3879659 0.28519347 0.59351075

example float64 4x1x1, axis -1
attr axis INT -1
in X float64 [4, 1, 1] 0.645 0.818 0.905 0.732
out Norm float64 [4, 1, 1] 0.6450000000775195 0.8180000000611246 0.9050000000552486
  0.732000000068306
out Out float64 [4, 1, 1] 0.9999999998798148 0.9999999999252754 0.9999999999389518
  0.9999999999066858
)")

HEDDLE_EXAMPLES(norm_grad, R"(
example float64 4x1x1, axis -1
attr axis INT -1
in Norm float64 [4, 1, 1] 0.8180000000611246 0.732000000068306 0.6450000000775195 0.9050000000552486
in Out@GRAD float64 [4, 1, 1] -0.8 -0.3 0.7 -0.8
in X float64 [4, 1, 1] 0.818 0.732 0.645 0.905
out X@GRAD float64 [4, 1, 1] -1.4616031828463554e-10 -7.64870862385548e-11 2.608671245974124e-10
  -1.0793036200148997e-10

example float64 3x4, axis -1
attr axis INT -1
in Norm float64 [3, 1] 1.1983638846777718 1.1757427440133321 1.4345020042160972
in Out@GRAD float64 [3, 4] 0.4 0 0.2 -0 -0.1 0.9 1 0.7 0.2 -0.6 -0.5 -0.9
in X float64 [3, 4] 0.633 0.753 0.453 0.513 0.932 0.273 0.333 0.573 0.813 0.693 0.393 0.873
out X@GRAD float64 [3, 4] 0.20733126394389462 -0.15043008889322673 0.0763964325909042
  -0.10248424382765647 -0.5934539957088872 0.616553428024864 0.6688763449797643 0.2827996777071253
  0.47966848832343867 -0.12823733826886 -0.18407923763031392 -0.262037646322764

example float32 4x1x1, axis -1
attr axis INT -1
in Norm float32 [4, 1, 1] 0.818 0.732 0.645 0.905
in Out@GRAD float32 [4, 1, 1] -0.8 -0.3 0.7 -0.8
in X float32 [4, 1, 1] 0.818 0.732 0.645 0.905
out X@GRAD float32 [4, 1, 1] 7.2866314e-8 0 0 6.5861485e-8
)")
