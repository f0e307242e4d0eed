// Connectionist temporal classification: loss with its gradient, and the best path.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/base/index_args.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

double LogAdd(double a, double b) {
  if (a == kNever) return b;
  if (b == kNever) return a;
  return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
}

// Labels with blanks around each.
struct Path {
  std::vector<int64_t> labels;
  bool merges;
  int64_t blank;

  // Whether state s may follow itself: a label that is said again is another one unless it merges.
  bool Stays(size_t s) const { return merges || labels[s] == blank; }
  // Whether state s may follow state s - 2.
  bool Skips(size_t s) const {
    return s >= 2 && labels[s] != blank && (!merges || labels[s] != labels[s - 2]);
  }
};

// Adds the gradient of one sequence to `grad`, rows `step` apart; returns its loss. `log_p`: of
// each step and class.
double CtcLossOf(const Path& path, const std::vector<double>& log_p, int64_t steps, int64_t classes,
                 float* grad, int64_t step) {
  const size_t n = path.labels.size();
  const auto at = [&](int64_t t, size_t s) {
    return log_p[static_cast<size_t>(t * classes + path.labels[s])];
  };
  const auto cells = static_cast<size_t>(steps) * n;
  std::vector<double> alpha(cells, kNever), beta(cells, kNever);
  const auto cell = [n](int64_t t, size_t s) { return static_cast<size_t>(t) * n + s; };
  for (size_t s = 0; s < std::min<size_t>(2, n); ++s) alpha[cell(0, s)] = at(0, s);
  for (const int64_t t : Watched(1, steps))
    for (size_t s = 0; s < n; ++s) {
      double sum = path.Stays(s) ? alpha[cell(t - 1, s)] : kNever;
      if (s >= 1) sum = LogAdd(sum, alpha[cell(t - 1, s - 1)]);
      if (path.Skips(s)) sum = LogAdd(sum, alpha[cell(t - 1, s - 2)]);
      alpha[cell(t, s)] = sum + at(t, s);
    }
  for (size_t s = n - std::min<size_t>(2, n); s < n; ++s) beta[cell(steps - 1, s)] = 0;
  for (int64_t t = steps - 2; t >= 0; --t)
    for (size_t s = 0; s < n; ++s) {
      double sum = path.Stays(s) ? beta[cell(t + 1, s)] + at(t + 1, s) : kNever;
      if (s + 1 < n) sum = LogAdd(sum, beta[cell(t + 1, s + 1)] + at(t + 1, s + 1));
      if (s + 2 < n && path.Skips(s + 2))
        sum = LogAdd(sum, beta[cell(t + 1, s + 2)] + at(t + 1, s + 2));
      beta[cell(t, s)] = sum;
    }
  double total = kNever;
  for (size_t s = n - std::min<size_t>(2, n); s < n; ++s)
    total = LogAdd(total, alpha[cell(steps - 1, s)]);
  if (total == kNever) {  // no path: the gradient of the sum in softmax is left
    for (const int64_t t : Watched(steps))
      for (int64_t c = 0; c < classes; ++c)
        grad[t * step + c] =
            static_cast<float>(std::exp(log_p[static_cast<size_t>(t * classes + c)]));
    return std::numeric_limits<double>::infinity();
  }
  for (const int64_t t : Watched(steps)) {
    std::vector<double> mass(static_cast<size_t>(classes), kNever);
    for (size_t s = 0; s < n; ++s) {
      double& m = mass[static_cast<size_t>(path.labels[s])];
      m = LogAdd(m, alpha[cell(t, s)] + beta[cell(t, s)]);
    }
    for (int64_t c = 0; c < classes; ++c)
      grad[t * step + c] =
          static_cast<float>(std::exp(log_p[static_cast<size_t>(t * classes + c)]) -
                             std::exp(mass[static_cast<size_t>(c)] - total));
  }
  return -total;
}

Status CtcLossShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("inputs");
  if (!x.known_rank()) return ctx.Defer();
  if (x.rank() != 3)
    return InvalidArgument("inputs has shape ", x.ToString(), ", expected [steps, batch, classes]");
  ctx.SetOut("loss", {x[1]}, ctx.InDType("inputs"));
  ctx.SetOut("gradient", x, ctx.InDType("inputs"));
  return Status::Ok();
}

Status Loss(KernelContext& ctx) {
  const Tensor &x = ctx.In("inputs"), &indices = ctx.In("labels_indices");
  const Tensor &values = ctx.In("labels_values"), &lengths = ctx.In("sequence_length");
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(indices.dtype(), "labels_indices"));
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(values.dtype(), "labels_values"));
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(lengths.dtype(), "sequence_length"));
  const int64_t steps = x.dim(0), batch = x.dim(1), classes = x.dim(2), blank = classes - 1;
  if (indices.rank() != 2 || indices.dim(1) != 2 || indices.dim(0) != values.numel() ||
      lengths.numel() != batch || classes < 1)
    return InvalidArgument("labels_indices has shape ", indices.shape().ToString(),
                           ", labels_values ", values.shape().ToString(), " and sequence_length ",
                           lengths.shape().ToString(), " for inputs ", x.shape().ToString());
  std::vector<std::vector<int64_t>> labels(static_cast<size_t>(batch));
  for (const int64_t i : Watched(values.numel())) {
    const int64_t b = IntAt(indices, 2 * i), v = IntAt(values, i);
    if (b < 0 || b >= batch || v < 0 || v >= blank)
      return OutOfRange("labels hold class ", v, " of sequence ", b, ", expected below ", blank,
                        " and ", batch);
    auto& mine = labels[static_cast<size_t>(b)];
    if (ctx.Bool("preprocess_collapse_repeated") && !mine.empty() && mine.back() == v) continue;
    mine.push_back(v);
  }
  Tensor& gradient = ctx.Out("gradient");
  ZeroBytes(ctx, gradient.mutable_raw(), gradient.bytes());
  float *loss = ctx.Out("loss").mutable_data<float>(), *grad = gradient.mutable_data<float>();
  for (const int64_t b : Watched(batch)) {
    const int64_t n = IntAt(lengths, b);
    const auto& mine = labels[static_cast<size_t>(b)];
    if (n < 0 || n > steps)
      return OutOfRange("sequence_length holds ", n, ", expected 0 to ", steps);
    loss[b] = 0;
    if (n == 0) continue;
    Path path{{blank}, ctx.Bool("ctc_merge_repeated"), blank};
    for (const int64_t label : mine) {
      path.labels.push_back(label);
      path.labels.push_back(blank);
    }
    if (std::ssize(mine) > n) {
      if (ctx.Bool("ignore_longer_outputs_than_inputs")) continue;
      return InvalidArgument("sequence ", b, " has ", n, " steps for ", mine.size(), " labels");
    }
    std::vector<double> log_p(static_cast<size_t>(n * classes));
    for (int64_t t = 0; t < n; ++t) {
      const float* row = x.data<float>() + (t * batch + b) * classes;
      const double most = *std::max_element(row, row + classes);
      double sum = 0;
      for (int64_t c = 0; c < classes; ++c) sum += std::exp(row[c] - most);
      for (int64_t c = 0; c < classes; ++c)
        log_p[static_cast<size_t>(t * classes + c)] = row[c] - most - std::log(sum);
    }
    loss[b] =
        static_cast<float>(CtcLossOf(path, log_p, n, classes, grad + b * classes, batch * classes));
  }
  return Status::Ok();
}

Status Decode(KernelContext& ctx) {
  const Tensor &x = ctx.In("inputs"), &lengths = ctx.In("sequence_length");
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(lengths.dtype(), "sequence_length"));
  if (x.rank() != 3 || lengths.numel() != x.dim(1) || x.dim(2) < 1)
    return InvalidArgument("inputs has shape ", x.shape().ToString(), " and sequence_length ",
                           lengths.shape().ToString());
  const int64_t batch = x.dim(1), classes = x.dim(2);
  int64_t blank = ctx.Int("blank_index");
  if (blank < 0) blank += classes;
  if (blank < 0 || blank >= classes)
    return InvalidArgument("blank_index is ", ctx.Int("blank_index"), " of ", classes, " classes");
  Ints places, found;
  int64_t longest = 0;
  float* score = ctx.Alloc("log_probability", DType::kF32, Shape{batch, 1}).mutable_data<float>();
  for (const int64_t b : Watched(batch)) {
    const int64_t n = IntAt(lengths, b);
    if (n < 0 || n > x.dim(0))
      return OutOfRange("sequence_length holds ", n, ", expected 0 to ", x.dim(0));
    int64_t before = -1, count = 0;
    score[b] = 0;
    for (int64_t t = 0; t < n; ++t) {
      const float* row = x.data<float>() + (t * batch + b) * classes;
      const int64_t best = std::max_element(row, row + classes) - row;
      score[b] -= row[best];
      if (best != blank && !(ctx.Bool("merge_repeated") && best == before)) {
        places.push_back(b);
        places.push_back(count++);
        found.push_back(best);
      }
      before = best;
    }
    longest = std::max(longest, count);
  }
  const auto n = static_cast<int64_t>(found.size());
  int64_t* to = ctx.Alloc("decoded_indices", DType::kI64, Shape{n, 2}).mutable_data<int64_t>();
  std::copy(places.begin(), places.end(), to);
  to = ctx.Alloc("decoded_values", DType::kI64, Shape{n}).mutable_data<int64_t>();
  std::copy(found.begin(), found.end(), to);
  to = ctx.Alloc("decoded_shape", DType::kI64, Shape{2}).mutable_data<int64_t>();
  to[0] = batch;
  to[1] = longest;
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(ctc_loss) {
  op.Doc("loss of label sequences against logits of classes, the last of which is blank");
  op.Input("inputs").Input("labels_indices").Input("labels_values").Input("sequence_length");
  op.Output("loss").Output("gradient").Attr("preprocess_collapse_repeated", false);
  op.Attr("ctc_merge_repeated", true).Attr("ignore_longer_outputs_than_inputs", false);
  op.InferShape(CtcLossShape).KernelKey("inputs").Kernel(DType::kF32, Loss);
}
HEDDLE_OP(ctc_greedy_decoder) {
  op.Doc("the classes of the best path, without blanks and repetitions").Input("inputs");
  op.Input("sequence_length").Output("decoded_indices").Output("decoded_values");
  op.Output("decoded_shape").Output("log_probability").Attr("merge_repeated", false);
  op.Attr("blank_index", -1).KernelKey("inputs").Kernel(DType::kF32, Decode);
}
