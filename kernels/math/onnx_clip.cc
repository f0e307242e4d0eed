#include <limits>

#include "kernels/operands/element_types.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

Status OnnxClipShape(ShapeContext& ctx) {
  for (const Key& key : {Key("min"), Key("max")})
    if (ctx.HasIn(key) && ctx.InDType(key) != ctx.InDType("input"))
      return InvalidArgument(key.name, " is ", Name(ctx.InDType(key)), ", input ",
                             Name(ctx.InDType("input")), ", expected one dtype");
  ctx.SetOut("output", ctx.InShape("input"), ctx.InDType("input"));
  return Status::Ok();
}

// A limit that is not given is the least or the greatest finite number.
template <typename As>
ComputeType<As> Most() {
  if constexpr (std::is_same_v<As, float16>) return 65504.f;
  return std::numeric_limits<ComputeType<As>>::max();
}
template <typename As>
ComputeType<As> Least() {
  if constexpr (std::is_same_v<As, float16>) return -65504.f;
  return std::numeric_limits<ComputeType<As>>::lowest();
}

// NaN stays; where min is above max, max holds.
template <typename T>
struct OnnxClip {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("input");
    const Tensor *min = ctx.InOpt("min"), *max = ctx.InOpt("max");
    for (const Tensor* bound : {min, max})
      if (bound != nullptr && bound->numel() != 1)
        return InvalidArgument("min and max must hold one element, got ",
                               bound->shape().ToString());
    HEDDLE_ASSIGN_OR_RETURN(const ElementType type, StoredAs(ctx.Int("elem_type"), x.dtype()));
    if constexpr (std::is_same_v<T, int64_t>)
      if (type == ElementType::kUint64) {
        Clip<uint64_t>(ctx, x, min, max);
        return Status::Ok();
      }
    Clip<T>(ctx, x, min, max);
    return Status::Ok();
  }

  template <typename As>
  static void Clip(const KernelContext& ctx, const Tensor& x, const Tensor* min,
                   const Tensor* max) {
    const T* from = x.data<T>();
    T* to = ctx.Out("output").template mutable_data<T>();
    using C = ComputeType<As>;
    const C least = min != nullptr ? static_cast<C>(static_cast<As>(*min->data<T>())) : Least<As>();
    const C most = max != nullptr ? static_cast<C>(static_cast<As>(*max->data<T>())) : Most<As>();
    ctx.ParallelFor(x.numel(), 1 << 15, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        C v = static_cast<C>(static_cast<As>(from[i]));
        if (v < least) v = least;
        if (v > most) v = most;
        to[i] = static_cast<T>(static_cast<As>(v));
      }
    });
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_clip) {
  op.Doc(
      "input limited to at least min and at most max, which are the type's finite limits when "
      "absent");
  op.Input("input").Input("min", kOptional).Input("max", kOptional).Output("output");
  op.Attr("elem_type", 0).Inplace("input", "output").InferShape(OnnxClipShape);
  op.Kernels<OnnxClip, float, double, float16, bfloat16, uint8_t, int8_t, int16_t, int32_t,
             int64_t>();
}
