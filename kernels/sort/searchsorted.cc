// searchsorted: positions of values in sorted rows.
#include <algorithm>

#include "core/error.h"
#include "kernels/base/convert.h"

namespace heddle {
namespace {

// The position where a value would go into its sorted row: before equal ones, or behind them.
template <typename T, typename Index>
void Place(const KernelContext& ctx, const Tensor& sorted, const Tensor& values, Tensor& out) {
  const int64_t n = sorted.rank() == 0 ? 1 : sorted.dim(-1);
  const int64_t per_row = sorted.rank() <= 1 ? values.numel() : values.dim(-1);
  const bool right = ctx.Bool("right");
  const T* rows = sorted.data<T>();
  const T* v = values.data<T>();
  Index* to = out.mutable_data<Index>();
  ctx.ParallelFor(values.numel(), 1 << 11, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* row = rows + i / per_row * n;
      const T* at =
          right ? std::upper_bound(row, row + n, v[i]) : std::lower_bound(row, row + n, v[i]);
      to[i] = static_cast<Index>(at - row);
    }
  });
}

template <typename T>
struct Searchsorted {
  static Status Run(KernelContext& ctx) {
    const Tensor& sorted = ctx.In("SortedSequence");
    const Tensor& values = ctx.In("Values");
    if (values.dtype() != sorted.dtype())
      return InvalidArgument("Values is ", Name(values.dtype()), ", SortedSequence is ",
                             Name(sorted.dtype()));
    if (ctx.Bool("out_int32"))
      Place<T, int32_t>(ctx, sorted, values, ctx.Out("Out"));
    else
      Place<T, int64_t>(ctx, sorted, values, ctx.Out("Out"));
    return Status::Ok();
  }
};

Status InferSearchsorted(ShapeContext& ctx) {
  const Shape& sorted = ctx.InShape("SortedSequence");
  const Shape& values = ctx.InShape("Values");
  if (sorted.is_static() && values.is_static() && sorted.rank() > 1) {
    bool fits = sorted.rank() == values.rank();
    for (int i = 0; fits && i + 1 < sorted.rank(); ++i) fits = sorted[i] == values[i];
    if (!fits)
      return InvalidArgument("SortedSequence ", sorted.ToString(), " and Values ",
                             values.ToString(), " must agree in all dimensions but the last");
  }
  ctx.SetOut("Out", values, ctx.Bool("out_int32") ? DType::kI32 : DType::kI64);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(searchsorted) {
  op.Doc("where values go into sorted rows").Input("SortedSequence").Input("Values").Output("Out");
  op.Attr("out_int32", false).Attr("right", false).InferShape(&InferSearchsorted);
  op.Kernels<Searchsorted, float, double, int32_t, int64_t, uint8_t, int8_t, int16_t>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
