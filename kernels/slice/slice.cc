// slice and strided_slice.
#include <algorithm>
#include <limits>

#include "core/operands/slot_kinds.h"
#include "core/operands/window.h"
#include "core/shapes.h"
#include "kernels/operands/operands.h"
#include "kernels/strided/index_slice.h"

namespace heddle {
namespace {

struct Args {
  IntArgs axes, starts, ends, strides;
  bool fixed() const {
    return !axes.tensors && !starts.tensors && !ends.tensors && !strides.tensors;
  }
};

// What bounds beyond an axis mean.
enum class Bounds : uint8_t {
  kBeforeFirst,  // going backwards, an end of -1 is the place before element 0
  kFromEnd,      // all negative ones count from the end, and are clamped to the axis
};
Result<Bounds> BoundsOf(const OpContext& ctx) {
  const std::string& name = ctx.Str("bounds");
  if (name == "before_first" || name == "from_end")
    return name == "from_end" ? Bounds::kFromEnd : Bounds::kBeforeFirst;
  return InvalidArgument("bounds is '", name, "', expected before_first or from_end");
}

template <bool kStrided>
Status ReadArgs(const OpContext& ctx, Args* args) {
  HEDDLE_RETURN_IF_ERROR(
      ReadInts(ctx, "StartsTensorList", "StartsTensor", "starts", &args->starts));
  HEDDLE_RETURN_IF_ERROR(ReadInts(ctx, "EndsTensorList", "EndsTensor", "ends", &args->ends));
  if constexpr (kStrided) {
    HEDDLE_RETURN_IF_ERROR(ReadInts(ctx, "AxesTensor", "axes", &args->axes));
    return ReadInts(ctx, "StridesTensorList", "StridesTensor", "strides", &args->strides);
  }
  const Ints& axes = ctx.IntList("axes");
  args->axes.n = static_cast<int>(std::min(axes.size(), size_t{IntArgs::kMax}));
  std::copy_n(axes.begin(), args->axes.n, args->axes.values.begin());
  return Status::Ok();
}

// Bounds from the end as ResolveSlice takes them: clamped, and -1 before element 0.
void Clamp(int64_t size, int64_t step, int64_t* start, int64_t* end) {
  const auto clamp = [size](int64_t v, int64_t least, int64_t most) {
    return std::clamp<int64_t>(v < 0 ? (v < -size ? -1 : v + size) : v, least, most);
  };
  // The greatest number stands for the end of the axis: backwards, for its beginning.
  const bool all =
      *end == std::numeric_limits<int32_t>::max() || *end == std::numeric_limits<int64_t>::max();
  const int64_t last = std::max<int64_t>(0, size - 1);
  *start = clamp(*start, 0, step > 0 ? size : last);
  *end = step > 0 ? clamp(*end, 0, size) : all ? -1 : clamp(*end, -1, last);
}

// Without axes the first ones are meant, without strides 1.
Status ResolveFromEnd(const OpContext& ctx, const Shape& x, Args* args, SliceSpec* spec) {
  IntArgs &axes = args->axes, &strides = args->strides;
  const int n = args->starts.n;
  if (n > x.rank())
    return InvalidArgument("there are ", n, " starts for a tensor of shape ", x.ToString());
  const auto given = [&](Key tensor) { return Holds(ctx.InVar(tensor)); };
  if (axes.n == 0 && !given("AxesTensor") && n > 0)
    for (axes.n = 0; axes.n < n; ++axes.n) axes[axes.n] = axes.n;
  if (strides.n == 0 && !given("StridesTensor") && ctx.InCount("StridesTensorList") == 0 && n > 0)
    for (strides.n = 0; strides.n < n; ++strides.n) strides[strides.n] = 1;
  if (n < 0 || axes.n < 0 || !axes.known) {
    *spec = WholeSlice(x);
    for (int i = 0; i < x.rank(); ++i) spec->count[i] = -1;
    return Status::Ok();
  }
  HEDDLE_RETURN_IF_ERROR(NormalAxes(axes.span(), x.rank(), "axes").status());
  const bool known = args->starts.known && args->ends.known && strides.known;
  for (int i = 0; known && i < n && args->ends.n == n && strides.n == n && axes.n == n; ++i) {
    HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(axes[i], x.rank()));
    if (strides[i] == std::numeric_limits<int64_t>::min())
      return InvalidArgument("the stride of axis ", axis, " is ", strides[i]);
    if (x[axis] >= 0) Clamp(x[axis], strides[i], &args->starts[i], &args->ends[i]);
  }
  return ResolveSlice(x, axes.span(), args->starts, args->ends, &strides,
                      ctx.IntList("decrease_axis"), {}, spec);
}

// The part of `x` that the arguments, as far as they are known, describe.
template <bool kStrided>
Status ResolveArgs(const OpContext& ctx, const Shape& x, Args* args, SliceSpec* spec) {
  HEDDLE_RETURN_IF_ERROR(ReadArgs<kStrided>(ctx, args));
  IntArgs& axes = args->axes;
  if constexpr (kStrided) {
    HEDDLE_ASSIGN_OR_RETURN(const Bounds bounds, BoundsOf(ctx));
    if (bounds == Bounds::kFromEnd) return ResolveFromEnd(ctx, x, args, spec);
  }
  // Going backwards, an end before the tensor is element 0 in Paddle (and so left out); only -1
  // goes through it.
  for (int i = 0; kStrided && i < axes.n; ++i) {
    HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(axes[i], x.rank()));
    int64_t& end = args->ends[i];
    const bool back = args->strides[i] < 0;
    if (x.rank() > 0 && back && end < -1 && end < -x[axis]) end = 0;
  }
  return ResolveSlice(x, axes.span(), args->starts, args->ends, kStrided ? &args->strides : nullptr,
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
      .Input("AxesTensor", kOptional | flags)
      .Attr("strides", Ints{})
      .Attr("bounds", "before_first");
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
  op.Doc(
      "Input[start:end:stride] along each of `axes`; strides may be negative. Going backwards, an "
      "end "
      "of -1 lies before the first element, or with bounds from_end counts from the end.");
  DeclareForward<true>(op);
}
HEDDLE_OP(strided_slice_grad) { DeclareSliceGrad<true>(op); }
