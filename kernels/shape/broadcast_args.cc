// The shape that broadcasting gives, and the offsets of the parts of a concatenation.
#include "core/interrupts.h"
#include "kernels/base/index_args.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

template <typename T>
void Store(Tensor& t, std::span<const int64_t> values) {
  for (size_t i = 0; i < values.size(); ++i) t.mutable_data<T>()[i] = static_cast<T>(values[i]);
}
void StoreInts(const KernelContext& ctx, Key out, DType dtype, std::span<const int64_t> values) {
  Tensor& t = ctx.Alloc(out, dtype, Shape{static_cast<int64_t>(values.size())});
  dtype == DType::kI64 ? Store<int64_t>(t, values) : Store<int32_t>(t, values);
}

// Both shapes with ones in front of the shorter one, and their broadcast.
struct BothShapes {
  ShortInts x, y, out;
};
Result<BothShapes> ShapesIn(const KernelContext& ctx) {
  BothShapes s;
  HEDDLE_ASSIGN_OR_RETURN(s.x, IntsIn(ctx, "s0"));
  HEDDLE_ASSIGN_OR_RETURN(s.y, IntsIn(ctx, "s1"));
  const size_t rank = std::max(s.x.size(), s.y.size());
  s.x.insert(0, rank - s.x.size(), 1);
  s.y.insert(0, rank - s.y.size(), 1);
  for (size_t i = 0; i < rank; ++i) {
    LookForInterrupt();
    if (s.x[i] != s.y[i] && s.x[i] != 1 && s.y[i] != 1)
      return InvalidArgument("s0 and s1 hold ", s.x[i], " and ", s.y[i],
                             " for one dimension, which do not broadcast");
    s.out.push_back(s.x[i] == 1 ? s.y[i] : s.x[i]);
  }
  return s;
}

Status BroadcastArgs(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const BothShapes s, ShapesIn(ctx));
  StoreInts(ctx, "r0", ctx.In("s0").dtype(), s.out);
  return Status::Ok();
}

// The axes over which the gradient of each operand is summed.
Status GradientArgs(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const BothShapes s, ShapesIn(ctx));
  ShortInts of_x, of_y;
  const bool same = ctx.In("s0").numel() == ctx.In("s1").numel() && s.x == s.y;
  for (size_t i = 0; !same && i < s.out.size(); ++i) {
    LookForInterrupt();
    if (s.x[i] == 1) of_x.push_back(static_cast<int64_t>(i));
    if (s.y[i] == 1) of_y.push_back(static_cast<int64_t>(i));
  }
  StoreInts(ctx, "r0", ctx.In("s0").dtype(), of_x);
  StoreInts(ctx, "r1", ctx.In("s0").dtype(), of_y);
  return Status::Ok();
}

Status OffsetShape(ShapeContext& ctx) {
  for (int i = 0; i < ctx.InCount("shape"); ++i)
    ctx.SetOut("offset", ctx.InShape("shape", i), ctx.InDType("shape", i), i);
  return Status::Ok();
}
Status ConcatOffset(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t given, IntIn(ctx, "concat_dim", 0));
  const int64_t rank = ctx.In("shape").numel(), dim = given < 0 ? given + rank : given;
  if (dim < 0 || dim >= rank)
    return InvalidArgument("concat_dim is ", given, " for shapes of ", rank, " dimensions");
  int64_t at = 0;
  for (int i = 0; i < ctx.InCount("shape"); ++i) {
    const Tensor& shape = ctx.In("shape", i);
    HEDDLE_RETURN_IF_ERROR(CheckIntDType(shape.dtype(), "shape"));
    if (shape.numel() != rank)
      return InvalidArgument("shape[", i, "] has ", shape.numel(), " elements, expected ", rank);
    ShortInts offset(static_cast<size_t>(rank), 0);
    offset[static_cast<size_t>(dim)] = at;
    if (__builtin_add_overflow(at, IntAt(shape, dim), &at))
      return InvalidArgument("the shapes' dimensions ", dim, " add up to too much");
    Tensor& out = ctx.Out("offset", i);
    out.dtype() == DType::kI64 ? Store<int64_t>(out, offset) : Store<int32_t>(out, offset);
  }
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(broadcast_args) {
  op.Doc("the broadcast of two shapes").Input("s0").Input("s1").Output("r0");
  op.Kernel({DType::kI32, DType::kI64}, BroadcastArgs);
}
HEDDLE_OP(broadcast_gradient_args) {
  op.Doc("the axes that broadcasting repeats of each of two shapes").Input("s0").Input("s1");
  op.Output("r0").Output("r1").Kernel({DType::kI32, DType::kI64}, GradientArgs);
}
HEDDLE_OP(concat_offset) {
  op.Doc("where the parts of a concatenation begin").Input("concat_dim").Input("shape", kList);
  op.Output("offset", kList).InferShape(OffsetShape).KernelKey("shape").AnyKernel(ConcatOffset);
}
