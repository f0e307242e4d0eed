// warprnnt: the transducer loss (RNN-T) of log probabilities, and its gradient.
#include <cmath>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

Status RnntShape(ShapeContext& ctx) {
  const Shape &x = ctx.InShape("input"), &label = ctx.InShape("label");
  if (!x.is_static() || !label.is_static()) return ctx.Defer();
  if (x.rank() != 4) return InvalidArgument("input has shape ", x.ToString(), ", expected rank 4");
  if (label.rank() != 2 || label[0] != x[0] || label[1] + 1 != x[2])
    return InvalidArgument("label has shape ", label.ToString(), ", input ", x.ToString());
  for (const Key key : {Key("input_lengths"), Key("label_lengths")})
    if (ctx.InShape(key).is_static() && ctx.InShape(key).numel() != x[0])
      return InvalidArgument(key.name, " has ", ctx.InShape(key).numel(), " values for ", x[0],
                             " samples");
  const int64_t blank = ctx.Int("blank");
  if (blank < 0 || blank >= x[3])
    return InvalidArgument("blank ", blank, " is not one of ", x[3], " symbols");
  ctx.SetOut("loss", {x[0]}, ctx.InDType("input"));
  if (ctx.HasOut("warprnntgrad")) ctx.SetOut("warprnntgrad", x, ctx.InDType("input"));
  return Status::Ok();
}

double LogAdd(double a, double b) {
  if (a == -INFINITY) return b;
  if (b == -INFINITY) return a;
  return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
}

// One sample: `frames` steps of time, `labels` symbols to emit.
template <typename T>
struct Lattice {
  const T* x;  // [max frames, width, symbols]
  const int64_t* label;
  int64_t frames, labels, width, symbols, blank;

  int64_t At(int64_t t, int64_t u) const { return (t * width + u) * symbols; }
  double Blank(int64_t t, int64_t u) const { return x[At(t, u) + blank]; }
  double Emit(int64_t t, int64_t u) const { return x[At(t, u) + label[u]]; }
  size_t Cell(int64_t t, int64_t u) const { return static_cast<size_t>(t * (labels + 1) + u); }

  // Log probabilities of having reached each cell.
  std::vector<double> Forward() const {
    std::vector<double> a(static_cast<size_t>(frames * (labels + 1)), -INFINITY);
    a[0] = 0;
    for (const int64_t t : Watched(frames))
      for (int64_t u = 0; u <= labels; ++u) {
        double& sum = a[Cell(t, u)];
        if (t > 0) sum = LogAdd(sum, a[Cell(t - 1, u)] + Blank(t - 1, u));
        if (u > 0) sum = LogAdd(sum, a[Cell(t, u - 1)] + Emit(t, u - 1));
      }
    return a;
  }
  // Log probabilities of ending from each cell.
  std::vector<double> Backward() const {
    std::vector<double> b(static_cast<size_t>(frames * (labels + 1)), -INFINITY);
    for (int64_t t = frames - 1; t >= 0; --t)
      for (int64_t u = labels; u >= 0; --u) {
        double& sum = b[Cell(t, u)];
        if (t == frames - 1 && u == labels) sum = Blank(t, u);
        if (t + 1 < frames) sum = LogAdd(sum, b[Cell(t + 1, u)] + Blank(t, u));
        if (u < labels) sum = LogAdd(sum, b[Cell(t, u + 1)] + Emit(t, u));
      }
    return b;
  }
  void Gradient(const std::vector<double>& a, double fastemit, T* g) const {
    const std::vector<double> b = Backward();
    const double all = b[0];
    for (const int64_t t : Watched(frames))
      for (int64_t u = 0; u <= labels; ++u) {
        const double here = a[Cell(t, u)] - all;
        const double after = t + 1 < frames ? b[Cell(t + 1, u)] : u == labels ? 0.0 : -INFINITY;
        g[At(t, u) + blank] = static_cast<T>(-std::exp(Blank(t, u) + here + after));
        if (u < labels)
          g[At(t, u) + label[u]] =
              static_cast<T>(-(1 + fastemit) * std::exp(Emit(t, u) + here + b[Cell(t, u + 1)]));
      }
  }
};

template <typename T>
struct Warprnnt {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("input");
    const Labels label(ctx, ctx.In("label")), frames(ctx, ctx.In("input_lengths")),
        labels(ctx, ctx.In("label_lengths"));
    const int64_t batch = x.dim(0), most = x.dim(1), width = x.dim(2), symbols = x.dim(3);
    T* loss = ctx.Out("loss").template mutable_data<T>();
    Tensor* grad = ctx.OutOpt("warprnntgrad");
    if (grad != nullptr) WatchedFill(grad->mutable_data<T>(), grad->numel(), T(0));
    for (const int64_t i : Watched(batch)) {
      if (frames[i] < 1 || frames[i] > most || labels[i] < 0 || labels[i] >= width)
        return InvalidArgument("sample ", i, " of ", frames[i], " frames and ", labels[i],
                               " labels does not fit input ", x.shape().ToString());
      for (int64_t u = 0; u < labels[i]; ++u)
        if (const int64_t s = label[i * (width - 1) + u]; s < 0 || s >= symbols)
          return InvalidArgument("label ", s, " is not one of ", symbols, " symbols");
    }
    ctx.ParallelFor(batch, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = i * most * width * symbols;
        const Lattice<T> lattice{
            x.data<T>() + at, label.data() + i * (width - 1), frames[i], labels[i], width, symbols,
            ctx.Int("blank")};
        const std::vector<double> a = lattice.Forward();
        const int64_t last = frames[i] - 1;
        loss[i] = static_cast<T>(-(a.back() + lattice.Blank(last, labels[i])));
        if (grad != nullptr)
          lattice.Gradient(a, ctx.Float("fastemit_lambda"), grad->mutable_data<T>() + at);
      }
    });
    return Status::Ok();
  }
};

Status RnntGradShape(ShapeContext& ctx) {
  const Shape &x = ctx.InShape("input"), &d = ctx.InShape("loss@GRAD");
  HEDDLE_RETURN_IF_ERROR(CheckSameDims(ctx, "input", "warprnntgrad"));
  if (x.is_static() && d.is_static() && (x.rank() < 1 || d.numel() != x[0]))
    return InvalidArgument("loss@GRAD has shape ", d.ToString(), ", input ", x.ToString());
  ctx.SetOut("input@GRAD", x, ctx.InDType("input"));
  return Status::Ok();
}

template <typename T>
struct WarprnntGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor &kept = ctx.In("warprnntgrad"), &d = ctx.In("loss@GRAD");
    T* out = ctx.Out("input@GRAD").template mutable_data<T>();
    if (kept.numel() == 0) return Status::Ok();
    const int64_t each = kept.numel() / d.numel();
    ForEachIndex(ctx, kept.numel(), [=, g = kept.data<T>(), s = d.data<T>()](int64_t i) {
      out[i] = g[i] * s[i / each];
    });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(warprnnt) {
  op.Doc("transducer loss of log probabilities [batch, frames, labels + 1, symbols]");
  op.Input("input").Input("label").Input("input_lengths").Input("label_lengths");
  op.Output("loss").Output("warprnntgrad", kOptional);
  op.Attr("blank", 0).Attr("fastemit_lambda", 0.0).InferShape(RnntShape);
  op.Kernels<Warprnnt, float, double>();
}
HEDDLE_OP(warprnnt_grad) {
  op.Input("input", kNoBuffer).Input("input_lengths", kOptional | kNoBuffer);
  op.Input("warprnntgrad").Input("loss@GRAD").Output("input@GRAD");
  op.Attr("blank", 0).Attr("fastemit_lambda", 0.0).InferShape(RnntGradShape);
  op.Kernels<WarprnntGrad, float, double>();
}
