// Losses of classes: the negative logarithm of each target's probability.
#include <cmath>
#include <vector>

#include "core/interrupts.h"
#include "kernels/base/check.h"
#include "kernels/base/index_args.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

struct LossSlots {
  Key input, target, weight, loss;
};
constexpr LossSlots kNll{"input", "target", "weight", "loss"};
constexpr LossSlots kEntropy{"scores", "labels", "weights", "output"};

// [N, C, …] against [N, …].
Status LikelihoodLossShape(ShapeContext& ctx, const LossSlots& s) {
  const bool log_prob = ctx.def().FindOutput("log_prob") >= 0 && ctx.HasOut("log_prob");
  if (!AllStatic(ctx, {s.input, s.target, s.weight})) {
    ctx.SetOut(s.loss, Shape::Unknown(), ctx.InDType(s.input));
    if (log_prob) ctx.SetOut("log_prob", Shape::Unknown(), ctx.InDType(s.input));
    return ctx.Defer();
  }
  const Shape &x = ctx.InShape(s.input), &t = ctx.InShape(s.target);
  if (x.rank() < 2)
    return InvalidArgument(s.input.name, " has shape ", x.ToString(), ", expected [N, C, …]");
  Shape expected = x;
  expected.erase(1);
  if (!(t == expected))
    return InvalidArgument(s.target.name, " has shape ", t.ToString(), ", expected ",
                           expected.ToString());
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(ctx.InDType(s.target), s.target.name));
  if (ctx.HasIn(s.weight) &&
      !(ctx.InShape(s.weight).rank() == 1 && ctx.InShape(s.weight)[0] == x[1]))
    return InvalidArgument(s.weight.name, " has shape ", ctx.InShape(s.weight).ToString(),
                           ", expected [", x[1], "]");
  const std::string& reduction = ctx.Str("reduction");
  if (reduction != "none" && reduction != "mean" && reduction != "sum")
    return InvalidArgument("reduction is '", reduction, "', expected none, mean or sum");
  ctx.SetOut(s.loss, reduction == "none" ? expected : Shape{}, ctx.InDType(s.input));
  if (log_prob) ctx.SetOut("log_prob", x, ctx.InDType(s.input));
  return Status::Ok();
}

// The losses of logarithms of probabilities.
template <typename T>
Status Losses(KernelContext& ctx, const LossSlots& s, const T* logs) {
  const Shape& x = ctx.In(s.input).shape();
  const Tensor &target = ctx.In(s.target), *weight = ctx.InOpt(s.weight);
  HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {weight}));
  const int64_t classes = x[1], size = x.Product(2, x.rank());
  const bool ignores = ctx.Bool("has_ignore_index");
  const int64_t ignored = ctx.Int("ignore_index");
  const std::string& reduction = ctx.Str("reduction");
  T* to = ctx.Out(s.loss).template mutable_data<T>();
  double sum = 0, weights = 0;
  for (const int64_t i : Watched(target.numel())) {
    const int64_t c = IntAt(target, i);
    double w = 0, loss = 0;
    if (!ignores || c != ignored) {
      if (c < 0 || c >= classes)
        return OutOfRange(s.target.name, " holds ", c, ", expected 0 to ", classes - 1);
      w = weight == nullptr ? 1 : static_cast<double>(weight->data<T>()[c]);
      loss = -w * static_cast<double>(logs[(i / size * classes + c) * size + i % size]);
    }
    if (reduction == "none") to[i] = static_cast<T>(loss);
    sum += loss;
    weights += w;
  }
  if (reduction == "sum") *to = static_cast<T>(sum);
  if (reduction == "mean") *to = static_cast<T>(sum / weights);
  return Status::Ok();
}

template <typename T>
struct OnnxNll {
  static Status Run(KernelContext& ctx) {
    return Losses<T>(ctx, kNll, ctx.In("input").template data<T>());
  }
};

template <typename T>
struct OnnxEntropy {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("scores");
    Tensor* kept = ctx.OutOpt("log_prob");
    Tensor own;
    if (kept == nullptr) own = ctx.Scratch(kDTypeOf<T>, x.shape());
    T* logs = (kept == nullptr ? own : *kept).template mutable_data<T>();
    const AxisLines lines = AxisLines::Of(x.shape(), 1);
    const T* from = x.data<T>();
    lines.ForEach(ctx, 16, [&](int64_t line) {
      const int64_t begin = lines.Begin(line);
      T most = -std::numeric_limits<T>::infinity();
      for (const auto part : Stretches(lines.n))
        for (int64_t i = part.begin; i < part.end; ++i)
          most = std::max(most, from[begin + i * lines.inner]);
      double sum = 0;
      for (const auto part : Stretches(lines.n))
        for (int64_t i = part.begin; i < part.end; ++i)
          sum += std::exp(static_cast<double>(from[begin + i * lines.inner] - most));
      const T log = static_cast<T>(std::log(sum));
      for (const auto part : Stretches(lines.n))
        for (int64_t i = part.begin; i < part.end; ++i) {
          const int64_t at = begin + i * lines.inner;
          logs[at] = from[at] - most - log;
        }
    });
    return Losses<T>(ctx, kEntropy, logs);
  }
};

void LossAttrs(OpDef& op) {
  op.Attr("reduction", "mean").Attr("has_ignore_index", false).Attr("ignore_index", 0);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_negative_log_likelihood_loss) {
  op.Doc("minus the weighted logarithms of probabilities that targets name");
  op.Input("input").Input("target").Input("weight", kOptional).Output("loss");
  LossAttrs(op);
  op.InferShape([](ShapeContext& ctx) { return LikelihoodLossShape(ctx, kNll); });
  op.Kernels<OnnxNll, float, double>().Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(onnx_softmax_cross_entropy_loss) {
  op.Doc("the negative log likelihood of the softmax of scores");
  op.Input("scores").Input("labels").Input("weights", kOptional);
  op.Output("output").Output("log_prob", kOptional);
  LossAttrs(op);
  op.InferShape([](ShapeContext& ctx) { return LikelihoodLossShape(ctx, kEntropy); });
  op.Kernels<OnnxEntropy, float, double>().Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
