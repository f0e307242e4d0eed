// A triangle of each matrix; k of the diagonal is an operand.
#include "core/interrupts.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

Status OnnxTriluShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("input");
  if (x.known_rank() && x.rank() < 2)
    return InvalidArgument("input has shape ", x.ToString(), ", expected matrices");
  ctx.SetOut("output", x, ctx.InDType("input"));
  return Status::Ok();
}

Status OnnxTrilu(KernelContext& ctx) {
  const Tensor& x = ctx.In("input");
  HEDDLE_ASSIGN_OR_RETURN(const int64_t k, IntIn(ctx, "k", 0));
  const bool upper = ctx.Int("upper") != 0;
  const int64_t rows = x.dim(-2), cols = x.dim(-1);
  VisitElementSize(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = static_cast<const T*>(x.raw());
    T* to = static_cast<T*>(ctx.Out("output").mutable_raw());
    const int64_t n = rows == 0 || cols == 0 ? 0 : x.numel() / cols;
    ctx.ParallelFor(n, 1 + 16384 / (1 + cols), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        // Columns [first, last) stay.
        const int64_t at = std::clamp<int64_t>(k > cols    ? cols
                                               : k < -rows ? 0
                                                           : i % rows + k + (upper ? 0 : 1),
                                               0, cols);
        const int64_t first = upper ? at : 0, last = upper ? cols : at;
        for (const auto part : Stretches(cols))
          for (int64_t j = part.begin; j < part.end; ++j)
            to[i * cols + j] = j >= first && j < last ? from[i * cols + j] : T{};
      }
    });
  });
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_trilu) {
  op.Doc("matrices with the other side of diagonal k set to zero");
  op.Input("input").Input("k", kOptional).Output("output").Attr("upper", 1);
  op.Inplace("input", "output").InferShape(OnnxTriluShape).AnyKernel(OnnxTrilu);
}
