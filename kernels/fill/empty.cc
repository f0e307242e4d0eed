#include "kernels/base/convert.h"
#include "kernels/base/shape_arg.h"

namespace heddle {
namespace {

// Zeros: results must not depend on what the memory held before.
Status RunEmpty(KernelContext& ctx) {
  FillElements(ctx, ctx.Out("Out"), 0);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(empty) {
  op.Doc("A tensor whose values do not matter.").Output("Out");
  DeclareShapeArg(op);
  op.Attr("dtype", 5).InferShape(ShapeArgShape).AnyKernel(RunEmpty);
}
