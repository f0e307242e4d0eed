// assign, share_data and the copies between places, which are one here: a copy of a tensor, an
// array or selected rows.
#include "core/shapes.h"
#include "kernels/elementwise/convert.h"

namespace heddle {
namespace {

Tensor Copy(const KernelContext& ctx, const Tensor& t) {
  if (!t.initialized()) return t;
  Tensor copy = ctx.Scratch(t.dtype(), t.shape());
  CopyBytes(ctx, copy.mutable_raw(), t.raw(), static_cast<int64_t>(t.bytes()));
  if (t.has_lod()) copy.set_lod(t.lod());
  return copy;
}

Status AssignShape(ShapeContext& ctx) {
  const Value* in = ctx.InVar("X");
  if (in == nullptr || !in->is_tensor()) return Status::Ok();
  return SameShape(ctx);
}

Status RunAssign(KernelContext& ctx) {
  const Value* in = ctx.InVar("X");
  Value* out = ctx.OutVar("Out");
  if (in == nullptr || in == out) return Status::Ok();
  if (in->is_array()) {
    TensorArray copy;
    for (const Tensor& t : in->array()) copy.push_back(Copy(ctx, t));
    out->mutable_array() = std::move(copy);
  } else if (in->is_rows()) {
    const SelectedRows& x = in->rows();
    SelectedRows copy{x.rows, x.height, Copy(ctx, x.value)};
    out->mutable_rows() = std::move(copy);
  } else if (in->is_tensor()) {
    const Tensor& x = in->tensor();
    if (x.initialized())
      CopyBytes(ctx, out->tensor().mutable_raw(), x.raw(), static_cast<int64_t>(x.bytes()));
  } else {
    return InvalidArgument("input X holds neither a tensor nor an array nor selected rows");
  }
  return Status::Ok();
}

Status RunShadow(KernelContext& ctx) {
  const Tensor& x = ctx.In("x");
  CopyBytes(ctx, ctx.Out("out").mutable_raw(), x.raw(), static_cast<int64_t>(x.bytes()));
  return Status::Ok();
}

void DefineAssign(OpDef& op, unsigned input_flags) {
  op.Doc("A copy of X.").Input("X", input_flags).Output("Out").View("X", "Out");
  op.InferShape(AssignShape).AnyKernel(RunAssign);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(assign) { DefineAssign(op, kOptional); }
HEDDLE_OP(share_data) { DefineAssign(op, 0); }
HEDDLE_OP(memcpy) { DefineAssign(op, 0); }
HEDDLE_OP(memcpy_h2d) { DefineAssign(op, 0); }
HEDDLE_OP(memcpy_d2h) { DefineAssign(op, 0); }
HEDDLE_OP(shadow_output) {
  op.Doc("x under another name.").Input("x").Output("out").Attr("name", "").View("x", "out");
  op.InferShape(&SameShape).AnyKernel(RunShadow);
}
