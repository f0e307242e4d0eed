// Slices by begin, end and strides with masks, their gradient, and tensors with a slice replaced.
#include "kernels/tf/narrow.h"
#include "kernels/tf/slice_spec.h"

namespace heddle {
namespace {

Status StridedSliceShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("input");
  if (!x.known_rank() || !ctx.InShape("begin").is_static() || !ctx.InShape("end").is_static() ||
      !ctx.InShape("strides").is_static())
    return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const SliceSpec spec, SliceSpecIn(ctx, x));
  ctx.SetOut("output", spec.out, ctx.InDType("input"));
  return Status::Ok();
}

Status StridedSlice(KernelContext& ctx) {
  const Tensor& x = ctx.In("input");
  HEDDLE_ASSIGN_OR_RETURN(const SliceSpec spec, SliceSpecIn(ctx, x.shape()));
  Tensor& out = ctx.Out("output");
  if (out.numel() == 0) return Status::Ok();
  SliceCopy(SizeOf(x.dtype()), x.shape(), spec, true).Run(ctx, x.raw(), out.mutable_raw());
  return Status::Ok();
}

Status CheckSliced(const Shape& got, const SliceSpec& spec, const char* slot) {
  if (got == spec.out) return Status::Ok();
  return InvalidArgument(slot, " has shape ", got.ToString(), ", the slice has ",
                         spec.out.ToString());
}

Status StridedSliceGradShape(ShapeContext& ctx) {
  if (!Known(ctx, "shape")) return OpenShape(ctx, "shape", "output", ctx.InDType("dy"));
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts dims, IntsIn(ctx, "shape"));
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims, "shape"));
  ctx.SetOut("output", shape, ctx.InDType("dy"));
  return Status::Ok();
}

Status StridedSliceGrad(KernelContext& ctx) {
  const Tensor& dy = ctx.In("dy");
  Tensor& out = ctx.Out("output");
  HEDDLE_ASSIGN_OR_RETURN(const SliceSpec spec, SliceSpecIn(ctx, out.shape()));
  HEDDLE_RETURN_IF_ERROR(CheckSliced(dy.shape(), spec, "dy"));
  ZeroBytes(ctx, out.mutable_raw(), out.bytes());
  if (dy.numel() == 0) return Status::Ok();
  SliceCopy(SizeOf(dy.dtype()), out.shape(), spec, false).Run(ctx, dy.raw(), out.mutable_raw());
  return Status::Ok();
}

Status SliceUpdateShape(ShapeContext& ctx) {
  if (ctx.InDType("value") != ctx.InDType("input"))
    return InvalidArgument("value is ", Name(ctx.InDType("value")), ", input ",
                           Name(ctx.InDType("input")));
  ctx.SetOut("output", ctx.InShape("input"), ctx.InDType("input"));
  return Status::Ok();
}

Status SliceUpdate(KernelContext& ctx) {
  const Tensor &x = ctx.In("input"), &value = ctx.In("value");
  Tensor& out = ctx.Out("output");
  HEDDLE_ASSIGN_OR_RETURN(const SliceSpec spec, SliceSpecIn(ctx, x.shape()));
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, BroadcastShape(value.shape(), spec.out, -1));
  HEDDLE_RETURN_IF_ERROR(CheckSliced(shape, spec, "value"));
  Tensor full = ctx.Scratch(value.dtype(), shape);
  ExpandTo(ctx, value, shape, full.mutable_raw());
  if (out.raw() != x.raw()) CopyBytes(ctx, x.raw(), out.mutable_raw(), x.bytes());
  if (full.numel() == 0) return Status::Ok();
  SliceCopy(SizeOf(x.dtype()), out.shape(), spec, false).Run(ctx, full.raw(), out.mutable_raw());
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_strided_slice) {
  op.Doc("elements from begin up to end, strides apart; bits of the masks drop bounds and axes");
  op.Input("input").Input("begin", kShapeValue).Input("end", kShapeValue);
  op.Input("strides", kShapeValue).Output("output");
  DeclareSliceMasks(op);
  op.InferShape(StridedSliceShape).AnyKernel(StridedSlice);
}
HEDDLE_OP(tf_strided_slice_grad) {
  op.Doc("zeros of a shape with dy where tf_strided_slice would read");
  op.Input("shape", kShapeValue).Input("begin", kShapeValue).Input("end", kShapeValue);
  op.Input("strides", kShapeValue).Input("dy").Output("output");
  DeclareSliceMasks(op);
  op.InferShape(StridedSliceGradShape).KernelKey("dy").AnyKernel(StridedSliceGrad);
}
HEDDLE_OP(tf_tensor_strided_slice_update) {
  op.Doc("input with value, broadcast, where tf_strided_slice would read");
  op.Input("input").Input("begin", kShapeValue).Input("end", kShapeValue);
  op.Input("strides", kShapeValue).Input("value").Output("output").Inplace("input", "output");
  DeclareSliceMasks(op);
  op.InferShape(SliceUpdateShape).AnyKernel(SliceUpdate);
}

HEDDLE_EXAMPLES(tf_strided_slice, R"(
example recorded case 1
attr begin_mask INT 1
attr end_mask INT 0
attr ellipsis_mask INT 0
attr new_axis_mask INT 0
attr shrink_axis_mask INT 0
in input bool [3] 0 1 1
in begin int64 [1] 0
in end int64 [1] -4
in strides int64 [1] 3
out output bool [0]

example recorded case 2
attr end_mask INT 1
in input uint8 [4] 5 2 1 3
in begin int32 [1] 4
in end int32 [1] 2
in strides int32 [1] 2
out output uint8 [0]

example recorded case 3
attr begin_mask INT 0
attr end_mask INT 0
attr ellipsis_mask INT 1
attr new_axis_mask INT 0
attr shrink_axis_mask INT 2
in input bool [2] 0 0
in begin int32 [2] 0 -1
in end int32 [2] 0 0
in strides int32 [2] 1 1
out output bool [] 0

example recorded case 4
attr begin_mask INT 0
attr end_mask INT 1
attr ellipsis_mask INT 0
attr new_axis_mask INT 0
attr shrink_axis_mask INT 0
in input float32 [5] -0.40771744 0.03355198 -1.8128839 -0.571069 1.4401715
in begin int32 [1] 3
in end int32 [1] 3
in strides int32 [1] 3
out output float32 [1] -0.571069
)")

HEDDLE_EXAMPLES(tf_strided_slice_grad, R"(
example recorded case 1
attr begin_mask INT 0
attr end_mask INT 0
attr ellipsis_mask INT 0
attr new_axis_mask INT 0
attr shrink_axis_mask INT 0
in shape int32 [2] 2 2
in begin int32 [1] 3
in end int32 [1] -4
in strides int32 [1] 1
in dy int32 [0, 2]
out output int32 [2, 2] 0*4

example recorded case 2
attr end_mask INT 1
in shape int32 [2] 2 3
in begin int32 [1] -1
in end int32 [1] 3
in strides int32 [1] -1
in dy float32 [2, 3] -0.3265416 -0.7738797 0.66410106 -1.2634664 0.8837181 0.28202897
out output float32 [2, 3] -1.2634664 0.8837181 0.28202897 -0.3265416 -0.7738797 0.66410106

example recorded case 3
attr begin_mask INT 1
attr ellipsis_mask INT 2
attr shrink_axis_mask INT 12
in shape int32 [4] 1 1 7 3
in begin int32 [4] 1 0 -1 -1
in end int32 [4] 4 0 0 0
in strides int32 [4] -2 1 1 1
in dy float32 [0, 1]
out output float32 [1, 1, 7, 3] 0*21

example recorded case 4
attr ellipsis_mask INT 2
attr shrink_axis_mask INT 9
in shape int32 [3] 4 3 2
in begin int32 [4] -1 0 0 0
in end int32 [4] 0 0 -2 1
in strides int32 [4] 1*4
in dy float64 [1] -0.9303291730626653
out output float64 [4, 3, 2] 0*18 -0.9303291730626653 0*5
)")

HEDDLE_EXAMPLES(tf_tensor_strided_slice_update, R"(
example recorded case 1
attr begin_mask INT 0
attr end_mask INT 0
attr ellipsis_mask INT 0
attr new_axis_mask INT 0
attr shrink_axis_mask INT 0
in input float32 [4, 5] 0.54363716 0.070315845 1.6321518 0.8001256 0.66783106 0.007422049
  -0.14153063 -1.3056604 -2.5532763 -0.884341 0.82822174 -0.1738171 2.1436772 -2.3971364 0.51736766
  1.1351944 2.2747202 -0.8850861 0.55952346 0.87491757
in begin int32 [2] 1 0
in end int32 [2] 3 5
in strides int32 [2] 1 2
in value float32 [2, 3] 3.100267 0.5613534 -0.53992355 2.0132515 -0.55727166 -0.16300067
out output float32 [4, 5] 0.54363716 0.070315845 1.6321518 0.8001256 0.66783106 3.100267 -0.14153063
  0.5613534 -2.5532763 -0.53992355 2.0132515 -0.1738171 -0.55727166 -2.3971364 -0.16300067 1.1351944
  2.2747202 -0.8850861 0.55952346 0.87491757

example recorded case 2
in input float32 [4, 5] -4.449885 0.14833848 -1.8990467 0.042830333 2.4936688 2.3037815 1.6948986
  -0.7402892 0.8237197 -0.055876352 -2.063999 -1.5636078 2.4596875 1.8160805 0.3557264 -1.9219112
  -0.09229311 -0.6865784 1.061791 1.415752
in begin int32 [2] 1 0
in end int32 [2] 3 5
in strides int32 [2] 1 2
in value float32 [2, 3] 2.0684843 -0.04280253 -2.3656693 1.3675236 -0.18340765 -2.0722091
out output float32 [4, 5] -4.449885 0.14833848 -1.8990467 0.042830333 2.4936688 2.0684843 1.6948986
  -0.04280253 0.8237197 -2.3656693 1.3675236 -1.5636078 -0.18340765 1.8160805 -2.0722091 -1.9219112
  -0.09229311 -0.6865784 1.061791 1.415752
)")
