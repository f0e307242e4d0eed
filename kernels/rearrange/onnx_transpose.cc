// ONNX's Transpose where the reader does not know the rank: without an order, the axes are
// reversed.
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

using TransposedAxes = std::array<int, Shape::kMaxRank>;

Status OnnxPermOf(const OpContext& ctx, int rank, TransposedAxes* perm) {
  const Ints& given = ctx.IntList("perm");
  if (given.empty()) {
    for (int i = 0; i < rank; ++i) (*perm)[static_cast<size_t>(i)] = rank - 1 - i;
    return Status::Ok();
  }
  if (given.size() != static_cast<size_t>(rank))
    return InvalidArgument("'perm' has ", given.size(), " axes, but data has rank ", rank);
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts axes, NormalAxes(given, rank, "perm"));
  for (size_t i = 0; i < given.size(); ++i) (*perm)[i] = static_cast<int>(axes[i]);
  return Status::Ok();
}

Status OnnxTransposeShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("data");
  if (!x.known_rank()) return ctx.Defer();
  TransposedAxes perm{};
  HEDDLE_RETURN_IF_ERROR(OnnxPermOf(ctx, x.rank(), &perm));
  Shape out = x;
  for (int i = 0; i < x.rank(); ++i) out[i] = x[perm[static_cast<size_t>(i)]];
  ctx.SetOut("transposed", out, ctx.InDType("data"));
  return Status::Ok();
}

Status OnnxTranspose(KernelContext& ctx) {
  const Tensor& x = ctx.In("data");
  TransposedAxes perm{};
  HEDDLE_RETURN_IF_ERROR(OnnxPermOf(ctx, x.rank(), &perm));
  PermuteCopy(SizeOf(x.dtype()), x.shape(), std::span(perm.data(), static_cast<size_t>(x.rank())))
      .Run(ctx, x.raw(), ctx.Out("transposed").mutable_raw());
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_transpose) {
  op.Doc("data with its axes in the order `perm`; an empty one reverses them");
  op.Input("data").Output("transposed").Attr("perm", Ints{});
  op.InferShape(OnnxTransposeShape).AnyKernel(OnnxTranspose);
}
