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
