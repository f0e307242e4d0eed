// Conversions between ONNX's element types, of values and of bits.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/onnx/element_types.h"
#include "kernels/onnx/operands.h"

namespace heddle {
namespace {

Status OnnxCastShape(ShapeContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const DType to, DTypeOfOnnx(ctx.Int("to"), DType::kUnknown));
  if (to == DType::kUnknown) return InvalidArgument("attribute to is missing");
  HEDDLE_RETURN_IF_ERROR(StoredAs(ctx.Int("from"), ctx.InDType("input")).status());
  ctx.SetOut("output", ctx.InShape("input"), to);
  return Status::Ok();
}

Result<Rounding> RoundingOf(const std::string& name) {
  if (name == "up") return Rounding::kUp;
  if (name == "down") return Rounding::kDown;
  if (name == "nearest") return Rounding::kNearest;
  return InvalidArgument("round_mode is '", name, "', expected up, down or nearest");
}

// An integer of `type` for a number; of uint64 its bits.
int64_t IntegerOf(const Number& n, ElementType type) {
  if (n.integral) return WrapInteger(n.integer, type);
  if (type == ElementType::kBool) return n.real != 0 ? 1 : 0;
  if (type == ElementType::kUint64 && n.real >= 0x1p63 && n.real < 0x1p64)
    return static_cast<int64_t>(static_cast<uint64_t>(n.real));
  return WrapInteger(ConvertTo<int64_t>(n.real), type);
}

Status OnnxCast(KernelContext& ctx) {
  const Tensor& x = ctx.In("input");
  Tensor& out = ctx.Out("output");
  HEDDLE_ASSIGN_OR_RETURN(const ElementType from, StoredAs(ctx.Int("from"), x.dtype()));
  HEDDLE_ASSIGN_OR_RETURN(const ElementType to, StoredAs(ctx.Int("to"), out.dtype()));
  HEDDLE_ASSIGN_OR_RETURN(const Rounding rounding, RoundingOf(ctx.Str("round_mode")));
  const bool plain = from == OwnElementType(x.dtype()) && to == OwnElementType(out.dtype());
  if (plain || IsComplex(x.dtype()) || IsComplex(out.dtype())) {
    ConvertElements(ctx, x.raw(), x.dtype(), out.mutable_raw(), out.dtype(), x.numel());
    return Status::Ok();
  }
  const bool saturate = ctx.Int("saturate") != 0;
  const bool known = VisitDType<bool, uint8_t, int8_t, int16_t, int32_t, int64_t, float16, bfloat16,
                                float, double>(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* put = out.mutable_data<T>();
    ctx.ParallelFor(x.numel(), 4096, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Number n = NumberAt(x, i, from);
        if constexpr (std::is_same_v<T, uint8_t>) {
          if (IsTinyFloat(to)) {
            put[i] = ToTinyFloat(n.real, to, saturate, rounding);
            continue;
          }
        }
        if constexpr (std::is_integral_v<T>)
          put[i] = static_cast<T>(IntegerOf(n, to));
        else
          put[i] = static_cast<T>(static_cast<ComputeType<T>>(n.real));
      }
    });
  });
  return known ? Status::Ok() : Unimplemented("no cast to ", Name(out.dtype()));
}

// The bits of an element, as many as its type has.
uint64_t RawBits(const std::byte* at, ElementType type, size_t size) {
  uint64_t bits = 0;
  std::memcpy(&bits, at, std::min(size, sizeof(bits)));
  const int n = BitsOf(type);
  return n >= 64 ? bits : bits & ((uint64_t{1} << n) - 1);
}

Status OnnxBitCast(KernelContext& ctx) {
  const Tensor& x = ctx.In("input");
  Tensor& out = ctx.Out("output");
  HEDDLE_ASSIGN_OR_RETURN(const ElementType from, StoredAs(ctx.Int("from"), x.dtype()));
  HEDDLE_ASSIGN_OR_RETURN(const ElementType to, StoredAs(ctx.Int("to"), out.dtype()));
  if (BitsOf(from) != BitsOf(to))
    return InvalidArgument("cannot see ", BitsOf(from), "-bit elements as ", BitsOf(to),
                           "-bit ones");
  const size_t in_size = SizeOf(x.dtype()), out_size = SizeOf(out.dtype());
  const auto* src = static_cast<const std::byte*>(x.raw());
  auto* dst = static_cast<std::byte*>(out.mutable_raw());
  if (in_size == out_size && static_cast<int>(in_size) * 8 == BitsOf(from)) {
    if (to == ElementType::kBool)
      for (const auto part : Stretches(x.numel()))
        for (int64_t i = part.begin; i < part.end; ++i) dst[i] = std::byte(src[i] != std::byte{0});
    else
      CopyBytes(ctx, src, dst, x.bytes());
    return Status::Ok();
  }
  for (const int64_t i : Watched(x.numel())) {
    const uint64_t bits = RawBits(src + static_cast<size_t>(i) * in_size, from, in_size);
    const int64_t value =
        IsIntegral(to) ? WrapInteger(static_cast<int64_t>(bits), to) : static_cast<int64_t>(bits);
    std::memcpy(dst + static_cast<size_t>(i) * out_size, &value, out_size);
  }
  return Status::Ok();
}

// Integers whose type is narrower than what they are stored in, cut to its bits.
Status OnnxWrapShape(ShapeContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const ElementType type,
                          StoredAs(ctx.Int("elem_type"), ctx.InDType("input")));
  if (!IsIntegral(type)) return InvalidArgument("elem_type is not one of integers");
  ctx.SetOut("output", ctx.InShape("input"), ctx.InDType("input"));
  return Status::Ok();
}

template <typename T>
struct OnnxWrap {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("input");
    HEDDLE_ASSIGN_OR_RETURN(const ElementType type, StoredAs(ctx.Int("elem_type"), x.dtype()));
    const T* from = x.data<T>();
    T* to = ctx.Out("output").template mutable_data<T>();
    for (const auto part : Stretches(x.numel()))
      for (int64_t i = part.begin; i < part.end; ++i)
        to[i] = static_cast<T>(WrapInteger(from[i], type));
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_cast) {
  op.Doc("values of another of ONNX's element types, as heddle stores those");
  op.Input("input").Output("output").Attr("to", 0).Attr("from", 0);
  op.Attr("saturate", 1).Attr("round_mode", "up");
  op.InferShape(OnnxCastShape).AnyKernel(OnnxCast);
}
HEDDLE_OP(onnx_bit_cast) {
  op.Doc("the bits of elements seen as another type of the same width");
  op.Input("input").Output("output").Attr("to", 0).Attr("from", 0);
  op.InferShape(OnnxCastShape).AnyKernel(OnnxBitCast);
}
HEDDLE_OP(onnx_wrap) {
  op.Doc("integers cut to the bits of elem_type, a type narrower than the one that holds them");
  op.Input("input").Output("output").Attr("elem_type", 0).Inplace("input", "output");
  op.InferShape(OnnxWrapShape).Kernels<OnnxWrap, uint8_t, int8_t, int32_t, int64_t>();
}

HEDDLE_EXAMPLES(onnx_cast, R"(
example to float8e4m3fn, saturating
# oracle reference
dtypes none: values of other types round to other numbers
attr to INT 17
in input float32 [10] 0 -0 0.001 0.015625 1.0625 -3.3 100 449 1000 -inf
out output uint8 [10] 0 128 1 8 56 197 108 126 126 254

example to float8e5m2
# oracle reference
dtypes none: values of other types round to other numbers
attr to INT 19
attr saturate INT 0
in input float32 [9] 0 -0 1e-6 1.125 -3.3 100 57344 70000 inf
out output uint8 [9] 0 128 0 60 195 86 123 124 124

example to float8e4m3fnuz
# oracle reference
dtypes none: values of other types round to other numbers
attr to INT 18
in input float32 [8] 0 0.001 1.0625 -3.3 100 240 300 -1000
out output uint8 [8] 0 1 64 205 116 127 127 255

example to float8e5m2fnuz
# oracle reference
dtypes none: values of other types round to other numbers
attr to INT 20
in input float32 [8] 0 0.00001 1.0625 -3.3 100 57344 70000 -1000
out output uint8 [8] 0 1 64 199 90 127 127 232

example to float4e2m1
# oracle reference
dtypes none: values of other types round to other numbers
attr to INT 23
in input float32 [12] 0 -0 0.2 0.25 0.3 0.75 1.25 -1.8 2.5 3.5 5 100
out output uint8 [12] 0 8 0 0 1 2 2 12 4 6 6 7

example from float8e4m3fn
# oracle reference
# type input FLOAT8E4M3FN
dtypes none: the operand holds bits
attr to INT 1
attr from INT 17
in input uint8 [8] 0 128 1 8 56 100 126 200
out output float32 [8] 0 -0 0.001953125 0.015625 1 48 448 -4

example from float8e5m2
# oracle reference
# type input FLOAT8E5M2
dtypes none: the operand holds bits
attr to INT 11
attr from INT 19
in input uint8 [8] 0 128 1 8 56 100 123 252
out output float64 [8] 0 -0 1.52587890625e-5 0.0001220703125 0.5 1024 57344 -inf

example from float4e2m1
# oracle reference
# type input FLOAT4E2M1
dtypes none: the operand holds bits
attr to INT 1
attr from INT 23
in input uint8 [9] 0 1 2 3 4 5 6 7 15
out output float32 [9] 0 0.5 1 1.5 2 3 4 6 -6

example from uint16 to int16
# type input UINT16
dtypes none: the operand holds another type
attr to INT 5
attr from INT 4
in input int32 [4] 0 1 32768 65535
out output int16 [4] 0 1 -32768 -1

example from uint64 to float
# type input UINT64
dtypes none: the operand holds another type
attr to INT 1
attr from INT 13
in input int64 [3] 0 1 -1
out output float32 [3] 0 1 1.8446744e+19

example plain
attr to INT 7
in input float32 [4] 1.7 -1.7 0 100
out output int64 [4] 1 -1 0 100
)")

HEDDLE_EXAMPLES(onnx_bit_cast, R"(
example floats as integers
# oracle reference
dtypes none: bits of other types
attr to INT 6
in input float32 [3] 1 -2.5 0
out output int32 [3] 1065353216 -1071644672 0

example int16 as uint16
# oracle reference
dtypes none: bits of other types
attr to INT 4
in input int16 [3] 1 -1 -32768
out output int32 [3] 1 65535 32768

example uint16 as float16
# oracle reference
# type input UINT16
dtypes none: bits of other types
attr to INT 10
attr from INT 4
in input int32 [3] 15360 49152 0
out output float16 [3] 1 -2 0
)")

HEDDLE_EXAMPLES(onnx_wrap, R"(
example uint16
# given
dtypes none: the operand holds another type
attr elem_type INT 4
in input int32 [4] 1 65536 -1 65541
out output int32 [4] 1 0 65535 5

example uint32
# given
dtypes none: the operand holds another type
attr elem_type INT 12
in input int64 [3] 4294967296 -2 7
out output int64 [3] 0 4294967294 7
)")
