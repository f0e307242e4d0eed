#include "core/operands/slot_kinds.h"
#include "core/shapes.h"

namespace heddle {
namespace {

Status ShapeShape(ShapeContext& ctx) {
  const Value* in = ctx.InVar("Input");
  if (in == nullptr) return InvalidArgument("input Input is missing");
  if (!in->is_tensor()) return ctx.Defer();
  const Shape& x = in->tensor().shape();
  ctx.SetOut("Out", x.known_rank() ? Shape{x.rank()} : Shape{-1}, DType::kI32);
  return Status::Ok();
}

Status RunShape(KernelContext& ctx) {
  const Value& in = *ctx.InVar("Input");
  const Shape& x = in.is_rows() ? in.rows().value.shape() : in.tensor().shape();
  Tensor& out = in.is_rows() ? ctx.Alloc("Out", DType::kI32, {x.rank()}) : ctx.Out("Out");
  for (int i = 0; i < x.rank(); ++i) out.mutable_data<int32_t>()[i] = static_cast<int32_t>(x[i]);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(shape) {
  op.Doc("The dimensions of Input, as int32.")
      .Input("Input", kNoBuffer | kAnyKind | kTakesRows | kTakesArray)
      .Output("Out");
  op.InferShape(ShapeShape).AnyKernel(RunShape);
}
