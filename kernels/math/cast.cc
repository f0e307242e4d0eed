#include "core/operands/slot_kinds.h"
#include "core/shapes.h"
#include "kernels/elementwise/convert.h"

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

HEDDLE_EXAMPLES(cast, R"(
example float64 10x1, in_dtype 5, out_dtype 5
attr in_dtype INT 5
attr out_dtype INT 5
in X float64 [10, 1] -0.45 -0.27 0.81 0.63 0.27 0.09 -0.81 -0.63 -0.09 0.45
out Out float32 [10, 1] -0.45 -0.27 0.81 0.63 0.27 0.09 -0.81 -0.63 -0.09 0.45

example uint8 scalar, in_dtype 20, out_dtype 3
attr in_dtype INT 20
attr out_dtype INT 3
in X uint8 [] 39
out Out int64 [] 39

example int32 scalar, in_dtype 2, out_dtype 6
attr in_dtype INT 2
attr out_dtype INT 6
in X int32 [] 29
out Out float64 [] 29

example int64 scalar, in_dtype 3, out_dtype 6
attr in_dtype INT 3
attr out_dtype INT 6
in X int64 [] 53
out Out float64 [] 53
)")

HEDDLE_EXAMPLES(transfer_dtype, R"(
example float32 to float64
attr out_dtype INT 6
attr in_dtype INT 5
in X float32 [2, 3] -0.84 -0.48 -0.5 0.27 -0.66 0.66
out Out float64 [2, 3] -0.8399999737739563 -0.47999998927116394 -0.5 0.27000001072883606
  -0.6600000262260437 0.6600000262260437

example int32 to float32
attr out_dtype INT 5
attr in_dtype INT 2
in X int32 [3] 7 2 9
out Out float32 [3] 7 2 9
)")
