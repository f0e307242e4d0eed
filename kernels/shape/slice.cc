// slice and strided_slice.
#include <algorithm>

#include "core/operands/slot_kinds.h"
#include "core/operands/window.h"
#include "core/shapes.h"
#include "kernels/strided/index_slice.h"

namespace heddle {
namespace {

struct Args {
  IntArgs starts, ends, strides;
  bool fixed() const { return !starts.tensors && !ends.tensors && !strides.tensors; }
};

template <bool kStrided>
Status ReadArgs(const OpContext& ctx, Args* args) {
  HEDDLE_RETURN_IF_ERROR(
      ReadInts(ctx, "StartsTensorList", "StartsTensor", "starts", &args->starts));
  HEDDLE_RETURN_IF_ERROR(ReadInts(ctx, "EndsTensorList", "EndsTensor", "ends", &args->ends));
  if constexpr (kStrided)
    return ReadInts(ctx, "StridesTensorList", "StridesTensor", "strides", &args->strides);
  return Status::Ok();
}

// The part of `x` that the arguments, as far as they are known, describe.
template <bool kStrided>
Status ResolveArgs(const OpContext& ctx, const Shape& x, Args* args, SliceSpec* spec) {
  const Ints& axes = ctx.IntList("axes");
  HEDDLE_RETURN_IF_ERROR(ReadArgs<kStrided>(ctx, args));
  // Going backwards, an end before the tensor is element 0 in Paddle (and so left out); only -1
  // goes through it.
  for (size_t i = 0; kStrided && i < axes.size() && i < static_cast<size_t>(IntArgs::kMax); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(axes[i], x.rank()));
    int64_t& end = args->ends[static_cast<int>(i)];
    const bool back = args->strides[static_cast<int>(i)] < 0;
    if (x.rank() > 0 && back && end < -1 && end < -x[axis]) end = 0;
  }
  return ResolveSlice(x, axes, args->starts, args->ends, kStrided ? &args->strides : nullptr,
                      ctx.IntList("decrease_axis"), ctx.IntList("infer_flags"), spec);
}

template <bool kStrided>
Status SliceShape(ShapeContext& ctx) {
  if (!ctx.InVar("Input")->is_tensor()) return ctx.Defer();
  const Shape& x = ctx.InShape("Input");
  if (!x.known_rank()) return ctx.Defer();
  Args args;
  SliceSpec spec;
  HEDDLE_RETURN_IF_ERROR(ResolveArgs<kStrided>(ctx, x, &args, &spec));
  HEDDLE_ASSIGN_OR_RETURN(const Shape out, DropAxes(spec.counts(), ctx.IntList("decrease_axis")));
  ctx.SetOut("Out", out, ctx.InDType("Input"));
  const Ints& axes = ctx.IntList("axes");
  if (kStrided || (!axes.empty() && axes[0] != 0)) ctx.ShareLoD("Input", "Out");
  return Status::Ok();
}

struct SliceState final : CopyState, WindowState {
  SliceState(const StridedCopy& copy, const SliceSpec& s, const Ints& dropped_axes)
      : CopyState(copy), spec(s) {
    for (int64_t axis : dropped_axes) dropped |= 1u << (axis < 0 ? axis + s.rank : axis);
  }
  const SliceSpec spec;
  unsigned dropped = 0;
  bool WindowOf(int, Window* window) const override {
    for (int d = 0, to = 0; d < spec.rank; ++d) {
      if (spec.step[d] <= 0) return false;
      window->start[d] = spec.start[d];
      if ((dropped >> d & 1) == 0) window->axis[to] = d, window->step[to++] = spec.step[d];
    }
    return true;
  }
};

Status SliceGradShape(ShapeContext& ctx) {
  if (!ctx.InVar("Input")->is_tensor()) return ctx.Defer();
  return GradLikeInputs(ctx);
}

Status CheckGrad(const Tensor& grad, const SliceSpec& spec) {
  if (spec.numel() == grad.numel()) return Status::Ok();
  return InvalidArgument("'Out@GRAD' of shape ", grad.shape().ToString(),
                         " does not fit the slice ", spec.counts().ToString());
}

// No state where tensors say what to copy: that may change from run to run.
template <bool kStrided, bool kGrad>
Result<std::unique_ptr<KernelState>> PrepareSlice(PrepareContext& ctx) {
  const Value* x = ctx.InVar("Input");
  if (!x->is_tensor()) return std::unique_ptr<KernelState>();
  const Shape& shape = x->tensor().shape();
  const size_t size = SizeOf(x->tensor().dtype());
  Args args;
  SliceSpec spec;
  HEDDLE_RETURN_IF_ERROR(ReadArgs<kStrided>(ctx, &args));
  if (!args.fixed()) return std::unique_ptr<KernelState>();
  HEDDLE_RETURN_IF_ERROR(ResolveArgs<kStrided>(ctx, shape, &args, &spec));
  if constexpr (kGrad) {
    HEDDLE_RETURN_IF_ERROR(CheckGrad(ctx.InVar("Out@GRAD")->tensor(), spec));
    return std::unique_ptr<KernelState>(new CopyState(CopyInto(shape, spec, size)));
  } else {
    return std::unique_ptr<KernelState>(
        new SliceState(CopyOutOf(shape, spec, size), spec, ctx.IntList("decrease_axis")));
  }
}

// The items [begin, end) of an array of `n` tensors that the first start and end name.
Status ArrayRange(const KernelContext& ctx, int64_t n, int64_t* begin, int64_t* end) {
  Args args;
  HEDDLE_RETURN_IF_ERROR(ReadArgs<false>(ctx, &args));
  if (args.starts.n < 1 || args.ends.n < 1)
    return InvalidArgument("a slice of a tensor array needs a start and an end");
  const bool single = !ctx.IntList("decrease_axis").empty();
  *begin = args.starts[0] < 0 ? args.starts[0] + n : args.starts[0];
  *end = args.ends[0] < 0 ? args.ends[0] + n : args.ends[0];
  *begin = std::max<int64_t>(*begin, 0);
  *end = single ? *begin + 1 : std::min(std::max(*end, *begin), n);
  if (*begin >= n || *end > n || *begin >= *end)
    return OutOfRange("items ", *begin, " to ", *end, " of a tensor array with ", n, " items");
  return Status::Ok();
}

Status SliceArray(KernelContext& ctx, const TensorArray& x) {
  int64_t begin = 0, end = 0;
  HEDDLE_RETURN_IF_ERROR(ArrayRange(ctx, static_cast<int64_t>(x.size()), &begin, &end));
  if (!ctx.IntList("decrease_axis").empty()) {
    const Tensor& item = x[static_cast<size_t>(begin)];
    Tensor& out = ctx.Alloc("Out", item.dtype(), item.shape());
    if (item.initialized()) CopyBytes(ctx, item.raw(), out.mutable_raw(), item.bytes());
    if (item.has_lod()) out.set_lod(item.lod());
    return Status::Ok();
  }
  TensorArray items;
  for (int64_t i = begin; i < end; ++i) items.push_back(x[static_cast<size_t>(i)].Clone());
  ctx.OutVar("Out")->mutable_array() = std::move(items);
  return Status::Ok();
}

// The gradient of an array's slice: items outside it get zeros.
Status SliceArrayGrad(KernelContext& ctx, const TensorArray& x) {
  int64_t begin = 0, end = 0;
  HEDDLE_RETURN_IF_ERROR(ArrayRange(ctx, static_cast<int64_t>(x.size()), &begin, &end));
  const Value* grad = ctx.InVar("Out@GRAD");
  TensorArray items;
  for (size_t i = 0; i < x.size(); ++i) {
    const auto at = static_cast<int64_t>(i) - begin;
    const Tensor* from = nullptr;
    if (at >= 0 && at < end - begin) {
      if (grad->is_tensor() && at == 0) from = &grad->tensor();
      if (grad->is_array() && at < static_cast<int64_t>(grad->array().size()))
        from = &grad->array()[static_cast<size_t>(at)];
    }
    items.push_back(from != nullptr && from->initialized()
                        ? from->Clone()
                        : Tensor::Zeros(x[i].dtype(), x[i].shape()));
    if (!items.back().initialized()) return ResourceExhausted("no memory for a gradient");
  }
  ctx.OutVar("Input@GRAD")->mutable_array() = std::move(items);
  return Status::Ok();
}

template <bool kStrided>
Status Slice(KernelContext& ctx) {
  const Value* input = ctx.InVar("Input");
  if (!kStrided && input != nullptr && input->is_array()) return SliceArray(ctx, input->array());
  const Tensor& x = ctx.In("Input");
  Tensor& out = ctx.Out("Out");
  if (ctx.has_state()) {
    ctx.State<CopyState>().copy.Run(ctx, x.raw(), out.mutable_raw());
    return Status::Ok();
  }
  Args args;
  SliceSpec spec;
  HEDDLE_RETURN_IF_ERROR(ResolveArgs<kStrided>(ctx, x.shape(), &args, &spec));
  // Dropped axes were assumed to have one element when Out was allocated.
  HEDDLE_ASSIGN_OR_RETURN(const Shape part, DropAxes(spec.counts(), ctx.IntList("decrease_axis")));
  if (part.numel() != out.numel())
    return InvalidArgument("the slice ", part.ToString(), " of Input ", x.shape().ToString(),
                           " is not of the shape of Out, ", out.shape().ToString());
  CopyOutOf(x.shape(), spec, SizeOf(x.dtype())).Run(ctx, x.raw(), out.mutable_raw());
  return Status::Ok();
}

template <bool kStrided>
Status SliceGrad(KernelContext& ctx) {
  const Value* input = ctx.InVar("Input");
  if (!kStrided && input != nullptr && input->is_array())
    return SliceArrayGrad(ctx, input->array());
  const Tensor& grad = ctx.In("Out@GRAD");
  Tensor& out = ctx.Out("Input@GRAD");
  ZeroBytes(ctx, out.mutable_raw(), out.bytes());
  if (ctx.has_state()) {
    ctx.State<CopyState>().copy.Run(ctx, grad.raw(), out.mutable_raw());
    return Status::Ok();
  }
  Args args;
  SliceSpec spec;
  HEDDLE_RETURN_IF_ERROR(ResolveArgs<kStrided>(ctx, out.shape(), &args, &spec));
  HEDDLE_RETURN_IF_ERROR(CheckGrad(grad, spec));
  CopyInto(out.shape(), spec, SizeOf(out.dtype())).Run(ctx, grad.raw(), out.mutable_raw());
  return Status::Ok();
}

// Slots and attributes that all four operators share.
void DeclareSlice(OpDef& op, bool strided, unsigned flags) {
  op.Input("StartsTensor", kOptional | flags)
      .Input("EndsTensor", kOptional | flags)
      .Input("StartsTensorList", kOptional | kList | flags)
      .Input("EndsTensorList", kOptional | kList | flags)
      .Attr("axes", Ints{})
      .Attr("starts", Ints{})
      .Attr("ends", Ints{})
      .Attr("infer_flags", Ints{})
      .Attr("decrease_axis", Ints{});
  if (!strided) return;
  op.Input("StridesTensor", kOptional | flags)
      .Input("StridesTensorList", kOptional | kList | flags)
      .Attr("strides", Ints{});
}

template <bool kStrided>
void DeclareForward(OpDef& op) {
  op.Input("Input", kAnyKind | kTakesArray);
  DeclareSlice(op, kStrided, kShapeValue);
  op.Output("Out", kTakesArray)
      .Traits(kWindows)
      .InferShape(SliceShape<kStrided>)
      .Prepare(PrepareSlice<kStrided, false>)
      .AnyKernel(Slice<kStrided>);
}

template <bool kStrided>
void DeclareSliceGrad(OpDef& op) {
  op.Input("Out@GRAD", kAnyKind | kTakesArray).Input("Input", kNoBuffer | kAnyKind | kTakesArray);
  DeclareSlice(op, kStrided, 0);
  op.Output("Input@GRAD", kTakesArray)
      .InferShape(SliceGradShape)
      .Prepare(PrepareSlice<kStrided, true>)
      .AnyKernel(SliceGrad<kStrided>);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(slice) {
  op.Doc("Input[start:end] along each of `axes`; also of a tensor array.");
  DeclareForward<false>(op);
}
HEDDLE_OP(slice_grad) { DeclareSliceGrad<false>(op); }
HEDDLE_OP(strided_slice) {
  op.Doc("Input[start:end:stride] along each of `axes`; strides may be negative.");
  DeclareForward<true>(op);
}
HEDDLE_OP(strided_slice_grad) { DeclareSliceGrad<true>(op); }

HEDDLE_EXAMPLES(slice, R"(
example int64 2x3x1x3, axes 0 1 2 3, decrease_axis 0 1 2 3, ends 1 3 1 1
attr axes INTS [0, 1, 2, 3]
attr decrease_axis INTS [0, 1, 2, 3]
attr ends INTS [1, 3, 1, 1]
attr infer_flags INTS [-1, -1, -1, -1]
attr starts INTS [0, 2, 0, 0]
in EndsTensor int32 [4] 1 3 1 1
in Input int64 [2, 3, 1, 3] -9 -6 -5 -9 -5 -8 -5 -7 -1 -2 -6 -6 1 -1 -5*4
in StartsTensor int32 [4] 0 2 0 0
out Out int64 [] -5

example float64 4x3x3, axes 1 2, infer_flags -1 -1
attr axes INTS [1, 2]
attr infer_flags INTS [-1, -1]
in EndsTensorList int32 [] 3
in EndsTensorList int32 [] 3
in Input float64 [4, 3, 3] 0.567 0.299 0.916 0.647 0.513 0.406 0.245 0.728 0.379 0.164 0.889 0.942
  0.969 0.191 0.218 0.621 0.325 0.03 0.352 0.54 0.862 0.674 0.433 0.057 0.138 0.272 0.808 0.111 0.46
  0.701 0.755 0.084 0.835 0.781 0.594 0.486
in StartsTensorList int32 [] 1
in StartsTensorList int32 [] 1
out Out float64 [4, 2, 2] 0.513 0.406 0.728 0.379 0.191 0.218 0.325 0.03 0.433 0.057 0.272 0.808
  0.084 0.835 0.594 0.486

example float32 3x4x3, axes 2, decrease_axis 2, ends 1, infer_flags 1, starts 0
attr axes INTS [2]
attr decrease_axis INTS [2]
attr ends INTS [1]
attr infer_flags INTS [1]
attr starts INTS [0]
in Input float32 [3, 4, 3] 0.08 -0.23 -0.07 0.81 0.71 -0.39 0.24 -0.91 -0.34 -0.75 -0.28 0.19 -0.65
  -0.44 0.6 -0.7 0.5 -0.6 -0.86 0.66 0.76 -0.49 0.13 -0.13 -0.02 0.92 -0.81 0.55 -0.18 0.45 0.34
  0.87 0.4 0.29 -0.54 0.03
out Out float32 [3, 4] 0.08 0.81 0.24 -0.75 -0.65 -0.7 -0.86 -0.49 -0.02 0.55 0.34 0.29

example float64 3x4x3x2, axes 0 1 2, decrease_axis 0, ends 2 3 4, infer_flags 1 -1 1
attr axes INTS [0, 1, 2]
attr decrease_axis INTS [0]
attr ends INTS [2, 3, 4]
attr infer_flags INTS [1, -1, 1]
attr starts INTS [1, -1, 2]
in Input float64 [3, 4, 3, 2] 0.821 0.629 0.342 0.082 0.602 0.37 0.274 0.712 0.985 0.698 0.944 0.52
  0.78 0.931 0.889 0.301 0.233 0.383 0.014 0.096 0.493 0.561 0.205 0.356 0.876 0.588 0.11 0.123
  0.068 0.438 0.616 0.835 0.287 0.137 0.506 0.794 0.643 0.246 0.917 0.671 0.219 0.26 0.807 0.753
  0.862 0.055 0.657 0.328 0.164 0.041 0.424 0.848 0.411 0.192 0.547 0.958 0.465 0.725 0.972 0.575
  0.684 0.151 0.479 0.534 0.027 0.397 0.315 0.739 0.178 0.903 0.452 0.766
in StartsTensorList int32 [1] 1
in StartsTensorList int32 [1] 0
in StartsTensorList int32 [1] 2
out Out float64 [3, 1, 2] 0.068 0.438 0.506 0.794 0.219 0.26
)")

HEDDLE_EXAMPLES(slice_grad, R"(
example int32 2, axes 0 1, ends 1 1, infer_flags -1 -1, starts 0 0
attr axes INTS [0, 1]
attr ends INTS [1, 1]
attr infer_flags INTS [-1, -1]
attr starts INTS [0, 0]
in EndsTensor int32 [2] 1 1
in Input float64 [1, 2] 0.29 0.65
in Out@GRAD float64 [1, 1] 0.3
in StartsTensor int32 [2] 0 0
out Input@GRAD float64 [1, 2] 0.3 0

example float64 6, axes 0, ends 5, infer_flags 1, starts 4
attr axes INTS [0]
attr ends INTS [5]
attr infer_flags INTS [1]
attr starts INTS [4]
in Input float64 [6] -0.4 0.42 -0.13 0.69 -0.67 0.14
in Out@GRAD float64 [1] -0.4
out Input@GRAD float64 [6] 0*4 -0.4 0

example float32 6, axes 0, ends 5, infer_flags 1, starts 4
attr axes INTS [0]
attr ends INTS [5]
attr infer_flags INTS [1]
attr starts INTS [4]
in Input float32 [6] -0.4 0.42 -0.13 0.69 -0.67 0.14
in Out@GRAD float32 [1] -0.4
out Input@GRAD float32 [6] 0*4 -0.4 0
)")

HEDDLE_EXAMPLES(strided_slice, R"(
example bool 4x4, axes 0 1, ends 2 2, infer_flags 1 1, starts 1 0, strides 1 1
attr axes INTS [0, 1]
attr ends INTS [2, 2]
attr infer_flags INTS [1, 1]
attr starts INTS [1, 0]
attr strides INTS [1, 1]
in Input bool [4, 4] 1 0 1 1 0*6 1 0 1*4
out Out bool [1, 2] 0 0

example float32 3x4, axes 1, ends 1000, infer_flags 1, starts 2, strides 1
attr axes INTS [1]
attr ends INTS [1000]
attr infer_flags INTS [1]
attr starts INTS [2]
attr strides INTS [1]
in Input float32 [3, 4] -0.47 0.35 -0.2 -0.33 0.08 -0.06 -0.75 0.21 0.49 0.62 0.76 -0.61
out Out float32 [3, 2] -0.2 -0.33 -0.75 0.21 0.76 -0.61

example float64 8, axes 0, ends 0, infer_flags 1, starts 7, strides -3
attr axes INTS [0]
attr ends INTS [0]
attr infer_flags INTS [1]
attr starts INTS [7]
attr strides INTS [-3]
in Input float64 [8] -0.201 0.094 0.389 -0.004 -0.102 0.488 0.193 0.291
out Out float64 [3] 0.291 -0.102 0.094

example bool 3x4x3, axes 0 1 2, ends 2 -3 5, infer_flags 1 1 1, starts 0 -1 0
attr axes INTS [0, 1, 2]
attr ends INTS [2, -3, 5]
attr infer_flags INTS [1, 1, 1]
attr starts INTS [0, -1, 0]
attr strides INTS [1, -1, 1]
in Input bool [3, 4, 3] 0 1 1 0 1*5 0 0 1 1 1 0 1 1 1 0 0 1 0 1 1 1 0 1 0 0 1*4 0 0 1
out Out bool [2, 2, 3] 0 0 1*4 0 1 1 0 0 1
)")

HEDDLE_EXAMPLES(strided_slice_grad, R"(
example float64 8, axes 0, ends 1000, infer_flags -1, starts 2, strides 3
attr axes INTS [0]
attr ends INTS [1000]
attr infer_flags INTS [-1]
attr starts INTS [2]
attr strides INTS [3]
in EndsTensor int32 [1] 1000
in Input float64 [8] -0.77 -0.13 0.5 0.08 -0.56 0.72 -0.34 0.29
in Out@GRAD float64 [2] 0.2 0
in StartsTensor int32 [1] 2
in StridesTensor int32 [1] 3
out Input@GRAD float64 [8] 0 0 0.2 0*5

example float64 1x4x1, axes 1, ends -2, infer_flags 1, starts -1, strides -1
attr axes INTS [1]
attr ends INTS [-2]
attr infer_flags INTS [1]
attr starts INTS [-1]
attr strides INTS [-1]
in Input float64 [1, 4, 1] 0.408 0.604 0.8 0.212
in Out@GRAD float64 [1, 1, 1] 0.1
out Input@GRAD float64 [1, 4, 1] 0 0 0 0.1

example bfloat16 4, axes 0, ends -3, infer_flags 1, starts -4, strides 1
attr axes INTS [0]
attr ends INTS [-3]
attr infer_flags INTS [1]
attr starts INTS [-4]
attr strides INTS [1]
in Input bfloat16 [4] 0.3 0.5 0.1 0.1
in Out@GRAD bfloat16 [1] 1
out Input@GRAD bfloat16 [4] 1 0 0 0

example float32 1x4x1, axes 1, ends -2, infer_flags 1, starts -1, strides -1
attr axes INTS [1]
attr ends INTS [-2]
attr infer_flags INTS [1]
attr starts INTS [-1]
attr strides INTS [-1]
in Input float32 [1, 4, 1] 0.408 0.604 0.8 0.212
in Out@GRAD float32 [1, 1, 1] 0.1
out Input@GRAD float32 [1, 4, 1] 0 0 0 0.1
)")
