// Cross entropy with the softmax before it, and the gradient. A group computes a line along the
// axis.
#include <cmath>

#include "core/kernel_context.h"
#include "device/cuda/grid/in_float.h"
#include "device/cuda/grid/kernel_table.h"
#include "device/cuda/grid/lines.h"
#include "device/cuda/grid/real.h"
#include "device/cuda/grid/reduce.h"

namespace heddle::HEDDLE_GRID {
namespace {

constexpr float kLowest = -64;  // of x - max: no probability becomes 0

// Labels are a class for each line, or as many weights as there are logits.
struct Labels {
  const float* soft = nullptr;
  const int64_t* wide = nullptr;
  const int32_t* narrow = nullptr;
  int64_t ignore = -100;
  HEDDLE_BODY int64_t Hard(int64_t line) const {
    return wide != nullptr ? wide[line] : narrow[line];
  }
};
Labels LabelsOf(const OpContext& ctx, const Tensor& t) {
  Labels l;
  l.ignore = ctx.Int("ignore_index");
  if (ctx.Bool("soft_label"))
    l.soft = t.data<float>();
  else if (t.dtype() == DType::kI64)
    l.wide = t.data<int64_t>();
  else
    l.narrow = t.data<int32_t>();
  return l;
}

struct CrossEntropyBody {
  Lines lines;
  const float* x;
  Labels labels;
  float* probability;
  float* loss;
  HEDDLE_BODY void operator()(Group& group, int64_t line) const {
    const int64_t begin = lines.Begin(line), n = lines.n, step = lines.inner;
    const int64_t hard = labels.soft == nullptr ? labels.Hard(line) : -1;
    const bool counts = hard != labels.ignore && hard >= 0 && hard < n;
    float top = -INFINITY, sum = 0, weight = 0, mixed = 0;
    for (int64_t i = group.rank(); i < n; i += group.size())
      top = MaxOp()(top, x[begin + i * step]);
    top = group.Reduce(top, MaxOp());
    for (int64_t i = group.rank(); i < n; i += group.size()) {
      const float d = fmaxf(x[begin + i * step] - top, kLowest);
      sum += expf(d);
      if (labels.soft != nullptr) {
        weight += labels.soft[begin + i * step];
        mixed += labels.soft[begin + i * step] * d;
      } else if (i == hard) {
        mixed += d;
      }
    }
    sum = group.Reduce(sum, SumOp());
    weight = labels.soft != nullptr ? group.Reduce(weight, SumOp()) : counts ? 1.0f : 0.0f;
    mixed = group.Reduce(mixed, SumOp());
    for (int64_t i = group.rank(); i < n; i += group.size()) {
      const int64_t at = begin + i * step;
      probability[at] = expf(fmaxf(x[at] - top, kLowest)) / sum;
    }
    if (group.rank() == 0)
      loss[line] = labels.soft == nullptr && !counts ? 0 : weight * logf(sum) - mixed;
  }
};

struct CrossEntropyGradBody {
  Lines lines;
  const float* probability;
  Labels labels;
  const float* dloss;
  float* dx;
  HEDDLE_BODY void operator()(int64_t at) const {
    const int64_t step = lines.inner, i = at / step % lines.n;
    const int64_t line = at / step / lines.n * step + at % step;
    if (labels.soft != nullptr) {
      dx[at] = dloss[line] * (probability[at] - labels.soft[at]);
      return;
    }
    const int64_t hard = labels.Hard(line);
    const float d = hard == labels.ignore ? 0.0f : dloss[line];
    dx[at] = d == 0 ? 0.0f : probability[at] * d - (i == hard ? d : 0.0f);
  }
};

Status CrossEntropy(Queue& queue, KernelContext& ctx) {
  const Tensor& x = ctx.In("Logits");
  HEDDLE_ASSIGN_OR_RETURN(const Lines lines, LinesOf(x.shape(), ctx.Int("axis")));
  if (x.numel() == 0) return Status::Ok();
  Scratch scratch(queue);
  Tensor* const out = ctx.OutOpt("Softmax");
  if (out == nullptr) HEDDLE_RETURN_IF_ERROR(scratch.Take(x.numel()));
  return Groups(queue, lines.count, lines.n,
                CrossEntropyBody{lines, x.data<float>(), LabelsOf(ctx, ctx.In("Label")),
                                 out != nullptr ? out->mutable_data<float>() : scratch.data(),
                                 ctx.Out("Loss").mutable_data<float>()});
}
Status CrossEntropyGrad(Queue& queue, KernelContext& ctx) {
  const Tensor& p = ctx.In("Softmax");
  HEDDLE_ASSIGN_OR_RETURN(const Lines lines, LinesOf(p.shape(), ctx.Int("axis")));
  return Each(queue, p.numel(),
              CrossEntropyGradBody{lines, p.data<float>(), LabelsOf(ctx, ctx.In("Label")),
                                   ctx.In("Loss@GRAD").data<float>(),
                                   ctx.Out("Logits@GRAD").mutable_data<float>()});
}
// The operator computes the softmax itself, and the labels fit.
bool CoversCrossEntropy(const CallView& call) {
  const DType label = call.InDType("Label");
  const bool soft = call.Bool("soft_label");
  return call.Bool("use_softmax") &&
         (soft ? IsReal(label) : label == DType::kI64 || label == DType::kI32);
}

}  // namespace
}  // namespace heddle::HEDDLE_GRID

HEDDLE_CUDA_KERNEL(softmax_with_cross_entropy) {
  kernel = {InFloat<CrossEntropy>, CoversCrossEntropy, kReals};
}
HEDDLE_CUDA_KERNEL(softmax_with_cross_entropy_grad) {
  kernel = {InFloat<CrossEntropyGrad>, CoversCrossEntropy, kReals};
}
