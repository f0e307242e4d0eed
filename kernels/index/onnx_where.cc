// X where the condition holds, else Y, each of the three broadcast to their common shape.
#include "core/interrupts.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

Result<Shape> CommonShape(const Shape& c, const Shape& x, const Shape& y) {
  HEDDLE_ASSIGN_OR_RETURN(const Shape values, BroadcastShape(x, y, -1));
  return BroadcastShape(c, values, -1);
}

Status WhereShape(ShapeContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(
      const Shape shape, CommonShape(ctx.InShape("condition"), ctx.InShape("X"), ctx.InShape("Y")));
  ctx.SetOut("output", shape, ctx.InDType("X"));
  return Status::Ok();
}

// Rows of the last dimension [begin, end).
template <typename T>
void Rows(const Shape& shape, const Tensor& ct, const Tensor& xt, const Tensor& yt, int64_t begin,
          int64_t end, T* out) {
  const auto cs = BroadcastStrides(ct.shape(), shape), xs = BroadcastStrides(xt.shape(), shape),
             ys = BroadcastStrides(yt.shape(), shape);
  const int last = shape.rank() - 1;
  const int64_t n = last < 0 ? 1 : shape[last];
  const auto inner = [&](const auto& steps) {
    return last < 0 ? int64_t{0} : steps[static_cast<size_t>(last)];
  };
  const int64_t ci = inner(cs), xi = inner(xs), yi = inner(ys);
  for (const int64_t row : Watched(begin, end)) {
    int64_t at = row, c0 = 0, x0 = 0, y0 = 0;
    for (int d = last - 1; d >= 0; --d) {
      const int64_t i = at % shape[d];
      at /= shape[d];
      c0 += i * cs[static_cast<size_t>(d)];
      x0 += i * xs[static_cast<size_t>(d)];
      y0 += i * ys[static_cast<size_t>(d)];
    }
    const bool* c = ct.data<bool>() + c0;
    const T* x = static_cast<const T*>(xt.raw()) + x0;
    const T* y = static_cast<const T*>(yt.raw()) + y0;
    for (int64_t i = 0; i < n; ++i) out[row * n + i] = c[i * ci] ? x[i * xi] : y[i * yi];
  }
}

template <typename T>
void SelectElements(KernelContext& ctx, Tensor& out) {
  const Shape& shape = out.shape();
  const int64_t n = shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
  const int64_t rows = n == 0 ? 0 : shape.numel() / n;
  constexpr int64_t kGrain = 16384;
  ctx.ParallelFor(rows, std::max<int64_t>(1, kGrain / std::max<int64_t>(n, 1)),
                  [&](int64_t begin, int64_t end) {
                    Rows<T>(shape, ctx.In("condition"), ctx.In("X"), ctx.In("Y"), begin, end,
                            static_cast<T*>(out.mutable_raw()));
                  });
}

Status WhereElements(KernelContext& ctx) {
  const Tensor &c = ctx.In("condition"), &x = ctx.In("X"), &y = ctx.In("Y");
  if (c.dtype() != DType::kBool || x.dtype() != y.dtype())
    return InvalidArgument("'condition' is ", Name(c.dtype()), ", 'X' ", Name(x.dtype()),
                           " and 'Y' ", Name(y.dtype()),
                           "; bool and two tensors of one type are expected");
  Tensor& out = ctx.Out("output");
  VisitElementSize(x.dtype(),
                   [&](auto tag) { SelectElements<typename decltype(tag)::type>(ctx, out); });
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_where) {
  op.Doc("X where the condition holds, else Y, all broadcast to one shape")
      .Input("condition")
      .Input("X")
      .Input("Y")
      .Output("output")
      .InferShape(WhereShape)
      .AnyKernel(WhereElements);
}
