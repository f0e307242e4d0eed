// The bits of a tensor read as another dtype.
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

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

HEDDLE_OP(bitcast) {
  op.Doc("the same bits as elements of another dtype").Input("input").Output("output");
  op.Attr("type", 5).InferShape(BitcastShape).AnyKernel(Bitcast);
}
