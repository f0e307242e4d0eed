// The shape that broadcasting gives, and the offsets of the parts of a concatenation.
#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
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

// The same bytes as elements of another dtype: wider ones take the last dimension away, narrower
// ones add one.
Status BitcastShape(ShapeContext& ctx) {
  Shape x = ctx.InShape("input");
  const DType to = DTypeFromProto(ctx.Int("type"));
  if (to == DType::kUnknown) return InvalidArgument("type is no dtype");
  if (!x.known_rank()) return ctx.Defer();
  const size_t from_size = SizeOf(ctx.InDType("input")), to_size = SizeOf(to);
  if (from_size == 0) return ctx.Defer();
  if (from_size > to_size) {
    if (x.rank() == Shape::kMaxRank) return InvalidArgument("input has too many dimensions");
    x.push_back(static_cast<int64_t>(from_size / to_size));
  } else if (from_size < to_size) {
    const auto n = static_cast<int64_t>(to_size / from_size);
    if (x.rank() < 1 || (x.dim(-1) >= 0 && x.dim(-1) != n))
      return InvalidArgument("input has shape ", x.ToString(), ", expected a last dimension of ",
                             n);
    x.erase(x.rank() - 1);
  }
  ctx.SetOut("output", x, to);
  return Status::Ok();
}
Status Bitcast(KernelContext& ctx) {
  const Tensor& x = ctx.In("input");
  Tensor& out = ctx.Out("output");
  if (out.bytes() != x.bytes()) return InvalidArgument("input does not fill its result");
  CopyBytes(ctx, x.raw(), out.mutable_raw(), x.bytes());
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_broadcast_args) {
  op.Doc("the broadcast of two shapes").Input("s0").Input("s1").Output("r0");
  op.Kernel({DType::kI32, DType::kI64}, BroadcastArgs);
}
HEDDLE_OP(tf_broadcast_gradient_args) {
  op.Doc("the axes that broadcasting repeats of each of two shapes").Input("s0").Input("s1");
  op.Output("r0").Output("r1").Kernel({DType::kI32, DType::kI64}, GradientArgs);
}
HEDDLE_OP(tf_concat_offset) {
  op.Doc("where the parts of a concatenation begin").Input("concat_dim").Input("shape", kList);
  op.Output("offset", kList).InferShape(OffsetShape).KernelKey("shape").AnyKernel(ConcatOffset);
}
HEDDLE_OP(tf_bitcast) {
  op.Doc("the same bits as elements of another dtype").Input("input").Output("output");
  op.Attr("type", 5).InferShape(BitcastShape).AnyKernel(Bitcast);
}
HEDDLE_OP(tf_select) {
  op.Doc("t where the condition holds, else e; a vector of conditions chooses rows");
  op.Input("condition").Input("t").Input("e").Output("output").KernelKey("t");
  op.InferShape([](ShapeContext& ctx) {
    ctx.SetOut("output", ctx.InShape("t"), ctx.InDType("t"));
    return Status::Ok();
  });
  op.AnyKernel([](KernelContext& ctx) {
    const Tensor &c = ctx.In("condition"), &t = ctx.In("t"), &e = ctx.In("e");
    const bool rows = c.rank() == 1 && t.rank() > 0 && c.dim(0) == t.dim(0);
    if (c.dtype() != DType::kBool || !(t.shape() == e.shape()) || t.dtype() != e.dtype() ||
        (!rows && c.rank() != 0 && !(c.shape() == t.shape())))
      return InvalidArgument("condition has shape ", c.shape().ToString(), ", t ",
                             t.shape().ToString(), " and e ", e.shape().ToString());
    const int64_t each = c.numel() == 0 ? 0 : t.numel() / c.numel();
    const size_t bytes = static_cast<size_t>(each) * SizeOf(t.dtype());
    auto* to = static_cast<std::byte*>(ctx.Out("output").mutable_raw());
    for (int64_t i = 0; i < c.numel() && bytes > 0; ++i)
      WatchedMemcpy(to + static_cast<size_t>(i) * bytes,
                    static_cast<const std::byte*>((c.data<bool>()[i] ? t : e).raw()) +
                        static_cast<size_t>(i) * bytes,
                    bytes);
    return Status::Ok();
  });
}
