// Random numbers that their seeds alone decide: Philox 4×32-10, as TensorFlow runs it.
#include "kernels/tf_math/philox.h"

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

void DefineRandom(OpDef& op, const char* doc, KernelFn fn) {
  op.Doc(doc).Input("shape", kShapeValue).Input("seed").Output("output").Attr("dtype", 5);
  op.InferShape(RandomShape).KernelKey("seed").Kernel({DType::kI32, DType::kI64}, fn);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_stateless_random_uniform) {
  DefineRandom(op, "numbers in [0, 1) that seed decides", Random<Kind::kUniform>);
}
HEDDLE_OP(tf_stateless_random_normal) {
  DefineRandom(op, "normal numbers that seed decides", Random<Kind::kNormal>);
}
HEDDLE_OP(tf_stateless_truncated_normal) {
  DefineRandom(op, "normal numbers within two deviations that seed decides",
               Random<Kind::kTruncated>);
}
HEDDLE_OP(tf_stateless_random_uniform_int) {
  op.Doc("integers from minval up to maxval that seed decides").Input("shape", kShapeValue);
  op.Input("seed").Input("minval").Input("maxval").Output("output").InferShape(IntegerShape);
  op.KernelKey("minval").Kernel({DType::kI32, DType::kI64}, Integers);
}

HEDDLE_EXAMPLES(tf_stateless_random_uniform, R"(
example recorded case 1
attr dtype INT 5
attr Tseed INT 2
in shape int32 [2] 2 4
in seed int32 [2] 4093 9367
out output float32 [2, 4] 0.11821985 0.6406137 0.6726004 0.10700798 0.120547295 0.2294116 0.8270637
  0.76640606
)")

HEDDLE_EXAMPLES(tf_stateless_random_normal, R"(
example recorded case 1
attr Tseed INT 2
in shape int32 [1] 7
in seed int32 [2] 228 7212
out output float32 [7] 1.3136238 -0.5418512 2.0257082 -1.0957829 0.9962516 0.6178223 -0.22643271
)")

HEDDLE_EXAMPLES(tf_stateless_truncated_normal, R"(
example recorded case 1
attr Tseed INT 2
in shape int32 [3] 5 7 4
in seed int32 [2] 6689 6985
out output float32 [5, 7, 4] -1.0057392 0.100627065 0.2662648 1.9206564 -1.1305736 -1.0392268
  -0.8627054 0.82887 -0.9948698 0.8424525 0.3608623 0.62902606 0.13925621 0.054765057 1.1055067
  0.036786877 1.7528285 1.1352484 -0.2094282 -1.248618 0.9953633 -0.536078 0.5588345 -1.9748993
  1.7240319 0.6386692 -1.3360765 -0.99772525 0.44167814 -1.7193632 0.26055175 -0.8194837 -0.07066846
  -0.34198627 -0.3000629 -0.804208 -0.7312183 -0.44513413 0.6281953 0.35966817 -1.4681984
  -0.41247693 -1.181181 -0.1013731 -0.41315034 -0.2419396 0.91063815 -0.0016567227 -0.046220247
  0.37537095 -0.29273784 1.4463515 0.044244822 1.1080757 0.45251432 0.95540184 -0.61643404 0.2984896
  1.2560246 0.28468552 0.30256903 0.6083302 0.94835925 -0.7159546 0.36516437 -0.6482196 -0.39525905
  0.2656469 -0.26649696 0.4526287 0.3120567 0.0642396 0.04107092 1.3471696 -1.6714582 0.015893742
  -0.5836825 -1.6097287 1.0551808 1.7091862 1.5096672 1.0227427 1.2733387 0.17003924 0.3008298
  0.017231662 -0.05943935 -0.4424882 0.577044 -0.8305639 -0.99107784 0.070277564 0.1543811
  0.43615493 -0.96192884 0.29823574 0.75462586 1.7419919 -0.11610562 0.31571263 -0.030780068
  -0.67486537 0.5821835 0.14299273 -0.0833507 0.87166595 0.8999269 0.648449 -0.20278133 0.5475946
  0.049917016 -0.5051949 -0.14953543 0.9259554 -0.7228451 0.47288647 -0.014763949 -1.3172808
  -0.055853028 1.2895577 0.15214355 -0.21945216 -0.9582336 -0.8999075 1.2747315 -0.6520086 0.5092391
  0.1678754 1.3815448 0.58655936 -1.1475108 -0.5689882 1.1969153 1.1405959 -1.5471241 -0.075416155
  -1.5699071 0.306789 0.27125943 -0.23293783
)")

HEDDLE_EXAMPLES(tf_stateless_random_uniform_int, R"(
example recorded case 1
dtypes none: wider integers take more bits
attr dtype INT 2
attr Tseed INT 2
in shape int32 [2] 3 5
in seed int32 [2] 8559 833
in minval int32 [] -3
in maxval int32 [] 17
out output int32 [3, 5] 13 9 -3 16 16 0 9 4 15 11 14 6 2 -1 -3
)")
