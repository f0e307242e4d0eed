// lod_array_length: the number of items of a tensor array.
#include "core/operands/slot_kinds.h"

namespace heddle {
namespace {

Status LengthShape(ShapeContext& ctx) {
  ctx.SetOut("Out", Shape{1}, DType::kI64);
  return Status::Ok();
}

Status Length(KernelContext& ctx) {
  const Value* x = ctx.InVar("X");
  const bool array = x != nullptr && x->is_array() && x->initialized();
  ctx.Out("Out").mutable_data<int64_t>()[0] = array ? static_cast<int64_t>(x->array().size()) : 0;
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(lod_array_length) {
  op.Doc("The number of items of the array X.")
      .Input("X", kOptional | kAnyKind | kArrayOnly)
      .Output("Out")
      .InferShape(LengthShape)
      .AnyKernel(Length);
}
