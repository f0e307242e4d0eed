// Dropout as NumPy's generator draws it.
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
