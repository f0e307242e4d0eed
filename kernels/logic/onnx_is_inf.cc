#include "core/interrupts.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

Status OnnxIsInfShape(ShapeContext& ctx) {
  ctx.SetOut("Y", ctx.InShape("X"), DType::kBool);
  return Status::Ok();
}

template <typename T>
struct OnnxIsInf {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const bool below = ctx.Int("detect_negative") != 0, above = ctx.Int("detect_positive") != 0;
    constexpr T kInf = std::numeric_limits<T>::infinity();
    const T* from = x.data<T>();
    bool* to = ctx.Out("Y").template mutable_data<bool>();
    for (const auto part : Stretches(x.numel()))
      for (int64_t i = part.begin; i < part.end; ++i)
        to[i] = (below && from[i] == -kInf) || (above && from[i] == kInf);
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_is_inf) {
  op.Doc("whether each element of X is infinite, for the signs that the attributes name")
      .Input("X")
      .Output("Y");
  op.Attr("detect_negative", 1).Attr("detect_positive", 1).InferShape(OnnxIsInfShape);
  op.Kernels<OnnxIsInf, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
