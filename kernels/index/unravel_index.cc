// Flat places as indices of a shape.
#include "core/interrupts.h"
#include "kernels/base/index_args.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

template <typename T>
struct UnravelIndex {
  static Status Run(KernelContext& ctx) {
    const Tensor& indices = ctx.In("indices");
    HEDDLE_ASSIGN_OR_RETURN(const ShortInts dims, IntsIn(ctx, "dims"));
    HEDDLE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims, "dims"));
    if (indices.rank() > 1)
      return InvalidArgument("indices has shape ", indices.shape().ToString(),
                             ", expected at most one dimension");
    Shape out{shape.rank()};
    if (indices.rank() == 1) out.push_back(indices.numel());
    T* to = ctx.Alloc("output", indices.dtype(), out).template mutable_data<T>();
    const auto strides = RowMajorStrides(shape);
    const int64_t n = indices.numel(), total = shape.numel();
    for (const int64_t i : Watched(n)) {
      int64_t at = indices.data<T>()[i];
      if (at < 0 || at >= total)
        return OutOfRange("indices holds ", at, " at position ", i, ", expected 0 to ", total - 1);
      for (int d = 0; d < shape.rank(); ++d) {
        to[d * n + i] = static_cast<T>(at / strides[static_cast<size_t>(d)]);
        at %= strides[static_cast<size_t>(d)];
      }
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(unravel_index) {
  op.Doc("flat places as indices of a shape").Input("indices").Input("dims").Output("output");
  op.KernelKey("indices").Kernels<UnravelIndex, int32_t, int64_t>();
}
