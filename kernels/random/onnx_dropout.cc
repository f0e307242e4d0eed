// Random numbers of ONNX: dropout as NumPy's generator draws it, and distributions whose numbers no
// text fixes.
#include <bit>
#include <cmath>
#include <random>

#include "core/interrupts.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

Status OnnxDropoutShape(ShapeContext& ctx) {
  ctx.SetOut("output", ctx.InShape("data"), ctx.InDType("data"));
  if (ctx.HasOut("mask")) ctx.SetOut("mask", ctx.InShape("data"), DType::kBool);
  return Status::Ok();
}

// NumPy's RandomState(seed).uniform(): 53 bits of two draws of MT19937.
class NumpyUniform {
 public:
  explicit NumpyUniform(int64_t seed) : engine_(static_cast<uint32_t>(seed)) {}
  double Next() {
    const uint32_t high = engine_() >> 5, low = engine_() >> 6;
    return (high * 67108864.0 + low) / 9007199254740992.0;
  }

 private:
  std::mt19937 engine_;
};

template <typename T>
struct OnnxDropout {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("data");
    HEDDLE_ASSIGN_OR_RETURN(const double ratio, NumberIn(ctx, "ratio", 0.5));
    HEDDLE_ASSIGN_OR_RETURN(const double training, NumberIn(ctx, "training_mode", 0));
    if (!(ratio >= 0 && ratio < 1))
      return InvalidArgument("ratio is ", ratio, ", expected at least 0 and below 1");
    const bool drop = training != 0 && ratio > 0;
    NumpyUniform draw(ctx.Int("seed"));
    const T* from = x.data<T>();
    T* to = ctx.Out("output").template mutable_data<T>();
    Tensor* mask = ctx.OutOpt("mask");
    const T scale = static_cast<T>(1 / (1 - ratio));
    for (const int64_t i : Watched(x.numel())) {
      const bool keep = !drop || draw.Next() >= ratio;
      to[i] = !drop ? from[i] : keep ? from[i] * scale : T(0);
      if (mask != nullptr) mask->mutable_data<bool>()[i] = keep;
    }
    return Status::Ok();
  }
};

Status OnnxRandomShape(ShapeContext& ctx) {
  const bool like = ctx.def().FindInput("input") >= 0;
  HEDDLE_ASSIGN_OR_RETURN(const DType dtype,
                          DTypeOfOnnx(ctx.Int("dtype"), like ? ctx.InDType("input") : DType::kF32));
  if (like) {
    ctx.SetOut("output", ctx.InShape("input"), dtype);
    return Status::Ok();
  }
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(ctx.IntList("shape"), "shape"));
  ctx.SetOut("output", shape, dtype);
  return Status::Ok();
}

// Fills the output from draw(engine), with a seed of the operator's own or the run's generator.
template <typename Draw>
Status FillDrawn(KernelContext& ctx, Draw draw) {
  Tensor& out = ctx.Out("output");
  std::mt19937_64 own(std::bit_cast<uint64_t>(ctx.Float("seed")));
  std::mt19937_64& engine = ctx.Bool("has_seed") ? own : ctx.random();
  const bool known = VisitAnyDType(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = out.mutable_data<T>();
    for (const auto part : Stretches(out.numel()))
      for (int64_t i = part.begin; i < part.end; ++i)
        to[i] = ConvertTo<T>(static_cast<double>(draw(engine, i)));
  });
  return known ? Status::Ok() : Unimplemented("no random ", Name(out.dtype()));
}

Status OnnxRandomNormal(KernelContext& ctx) {
  std::normal_distribution<double> normal(0, 1);
  const double mean = ctx.Float("mean"), scale = ctx.Float("scale");
  return FillDrawn(ctx, [&](auto& e, int64_t) { return mean + scale * normal(e); });
}
Status OnnxRandomUniform(KernelContext& ctx) {
  std::uniform_real_distribution<double> uniform(0, 1);
  const double low = ctx.Float("low"), high = ctx.Float("high");
  return FillDrawn(ctx, [&](auto& e, int64_t) { return low + (high - low) * uniform(e); });
}
Status OnnxBernoulli(KernelContext& ctx) {
  const Tensor& x = ctx.In("input");
  std::vector<double> p(static_cast<size_t>(x.numel()));
  ConvertElements(ctx, x.raw(), x.dtype(), p.data(), DType::kF64, x.numel());
  std::uniform_real_distribution<double> uniform(0, 1);
  return FillDrawn(
      ctx, [&](auto& e, int64_t i) { return uniform(e) < p[static_cast<size_t>(i)] ? 1.0 : 0.0; });
}

Status OnnxMultinomialShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("input");
  if (!x.is_static()) return ctx.Defer();
  HEDDLE_RETURN_IF_ERROR(CheckRank(x, 2, "input"));
  const int64_t samples = ctx.Int("sample_size");
  if (samples < 1 || x[1] < 1)
    return InvalidArgument("cannot draw ", samples, " of ", x[1], " classes");
  HEDDLE_ASSIGN_OR_RETURN(const DType dtype, DTypeOfOnnx(ctx.Int("dtype"), DType::kI32));
  HEDDLE_ASSIGN_OR_RETURN(const Shape out, MakeShape({x[0], samples}, "the result"));
  ctx.SetOut("output", out, dtype);
  return Status::Ok();
}

// Classes by the exponentials of their inputs.
Status OnnxMultinomial(KernelContext& ctx) {
  const Tensor& x = ctx.In("input");
  const int64_t classes = x.dim(1), samples = ctx.Out("output").dim(1);
  std::vector<double> sums(static_cast<size_t>(x.numel()));
  ConvertElements(ctx, x.raw(), x.dtype(), sums.data(), DType::kF64, x.numel());
  for (const int64_t row : Watched(x.dim(0))) {
    double* line = sums.data() + row * classes;
    const double most = *std::max_element(line, line + classes);
    double sum = 0;
    for (int64_t c = 0; c < classes; ++c) line[c] = sum += std::exp(line[c] - most);
  }
  std::uniform_real_distribution<double> uniform(0, 1);
  return FillDrawn(ctx, [&](auto& e, int64_t i) {
    const double* line = sums.data() + i / samples * classes;
    const double at = uniform(e) * line[classes - 1];
    return std::min<int64_t>(classes - 1, std::upper_bound(line, line + classes, at) - line);
  });
}

void DefineRandom(OpDef& op, const char* doc, bool like) {
  op.Doc(doc);
  if (like) op.Input("input");
  op.Output("output").Attr("dtype", like ? 0 : 1).Attr("has_seed", false).Attr("seed", 0.0);
  if (!like) op.Attr("shape", Ints{});
  op.InferShape(OnnxRandomShape).Traits(kRandom);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_dropout) {
  op.Doc(
      "data; with training_mode, a share of ratio set to 0 (drawn by NumPy's generator), the rest "
      "scaled");
  op.Input("data").Input("ratio", kOptional).Input("training_mode", kOptional);
  op.Output("output").Output("mask", kOptional).Attr("seed", 0).InferShape(OnnxDropoutShape);
  op.Kernels<OnnxDropout, float, double>().Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(onnx_random_normal) {
  DefineRandom(op, "normally distributed numbers", false);
  op.Attr("mean", 0.0).Attr("scale", 1.0).AnyKernel(OnnxRandomNormal);
}
HEDDLE_OP(onnx_random_normal_like) {
  DefineRandom(op, "normally distributed numbers in the shape of another tensor", true);
  op.Attr("mean", 0.0).Attr("scale", 1.0).AnyKernel(OnnxRandomNormal);
}
HEDDLE_OP(onnx_random_uniform) {
  DefineRandom(op, "uniformly distributed numbers between low and high", false);
  op.Attr("low", 0.0).Attr("high", 1.0).AnyKernel(OnnxRandomUniform);
}
HEDDLE_OP(onnx_random_uniform_like) {
  DefineRandom(op, "uniformly distributed numbers in the shape of another tensor", true);
  op.Attr("low", 0.0).Attr("high", 1.0).AnyKernel(OnnxRandomUniform);
}
HEDDLE_OP(onnx_bernoulli) {
  DefineRandom(op, "ones with the probabilities that input holds, else zeros", true);
  op.Kernel({DType::kF32, DType::kF64, DType::kF16, DType::kBF16}, OnnxBernoulli);
}
HEDDLE_OP(onnx_multinomial) {
  op.Doc("classes drawn by their logarithmic weights").Input("input").Output("output");
  op.Attr("dtype", 6).Attr("sample_size", 1).Attr("has_seed", false).Attr("seed", 0.0);
  op.InferShape(OnnxMultinomialShape).Traits(kRandom);
  op.Kernel({DType::kF32, DType::kF64, DType::kF16, DType::kBF16}, OnnxMultinomial);
}
