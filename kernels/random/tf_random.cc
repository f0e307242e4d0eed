// Random numbers that their seeds alone decide: Philox 4×32-10, as TensorFlow runs it.
#include "kernels/random/philox.h"

namespace heddle {
namespace {

using namespace philox;

Result<Philox> GeneratorOf(const KernelContext& ctx) {
  const Tensor& seed = ctx.In("seed");
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(seed.dtype(), "seed"));
  if (seed.numel() != 2)
    return InvalidArgument("seed has shape ", seed.shape().ToString(), ", expected two elements");
  return Philox::OfSeeds(static_cast<uint64_t>(IntAt(seed, 0)),
                         static_cast<uint64_t>(IntAt(seed, 1)));
}

Status RandomShape(ShapeContext& ctx) {
  const DType dtype = DTypeFromProto(ctx.Int("dtype"));
  if (!Known(ctx, "shape")) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts dims, IntsIn(ctx, "shape"));
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims, "shape"));
  ctx.SetOut("output", shape, dtype);
  return Status::Ok();
}

template <Kind kKind>
Status Random(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const Philox generator, GeneratorOf(ctx));
  return Fill<kKind>(generator, ctx.Out("output"));
}

Status IntegerShape(ShapeContext& ctx) {
  if (!Known(ctx, "shape")) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts dims, IntsIn(ctx, "shape"));
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims, "shape"));
  ctx.SetOut("output", shape, ctx.InDType("minval"));
  return Status::Ok();
}

Status Integers(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const Philox generator, GeneratorOf(ctx));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t low, IntIn(ctx, "minval", 0));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t high, IntIn(ctx, "maxval", 0));
  return FillIntegers(generator, low, high, ctx.Out("output"));
}

void DefineStatelessRandom(OpDef& op, const char* doc, KernelFn fn) {
  op.Doc(doc).Input("shape", kShapeValue).Input("seed").Output("output").Attr("dtype", 5);
  op.InferShape(RandomShape).KernelKey("seed").Kernel({DType::kI32, DType::kI64}, fn);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_stateless_random_uniform) {
  DefineStatelessRandom(op, "numbers in [0, 1) that seed decides", Random<Kind::kUniform>);
}
HEDDLE_OP(tf_stateless_random_normal) {
  DefineStatelessRandom(op, "normal numbers that seed decides", Random<Kind::kNormal>);
}
HEDDLE_OP(tf_stateless_truncated_normal) {
  DefineStatelessRandom(op, "normal numbers within two deviations that seed decides",
                        Random<Kind::kTruncated>);
}
HEDDLE_OP(tf_stateless_random_uniform_int) {
  op.Doc("integers from minval up to maxval that seed decides").Input("shape", kShapeValue);
  op.Input("seed").Input("minval").Input("maxval").Output("output").InferShape(IntegerShape);
  op.KernelKey("minval").Kernel({DType::kI32, DType::kI64}, Integers);
}
