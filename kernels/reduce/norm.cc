// norm: every line along an axis divided by its 2-norm.
#include <cmath>

#include "core/error.h"
#include "core/operands/unwritten.h"
#include "kernels/base/along_line.h"
#include "kernels/base/check.h"

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
