// get_tensor_from_selected_rows: the rows as a dense tensor.
#include "core/memory/watched_bytes.h"
#include "core/operands/slot_kinds.h"
#include "kernels/optimizer/optimizer.h"

namespace heddle {
namespace {

Status GetTensor(KernelContext& ctx) {
  const Value* in = ctx.InVar("X");
  if (in == nullptr || !in->is_rows()) return InvalidArgument("X must hold selected rows");
  const Tensor x = in->rows().value;
  Tensor& out = ctx.Alloc("Out", x.dtype(), x.shape());
  if (x.numel() > 0) WatchedMemcpy(out.mutable_raw(), x.raw(), x.bytes());
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(get_tensor_from_selected_rows) {
  op.Doc("the values of selected rows as a plain tensor")
      .Input("X", kAnyKind | kTakesRows)
      .Output("Out")
      .AnyKernel(GetTensor);
}
