// Random numbers of Philox 4×32-10 as TensorFlow runs it: those that a seed alone decides, and
// those of a sequence that goes on from call to call.
#include "kernels/random/philox_words.h"

namespace heddle {
namespace {

using namespace philox;

bool HoldsIntegers(const OpContext& ctx) { return ctx.Str("distribution") == "integers"; }

// Out has the shape that Shape holds; integers have Min's dtype.
Status PhiloxShape(ShapeContext& ctx) {
  const std::string& of = ctx.Str("distribution");
  if (of != "uniform" && of != "normal" && of != "truncated_normal" && of != "integers")
    return InvalidArgument("attribute distribution is '", of,
                           "', expected uniform, normal, truncated_normal or integers");
  const bool integers = HoldsIntegers(ctx);
  if (integers && !(ctx.InCount("Min") == 1 && ctx.InCount("Max") == 1))
    return InvalidArgument("integers are drawn without Min or Max");
  if (!Known(ctx, "Shape")) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts dims, IntsIn(ctx, "Shape"));
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims, "Shape"));
  ctx.SetOut("Out", shape, integers ? ctx.InDType("Min") : DTypeFromProto(ctx.Int("dtype")));
  return Status::Ok();
}

Status FillOut(KernelContext& ctx, const Philox& generator) {
  Tensor& out = ctx.Out("Out");
  if (HoldsIntegers(ctx)) {
    if (out.dtype() != DType::kI32 && out.dtype() != DType::kI64)
      return Unimplemented("no random ", Name(out.dtype()), ", expected int32 or int64");
    HEDDLE_ASSIGN_OR_RETURN(const int64_t low, IntIn(ctx, "Min", 0));
    HEDDLE_ASSIGN_OR_RETURN(const int64_t high, IntIn(ctx, "Max", 0));
    return FillIntegers(generator, low, high, out);
  }
  const std::string& of = ctx.Str("distribution");
  return of == "uniform"  ? Fill<Kind::kUniform>(generator, out)
         : of == "normal" ? Fill<Kind::kNormal>(generator, out)
                          : Fill<Kind::kTruncated>(generator, out);
}

Status OfSeed(KernelContext& ctx) {
  const Tensor& seed = ctx.In("Seed");
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(seed.dtype(), "Seed"));
  if (seed.numel() != 2)
    return InvalidArgument("Seed has shape ", seed.shape().ToString(), ", expected two elements");
  return FillOut(ctx, Philox::OfSeeds(static_cast<uint64_t>(IntAt(seed, 0)),
                                      static_cast<uint64_t>(IntAt(seed, 1))));
}

Status OfSequence(KernelContext& ctx) { return FillOut(ctx, TakeFor(ctx, ctx.Out("Out").numel())); }

void DefineNumbers(OpDef& op) {
  op.Input("Shape", kShapeValue).Input("Min", kOptional).Input("Max", kOptional).Output("Out");
  op.Attr("distribution", "uniform").Attr("dtype", 5);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(philox_random) {
  op.Doc(
      "numbers of a distribution that Seed decides: uniform in [0, 1), normal, normal within two "
      "deviations, or integers from Min up to Max");
  DefineNumbers(op);
  op.Input("Seed").KernelKey("Seed").InferShape(PhiloxShape);
  op.Kernel({DType::kI32, DType::kI64}, OfSeed);
}
HEDDLE_OP(philox_sequence) {
  op.Doc(
      "as philox_random, from a sequence of which State counts the blocks that are used; without "
      "seeds the run's generator is drawn from");
  DefineNumbers(op);
  DefineState(op);
  op.InferShape([](ShapeContext& ctx) {
    HEDDLE_RETURN_IF_ERROR(KeepState(ctx));
    return PhiloxShape(ctx);
  });
  op.AnyKernel(OfSequence);
}
