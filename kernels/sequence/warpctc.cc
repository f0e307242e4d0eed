// Connectionist temporal classification. The forward pass computes the gradient, too, and leaves it
// in WarpCTCGrad [longest, sequences, classes].
#include <cmath>
#include <limits>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/shape_checks.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

double LogSum(double a, double b) {
  if (a == kNever) return b;
  if (b == kNever) return a;
  return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
}

// The logits of one sequence: `length` rows of `classes`, `stride` apart.
template <typename T>
struct Logits {
  const T* data;
  int64_t length, classes, stride;
};

// Log-probabilities, row by row.
template <typename T>
std::vector<double> LogSoftmax(const Logits<T>& x) {
  std::vector<double> out(static_cast<size_t>(x.length * x.classes));
  for (const int64_t t : Watched(x.length)) {
    const T* row = x.data + t * x.stride;
    const double max = *std::max_element(row, row + x.classes);
    double sum = 0;
    for (int64_t c = 0; c < x.classes; ++c) sum += std::exp(row[c] - max);
    for (int64_t c = 0; c < x.classes; ++c)
      out[static_cast<size_t>(t * x.classes + c)] = row[c] - max - std::log(sum);
  }
  return out;
}

// Scores of being at each of the labels with blanks between them: alpha from the start, and, with
// `steps` reversed, from the end. The label's own score at a step is included.
std::vector<double> Walk(const std::vector<double>& logp, int64_t length, int64_t classes,
                         const std::vector<int64_t>& path, bool reverse) {
  const auto n = std::ssize(path);
  std::vector<double> score(static_cast<size_t>(length * n), kNever);
  const auto place = [&](int64_t i) { return reverse ? n - 1 - i : i; };
  const auto label = [&](int64_t i) { return path[static_cast<size_t>(place(i))]; };
  for (const int64_t step : Watched(length)) {
    const int64_t t = reverse ? length - 1 - step : step, before = reverse ? t + 1 : t - 1;
    const auto at = [&](int64_t time, int64_t i) -> double& {
      return score[static_cast<size_t>(time * n + place(i))];
    };
    for (int64_t i = 0; i < n; ++i) {
      double sum = step == 0 && i < 2 ? 0 : kNever;
      if (step > 0) {
        sum = at(before, i);
        if (i > 0) sum = LogSum(sum, at(before, i - 1));
        if (i > 1 && label(i) != label(i - 2)) sum = LogSum(sum, at(before, i - 2));
      }
      // Blanks stand at even places; skipping one is for different labels only.
      at(t, i) = sum == kNever ? kNever : sum + logp[static_cast<size_t>(t * classes + label(i))];
    }
  }
  return score;
}

// The loss of one sequence; 0, with a gradient of 0, where the labels do not fit into its length.
template <typename T>
T Loss(const Logits<T>& x, const std::vector<int64_t>& labels, int64_t blank, T* grad) {
  int64_t repeats = 0;
  for (size_t i = 1; i < labels.size(); ++i) repeats += labels[i] == labels[i - 1];
  if (x.length == 0 || std::ssize(labels) + repeats > x.length) return T(0);
  std::vector<int64_t> path{blank};
  for (int64_t label : labels) path.insert(path.end(), {label, blank});
  const auto logp = LogSoftmax(x);
  const auto alpha = Walk(logp, x.length, x.classes, path, false);
  const auto beta = Walk(logp, x.length, x.classes, path, true);
  const auto n = std::ssize(path);
  const auto last = static_cast<size_t>(x.length * n) - 1;
  const double total = n > 1 ? LogSum(alpha[last], alpha[last - 1]) : alpha[last];
  std::vector<double> by_class(static_cast<size_t>(x.classes));
  for (const int64_t t : Watched(x.length)) {
    std::fill(by_class.begin(), by_class.end(), kNever);
    for (int64_t i = 0; i < n; ++i) {
      const auto at = static_cast<size_t>(t * n + i);
      double& sum = by_class[static_cast<size_t>(path[static_cast<size_t>(i)])];
      if (alpha[at] != kNever && beta[at] != kNever) sum = LogSum(sum, alpha[at] + beta[at]);
    }
    for (int64_t c = 0; c < x.classes; ++c) {
      const double p = logp[static_cast<size_t>(t * x.classes + c)];
      // Both walks count the step's own score.
      const double share = std::exp(by_class[static_cast<size_t>(c)] - p - total);
      grad[t * x.stride + c] = static_cast<T>(std::exp(p) - share);
    }
  }
  return static_cast<T>(-total);
}

// Offsets of the sequences of logits and labels.
struct Layout {
  int64_t sequences = 0, classes = 0, longest = 0;
  std::vector<int64_t> first, length, label_first, label_length;  // `first` in rows of classes
  int64_t stride = 0;                                             // rows between steps
};

Result<Layout> PaddedLayout(KernelContext& ctx, const Tensor& x, const Tensor& label) {
  if (x.rank() != 3) return InvalidArgument("Logits must be [T, N, classes]");
  Layout l{x.dim(1), x.dim(2), x.dim(0), {}, {}, {}, {}, x.dim(1)};
  l.length = ToInts(ctx.In("LogitsLength"));
  l.label_length = ToInts(ctx.In("LabelLength"));
  if (std::ssize(l.length) != l.sequences || std::ssize(l.label_length) != l.sequences ||
      label.rank() < 1 || label.dim(0) != l.sequences)
    return InvalidArgument("the lengths or Label do not fit ", l.sequences, " sequences");
  const int64_t width = label.numel() / std::max<int64_t>(l.sequences, 1);
  for (const int64_t n : Watched(l.sequences)) {
    l.first.push_back(n);
    l.label_first.push_back(n * width);
    const int64_t steps = l.length[static_cast<size_t>(n)];
    const int64_t labels = l.label_length[static_cast<size_t>(n)];
    if (steps < 0 || steps > l.longest || labels < 0 || labels > width)
      return OutOfRange("sequence ", n, " has ", steps, " steps and ", labels, " labels");
  }
  return l;
}

Result<Layout> PackedLayout(const Tensor& x, const Tensor& label) {
  HEDDLE_ASSIGN_OR_RETURN(const Offsets* const steps, OffsetsOf(x, "Logits"));
  HEDDLE_ASSIGN_OR_RETURN(const Offsets* const labels, OffsetsOf(label, "Label"));
  if (steps->size() != labels->size())
    return InvalidArgument("Logits and Label have different numbers of sequences");
  Layout l{SequenceCount(*steps), RowSize(x), 0, {}, {}, {}, {}, 1};
  for (const int64_t n : Watched(l.sequences)) {
    l.first.push_back(Begin(*steps, n));
    l.length.push_back(Length(*steps, n));
    l.label_first.push_back(Begin(*labels, n));
    l.label_length.push_back(Length(*labels, n));
    l.longest = std::max(l.longest, l.length.back());
  }
  return l;
}

Result<std::vector<int64_t>> LabelsOf(const Labels& labels, const Layout& l, size_t n) {
  std::vector<int64_t> out;
  for (const int64_t i : Watched(l.label_length[n])) {
    out.push_back(labels[l.label_first[n] + i]);
    if (out.back() < 0 || out.back() >= l.classes)
      return OutOfRange("label ", out.back(), " is not in [0, ", l.classes, ")");
  }
  return out;
}

template <typename T>
struct WarpCtc {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("Logits"), &label = ctx.In("Label");
    const bool padded = ctx.InOpt("LogitsLength") != nullptr && ctx.InOpt("LabelLength") != nullptr;
    HEDDLE_ASSIGN_OR_RETURN(const Layout l,
                            padded ? PaddedLayout(ctx, x, label) : PackedLayout(x, label));
    const Labels labels(ctx, label);
    const int64_t blank = ctx.Int("blank"), d = l.classes;
    if (blank < 0 || blank >= d) return OutOfRange("blank ", blank, " is not in [0, ", d, ")");
    T* loss = ctx.Alloc("Loss", x.dtype(), Shape{l.sequences, 1}).template mutable_data<T>();
    const Shape grad_shape{l.longest, l.sequences, d};
    Tensor grad = ctx.HasOut("WarpCTCGrad") ? ctx.Alloc("WarpCTCGrad", x.dtype(), grad_shape)
                                            : ctx.Scratch(x.dtype(), grad_shape);
    ZeroAll(grad);
    std::vector<T> work(static_cast<size_t>(l.longest * d));
    for (size_t n = 0; n < l.first.size(); ++n) {
      HEDDLE_ASSIGN_OR_RETURN(const std::vector<int64_t> own, LabelsOf(labels, l, n));
      // Logits and gradient lie alike in padded form; packed logits are copied row by row.
      const T* from = x.data<T>() + l.first[n] * d;
      for (int64_t t = 0; t < l.length[n]; ++t)
        WatchedCopy(from + t * l.stride * d, d, work.data() + t * d);
      const Logits<T> logits{work.data(), l.length[n], d, d};
      std::vector<T> own_grad(static_cast<size_t>(l.length[n] * d), T(0));
      loss[n] = Loss(logits, own, blank, own_grad.data());
      for (int64_t t = 0; t < l.length[n]; ++t)
        WatchedCopy(own_grad.data() + t * d, d,
                    grad.mutable_data<T>() + (t * l.sequences + static_cast<int64_t>(n)) * d);
    }
    return Status::Ok();
  }
};

Status InferCtcGrad(ShapeContext& ctx) {
  SetOutsLike(ctx, {{"Logits", "Logits@GRAD"}});
  ctx.ShareLoD("Logits", "Logits@GRAD");
  return Status::Ok();
}

template <typename T>
struct WarpCtcGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("Logits"), &grad = ctx.In("WarpCTCGrad"),
                 &d_loss = ctx.In("Loss@GRAD");
    if (grad.rank() != 3 || d_loss.numel() != grad.dim(1))
      return InvalidArgument("WarpCTCGrad does not fit Loss@GRAD");
    const int64_t count = grad.dim(1), d = grad.dim(2);
    Tensor& dx = ctx.Out("Logits@GRAD");
    ZeroAll(dx);
    const bool by_times = ctx.Bool("norm_by_times");
    const Tensor* lengths = ctx.InOpt("LogitsLength");
    Offsets offsets;
    Ints steps(static_cast<size_t>(count), grad.dim(0));
    if (lengths != nullptr) {
      steps = ToInts(*lengths);
      if (std::ssize(steps) != count || dx.numel() != grad.numel())
        return InvalidArgument("LogitsLength does not fit WarpCTCGrad");
    } else {
      HEDDLE_ASSIGN_OR_RETURN(const Offsets* const given, OffsetsOf(x, "Logits"));
      offsets = *given;
      if (SequenceCount(offsets) != count || RowSize(x) != d)
        return InvalidArgument("WarpCTCGrad does not fit Logits");
    }
    for (const int64_t n : Watched(count)) {
      const int64_t length =
          lengths != nullptr ? steps[static_cast<size_t>(n)] : Length(offsets, n);
      const T scale =
          d_loss.data<T>()[n] / (by_times && length > 0 ? static_cast<T>(length) : T(1));
      for (int64_t t = 0; t < std::min(length, grad.dim(0)); ++t) {
        const T* from = grad.data<T>() + (t * count + n) * d;
        T* to =
            dx.mutable_data<T>() + (lengths != nullptr ? t * count + n : Begin(offsets, n) + t) * d;
        for (int64_t c = 0; c < d; ++c) to[c] = from[c] * scale;
      }
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(warpctc) {
  op.Doc("the CTC loss of label sequences").Input("Logits").Input("Label");
  op.Input("LogitsLength", kOptional).Input("LabelLength", kOptional);
  op.Output("Loss").Output("WarpCTCGrad", kOptional).Attr("blank", 0).Attr("norm_by_times", false);
  op.Kernels<WarpCtc, float, double>();
}
HEDDLE_OP(warpctc_grad) {
  op.Input("Logits", kNoBuffer).Input("WarpCTCGrad").Input("LogitsLength", kOptional);
  op.Input("Loss@GRAD").Output("Logits@GRAD").Attr("blank", 0).Attr("norm_by_times", false);
  op.InferShape(InferCtcGrad).Kernels<WarpCtcGrad, float, double>();
}

HEDDLE_EXAMPLES(warpctc_grad, R"(
example float64 4x4x8, blank 7
attr blank INT 7
in Logits float64 [4, 4, 8] 0.008 0.337 0.597 0.903 0.91 0.536 0.543 0.084 0.574 0.474 0.153 0.52
  0.352 0.344 0.75 0.13 0.742 0.161 0.811 0.038 0.268 0.138 0.321 0.704 0.727 0.964 0.122 0.62 0.612
  0.107 0.972 0.581 0.375 0.826 0.459 0.467 0.765 0.237 0.796 0.635 0.398 0.252 0.604 0.735 0.26
  0.956 0.49 0.444 0.482 0.054 0.933 0.245 0.421 0.428 0.092 0.979 0.046 0.643 0.367 0.895 0.872
  0.757 0.819 0.451 0.306 0.015 0.23 0.497 0.069 0.926 0.207 0.406 0.559 0.031 0.834 0.513 0.696
  0.184 0.589 0.78 0.298 0.712 0.773 0.283 0.803 0.099 0.865 0.528 0.176 0.719 0.329 0.666 0.849
  0.681 0.291 0.888 0.191 0.077 0.275 0.222 0.214 0.168 0.949 0.566 0.842 0.788 0.505 0.658 0.627
  0.39 0.314 0.65 0.857 0.383 0.689 0.88 0.023 0.36 0.115 0.436 0.551 0.199 0.673 0.413 0.061 0.918
  0.145 0.941
in LogitsLength int64 [4] 4 1 3 3
in Loss@GRAD float64 [4, 1] -0.3 0 0.3 -0.5
in WarpCTCGrad float64 [4, 4, 8] 0.07360748511549793 0.1022833313219906 0.1326543297558931
  0.18014223269547244 0.18140765212521975 0.1248042762912545 -0.87431902892279 0.07941972161746161
  0.1441335053304164 0.1304173888156462 0.09460780618029135 0.13655671057268462 0.11543873893454201
  0.11451891323160926 -0.8281297227172824 0.09245665965209232 0*16 0.10078238525999231
  0.15821638018436782 -0.8903861658042596 0.11049426188445184 0.1488536473906898 0.08779140395100034
  0.15354037948413243 0.13070770764962505 0*24 0.11704634540912305 0.08749397824804028
  0.10848044984372258 0.14167985513204562 0.09234854682209805 0.2175807336766517 0.10601387385511873
  -0.8706437829868001 0*24 0.10415693739670866 0.09293485605255923 -0.8867159053967026
  0.10743637105392102 0.10658030889976623 0.10178866734252523 0.22227131496608582
  0.15154744968513656 0*24
out Logits@GRAD float64 [4, 4, 8] -0.022082245534649377 -0.03068499939659718 -0.039796298926767934
  -0.05404266980864173 -0.054422295637565926 -0.037441282887376345 0.262295708676837
  -0.02382591648523848 0*6 -0 0*9 -0*8 -0.03023471557799769 -0.047464914055310344
  0.26711584974127783 -0.03314827856533555 -0.04465609421720693 -0.0263374211853001
  -0.04606211384523973 -0.039212312294887516 0*16 -0*8 -0.03511390362273691 -0.026248193474412086
  -0.032544134953116775 -0.04250395653961368 -0.027704564046629413 -0.06527422010299551
  -0.03180416215653562 0.26119313489604 0*16 -0*8 -0.031247081219012596 -0.027880456815767767
  0.26601477161901077 -0.03223091131617631 -0.03197409266992987 -0.030536600202757568
  -0.06668139448982574 -0.04546423490554097 0*16 -0*8

example float32 4x4x8, blank 7
attr blank INT 7
in Logits float32 [4, 4, 8] 0.008 0.337 0.597 0.903 0.91 0.536 0.543 0.084 0.574 0.474 0.153 0.52
  0.352 0.344 0.75 0.13 0.742 0.161 0.811 0.038 0.268 0.138 0.321 0.704 0.727 0.964 0.122 0.62 0.612
  0.107 0.972 0.581 0.375 0.826 0.459 0.467 0.765 0.237 0.796 0.635 0.398 0.252 0.604 0.735 0.26
  0.956 0.49 0.444 0.482 0.054 0.933 0.245 0.421 0.428 0.092 0.979 0.046 0.643 0.367 0.895 0.872
  0.757 0.819 0.451 0.306 0.015 0.23 0.497 0.069 0.926 0.207 0.406 0.559 0.031 0.834 0.513 0.696
  0.184 0.589 0.78 0.298 0.712 0.773 0.283 0.803 0.099 0.865 0.528 0.176 0.719 0.329 0.666 0.849
  0.681 0.291 0.888 0.191 0.077 0.275 0.222 0.214 0.168 0.949 0.566 0.842 0.788 0.505 0.658 0.627
  0.39 0.314 0.65 0.857 0.383 0.689 0.88 0.023 0.36 0.115 0.436 0.551 0.199 0.673 0.413 0.061 0.918
  0.145 0.941
in LogitsLength int64 [4] 4 1 3 3
in Loss@GRAD float32 [4, 1] -0.3 0 0.3 -0.5
in WarpCTCGrad float32 [4, 4, 8] 0.07360748 0.10228333 0.13265432 0.18014224 0.18140765 0.12480427
  -0.874319 0.079419725 0.14413351 0.13041739 0.09460781 0.13655671 0.11543874 0.11451891 -0.8281297
  0.09245666 0*16 0.10078239 0.15821639 -0.89038616 0.11049426 0.14885364 0.087791406 0.15354037
  0.13070771 0*24 0.11704635 0.08749398 0.10848045 0.14167985 0.092348546 0.21758074 0.10601387
  -0.8706438 0*24 0.10415693 0.092934854 -0.8867159 0.107436374 0.10658031 0.10178867 0.22227131
  0.15154745 0*24
out Logits@GRAD float32 [4, 4, 8] -0.022082245 -0.030685 -0.0397963 -0.054042675 -0.054422297
  -0.037441283 0.26229572 -0.02382592 0*6 -0 0*9 -0*8 -0.030234717 -0.04746492 0.26711586
  -0.03314828 -0.044656094 -0.026337422 -0.04606211 -0.039212316 0*16 -0*8 -0.035113905 -0.026248194
  -0.032544136 -0.042503957 -0.027704565 -0.06527422 -0.031804163 0.26119316 0*16 -0*8 -0.031247081
  -0.027880458 0.26601478 -0.032230914 -0.031974096 -0.030536601 -0.06668139 -0.045464236 0*16 -0*8
)")

HEDDLE_EXAMPLES(warpctc, R"(
example float32 4x4x8, blank 7
attr blank INT 7
in Label int32 [4, 4] 4 5 0 6 2 1 6 0 4 3 2 0 3 0 5 3
in LabelLength int64 [4] 3 1 4 4
in Logits float32 [4, 4, 8] 0.759 0.307 0.744 0.982 0.184 0.698 0.261 0.897 0.345 0.376 0.736 0.752
  0.614 0.384 0.606 0.123 0.291 0.031 0.905 0.414 0.038 0.859 0.959 0.483 0.621 0.575 0.176 0.568
  0.529 0.828 0.629 0.268 0.437 0.644 0.299 0.867 0.153 0.506 0.077 0.491 0.851 0.445 0.89 0.514
  0.199 0.652 0.966 0.805 0.522 0.276 0.836 0.943 0.054 0.821 0.107 0.023 0.56 0.069 0.192 0.43 0.79
  0.046 0.1 0.545 0.23 0.422 0.138 0.368 0.215 0.361 0.974 0.928 0.146 0.874 0.245 0.913 0.46 0.338
  0.13 0.061 0.207 0.169 0.391 0.667 0.253 0.583 0.407 0.092 0.591 0.537 0.92 0.115 0.767 0.084
  0.721 0.66 0.882 0.637 0.598 0.782 0.222 0.798 0.683 0.238 0.161 0.775 0.322 0.453 0.33 0.844
  0.468 0.284 0.706 0.936 0.813 0.314 0.353 0.69 0.008 0.476 0.015 0.713 0.729 0.951 0.499 0.552
  0.675 0.399
in LogitsLength int64 [4] 4 1 3 3
out Loss float32 [4, 1] 6.64871 1.856053 0 0
out WarpCTCGrad float32 [4, 4, 8] 0.14024192 0.08924354 0.13815399 0.17527723 -0.72261554 0.13194287
  0.08523132 -0.037475124 0.1057103 0.109038636 -0.84371173 0.158809 0.13833833 0.109914444
  0.13723603 0.084665 0*16 0.121718146 0.14971119 0.10602852 0.18711212 -0.20412788 -0.43742728
  0.08491987 -0.007934406 0*24 -0.09011929 0.115277566 0.086777106 0.109217666 0.093722925
  -0.46217182 0.20020519 -0.052909747 0*24 -0.77547026 0.12580986 0.12099772 0.14544117 0.08307732
  0.14778695 0.1317323 0.020624742 0*24

example float64 4x4x8, blank 7
attr blank INT 7
in Label int32 [4, 4] 4 5 0 6 2 1 6 0 4 3 2 0 3 0 5 3
in LabelLength int64 [4] 3 1 4 4
in Logits float64 [4, 4, 8] 0.759 0.307 0.744 0.982 0.184 0.698 0.261 0.897 0.345 0.376 0.736 0.752
  0.614 0.384 0.606 0.123 0.291 0.031 0.905 0.414 0.038 0.859 0.959 0.483 0.621 0.575 0.176 0.568
  0.529 0.828 0.629 0.268 0.437 0.644 0.299 0.867 0.153 0.506 0.077 0.491 0.851 0.445 0.89 0.514
  0.199 0.652 0.966 0.805 0.522 0.276 0.836 0.943 0.054 0.821 0.107 0.023 0.56 0.069 0.192 0.43 0.79
  0.046 0.1 0.545 0.23 0.422 0.138 0.368 0.215 0.361 0.974 0.928 0.146 0.874 0.245 0.913 0.46 0.338
  0.13 0.061 0.207 0.169 0.391 0.667 0.253 0.583 0.407 0.092 0.591 0.537 0.92 0.115 0.767 0.084
  0.721 0.66 0.882 0.637 0.598 0.782 0.222 0.798 0.683 0.238 0.161 0.775 0.322 0.453 0.33 0.844
  0.468 0.284 0.706 0.936 0.813 0.314 0.353 0.69 0.008 0.476 0.015 0.713 0.729 0.951 0.499 0.552
  0.675 0.399
in LogitsLength int64 [4] 4 1 3 3
out Loss float64 [4, 1] 6.648710004290921 1.8560530147394985 0 0
out WarpCTCGrad float64 [4, 4, 8] 0.14024192591126775 0.08924353432391195 0.13815399564811798
  0.17527724430426 -0.7226156179363277 0.13194286308826605 0.08523132013354326 -0.0374752654730382
  0.1057102926545302 0.10903863448474986 -0.8437117178695146 0.15880900666562706 0.1383383179438775
  0.1099144421202006 0.13723602644520289 0.08466499755532651 0*16 0.12171813567768834
  0.1497111855532017 0.10602850875057189 0.1871121198227969 -0.20412833562474586
  -0.43742708796789437 0.0849198617158249 -0.007934387927442804 0*24 -0.09011931216958881
  0.1152775645998455 0.08677710551372748 0.10921766586122876 0.093722925222386 -0.46217140107666754
  0.20020519698546965 -0.05290974493640094 0*24 -0.7754701188682668 0.12580987030396754
  0.12099773198245323 0.1454411884016742 0.08307732507197942 0.14778696357449336 0.1317322958410955
  0.020624743692603933 0*24
)")
