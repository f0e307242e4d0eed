// The element that would stand at a place of each sorted row.
#include <algorithm>
#include <vector>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

Status NthShape(ShapeContext& ctx) {
  Shape x = ctx.InShape("input");
  if (!x.known_rank()) return ctx.Defer();
  if (x.rank() < 1) return InvalidArgument("input is a scalar, expected at least one dimension");
  x.erase(x.rank() - 1);
  ctx.SetOut("values", x, ctx.InDType("input"));
  return Status::Ok();
}
template <typename T>
struct Nth {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("input");
    HEDDLE_ASSIGN_OR_RETURN(int64_t n, IntIn(ctx, "n", 0));
    const int64_t size = x.dim(-1), rows = ctx.Out("values").numel();
    if (n < 0 || n >= size) return InvalidArgument("n is ", n, ", expected 0 to ", size - 1);
    if (ctx.Bool("reverse")) n = size - 1 - n;
    T* to = ctx.Out("values").template mutable_data<T>();
    std::vector<T> row(static_cast<size_t>(size));
    for (const int64_t r : Watched(rows)) {
      WatchedCopy(x.data<T>() + r * size, size, row.begin());
      LookCount looks;
      std::nth_element(row.begin(), row.begin() + n, row.end(), looks.In(&Less<T>));
      to[r] = row[static_cast<size_t>(n)];
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(nth_element) {
  op.Doc("the element that would stand at place n of each sorted row").Input("input").Input("n");
  op.Output("values").Attr("reverse", false).InferShape(NthShape).KernelKey("input");
  op.Kernels<Nth, float, double, uint8_t, int8_t, int16_t, int32_t, int64_t>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
