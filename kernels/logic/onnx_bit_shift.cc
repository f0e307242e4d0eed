// Operations on the bits of integers, broadcast both ways.
#include "kernels/operands/broadcast_rows.h"
#include "kernels/operands/element_types.h"

namespace heddle {
namespace {

template <typename T>
struct OnnxBitShift {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &y = ctx.In("Y");
    const std::string& direction = ctx.Str("direction");
    if (direction != "LEFT" && direction != "RIGHT")
      return InvalidArgument("direction is '", direction, "', expected LEFT or RIGHT");
    HEDDLE_ASSIGN_OR_RETURN(const ElementType type, StoredAs(ctx.Int("elem_type"), x.dtype()));
    HEDDLE_ASSIGN_OR_RETURN(const BroadcastPlan plan, MakeBroadcastPlan(x.shape(), y.shape(), -1));
    const int64_t bits = BitsOf(type);
    T* to = ctx.Out("Z").template mutable_data<T>();
    if (direction == "LEFT") {
      ForEachPair(ctx, plan, x.data<T>(), y.data<T>(), to, [&](T a, T b) {
        if (b < 0 || static_cast<int64_t>(b) >= bits) return T(0);
        return static_cast<T>(
            WrapInteger(static_cast<int64_t>(static_cast<uint64_t>(a) << b), type));
      });
    } else if (IsUnsigned(type)) {
      ForEachPair(ctx, plan, x.data<T>(), y.data<T>(), to, [&](T a, T b) {
        if (b < 0 || static_cast<int64_t>(b) >= bits) return T(0);
        return static_cast<T>(static_cast<uint64_t>(a) >> b);
      });
    } else {
      ForEachPair(ctx, plan, x.data<T>(), y.data<T>(), to, [&](T a, T b) {
        return static_cast<T>(a >> (b < 0 || static_cast<int64_t>(b) >= bits ? bits - 1 : b));
      });
    }
    return Status::Ok();
  }
};

Status OnnxBitsShape(ShapeContext& ctx) {
  if (ctx.InDType("A") != ctx.InDType("B"))
    return InvalidArgument("A is ", Name(ctx.InDType("A")), ", B ", Name(ctx.InDType("B")),
                           ", expected one dtype");
  return BroadcastPair(ctx, "A", "B", "C");
}

template <typename T, typename F>
Status RunOnnxBits(KernelContext& ctx) {
  const Tensor &a = ctx.In("A"), &b = ctx.In("B");
  HEDDLE_ASSIGN_OR_RETURN(const BroadcastPlan plan, MakeBroadcastPlan(a.shape(), b.shape(), -1));
  ForEachPair(ctx, plan, a.data<T>(), b.data<T>(), ctx.Out("C").mutable_data<T>(),
              [](T x, T y) { return static_cast<T>(F()(x, y)); });
  return Status::Ok();
}

template <typename F>
void DefineOnnxBits(OpDef& op, const char* doc) {
  op.Doc(doc).Input("A").Input("B").Output("C").InferShape(OnnxBitsShape);
  op.Kernel(DType::kU8, &RunOnnxBits<uint8_t, F>).Kernel(DType::kI8, &RunOnnxBits<int8_t, F>);
  op.Kernel(DType::kI16, &RunOnnxBits<int16_t, F>).Kernel(DType::kI32, &RunOnnxBits<int32_t, F>);
  op.Kernel(DType::kI64, &RunOnnxBits<int64_t, F>);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_bit_shift) {
  op.Doc("X shifted by Y bits; elem_type says which type the operands stand for");
  op.Input("X").Input("Y").Output("Z").Attr("direction", "LEFT").Attr("elem_type", 0);
  op.InferShape([](ShapeContext& ctx) {
    if (ctx.InDType("X") != ctx.InDType("Y"))
      return InvalidArgument("X is ", Name(ctx.InDType("X")), ", Y ", Name(ctx.InDType("Y")),
                             ", expected one dtype");
    return BroadcastPair(ctx, "X", "Y", "Z");
  });
  op.Kernels<OnnxBitShift, uint8_t, int8_t, int16_t, int32_t, int64_t>();
}
HEDDLE_OP(onnx_bitwise_and) { DefineOnnxBits<std::bit_and<>>(op, "bits that both operands have"); }
HEDDLE_OP(onnx_bitwise_or) {
  DefineOnnxBits<std::bit_or<>>(op, "bits that one of the operands has");
}
HEDDLE_OP(onnx_bitwise_xor) {
  DefineOnnxBits<std::bit_xor<>>(op, "bits that just one of the operands has");
}
