// eye: the identity matrix.
#include <algorithm>

#include "core/interrupts.h"
#include "kernels/base/convert.h"
#include "kernels/base/shape_arg.h"

namespace heddle {
namespace {

Status EyeShape(ShapeContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const DType dtype, CheckedDType(ctx.Int("dtype")));
  const int64_t rows = ctx.Int("num_rows");
  const int64_t columns = ctx.Int("num_columns") == -1 ? rows : ctx.Int("num_columns");
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, CheckedShape({rows, columns}, "the matrix"));
  ctx.SetOut("Out", shape, dtype);
  return Status::Ok();
}

Status RunEye(KernelContext& ctx) {
  Tensor& out = ctx.Out("Out");
  FillElements(ctx, out, 0);
  VisitAnyDType(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (const int64_t i : Watched(std::min(out.dim(0), out.dim(1))))
      out.mutable_data<T>()[i * (out.dim(1) + 1)] = ConvertTo<T>(1.0);
  });
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(eye) {
  op.Doc("Ones on the diagonal, zeros elsewhere.").Output("Out").Attr("num_rows", 0);
  op.Attr("num_columns", -1).Attr("dtype", 5).InferShape(EyeShape).AnyKernel(RunEye);
}
