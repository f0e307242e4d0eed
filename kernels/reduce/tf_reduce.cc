// Sums, products and means of complex numbers over axes that are an operand.
#include "kernels/operands/operands.h"
#include "kernels/reduce/reduce_op.h"

namespace heddle {
namespace {

template <typename Context>
Result<uint32_t> AxesIn(const Context& ctx) {
  const int rank = ShapeIn(ctx, "input").rank();
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts given, IntsIn(ctx, "reduction_indices"));
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts axes, NormalAxes(given, rank, "reduction_indices"));
  uint32_t mask = 0;
  for (const int64_t a : axes) mask |= 1U << a;
  return mask;
}

Status ReducedOut(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("input");
  if (!x.known_rank() || !Known(ctx, "reduction_indices")) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const uint32_t mask, AxesIn(ctx));
  ctx.SetOut("output", ReducedShape(x, mask, ctx.Bool("keep_dims")), ctx.InDType("input"));
  return Status::Ok();
}

template <typename R, typename T>
Status Reduce(KernelContext& ctx) {
  const Tensor& x = ctx.In("input");
  HEDDLE_ASSIGN_OR_RETURN(const uint32_t mask, AxesIn(ctx));
  RunReduce(ctx, MakeReducePlan(x.shape().dims(), mask), ReduceLoop<R, T, T>::kLoops, x.raw(),
            ctx.Out("output").mutable_raw());
  return Status::Ok();
}

template <typename R>
void DefineTfReduce(OpDef& op, const char* doc) {
  op.Doc(doc).Input("input").Input("reduction_indices", kShapeValue).Output("output");
  op.Attr("keep_dims", false).InferShape(ReducedOut).KernelKey("input");
  op.Kernel(DType::kC64, &Reduce<R, std::complex<float>>);
  op.Kernel(DType::kC128, &Reduce<R, std::complex<double>>);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_sum) { DefineTfReduce<SumReduction>(op, "sums of complex numbers over axes"); }
HEDDLE_OP(tf_prod) { DefineTfReduce<ProdReduction>(op, "products of complex numbers over axes"); }
HEDDLE_OP(tf_mean) { DefineTfReduce<MeanReduction>(op, "means of complex numbers over axes"); }
