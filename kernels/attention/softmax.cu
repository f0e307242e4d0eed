// softmax and log_softmax along an axis, and their gradients. A group computes a line along the
// axis.
#include <cmath>

#include "core/kernel_context.h"
#include "device/cuda/grid/kernel_table.h"
#include "device/cuda/grid/lines.h"
#include "device/cuda/grid/reduce.h"

namespace heddle::HEDDLE_GRID {
namespace {

template <typename T>
struct SoftmaxBody {
  Lines lines;
  RealIn<T> x;
  RealOut<T> y;
  bool log;
  HEDDLE_BODY void operator()(Group& group, int64_t line) const {
    const RealIn<T> from = x + lines.Begin(line);
    const RealOut<T> to = y + lines.Begin(line);
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

template <typename T>
struct SoftmaxGradBody {
  Lines lines;
  RealIn<T> y, dy;
  RealOut<T> dx;
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
  return VisitReal(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return Groups(queue, lines.count, lines.n,
                  SoftmaxBody<T>{lines, ReadOf<T>(x), WriteOf<T>(ctx.Out("Out")), kLog});
  });
}
template <bool kLog>
Status SoftmaxGrad(Queue& queue, KernelContext& ctx) {
  const Tensor& y = ctx.In("Out");
  HEDDLE_ASSIGN_OR_RETURN(const Lines lines, LinesOf(y.shape(), ctx.Int("axis")));
  if (y.numel() == 0) return Status::Ok();
  return VisitReal(y.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return Groups(queue, lines.count, lines.n,
                  SoftmaxGradBody<T>{lines, ReadOf<T>(y), ReadOf<T>(ctx.In("Out@GRAD")),
                                     WriteOf<T>(ctx.Out("X@GRAD")), kLog});
  });
}

}  // namespace
}  // namespace heddle::HEDDLE_GRID

HEDDLE_CUDA_KERNEL(softmax) { kernel = {Softmax<false>, nullptr, kReals}; }
HEDDLE_CUDA_KERNEL(log_softmax) { kernel = {Softmax<true>, nullptr, kReals}; }
HEDDLE_CUDA_KERNEL(softmax_grad) { kernel = {SoftmaxGrad<false>, nullptr, kReals}; }
HEDDLE_CUDA_KERNEL(log_softmax_grad) { kernel = {SoftmaxGrad<true>, nullptr, kReals}; }
