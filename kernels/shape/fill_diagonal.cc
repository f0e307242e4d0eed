#include <algorithm>

#include "core/shapes.h"
#include "core/threads/look_meter.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

// Sets the elements on the diagonal of a matrix (wrap: starting again below the square part), or of
// a cube of any rank.
template <typename T>
Status Fill(const KernelContext& ctx, const Tensor& x, double value, Tensor& out) {
  const int rank = x.rank();
  if (rank < 2) return InvalidArgument("'X' must have two dimensions or more");
  CopyBytes(ctx, x.raw(), out.mutable_raw(), out.bytes());
  int64_t step = 0, size = x.dim(0);
  const auto strides = RowMajorStrides(x.shape());
  for (int i = 0; i < rank; ++i) {
    step += strides[i];
    if (rank > 2 && x.dim(i) != size)
      return InvalidArgument("the dimensions of 'X' ", x.shape().ToString(), " must be equal");
  }
  const int64_t offset = ctx.Int("offset"), cols = x.dim(-1);
  const int64_t n = x.numel();
  const int64_t stop = ctx.Bool("wrap") ? n : std::min(n, cols * cols);
  const T v = static_cast<T>(static_cast<ComputeType<T>>(value));
  T* to = out.mutable_data<T>();
  LookMeter meter;
  for (int64_t i = 0; i < stop; i += step) {
    meter.Did(8);
    const int64_t column = i % cols + offset;
    if (column >= 0 && column < cols && i + offset < n && i + offset >= 0) to[i + offset] = v;
  }
  return Status::Ok();
}

template <typename T>
struct FillDiagonal {
  static Status Run(KernelContext& ctx) {
    return Fill<T>(ctx, ctx.In("X"), ctx.Float("value"), ctx.Out("Out"));
  }
};
template <typename T>
struct FillDiagonalGrad {
  static Status Run(KernelContext& ctx) {
    return Fill<T>(ctx, ctx.In("Out@GRAD"), 0, ctx.Out("X@GRAD"));
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(fill_diagonal) {
  op.Doc("X with its diagonal set to `value`.")
      .Input("X")
      .Output("Out")
      .Attr("value", 0.0)
      .Attr("offset", 0)
      .Attr("wrap", false)
      .Inplace("X", "Out")
      .InferShape(SameShape)
      .Kernels<FillDiagonal, float, double, int32_t, int64_t, float16, bool>();
}
HEDDLE_OP(fill_diagonal_grad) {
  op.Input("Out@GRAD")
      .Output("X@GRAD")
      .Attr("value", 0.0)
      .Attr("offset", 0)
      .Attr("wrap", false)
      .Inplace("Out@GRAD", "X@GRAD")
      .InferShape(SameShape)
      .Kernels<FillDiagonalGrad, float, double, int32_t, int64_t, float16, bool>();
}

HEDDLE_EXAMPLES(fill_diagonal, R"(
example float32 square
attr value FLOAT 5.0
in X float32 [3, 3] -8 -3 2 6 -1 -2 -7 -5 -2
out Out float32 [3, 3] 5 -3 2 6 5 -2 -7 -5 5

example float64 square
attr value FLOAT 5.0
in X float64 [3, 3] -7 2 6 -1 2 -6 2 0 -4
out Out float64 [3, 3] 5 2 6 -1 5 -6 2 0 5

example int32 square
attr value FLOAT 5.0
in X int32 [3, 3] -4 6 -7 -8 -3 -1 5 -1 -2
out Out int32 [3, 3] 5 6 -7 -8 5 -1 5 -1 5

example int64 square
attr value FLOAT 5.0
in X int64 [3, 3] 4 9 3 -4 9 -5 5 -1 -6
out Out int64 [3, 3] 5 9 3 -4 5 -5 5 -1 5

example tall, wrapped
attr value FLOAT -1.5
attr wrap BOOLEAN true
in X float32 [7, 2] 0.54 0.07 0.79 -0.05 0.11 -0.13 -0.4 0.07 -0.88 -0.5 -0.49 -0.54 -0.75 0.04
out Out float32 [7, 2] -1.5 0.07 0.79 -1.5 0.11 -0.13 -1.5 0.07 -0.88 -1.5 -0.49 -0.54 -1.5 0.04

example offset
attr value FLOAT 2.0
attr offset INT 1
in X float32 [3, 4] 0.57 0.17 0.83 -0.15 0.19 -0.44 0.84 0.2 -0.54 -0.07 0.63 -0.35
out Out float32 [3, 4] 0.57 2 0.83 -0.15 0.19 -0.44 2 0.2 -0.54 -0.07 0.63 2
)")

HEDDLE_EXAMPLES(fill_diagonal_grad, R"(
example offset, square
attr offset INT -1
attr value FLOAT 2.0
in Out@GRAD float64 [3, 3] -0.2 -0.9 0.6 -0.4 -0.1 -0.4 0.1 0.2 0.6
out X@GRAD float64 [3, 3] -0.2 -0.9 0.6 0 -0.1 -0.4 0.1 0 0.6

example offset
attr value FLOAT 2.0
attr offset INT 1
in Out@GRAD float64 [3, 4] -0.78 -0.67 -0.4 -0.42 -0.95 -0.76 0.41 -0.52 -0.24 -0.64 -0.47 0.23
out X@GRAD float64 [3, 4] -0.78 0 -0.4 -0.42 -0.95 -0.76 0 -0.52 -0.24 -0.64 -0.47 0

example tall, wrapped
attr value FLOAT -1.5
attr wrap BOOLEAN true
in Out@GRAD float64 [7, 2] 0.84 0.4 -0.37 -0.13 0.44 0.22 -0.29 0.6 0.57 0.19 0.7 -0.07 -0.29 -0.04
out X@GRAD float64 [7, 2] 0 0.4 -0.37 0 0.44 0.22 0 0.6 0.57 0 0.7 -0.07 0 -0.04
)")
