// softmax and log_softmax along an axis, and their gradients. A group computes a line along the
// axis.
#include <cmath>

#include "device/cuda/grid/kernel_table.h"
#include "device/cuda/grid/lines.h"
#include "device/cuda/grid/reduce.h"

namespace heddle::HEDDLE_GRID {
namespace {

struct SoftmaxBody {
  Lines lines;
  const float* x;
  float* y;
  bool log;
  HEDDLE_BODY void operator()(Group& group, int64_t line) const {
    const float* const from = x + lines.Begin(line);
    float* const to = y + lines.Begin(line);
    const int64_t n = lines.n, step = lines.inner;
    float top = -INFINITY, sum = 0;
    for (int64_t i = group.rank(); i < n; i += group.size()) top = MaxOp()(top, from[i * step]);
    top = group.Reduce(top, MaxOp());
    for (int64_t i = group.rank(); i < n; i += group.size()) sum += expf(from[i * step] - top);
    sum = group.Reduce(sum, SumOp());
    const float factor = log ? logf(sum) : 1.0f / sum;
    for (int64_t i = group.rank(); i < n; i += group.size()) {
      const float d = from[i * step] - top;
      to[i * step] = log ? d - factor : expf(d) * factor;
    }
  }
};

struct SoftmaxGradBody {
  Lines lines;
  const float* y;
  const float* dy;
  float* dx;
  bool log;
  HEDDLE_BODY void operator()(Group& group, int64_t line) const {
    const int64_t begin = lines.Begin(line), n = lines.n, step = lines.inner;
    float sum = 0;
    for (int64_t i = group.rank(); i < n; i += group.size()) {
      const int64_t at = begin + i * step;
      sum += log ? dy[at] : y[at] * dy[at];
    }
    sum = group.Reduce(sum, SumOp());
    for (int64_t i = group.rank(); i < n; i += group.size()) {
      const int64_t at = begin + i * step;
      dx[at] = log ? dy[at] - expf(y[at]) * sum : y[at] * (dy[at] - sum);
    }
  }
};

template <bool kLog>
Status Softmax(Queue& queue, KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  HEDDLE_ASSIGN_OR_RETURN(const Lines lines, LinesOf(x.shape(), ctx.Int("axis")));
  if (x.numel() == 0) return Status::Ok();
  return Groups(queue, lines.count, lines.n,
                SoftmaxBody{lines, x.data<float>(), ctx.Out("Out").mutable_data<float>(), kLog});
}
template <bool kLog>
Status SoftmaxGrad(Queue& queue, KernelContext& ctx) {
  const Tensor& y = ctx.In("Out");
  HEDDLE_ASSIGN_OR_RETURN(const Lines lines, LinesOf(y.shape(), ctx.Int("axis")));
  if (y.numel() == 0) return Status::Ok();
  return Groups(queue, lines.count, lines.n,
                SoftmaxGradBody{lines, y.data<float>(), ctx.In("Out@GRAD").data<float>(),
                                ctx.Out("X@GRAD").mutable_data<float>(), kLog});
}

}  // namespace
}  // namespace heddle::HEDDLE_GRID

HEDDLE_CUDA_KERNEL(softmax) { kernel = {Softmax<false>}; }
HEDDLE_CUDA_KERNEL(log_softmax) { kernel = {Softmax<true>}; }
HEDDLE_CUDA_KERNEL(softmax_grad) { kernel = {SoftmaxGrad<false>}; }
HEDDLE_CUDA_KERNEL(log_softmax_grad) { kernel = {SoftmaxGrad<true>}; }
