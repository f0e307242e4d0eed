// Axes turned round, rolled, or in another order.
#include "core/interrupts.h"
#include "kernels/base/index_args.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

void Turn(const KernelContext& ctx, const Tensor& x, uint32_t axes, Tensor& out) {
  const auto strides = RowMajorStrides(x.shape());
  std::array<CopyDim, Shape::kMaxRank> dims;
  int64_t offset = 0;
  for (int i = 0; i < x.rank(); ++i) {
    const bool turned = ((axes >> i) & 1) != 0 && x.shape()[i] > 1;
    dims[i] = {x.shape()[i], turned ? -strides[i] : strides[i], strides[i]};
    if (turned) offset += (x.shape()[i] - 1) * strides[i];
  }
  if (x.numel() == 0) return;
  StridedCopy(SizeOf(x.dtype()), std::span(dims.data(), static_cast<size_t>(x.rank())), offset)
      .Run(ctx, x.raw(), out.mutable_raw());
}

Status ReverseV2(KernelContext& ctx) {
  const Tensor& x = ctx.In("tensor");
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts given, IntsIn(ctx, "axis"));
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts axes, NormalAxes(given, x.rank(), "axis"));
  uint32_t mask = 0;
  for (const int64_t a : axes) mask |= 1U << a;
  Turn(ctx, x, mask, ctx.Out("output"));
  return Status::Ok();
}

Status Reverse(KernelContext& ctx) {
  const Tensor &x = ctx.In("tensor"), &dims = ctx.In("dims");
  if (dims.dtype() != DType::kBool || dims.numel() != x.rank())
    return InvalidArgument("dims is ", Name(dims.dtype()), " ", dims.shape().ToString(),
                           ", expected one bool for each axis of ", x.shape().ToString());
  uint32_t mask = 0;
  for (int i = 0; i < x.rank(); ++i) mask |= dims.data<bool>()[i] ? 1U << i : 0U;
  Turn(ctx, x, mask, ctx.Out("output"));
  return Status::Ok();
}

Status RollAxes(KernelContext& ctx) {
  const Tensor& x = ctx.In("input");
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts shift, IntsIn(ctx, "shift"));
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts axes, IntsIn(ctx, "axis"));
  if (shift.size() != axes.size())
    return InvalidArgument("shift and axis have ", shift.size(), " and ", axes.size(),
                           " elements, expected one number");
  std::array<int64_t, Shape::kMaxRank> by{};
  for (size_t i = 0; i < axes.size(); ++i) {
    if (x.rank() == 0) return InvalidArgument("input is a scalar, expected at least one dimension");
    HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(axes[i], x.rank()));
    const int64_t n = std::max<int64_t>(1, x.shape()[axis]);
    by[axis] = ((by[axis] + shift[i] % n) % n + n) % n;
  }
  Tensor& out = ctx.Out("output");
  const auto strides = RowMajorStrides(x.shape());
  VisitElementSize(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = static_cast<const T*>(x.raw());
    T* to = static_cast<T*>(out.mutable_raw());
    Walk<1> walk(x.shape(), {strides});
    for (const auto some : Stretches(x.numel()))
      for (int64_t i = some.begin; i < some.end; ++i, walk.Next()) {
        int64_t at = 0;
        for (int d = 0; d < x.rank(); ++d)
          at += (walk.index(d) + by[d]) % x.shape()[d] * strides[d];
        to[at] = from[i];
      }
  });
  return Status::Ok();
}

Status ReverseSequence(KernelContext& ctx) {
  const Tensor &x = ctx.In("input"), &lens = ctx.In("seq_lengths");
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(lens.dtype(), "seq_lengths"));
  HEDDLE_ASSIGN_OR_RETURN(const int seq, NormalAxis(ctx.Int("seq_dim"), x.rank()));
  HEDDLE_ASSIGN_OR_RETURN(const int batch, NormalAxis(ctx.Int("batch_dim"), x.rank()));
  if (seq == batch || lens.rank() != 1 || lens.numel() != x.shape()[batch])
    return InvalidArgument("seq_dim is ", seq, ", batch_dim ", batch, " and seq_lengths ",
                           lens.shape().ToString(), " for input ", x.shape().ToString());
  const int64_t steps = x.shape()[seq];
  for (const auto part : Stretches(lens.numel()))
    for (int64_t i = part.begin; i < part.end; ++i)
      if (const int64_t n = IntAt(lens, i); n < 0 || n > steps)
        return OutOfRange("seq_lengths holds ", n, ", expected 0 to ", steps);
  Tensor& out = ctx.Out("output");
  const auto strides = RowMajorStrides(x.shape());
  VisitElementSize(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = static_cast<const T*>(x.raw());
    T* to = static_cast<T*>(out.mutable_raw());
    Walk<1> walk(x.shape(), {strides});
    for (const auto some : Stretches(x.numel()))
      for (int64_t i = some.begin; i < some.end; ++i, walk.Next()) {
        const int64_t t = walk.index(seq), length = IntAt(lens, walk.index(batch));
        to[i] = from[i + (t < length ? length - 1 - 2 * t : 0) * strides[seq]];
      }
  });
  return Status::Ok();
}

template <typename Context>
Result<std::array<int, Shape::kMaxRank>> PermIn(const Context& ctx, int rank) {
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts given, IntsIn(ctx, "perm"));
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts perm, NormalAxes(given, rank, "perm"));
  if (static_cast<int>(perm.size()) != rank)
    return InvalidArgument("perm has ", perm.size(), " elements, expected ", rank);
  std::array<int, Shape::kMaxRank> axes{};
  for (int i = 0; i < rank; ++i) axes[i] = static_cast<int>(perm[static_cast<size_t>(i)]);
  return axes;
}

Status PermuteAxesShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("x");
  if (!x.known_rank() || !Known(ctx, "perm")) return SameRank(ctx, "x", "y");
  HEDDLE_ASSIGN_OR_RETURN(const auto perm, PermIn(ctx, x.rank()));
  Shape out = x;
  for (int i = 0; i < x.rank(); ++i) out[i] = x[perm[i]];
  ctx.SetOut("y", out, ctx.InDType("x"));
  return Status::Ok();
}

Status PermuteAxes(KernelContext& ctx) {
  const Tensor& x = ctx.In("x");
  HEDDLE_ASSIGN_OR_RETURN(const auto perm, PermIn(ctx, x.rank()));
  if (x.numel() == 0) return Status::Ok();
  PermuteCopy(SizeOf(x.dtype()), x.shape(), std::span(perm.data(), static_cast<size_t>(x.rank())))
      .Run(ctx, x.raw(), ctx.Out("y").mutable_raw());
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_reverse_v2) {
  op.Doc("tensor with some axes in reverse order").Input("tensor").Input("axis").Output("output");
  op.InferShape(SameShape).KernelKey("tensor").AnyKernel(ReverseV2);
}
HEDDLE_OP(tf_reverse) {
  op.Doc("tensor with the axes that dims marks in reverse order").Input("tensor").Input("dims");
  op.Output("output").InferShape(SameShape).KernelKey("tensor").AnyKernel(Reverse);
}
HEDDLE_OP(tf_roll) {
  op.Doc("input moved by shift along axes; what leaves at the end comes in at the beginning");
  op.Input("input").Input("shift").Input("axis").Output("output");
  op.InferShape(SameShape).KernelKey("input").AnyKernel(RollAxes);
}
HEDDLE_OP(tf_reverse_sequence) {
  op.Doc("the first seq_lengths steps of each sequence in reverse order");
  op.Input("input").Input("seq_lengths").Output("output").Attr("seq_dim", 0);
  op.Attr("batch_dim", 0).InferShape(SameShape).KernelKey("input").AnyKernel(ReverseSequence);
}
HEDDLE_OP(tf_transpose) {
  op.Doc("x with its axes in the order perm").Input("x").Input("perm", kShapeValue).Output("y");
  op.InferShape(PermuteAxesShape).KernelKey("x").AnyKernel(PermuteAxes);
}
