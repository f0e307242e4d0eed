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

HEDDLE_EXAMPLES(warprnnt, R"(
example float32 3x4x3x3
in input float32 [3, 4, 3, 3] -1.263 -0.706 -1.036 -1.224 -0.981 -1.099 -1.358 -1.083 -0.934 -1.271
  -0.714 -1.044 -0.997 -1.091 -1.507 -0.8 -1.232 -1.499 -1.154 -1.24 -1.107 -1.185 -0.777 -0.895
  -1.114 -0.918 -1.381 -0.722 -1.46 -1.146 -1.012 -1.005 -0.879 -0.965 -1.334 -0.957 -1.02 -0.84
  -1.256 -0.902 -1.483 -0.761 -1.428 -1.515 -0.785 -1.468 -1.342 -0.691 -1.436 -0.824 -1.303 -1.491
  -1.397 -1.413 -1.35 -1.161 -1.318 -1.169 -0.942 -0.738 -1.389 -0.769 -0.91 -1.287 -0.753 -1.067
  -1.193 -1.405 -1.475 -1.326 -1.366 -1.138 -0.95 -1.279 -1.122 -1.444 -0.989 -0.746 -1.42 -0.871
  -1.452 -0.863 -0.887 -0.926 -0.855 -1.311 -0.698 -1.295 -1.373 -1.209 -1.075 -1.201 -1.059 -1.248
  -0.816 -0.73 -1.216 -1.177 -0.832 -1.53 -1.052 -1.522 -0.808 -0.793 -1.028 -0.973 -0.848 -1.13
in input_lengths int32 [3] 4 4 4
in label int32 [3, 2] 1 2 1 1 1 2
in label_lengths int32 [3] 2 2 2
out loss float32 [3] 3.9362972 4.973059 3.888397
out warprnntgrad float32 [3, 4, 3, 3] -0.51276934 -0.48723072 0 -0.36547062 0 -0.12176006
  -0.12176006 0 0 -0.16407835 -0.34869093 0 -0.53325576 0 -0.18090564 -0.30266565 0 0 -0.04708962
  -0.1169888 0 -0.3161835 0 -0.33406067 -0.6367265 0 0 0 -0.0470896 0 0 0 -0.36327308 -0.99999976 0
  0 -0.5067094 -0.49329078 0 -0.44269776 -0.05059305 0 -0.050593074 0 0 -0.26856264 -0.23814683 0
  -0.42635486 -0.25449005 0 -0.30508298 0 0 -0.09547027 -0.17309234 0 -0.26348525 -0.3359618 0
  -0.64104515 0 0 0 -0.09547032 0 0 -0.35895574 0 -1.0000005 0 0 -0.77664965 -0.22335024 0
  -0.17554417 0 -0.04780608 -0.047806058 0 0 -0.35088333 -0.42576662 0 -0.43357778 0 -0.16773297
  -0.21553901 0 0 -0.12840024 -0.22248287 0 -0.27439126 0 -0.38166946 -0.59720856 0 0 0 -0.12840024
  0 0 0 -0.40279147 -1 0 0

example float64 3x4x3x3
in input float64 [3, 4, 3, 3] -1.263 -0.706 -1.036 -1.224 -0.981 -1.099 -1.358 -1.083 -0.934 -1.271
  -0.714 -1.044 -0.997 -1.091 -1.507 -0.8 -1.232 -1.499 -1.154 -1.24 -1.107 -1.185 -0.777 -0.895
  -1.114 -0.918 -1.381 -0.722 -1.46 -1.146 -1.012 -1.005 -0.879 -0.965 -1.334 -0.957 -1.02 -0.84
  -1.256 -0.902 -1.483 -0.761 -1.428 -1.515 -0.785 -1.468 -1.342 -0.691 -1.436 -0.824 -1.303 -1.491
  -1.397 -1.413 -1.35 -1.161 -1.318 -1.169 -0.942 -0.738 -1.389 -0.769 -0.91 -1.287 -0.753 -1.067
  -1.193 -1.405 -1.475 -1.326 -1.366 -1.138 -0.95 -1.279 -1.122 -1.444 -0.989 -0.746 -1.42 -0.871
  -1.452 -0.863 -0.887 -0.926 -0.855 -1.311 -0.698 -1.295 -1.373 -1.209 -1.075 -1.201 -1.059 -1.248
  -0.816 -0.73 -1.216 -1.177 -0.832 -1.53 -1.052 -1.522 -0.808 -0.793 -1.028 -0.973 -0.848 -1.13
in input_lengths int32 [3] 4 4 4
in label int32 [3, 2] 1 2 1 1 1 2
in label_lengths int32 [3] 2 2 2
out loss float64 [3] 3.9362974102028874 4.973059116969296 3.8883969175935835
out warprnntgrad float64 [3, 4, 3, 3] -0.5127692954600145 -0.4872307045399853 0 -0.36547060773202317
  0 -0.12176009680796246 -0.12176009680796246 0 0 -0.16407839443319724 -0.34869090102681716 0
  -0.5332557964015697 0 -0.18090571235727035 -0.30266580916523284 0 0 -0.04708962445543058
  -0.11698876997776676 0 -0.3161836735628682 0 -0.3340608928164688 -0.6367267019817011 0 0 0
  -0.04708962445543054 0 0 0 -0.3632732980182988 -1 0 0 -0.5067092303748694 -0.49329076962513096 0
  -0.44269771047435075 -0.050593059150780426 0 -0.05059305915078038 0 0 -0.2685624594892953
  -0.23814677088557462 0 -0.4263545837938664 -0.2544898975660592 0 -0.3050829567168394 0 0
  -0.09547022282165424 -0.17309223666764106 0 -0.26348516001084593 -0.33596166045066156 0
  -0.6410446171675009 0 0 0 -0.09547022282165415 0 0 -0.3589553828325 0 -1 0 0 -0.7766497095799272
  -0.22335029042007296 0 -0.1755442406089146 0 -0.04780604981115836 -0.04780604981115836 0 0
  -0.35088320087294744 -0.4257665087069796 0 -0.43357782857975047 0 -0.1677329207361441
  -0.21553897054730242 0 0 -0.12840023180327925 -0.22248296906966808 0 -0.27439127683853476 0
  -0.38166952081088373 -0.5972084913581861 0 0 0 -0.12840023180327936 0 0 0 -0.4027915086418141 -1 0
  0
)")

HEDDLE_EXAMPLES(warprnnt_grad, R"(
example one label, float32
in x float32 [1, 2, 2, 3] 0.5 -1 0.25 2 -0.5 1 1 0.5 -0.25 0.75 2 -1
in l int32 [1, 1] 1
in n int32 [1] 2
in m int32 [1] 1
in g float32 [1] 0.5
op warprnnt input=x label=l input_lengths=n label_lengths=m -> loss=o warprnntgrad=t
attr blank INT 0
attr fastemit_lambda FLOAT 0
op warprnnt_grad input=x input_lengths=n warprnntgrad=t loss@GRAD=g -> input@GRAD=dx
attr blank INT 0
attr fastemit_lambda FLOAT 0
out dx float32 [1, 2, 2, 3] -0.25 -0.25 0 -0.25 0 0 0 -0.25 0 -0.5 0 0

example one label, float64
in x float64 [1, 2, 2, 3] 0.5 -1 0.25 2 -0.5 1 1 0.5 -0.25 0.75 2 -1
in l int32 [1, 1] 1
in n int32 [1] 2
in m int32 [1] 1
in g float64 [1] 0.5
op warprnnt input=x label=l input_lengths=n label_lengths=m -> loss=o warprnntgrad=t
attr blank INT 0
attr fastemit_lambda FLOAT 0
op warprnnt_grad input=x input_lengths=n warprnntgrad=t loss@GRAD=g -> input@GRAD=dx
attr blank INT 0
attr fastemit_lambda FLOAT 0
out dx float64 [1, 2, 2, 3] -0.24999999999999997 -0.24999999999999997 0 -0.24999999999999997 0 0 0
  -0.24999999999999997 0 -0.5 0 0
)")
