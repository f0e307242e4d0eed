// Conversions between element types that dtypes store (operands/element_types.h), of values and of
// bits.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/operands/element_types.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

Status ElementTypeShape(ShapeContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const DType to, DTypeOfOnnx(ctx.Int("to"), DType::kUnknown));
  if (to == DType::kUnknown) return InvalidArgument("attribute to is missing");
  HEDDLE_RETURN_IF_ERROR(StoredAs(ctx.Int("from"), ctx.InDType("X")).status());
  ctx.SetOut("Out", ctx.InShape("X"), to);
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

Status CastElementType(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  Tensor& out = ctx.Out("Out");
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

// The same bytes as elements of another dtype: wider ones take the last dimension away, narrower
// ones add one. Element types keep the shape.
Status BitcastShape(ShapeContext& ctx) {
  if (ctx.Int("to") != 0) return ElementTypeShape(ctx);
  Shape x = ctx.InShape("X");
  const DType to = DTypeFromProto(ctx.Int("dtype"));
  if (to == DType::kUnknown) return InvalidArgument("dtype is none that heddle has");
  if (!x.known_rank()) return ctx.Defer();
  const size_t from_size = SizeOf(ctx.InDType("X")), to_size = SizeOf(to);
  if (from_size == 0) return ctx.Defer();
  if (from_size > to_size) {
    if (x.rank() == Shape::kMaxRank) return InvalidArgument("X has too many dimensions");
    x.push_back(static_cast<int64_t>(from_size / to_size));
  } else if (from_size < to_size) {
    const auto n = static_cast<int64_t>(to_size / from_size);
    if (x.rank() < 1 || (x.dim(-1) >= 0 && x.dim(-1) != n))
      return InvalidArgument("X has shape ", x.ToString(), ", expected a last dimension of ", n);
    x.erase(x.rank() - 1);
  }
  ctx.SetOut("Out", x, to);
  return Status::Ok();
}

Status Bitcast(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  Tensor& out = ctx.Out("Out");
  if (ctx.Int("to") == 0) {
    if (out.bytes() != x.bytes()) return InvalidArgument("X does not fill its result");
    CopyBytes(ctx, x.raw(), out.mutable_raw(), x.bytes());
    return Status::Ok();
  }
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

}  // namespace
}  // namespace heddle

HEDDLE_OP(cast_element_type) {
  op.Doc("the same values as another element type, which some dtype stores");
  op.Input("X").Output("Out").Attr("to", 0).Attr("from", 0);
  op.Attr("saturate", 1).Attr("round_mode", "up");
  op.InferShape(ElementTypeShape).AnyKernel(CastElementType);
}
HEDDLE_OP(bitcast) {
  op.Doc(
      "the bits of elements seen as another dtype; or (to) as another element type of the same "
      "width, which some dtype stores");
  op.Input("X").Output("Out").Attr("dtype", 5).Attr("to", 0).Attr("from", 0);
  op.InferShape(BitcastShape).AnyKernel(Bitcast);
}
