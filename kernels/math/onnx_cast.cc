// Conversions between ONNX's element types, of values and of bits.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/operands/element_types.h"
#include "kernels/operands/operands.h"

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
