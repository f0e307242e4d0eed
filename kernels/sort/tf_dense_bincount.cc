// Counts of the numbers below a size that is an operand.
#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/index_args.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

// Counts of numbers below `size`, or sums of their weights; of each row where there are rows.
template <typename T>
struct DenseBincount {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("input"), &weights = ctx.In("weights");
    HEDDLE_RETURN_IF_ERROR(CheckIntDType(x.dtype(), "input"));
    HEDDLE_ASSIGN_OR_RETURN(const int64_t size, IntIn(ctx, "size", 0));
    const bool weighted = weights.numel() > 0, binary = ctx.Bool("binary_output");
    const bool rows = x.rank() == 2 && !ctx.Bool("flatten");
    if (size < 0 || (x.rank() > 2 && !ctx.Bool("flatten")) ||
        (weighted && weights.numel() != x.numel()))
      return InvalidArgument("size is ", size, ", input has shape ", x.shape().ToString(),
                             " and weights ", weights.shape().ToString());
    HEDDLE_ASSIGN_OR_RETURN(const Shape shape,
                            MakeShape(rows ? Ints{x.dim(0), size} : Ints{size}, "output"));
    Tensor& out = ctx.Alloc("output", weights.dtype(), shape);
    T* to = out.template mutable_data<T>();
    WatchedFill(to, out.numel(), T(0));
    const int64_t row = rows ? x.dim(1) : x.numel();
    for (const int64_t i : Watched(x.numel())) {
      const int64_t v = IntAt(x, i);
      if (v < 0)
        return InvalidArgument("input holds ", v, " at position ", i, ", expected 0 or more");
      if (v >= size) continue;
      T& bin = to[(rows ? i / row * size : 0) + v];
      bin = binary ? T(1) : AddFn::Apply(bin, weighted ? weights.data<T>()[i] : T(1));
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_dense_bincount) {
  op.Doc("how often each number below size occurs, or the sum of weights there");
  op.Input("input").Input("size").Input("weights").Output("output");
  op.Attr("binary_output", false).Attr("flatten", false).KernelKey("weights");
  op.Kernels<DenseBincount, float, double, int32_t, int64_t>();
}
