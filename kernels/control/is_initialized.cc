#include "core/kernel_context.h"
#include "core/operands/slot_kinds.h"
#include "core/shape_context.h"

namespace heddle {
namespace {

Status OneBool(ShapeContext& ctx) {
  ctx.SetOut("Out", Shape(), DType::kBool);
  return Status::Ok();
}

Status IsInitialized(KernelContext& ctx) {
  const Value* x = ctx.InVar("X");
  *ctx.Out("Out").mutable_data<bool>() = x != nullptr && x->initialized();
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(is_initialized) {
  op.Doc("whether X holds a value").Input("X", kOptional | kAnyKind | kTakesAll).Output("Out");
  op.InferShape(OneBool).AnyKernel(IsInitialized);
}
