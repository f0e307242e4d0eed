// arg_max and arg_min: a group computes a line along the axis.
#include "core/kernel_context.h"
#include "device/cuda/grid/extremes.h"
#include "device/cuda/grid/grid.h"
#include "device/cuda/grid/in_float.h"
#include "device/cuda/grid/kernel_table.h"
#include "device/cuda/grid/lines.h"

namespace heddle::HEDDLE_GRID {
namespace {

template <typename Out>
struct ExtremeBody {
  const float* x;
  Out* out;
  Lines lines;
  float sign;
  HEDDLE_BODY void operator()(Group& group, int64_t line) const {
    const float* const from = x + lines.Begin(line);
    const BetterFound better{sign};
    Found best{0, -1};
    for (int64_t i = group.rank(); i < lines.n; i += group.size())
      best = better(best, Found{from[i * lines.inner], i});
    best = group.Reduce(best, better);
    if (group.rank() == 0) out[line] = static_cast<Out>(best.at);
  }
};

template <int kSign>
Status ArgExtreme(Queue& queue, KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  Tensor& out = ctx.Out("Out");
  HEDDLE_ASSIGN_OR_RETURN(const Lines l, LinesOf(x.shape(), ctx.Int("axis"), ctx.Bool("flatten")));
  if (out.numel() == 0) return Status::Ok();
  if (l.n == 0) return InvalidArgument("the axis of X ", x.shape().ToString(), " is empty");
  if (out.dtype() == DType::kI32)
    return Groups(queue, l.count, l.n,
                  ExtremeBody<int32_t>{x.data<float>(), out.mutable_data<int32_t>(), l, kSign});
  return Groups(queue, l.count, l.n,
                ExtremeBody<int64_t>{x.data<float>(), out.mutable_data<int64_t>(), l, kSign});
}

bool CoversArg(const CallView& call) {
  return call.Str("nan") == "loses" && !call.Bool("last") && !call.HasIn("AxisTensor") &&
         call.Int("dtype") != 1;
}

}  // namespace
}  // namespace heddle::HEDDLE_GRID

HEDDLE_CUDA_KERNEL(arg_max) { kernel = {InFloat<ArgExtreme<1>>, CoversArg, kReals}; }
HEDDLE_CUDA_KERNEL(arg_min) { kernel = {InFloat<ArgExtreme<-1>>, CoversArg, kReals}; }
