// The K greatest or smallest elements along an axis.
#include <numeric>
#include <vector>

#include "core/interrupts.h"
#include "kernels/base/call_heap.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

Status OnnxTopKShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank() || !Known(ctx, "K")) return ctx.Defer();
  if (x.rank() == 0) return InvalidArgument("X is a scalar, expected at least one dimension");
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), x.rank()));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t k, IntIn(ctx, "K", 0));
  if (k < 0 || (x[axis] >= 0 && k > x[axis]))
    return InvalidArgument("K is ", k, ", expected at most the ", x[axis], " elements of axis ",
                           axis);
  Shape out = x;
  out[axis] = k;
  if (ctx.HasOut("Values")) ctx.SetOut("Values", out, ctx.InDType("X"));
  if (ctx.HasOut("Indices")) ctx.SetOut("Indices", out, DType::kI64);
  return Status::Ok();
}

// Equal elements stay in the order of their positions; NaN counts as the greatest value.
template <typename T>
struct OnnxTopK {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const AxisLines lines, AxisLines::At(x.shape(), ctx.Int("axis")));
    HEDDLE_ASSIGN_OR_RETURN(const int64_t k, IntIn(ctx, "K", 0));
    const bool largest = ctx.Int("largest") != 0;
    const T* from = x.data<T>();
    Tensor *values = ctx.OutOpt("Values"), *indices = ctx.OutOpt("Indices");
    T* v = values == nullptr ? nullptr : values->mutable_data<T>();
    int64_t* at = indices == nullptr ? nullptr : indices->mutable_data<int64_t>();
    ctx.ParallelFor(lines.lines(), 1 + (1 << 13) / (1 + lines.n), [&](int64_t begin, int64_t end) {
      CallHeap heap(ctx);
      std::pmr::vector<int64_t> order(static_cast<size_t>(lines.n), &heap);
      for (int64_t line = begin; line < end; ++line) {
        const T* in = from + lines.Begin(line);
        std::iota(order.begin(), order.end(), int64_t{0});
        const auto before = [&](int64_t a, int64_t b) {
          const T p = in[a * lines.inner], q = in[b * lines.inner];
          if (largest ? Greater(p, q) : Less(p, q)) return true;
          return (largest ? Greater(q, p) : Less(q, p)) ? false : a < b;
        };
        LookCount looks;
        std::partial_sort(order.begin(), order.begin() + k, order.end(), looks.In(before));
        const int64_t out = line / lines.inner * k * lines.inner + line % lines.inner;
        for (int64_t i = 0; i < k; ++i) {
          const int64_t pick = order[static_cast<size_t>(i)];
          if (v != nullptr) v[out + i * lines.inner] = in[pick * lines.inner];
          if (at != nullptr) at[out + i * lines.inner] = pick;
        }
      }
    });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_top_k) {
  op.Doc("the K greatest or smallest elements along an axis, in order, and their positions");
  op.Input("X").Input("K", kShapeValue).Output("Values", kOptional).Output("Indices", kOptional);
  op.Attr("axis", -1).Attr("largest", 1).Attr("sorted", 1).InferShape(OnnxTopKShape);
  op.Kernels<OnnxTopK, float, double, int8_t, uint8_t, int16_t, int32_t, int64_t>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
