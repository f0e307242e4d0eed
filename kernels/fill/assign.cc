// assign, share_data, share_buffer and the copies between places, which are one here: a copy of a
// tensor, an array or selected rows.
#include "core/op_traits.h"
#include "core/operands/slot_kinds.h"
#include "core/shapes.h"
#include "heddle/string_tensor.h"
#include "kernels/base/convert.h"

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
  if (in != nullptr && in->is_array() && in->initialized() && in->array().size() == 1) {
    // Before a run, an item without contents stands for all of an array.
    const Tensor& item = in->array()[0];
    if (!item.initialized() && item.dtype() != DType::kUnknown && item.shape().is_static())
      ctx.SetOut("Out", item.shape(), item.dtype());
  }
  if (in == nullptr || !in->is_tensor()) return Status::Ok();
  // A copy of nothing holds nothing.
  const Tensor& x = in->tensor();
  if (!x.initialized() && x.dtype() == DType::kUnknown && x.shape().known_rank())
    return Status::Ok();
  return SameShape(ctx);
}

Status RunAssign(KernelContext& ctx) {
  const Value* in = ctx.InVar("X");
  Value* out = ctx.OutVar("Out");
  if (in == nullptr || in == out) return Status::Ok();
  if (in->is_array()) {
    TensorArray& copy = out->mutable_array();  // not that of `in`, which it may have shared
    copy.clear();
    for (const Tensor& t : in->array()) copy.push_back(Copy(ctx, t));
  } else if (in->is_rows()) {
    const SelectedRows& x = in->rows();
    SelectedRows copy{x.rows, x.height, Copy(ctx, x.value)};
    out->mutable_rows() = std::move(copy);
  } else if (in->is_tensor()) {
    const Tensor& x = in->tensor();
    if (x.initialized())
      CopyBytes(ctx, out->tensor().mutable_raw(), x.raw(), static_cast<int64_t>(x.bytes()));
  } else if (StringsIn(*in) != nullptr) {
    *out = *in;  // nobody changes the strings, which both share
  } else {
    return InvalidArgument("input X holds neither a tensor nor an array, selected rows or strings");
  }
  return Status::Ok();
}

Status ShareShape(ShapeContext& ctx) {
  if (ctx.InCount("X") != ctx.OutCount("Out"))
    return InvalidArgument("X and Out must be equally many");
  for (int i = 0; i < ctx.InCount("X"); ++i) {
    ctx.SetOut("Out", ctx.InShape("X", i), ctx.InDType("X", i), i);
    ctx.SetOut("XOut", ctx.InShape("X", i), ctx.InDType("X", i), i);
  }
  return Status::Ok();
}

Status RunShare(KernelContext& ctx) {
  for (int i = 0; i < ctx.InCount("X"); ++i) {
    const Tensor& x = ctx.In("X", i);
    for (Tensor* out : {ctx.OutOpt("Out", i), ctx.OutOpt("XOut", i)})
      if (out != nullptr && out->raw() != x.raw())
        CopyBytes(ctx, out->mutable_raw(), x.raw(), static_cast<int64_t>(x.bytes()));
  }
  return Status::Ok();
}

Status RunShadow(KernelContext& ctx) {
  const Tensor& x = ctx.In("x");
  CopyBytes(ctx, ctx.Out("out").mutable_raw(), x.raw(), static_cast<int64_t>(x.bytes()));
  return Status::Ok();
}

void DefineAssign(OpDef& op, unsigned input_flags) {
  op.Doc("A copy of X.")
      .Input("X", input_flags | kAnyKind | kTakesAll)
      .Output("Out", kAnyKind | kTakesAll)
      .View("X", "Out");
  op.InferShape(AssignShape).AnyKernel(RunAssign);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(assign) { DefineAssign(op, kOptional); }
HEDDLE_OP(share_data) {
  DefineAssign(op, 0);
  op.Doc("X under another name: a later write to one changes the other.").Traits(kSharesStorage);
}
HEDDLE_OP(share_buffer) {
  op.Doc(
        "Each of X under another name: a later write to one changes the other. XOut is X, for the "
        "order of operators.")
      .Input("X", kList)
      .Output("Out", kList)
      .Output("XOut", kList | kOptional)
      .Attr("share_dims_and_dtype", Ints{})
      .View("X", "Out");
  op.Traits(kSharesStorage).InferShape(ShareShape).AnyKernel(RunShare);
}
HEDDLE_OP(memcpy) {
  DefineAssign(op, 0);
  op.Doc("A copy of X at another place.").Attr("dst_place_type", -1).Traits(kToHost | kToDevice);
}
HEDDLE_OP(memcpy_h2d) {
  DefineAssign(op, 0);
  op.Doc("A copy of X on the device.").Traits(kToDevice);
}
HEDDLE_OP(memcpy_d2h) {
  DefineAssign(op, 0);
  op.Doc("A copy of X on the host.").Traits(kToHost);
}
HEDDLE_OP(shadow_output) {
  op.Doc("x under another name.")
      .Input("x", kAnyKind | kTakesAll)
      .Output("out", kTakesAll)
      .Attr("name", "")
      .View("x", "out");
  op.InferShape(&SameShape).AnyKernel(RunShadow);
}
