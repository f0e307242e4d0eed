// Sums, products and means of complex numbers over axes that are an operand.
#include "kernels/onnx/operands.h"
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

HEDDLE_EXAMPLES(tf_sum, R"(
example the last axis
in input complex64 [2, 3] 1+2j -1+0.5j 2-1j 0.5+0j 1-1j 3+2j
in reduction_indices int32 [1] -1
out output complex64 [2] 2+1.5j 4.5+1j

example all axes, kept
attr keep_dims BOOLEAN true
in input complex64 [2, 2] 1+2j -1+0.5j 2-1j 0.5+0j
in reduction_indices int32 [2] 0 1
out output complex64 [1, 1] 2.5+1.5j
)")

HEDDLE_EXAMPLES(tf_prod, R"(
example the last axis
in input complex64 [2, 3] 1+2j -1+0.5j 2-1j 0.5+0j 1-1j 3+2j
in reduction_indices int32 [1] -1
out output complex64 [2] -5.5-1j 2.5-0.5j

example all axes, kept
attr keep_dims BOOLEAN true
in input complex64 [2, 2] 1+2j -1+0.5j 2-1j 0.5+0j
in reduction_indices int32 [2] 0 1
out output complex64 [1, 1] -2.75-0.5j
)")

HEDDLE_EXAMPLES(tf_mean, R"(
example the last axis
in input complex64 [2, 3] 1+2j -1+0.5j 2-1j 0.5+0j 1-1j 3+2j
in reduction_indices int32 [1] -1
out output complex64 [2] 0.6666667+0.5j 1.5+0.33333334j

example all axes, kept
attr keep_dims BOOLEAN true
in input complex64 [2, 2] 1+2j -1+0.5j 2-1j 0.5+0j
in reduction_indices int32 [2] 0 1
out output complex64 [1, 1] 0.625+0.375j
)")
