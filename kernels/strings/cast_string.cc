// Numbers as texts and texts as numbers, whatever the system's locale is.
#include <charconv>
#include <cmath>

#include "core/interrupts.h"
#include "core/operands/slot_kinds.h"
#include "kernels/base/convert.h"
#include "kernels/strings/string_operand.h"

namespace heddle {
namespace {

constexpr int64_t kString = 8, kBool = 9, kUint64 = 13;  // TensorProto.DataType

template <typename T>
std::string TextOf(T value) {
  char text[64];
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-INF" : "INF";
    constexpr int kDigits = 8;  // as ONNX Runtime writes every float
    return {
        text,
        std::to_chars(text, text + sizeof(text), value, std::chars_format::general, kDigits).ptr};
  } else {
    return {text, std::to_chars(text, text + sizeof(text), value).ptr};
  }
}

Status ToStrings(KernelContext& ctx, int64_t from) {
  const Tensor& x = ctx.In("input");
  StringTensor out{x.shape(), {}};
  const int64_t n = x.numel();
  bool done = from == kBool && x.dtype() == DType::kBool;
  if (done)
    for (const auto part : Stretches(n))
      for (int64_t i = part.begin; i < part.end; ++i)
        out.elements.emplace_back(x.data<bool>()[i] ? "1" : "0");
  const auto all = [&](auto tag, auto as) {
    using T = typename decltype(tag)::type;
    using As = decltype(as);
    if (done || x.dtype() != kDTypeOf<T>) return;
    for (const auto part : Stretches(n))
      for (int64_t i = part.begin; i < part.end; ++i)
        out.elements.push_back(TextOf(static_cast<As>(x.data<T>()[i])));
    done = true;
  };
  if (from == kUint64) all(std::type_identity<int64_t>(), uint64_t{});
  all(std::type_identity<float>(), float{});
  all(std::type_identity<double>(), double{});
  all(std::type_identity<float16>(), float{});
  all(std::type_identity<bfloat16>(), float{});
  all(std::type_identity<int64_t>(), int64_t{});
  all(std::type_identity<int32_t>(), int32_t{});
  all(std::type_identity<int16_t>(), int{});
  all(std::type_identity<int8_t>(), int{});
  all(std::type_identity<uint8_t>(), int{});
  if (!done) return Unimplemented("texts of ", Name(x.dtype()));
  SetStrings(ctx, "output", std::move(out));
  return Status::Ok();
}

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\f\v";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// A whole text as a number; false where it is none.
template <typename T>
bool Parse(std::string_view text, T* value) {
  text = Trimmed(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  if (text.empty()) return false;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), *value);
  return end.ec == std::errc() && end.ptr == text.data() + text.size();
}

template <typename T>
Status ParseAll(KernelContext& ctx, const StringTensor& x, DType dtype) {
  Tensor& out = ctx.Alloc("output", dtype, x.shape);
  for (size_t i = 0; i < x.elements.size(); ++i) {
    if constexpr (std::is_integral_v<T>) {
      int64_t whole = 0;
      double real = 0;
      if (!Parse(x.elements[i], &whole)) {
        if (!Parse(x.elements[i], &real))
          return InvalidArgument("element ", i, " ('", x.elements[i], "') is no number");
        whole = ConvertTo<int64_t>(real);
      }
      out.mutable_data<T>()[i] = static_cast<T>(whole);
    } else {
      double real = 0;
      if (!Parse(x.elements[i], &real))
        return InvalidArgument("element ", i, " ('", x.elements[i], "') is no number");
      out.mutable_data<T>()[i] = static_cast<T>(static_cast<ComputeType<T>>(real));
    }
  }
  return Status::Ok();
}

Status CastString(KernelContext& ctx) {
  const int64_t from = ctx.Int("from"), to = ctx.Int("to");
  if (to == kString && from != kString) return ToStrings(ctx, from);
  HEDDLE_ASSIGN_OR_RETURN(const auto x, StringsOf(ctx, "input"));
  switch (to) {
    case 1:
      return ParseAll<float>(ctx, *x, DType::kF32);
    case 2:
      return ParseAll<uint8_t>(ctx, *x, DType::kU8);
    case 3:
      return ParseAll<int8_t>(ctx, *x, DType::kI8);
    case 5:
      return ParseAll<int16_t>(ctx, *x, DType::kI16);
    case 4:
    case 6:
      return ParseAll<int32_t>(ctx, *x, DType::kI32);
    case 7:
    case 12:
    case 13:
      return ParseAll<int64_t>(ctx, *x, DType::kI64);
    case kString:
      SetStrings(ctx, "output", *x);
      return Status::Ok();
    case 9:
      return ParseAll<bool>(ctx, *x, DType::kBool);
    case 10:
      return ParseAll<float16>(ctx, *x, DType::kF16);
    case 11:
      return ParseAll<double>(ctx, *x, DType::kF64);
    case 16:
      return ParseAll<bfloat16>(ctx, *x, DType::kBF16);
    default:
      return Unimplemented("texts as numbers of type ", to);
  }
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(cast_string) {
  op.Doc("numbers as texts, or texts as numbers; from, to: TensorProto.DataType");
  op.Input("input", kAnyKind | kTakesOther)
      .Output("output", kTakesOther)
      .Attr("from", 0)
      .Attr("to", 0)
      .AnyKernel(CastString);
}
