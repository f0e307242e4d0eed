// Running sums: a thread computes a line along the axis.
#include "core/kernel_context.h"
#include "device/cuda/grid/grid.h"
#include "device/cuda/grid/kernel_table.h"
#include "device/cuda/grid/lines.h"
#include "device/cuda/grid/real.h"

namespace heddle::HEDDLE_GRID {
namespace {

template <typename T>
struct CumsumBody {
  const T* x;
  T* out;
  Lines lines;
  bool reverse, exclusive;
  HEDDLE_BODY void operator()(int64_t line) const {
    const int64_t begin = lines.Begin(line);
    ComputeType<T> sum = 0;
    for (int64_t i = 0; i < lines.n; ++i) {
      const int64_t at = begin + (reverse ? lines.n - 1 - i : i) * lines.inner;
      const ComputeType<T> next = sum + ValueOf(x[at]);
      Put(exclusive ? sum : next, out + at);
      sum = next;
    }
  }
};
template <typename T>
Status CumsumAs(Queue& queue, const Lines& l, const Tensor& x, Tensor& out, bool reverse,
                bool exclusive) {
  return Each(queue, l.count,
              CumsumBody<T>{x.data<T>(), out.mutable_data<T>(), l, reverse, exclusive});
}
Status Cumsum(Queue& queue, KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  Tensor& out = ctx.Out("Out");
  HEDDLE_ASSIGN_OR_RETURN(const Lines l, LinesOf(x.shape(), ctx.Int("axis"), ctx.Bool("flatten")));
  const bool reverse = ctx.Bool("reverse");
  const bool exclusive = ctx.Bool("exclusive") && (x.numel() != 1 || !ctx.Bool("copies_single"));
  switch (x.dtype()) {
    case DType::kF32:
      return CumsumAs<float>(queue, l, x, out, reverse, exclusive);
    case DType::kF16:
      return CumsumAs<float16>(queue, l, x, out, reverse, exclusive);
    case DType::kBF16:
      return CumsumAs<bfloat16>(queue, l, x, out, reverse, exclusive);
    case DType::kI32:
      return CumsumAs<int32_t>(queue, l, x, out, reverse, exclusive);
    case DType::kI64:
      return CumsumAs<int64_t>(queue, l, x, out, reverse, exclusive);
    default:
      return Unimplemented("cumsum has no CUDA kernel for ", Name(x.dtype()));
  }
}

bool CoversCumsum(const CallView& call) { return !call.HasIn("AxisTensor"); }

}  // namespace
}  // namespace heddle::HEDDLE_GRID

HEDDLE_CUDA_KERNEL(cumsum) { kernel = {Cumsum, CoversCumsum, kNumbers}; }
