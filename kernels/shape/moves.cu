// Operators that only move elements: transposing, joining, splitting, slicing, repeating and
// reshaping. All are one strided copy of elements of 1, 2, 4 or 8 bytes.
#include <algorithm>
#include <array>

#include "core/kernel_context.h"
#include "core/shapes.h"
#include "device/cuda/grid/kernel_table.h"
#include "device/cuda/grid/reduce.h"

namespace heddle::HEDDLE_GRID {
namespace {

template <typename T>
struct CopyBody {
  Strides<2> strides;
  const T* from;
  T* to;
  HEDDLE_BODY void operator()(int64_t i) const {
    const auto p = strides.At(static_cast<uint32_t>(i));
    to[p.at[1]] = from[p.at[0]];
  }
};

// Elements of `shape` (whose order only says which belongs to which); offsets and steps in
// elements.
struct Move {
  Shape shape;
  Steps from_steps, to_steps;
  int64_t from = 0, to = 0;

  template <typename T>
  Status As(Queue& queue, const void* src, void* dst) const {
    const auto strides = MakeStrides<2>(shape, {from_steps, to_steps});
    return Each(queue, strides.numel,
                CopyBody<T>{strides, static_cast<const T*>(src) + from, static_cast<T*>(dst) + to});
  }
  Status Run(Queue& queue, DType dtype, const void* src, void* dst) const {
    switch (SizeOf(dtype)) {
      case 1:
        return As<uint8_t>(queue, src, dst);
      case 2:
        return As<uint16_t>(queue, src, dst);
      case 4:
        return As<uint32_t>(queue, src, dst);
      case 8:
        return As<uint64_t>(queue, src, dst);
      default:
        return Unimplemented("no CUDA kernel moves ", Name(dtype));
    }
  }
};

// Complex numbers of 16 bytes stay with the host.
bool Movable(const CallView& call) { return SizeOf(call.key()) <= 8; }
bool HasAxes(const CallView& call) {
  return !call.HasIn("Perm") && !call.Bool("reversed") && Movable(call);
}
bool HasDiagonal(const CallView& call) { return !call.HasIn("Diagonal") && Movable(call); }

// --- transpose ---

Status Permute(Queue& queue, const Tensor& x, const std::array<int, Shape::kMaxRank>& perm,
               Tensor& out) {
  Move move;
  const Steps steps = RowMajor(x.shape());
  for (int d = 0; d < x.rank(); ++d) move.from_steps.at[d] = steps.at[perm[static_cast<size_t>(d)]];
  move.shape = out.shape();
  move.to_steps = RowMajor(out.shape());
  return move.Run(queue, x.dtype(), x.raw(), out.mutable_raw());
}
Result<std::array<int, Shape::kMaxRank>> PermOf(const OpContext& ctx, int rank) {
  std::array<int, Shape::kMaxRank> perm{};
  const Ints& axis = ctx.IntList("axis");
  if (std::ssize(axis) != rank) return InvalidArgument("'axis' does not fit the tensor's rank");
  for (int d = 0; d < rank; ++d) {
    HEDDLE_ASSIGN_OR_RETURN(perm[static_cast<size_t>(d)],
                            NormalAxis(axis[static_cast<size_t>(d)], rank));
  }
  return perm;
}
Status Transpose(Queue& queue, KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  HEDDLE_ASSIGN_OR_RETURN(const auto perm, PermOf(ctx, x.rank()));
  return Permute(queue, x, perm, ctx.Out("Out"));
}
Status TransposeGrad(Queue& queue, KernelContext& ctx) {
  const Tensor& grad = ctx.In("Out@GRAD");
  HEDDLE_ASSIGN_OR_RETURN(const auto perm, PermOf(ctx, grad.rank()));
  std::array<int, Shape::kMaxRank> inverse{};
  for (int d = 0; d < grad.rank(); ++d)
    inverse[static_cast<size_t>(perm[static_cast<size_t>(d)])] = d;
  return Permute(queue, grad, inverse, ctx.Out("X@GRAD"));
}

// --- joining and cutting: rows of a whole, of which parts have `width` elements side by side ---

Status MoveRows(Queue& queue, DType dtype, int64_t rows, int64_t width, const void* src,
                int64_t from, int64_t from_step, void* dst, int64_t to, int64_t to_step) {
  Move move;
  move.shape = Shape{rows, width};
  move.from_steps.at[0] = from_step, move.from_steps.at[1] = 1;
  move.to_steps.at[0] = to_step, move.to_steps.at[1] = 1;
  move.from = from, move.to = to;
  return move.Run(queue, dtype, src, dst);
}

// The parts of a whole along an axis; `stacked`: the axis is a new one, each part a single item.
struct Parts {
  int64_t rows = 1, inner = 1, row = 1;
  Parts(const Shape& whole, int axis)
      : rows(whole.Product(0, axis)),
        inner(whole.Product(axis + 1, whole.rank())),
        row(whole.rank() == 0 ? 1 : whole[axis] * inner) {}
};

Status Join(Queue& queue, KernelContext& ctx, Key in, Key out_key, bool stacked) {
  Tensor& out = ctx.Out(out_key);
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), out.rank()));
  const Parts parts(out.shape(), axis);
  int64_t at = 0;
  for (int i = 0; i < ctx.InCount(in); ++i) {
    const Tensor& x = ctx.In(in, i);
    if (x.dtype() != out.dtype()) return InvalidArgument("'", in.name, "' mixes dtypes");
    const int64_t width = stacked ? parts.inner : x.dim(axis) * parts.inner;
    HEDDLE_RETURN_IF_ERROR(MoveRows(queue, x.dtype(), parts.rows, width, x.raw(), 0, width,
                                    out.mutable_raw(), at, parts.row));
    at += width;
  }
  return Status::Ok();
}
// `like`: the slot whose operands have the lengths of the parts; the outputs when it is empty.
Status TakeApart(Queue& queue, KernelContext& ctx, Key in, Key out_key, bool stacked,
                 const Key* like) {
  const Tensor& x = ctx.In(in);
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), x.rank()));
  const Parts parts(x.shape(), axis);
  int64_t at = 0;
  for (int i = 0; i < ctx.OutCount(out_key); ++i) {
    const bool there = ctx.HasOut(out_key, i);
    int64_t width = parts.inner;
    if (!stacked)
      width *= like != nullptr ? ctx.In(*like, i).dim(axis) : ctx.Out(out_key, i).dim(axis);
    if (there)
      HEDDLE_RETURN_IF_ERROR(MoveRows(queue, x.dtype(), parts.rows, width, x.raw(), at, parts.row,
                                      ctx.Out(out_key, i).mutable_raw(), 0, width));
    at += width;
  }
  return Status::Ok();
}

Status Concat(Queue& queue, KernelContext& ctx) { return Join(queue, ctx, "X", "Out", false); }
Status ConcatGrad(Queue& queue, KernelContext& ctx) {
  static constexpr Key kLike = "X";
  return TakeApart(queue, ctx, "Out@GRAD", "X@GRAD", false, &kLike);
}
Status Split(Queue& queue, KernelContext& ctx) {
  return TakeApart(queue, ctx, "X", "Out", false, nullptr);
}
Status Stack(Queue& queue, KernelContext& ctx) { return Join(queue, ctx, "X", "Y", true); }
Status StackGrad(Queue& queue, KernelContext& ctx) {
  return TakeApart(queue, ctx, "Y@GRAD", "X@GRAD", true, nullptr);
}
Status Unstack(Queue& queue, KernelContext& ctx) {
  return TakeApart(queue, ctx, "X", "Y", true, nullptr);
}
Status Unbind(Queue& queue, KernelContext& ctx) {
  return TakeApart(queue, ctx, "X", "Out", true, nullptr);
}

bool CoversConcat(const CallView& call) {
  if (call.HasIn("AxisTensor")) return false;
  const bool grad = call.def().FindInput("Out@GRAD") >= 0;
  for (int i = 0; !grad && i < call.InCount("X"); ++i)
    if (call.InDType("X", i) != call.InDType("X")) return false;
  return Movable(call);
}
bool CoversSplit(const CallView& call) {
  for (int i = 0; i < call.OutCount("Out"); ++i)
    if (!call.HasOut("Out", i)) return false;
  return !call.HasIn("AxisTensor") && !call.HasIn("SectionsTensor") && Movable(call);
}
bool CoversStack(const CallView& call) {
  for (int i = 0; i < call.InCount("X"); ++i)
    if (call.InDType("X", i) != call.InDType("X")) return false;
  return Movable(call);
}

// --- slice ---

// The offset and steps of the slice in `x`; `part` has the slice's shape.
struct SlicePlace {
  Shape part;
  Steps steps;
  int64_t at = 0;
};
Result<SlicePlace> PlaceOf(const OpContext& ctx, const Shape& x, const Shape& slice) {
  const Ints& axes = ctx.IntList("axes");
  const Ints& starts = ctx.IntList("starts");
  const bool strided = ctx.def().FindAttr("strides") >= 0;
  if (starts.size() != axes.size()) return InvalidArgument("'starts' does not fit 'axes'");
  unsigned dropped = 0;
  for (const int64_t d : ctx.IntList("decrease_axis")) {
    HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(d, x.rank()));
    dropped |= 1u << axis;
  }
  SlicePlace place;
  place.steps = RowMajor(x);
  for (int d = 0, k = 0; d < x.rank(); ++d) {
    const bool one = (dropped >> d & 1) != 0 || k >= slice.rank();
    place.part.push_back(one ? 1 : slice[k++]);
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(axes[i], x.rank()));
    const int64_t step = strided ? ctx.IntList("strides").at(i) : 1;
    int64_t start = starts[i] < 0 ? starts[i] + x[axis] : starts[i];
    start = std::clamp<int64_t>(start, 0, std::max<int64_t>(0, step > 0 ? x[axis] : x[axis] - 1));
    place.at += start * place.steps.at[axis];
    place.steps.at[axis] *= step;
  }
  if (place.part.numel() != slice.numel())
    return InvalidArgument("a slice of ", x.ToString(), " does not give ", slice.ToString());
  return place;
}

Status Slice(Queue& queue, KernelContext& ctx) {
  const Tensor& x = ctx.In("Input");
  Tensor& out = ctx.Out("Out");
  HEDDLE_ASSIGN_OR_RETURN(const SlicePlace p, PlaceOf(ctx, x.shape(), out.shape()));
  const Move move{p.part, p.steps, RowMajor(p.part), p.at, 0};
  return move.Run(queue, x.dtype(), x.raw(), out.mutable_raw());
}
Status SliceGrad(Queue& queue, KernelContext& ctx) {
  const Tensor& grad = ctx.In("Out@GRAD");
  Tensor& out = ctx.Out("Input@GRAD");
  HEDDLE_ASSIGN_OR_RETURN(const SlicePlace p, PlaceOf(ctx, out.shape(), grad.shape()));
  HEDDLE_RETURN_IF_ERROR(queue.Zero(out.mutable_raw(), out.bytes()));
  const Move move{p.part, RowMajor(p.part), p.steps, 0, p.at};
  return move.Run(queue, grad.dtype(), grad.raw(), out.mutable_raw());
}
bool CoversSlice(const CallView& call) {
  if (call.HasIn("StartsTensor") || call.HasIn("EndsTensor") ||
      call.InCount("StartsTensorList") > 0 || call.InCount("EndsTensorList") > 0)
    return false;
  if (call.def().FindInput("StridesTensor") >= 0 &&
      (call.HasIn("StridesTensor") || call.InCount("StridesTensorList") > 0 ||
       call.HasIn("AxesTensor") || call.Str("bounds") != "before_first"))
    return false;
  return Movable(call);
}

// --- repeating ---

Status Expand(Queue& queue, KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  Tensor& out = ctx.Out("Out");
  const Shape& shape = out.shape();
  const Move move{shape, Spread(x.shape(), shape, shape.rank() - x.rank()), RowMajor(shape)};
  return move.Run(queue, x.dtype(), x.raw(), out.mutable_raw());
}

template <typename T>
struct Load {
  RealIn<T> x;
  HEDDLE_BODY float operator()(const Strides<1>::Places& p) const { return x[p.at[0]]; }
};
Status ExpandGrad(Queue& queue, KernelContext& ctx) {
  const Tensor& grad = ctx.In("Out@GRAD");
  Tensor& out = ctx.Out("X@GRAD");
  const Shape &from = grad.shape(), &to = out.shape();
  const int lead = from.rank() - to.rank();
  Strides<1> kept, reduced;
  Cut<1>(
      from, {RowMajor(from)}, [&](int d) { return d >= lead && to[d - lead] == from[d]; }, &kept,
      &reduced);
  return VisitReal(grad.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return ReduceInto<SumOp>(queue, kept, reduced, Load<T>{ReadOf<T>(grad)}, out.mutable_data<T>());
  });
}
bool ShapesRepeat(const CallView& call) {
  const Shape &x = call.InShape("X"), &out = call.OutShape("Out");
  for (int d = 0; d < x.rank(); ++d) {
    const int at = out.rank() - x.rank() + d;
    if (at < 0 || (x[d] != 1 && x[d] != out[at])) return false;
  }
  return Movable(call);
}

// --- triangles ---

template <typename T>
struct TriangleBody {
  const T* x;
  T* out;
  int64_t rows, cols, diagonal;
  bool lower;
  HEDDLE_BODY void operator()(int64_t i) const {
    const int64_t below = i / cols % rows - i % cols + diagonal;  // of the diagonal
    out[i] = (lower ? below >= 0 : below <= 0) ? x[i] : T(0);
  }
};
template <typename T>
Status TriangleAs(Queue& queue, const OpContext& ctx, const Tensor& x, Tensor& out) {
  return Each(queue, x.numel(),
              TriangleBody<T>{x.data<T>(), out.mutable_data<T>(), x.dim(-2), x.dim(-1),
                              ctx.Int("diagonal"), ctx.Bool("lower")});
}
Status TriangleOf(Queue& queue, const OpContext& ctx, const Tensor& x, Tensor& out) {
  if (x.rank() < 2) return InvalidArgument("'X' must have two dimensions or more");
  switch (SizeOf(x.dtype())) {
    case 1:
      return TriangleAs<uint8_t>(queue, ctx, x, out);
    case 2:
      return TriangleAs<uint16_t>(queue, ctx, x, out);
    case 4:
      return TriangleAs<uint32_t>(queue, ctx, x, out);
    default:
      return TriangleAs<uint64_t>(queue, ctx, x, out);
  }
}
Status Triangle(Queue& queue, KernelContext& ctx) {
  return TriangleOf(queue, ctx, ctx.In("X"), ctx.Out("Out"));
}
Status TriangleGrad(Queue& queue, KernelContext& ctx) {
  return TriangleOf(queue, ctx, ctx.In("Out@GRAD"), ctx.Out("X@GRAD"));
}

// --- another shape: where the memory cannot be shared ---

Status Reshape(Queue& queue, KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  Tensor& out = ctx.Out("Out");
  return x.raw() == out.raw() ? Status::Ok() : queue.Copy(out.mutable_raw(), x.raw(), x.bytes());
}
Status ReshapeGrad(Queue& queue, KernelContext& ctx) {
  const Tensor& x = ctx.In("Out@GRAD");
  Tensor& out = ctx.Out("X@GRAD");
  return x.raw() == out.raw() ? Status::Ok() : queue.Copy(out.mutable_raw(), x.raw(), x.bytes());
}

}  // namespace
}  // namespace heddle::HEDDLE_GRID

HEDDLE_CUDA_KERNEL(reshape) { kernel = {Reshape, nullptr, kAnyDType}; }
HEDDLE_CUDA_KERNEL(reshape2) { kernel = {Reshape, nullptr, kAnyDType}; }
HEDDLE_CUDA_KERNEL(flatten2) { kernel = {Reshape, nullptr, kAnyDType}; }
HEDDLE_CUDA_KERNEL(flatten_contiguous_range) { kernel = {Reshape, nullptr, kAnyDType}; }
HEDDLE_CUDA_KERNEL(squeeze) { kernel = {Reshape, nullptr, kAnyDType}; }
HEDDLE_CUDA_KERNEL(squeeze2) { kernel = {Reshape, nullptr, kAnyDType}; }
HEDDLE_CUDA_KERNEL(unsqueeze) { kernel = {Reshape, nullptr, kAnyDType}; }
HEDDLE_CUDA_KERNEL(unsqueeze2) { kernel = {Reshape, nullptr, kAnyDType}; }
HEDDLE_CUDA_KERNEL(reshape_grad) { kernel = {ReshapeGrad, nullptr, kAnyDType}; }
HEDDLE_CUDA_KERNEL(reshape2_grad) { kernel = {ReshapeGrad, nullptr, kAnyDType}; }
HEDDLE_CUDA_KERNEL(flatten2_grad) { kernel = {ReshapeGrad, nullptr, kAnyDType}; }
HEDDLE_CUDA_KERNEL(flatten_contiguous_range_grad) { kernel = {ReshapeGrad, nullptr, kAnyDType}; }
HEDDLE_CUDA_KERNEL(squeeze_grad) { kernel = {ReshapeGrad, nullptr, kAnyDType}; }
HEDDLE_CUDA_KERNEL(squeeze2_grad) { kernel = {ReshapeGrad, nullptr, kAnyDType}; }
HEDDLE_CUDA_KERNEL(unsqueeze_grad) { kernel = {ReshapeGrad, nullptr, kAnyDType}; }
HEDDLE_CUDA_KERNEL(unsqueeze2_grad) { kernel = {ReshapeGrad, nullptr, kAnyDType}; }
HEDDLE_CUDA_KERNEL(transpose) { kernel = {Transpose, Movable, kAnyDType}; }
HEDDLE_CUDA_KERNEL(transpose2) { kernel = {Transpose, HasAxes, kAnyDType}; }
HEDDLE_CUDA_KERNEL(transpose_grad) { kernel = {TransposeGrad, Movable, kAnyDType}; }
HEDDLE_CUDA_KERNEL(transpose2_grad) { kernel = {TransposeGrad, HasAxes, kAnyDType}; }
HEDDLE_CUDA_KERNEL(concat) { kernel = {Concat, CoversConcat, kAnyDType}; }
HEDDLE_CUDA_KERNEL(concat_grad) { kernel = {ConcatGrad, CoversConcat, kAnyDType}; }
HEDDLE_CUDA_KERNEL(split) { kernel = {Split, CoversSplit, kAnyDType}; }
HEDDLE_CUDA_KERNEL(stack) { kernel = {Stack, CoversStack, kAnyDType}; }
HEDDLE_CUDA_KERNEL(stack_grad) { kernel = {StackGrad, Movable, kAnyDType}; }
HEDDLE_CUDA_KERNEL(unstack) { kernel = {Unstack, Movable, kAnyDType}; }
HEDDLE_CUDA_KERNEL(unbind) { kernel = {Unbind, Movable, kAnyDType}; }
HEDDLE_CUDA_KERNEL(slice) { kernel = {Slice, CoversSlice, kAnyDType}; }
HEDDLE_CUDA_KERNEL(slice_grad) { kernel = {SliceGrad, CoversSlice, kAnyDType}; }
HEDDLE_CUDA_KERNEL(strided_slice) { kernel = {Slice, CoversSlice, kAnyDType}; }
HEDDLE_CUDA_KERNEL(strided_slice_grad) { kernel = {SliceGrad, CoversSlice, kAnyDType}; }
HEDDLE_CUDA_KERNEL(expand_v2) { kernel = {Expand, ShapesRepeat, kAnyDType}; }
HEDDLE_CUDA_KERNEL(expand_as_v2) { kernel = {Expand, ShapesRepeat, kAnyDType}; }
HEDDLE_CUDA_KERNEL(expand_v2_grad) { kernel = {ExpandGrad, nullptr, kReals}; }
HEDDLE_CUDA_KERNEL(expand_as_v2_grad) { kernel = {ExpandGrad, nullptr, kReals}; }
HEDDLE_CUDA_KERNEL(tril_triu) { kernel = {Triangle, HasDiagonal, kAnyDType}; }
HEDDLE_CUDA_KERNEL(tril_triu_grad) { kernel = {TriangleGrad, HasDiagonal, kAnyDType}; }
