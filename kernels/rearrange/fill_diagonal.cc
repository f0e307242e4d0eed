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
