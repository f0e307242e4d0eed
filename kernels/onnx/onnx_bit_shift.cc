// Operations on the bits of integers, broadcast both ways.
#include "kernels/onnx/broadcast_rows.h"
#include "kernels/onnx/element_types.h"

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

HEDDLE_EXAMPLES(onnx_bit_shift, R"(
example to the left
dtypes none: wider types keep what a byte loses
attr direction STRING "LEFT"
in X uint8 [4] 16 4 1 255
in Y uint8 [4] 1 2 8 7
out Z uint8 [4] 32 16 0 128

example to the right
attr direction STRING "RIGHT"
in X uint8 [2, 2] 16 4 1 255
in Y uint8 [2] 1 2
out Z uint8 [2, 2] 8 1 0 63

example uint16
# type X UINT16
# type Y UINT16
# oracle reference
dtypes none: the operands hold another type
attr direction STRING "LEFT"
attr elem_type INT 4
in X int32 [3] 65535 1 3
in Y int32 [3] 1 15 2
out Z int32 [3] 65534 32768 12

example uint64
# type X UINT64
# type Y UINT64
dtypes none: the operands hold another type
attr direction STRING "RIGHT"
attr elem_type INT 13
in X int64 [3] -1 8 -4
in Y int64 [3] 1 3 60
out Z int64 [3] 9223372036854775807 1 15

example signed
# given
attr direction STRING "RIGHT"
in X int8 [5] -8 -1 127 -128 5
in Y int8 [5] 1 7 3 9 -1
out Z int8 [5] -4 -1 15 -1 0
)")
HEDDLE_EXAMPLES(onnx_bitwise_and, R"(
example broadcast
in A int32 [2, 2] 12 -7 255 3
in B int32 [2] 10 5
out C int32 [2, 2] 8 1 10 1
)")
HEDDLE_EXAMPLES(onnx_bitwise_or, R"(
example broadcast
in A int64 [2, 2] 12 -7 255 3
in B int64 [2, 1] 10 5
out C int64 [2, 2] 14 -5 255 7
)")
HEDDLE_EXAMPLES(onnx_bitwise_xor, R"(
example broadcast
in A uint8 [2, 2] 12 7 255 3
in B uint8 [] 10
out C uint8 [2, 2] 6 13 245 9
)")
