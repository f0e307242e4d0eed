#include "core/shapes.h"
#include "kernels/common/index_slice.h"

namespace heddle {
namespace {

struct Args {
  IntArgs starts, ends, strides;
  bool fixed() const { return !starts.tensors && !ends.tensors && !strides.tensors; }
};

Status ReadArgs(const OpContext& ctx, Args* args) {
  HEDDLE_RETURN_IF_ERROR(ReadInts(ctx, "StartsTensorList", "StartsTensor", "starts", &args->starts));
  HEDDLE_RETURN_IF_ERROR(ReadInts(ctx, "EndsTensorList", "EndsTensor", "ends", &args->ends));
  return ReadInts(ctx, "StridesTensorList", "StridesTensor", "strides", &args->strides);
}

Status Resolve(const OpContext& ctx, const Shape& x, const Args& args, SliceSpec* spec) {
  return ResolveSlice(x, ctx.IntList("axes"), args.starts, args.ends, &args.strides,
                      ctx.IntList("decrease_axis"), ctx.IntList("infer_flags"), spec);
}

Status SliceShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("Input");
  if (!x.known_rank()) return ctx.Defer();
  Args args;
  SliceSpec spec;
  HEDDLE_RETURN_IF_ERROR(ReadArgs(ctx, &args));
  HEDDLE_RETURN_IF_ERROR(Resolve(ctx, x, args, &spec));
  HEDDLE_ASSIGN_OR_RETURN(const Shape out, DropAxes(spec.counts(), ctx.IntList("decrease_axis")));
  ctx.SetOut("Out", out, ctx.InDType("Input"));
  ctx.ShareLoD("Input", "Out");
  return Status::Ok();
}

Status CheckGrad(const Tensor& grad, const SliceSpec& spec) {
  if (spec.numel() == grad.numel()) return Status::Ok();
  return InvalidArgument("'Out@GRAD' of shape ", grad.shape().ToString(),
                         " does not fit the slice ", spec.counts().ToString());
}

Result<std::unique_ptr<KernelState>> PrepareCopy(PrepareContext& ctx, bool grad) {
  const Tensor& x = ctx.InVar("Input")->tensor();
  Args args;
  HEDDLE_RETURN_IF_ERROR(ReadArgs(ctx, &args));
  if (!args.fixed()) return std::unique_ptr<KernelState>();
  SliceSpec spec;
  HEDDLE_RETURN_IF_ERROR(Resolve(ctx, x.shape(), args, &spec));
  if (grad) HEDDLE_RETURN_IF_ERROR(CheckGrad(ctx.InVar("Out@GRAD")->tensor(), spec));
  const size_t size = SizeOf(x.dtype());
  return std::unique_ptr<KernelState>(
      new CopyState(grad ? CopyInto(x.shape(), spec, size) : CopyOutOf(x.shape(), spec, size)));
}
Result<std::unique_ptr<KernelState>> Prepare(PrepareContext& ctx) { return PrepareCopy(ctx, false); }
Result<std::unique_ptr<KernelState>> PrepareGrad(PrepareContext& ctx) {
  return PrepareCopy(ctx, true);
}

Status Slice(KernelContext& ctx) {
  const Tensor& x = ctx.In("Input");
  Tensor& out = ctx.Out("Out");
  if (ctx.has_state()) {
    ctx.State<CopyState>().copy.Run(ctx, x.raw(), out.mutable_raw());
    return Status::Ok();
  }
  Args args;
  SliceSpec spec;
  HEDDLE_RETURN_IF_ERROR(ReadArgs(ctx, &args));
  HEDDLE_RETURN_IF_ERROR(Resolve(ctx, x.shape(), args, &spec));
  CopyOutOf(x.shape(), spec, SizeOf(x.dtype())).Run(ctx, x.raw(), out.mutable_raw());
  return Status::Ok();
}

Status SliceGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.In("Out@GRAD");
  Tensor& out = ctx.Out("Input@GRAD");
  ZeroBytes(ctx, out.mutable_raw(), out.bytes());
  if (ctx.has_state()) {
    ctx.State<CopyState>().copy.Run(ctx, grad.raw(), out.mutable_raw());
    return Status::Ok();
  }
  Args args;
  SliceSpec spec;
  HEDDLE_RETURN_IF_ERROR(ReadArgs(ctx, &args));
  HEDDLE_RETURN_IF_ERROR(Resolve(ctx, out.shape(), args, &spec));
  HEDDLE_RETURN_IF_ERROR(CheckGrad(grad, spec));
  CopyInto(out.shape(), spec, SizeOf(out.dtype())).Run(ctx, grad.raw(), out.mutable_raw());
  return Status::Ok();
}

void Declare(OpDef& op, unsigned flags) {
  op.Input("StartsTensor", kOptional | flags)
      .Input("EndsTensor", kOptional | flags)
      .Input("StridesTensor", kOptional | flags)
      .Input("StartsTensorList", kOptional | kList | flags)
      .Input("EndsTensorList", kOptional | kList | flags)
      .Input("StridesTensorList", kOptional | kList | flags)
      .Attr("axes", Ints{})
      .Attr("starts", Ints{})
      .Attr("ends", Ints{})
      .Attr("strides", Ints{})
      .Attr("infer_flags", Ints{})
      .Attr("decrease_axis", Ints{});
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(strided_slice) {
  op.Doc("Input[start:end:stride] along each of `axes`; strides may be negative.").Input("Input");
  Declare(op, kShapeValue);
  op.Output("Out").InferShape(SliceShape).Prepare(Prepare).AnyKernel(Slice);
}
HEDDLE_OP(strided_slice_grad) {
  op.Input("Out@GRAD").Input("Input", kNoBuffer);
  Declare(op, 0);
  op.Output("Input@GRAD")
      .InferShape(GradLikeInputs)
      .Prepare(PrepareGrad)
      .AnyKernel(SliceGrad);
}
