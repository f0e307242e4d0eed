#include "core/operands/slot_kinds.h"
#include "core/shapes.h"
#include "kernels/base/convert.h"

namespace heddle {
namespace {

Status CastShape(ShapeContext& ctx) {
  const DType to = DTypeFromProto(ctx.Int("out_dtype"));
  if (to == DType::kUnknown)
    return InvalidArgument("out_dtype ", ctx.Int("out_dtype"), " is not the number of a data type");
  if (ctx.InVar("X") == nullptr) return InvalidArgument("input X is missing");
  if (!ctx.InVar("X")->is_tensor()) return Status::Ok();
  ctx.SetOut("Out", ctx.InShape("X"), to);
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

Status RunCast(KernelContext& ctx) {
  const Value& in = *ctx.InVar("X");
  if (in.is_rows()) {
    const SelectedRows x = in.rows();
    SelectedRows& out = ctx.OutVar("Out")->mutable_rows();
    out.rows = x.rows;
    out.height = x.height;
    out.value = ctx.Scratch(DTypeFromProto(ctx.Int("out_dtype")), x.value.shape());
    ConvertElements(ctx, x.value.raw(), x.value.dtype(), out.value.mutable_raw(), out.value.dtype(),
                    x.value.numel());
    return Status::Ok();
  }
  const Tensor& x = ctx.In("X");
  Tensor& out = ctx.Out("Out");
  ConvertElements(ctx, x.raw(), x.dtype(), out.mutable_raw(), out.dtype(), x.numel());
  return Status::Ok();
}

void Define(OpDef& op) {
  op.Doc("The same values in another data type.")
      .Input("X", kAnyKind | kTakesRows)
      .Output("Out", kTakesRows);
  op.Attr("out_dtype", 5).Attr("in_dtype", 5).InferShape(CastShape).AnyKernel(RunCast);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(cast) { Define(op); }
HEDDLE_OP(transfer_dtype) { Define(op); }
