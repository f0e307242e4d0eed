// Texts as numbers and numbers as texts with a width and a precision, as printf writes them in the
// C locale.
#include <charconv>
#include <cmath>

#include "core/interrupts.h"
#include "core/operands/slot_kinds.h"
#include "core/shapes.h"
#include "kernels/base/convert.h"
#include "kernels/strings/string_operand.h"

namespace heddle {
namespace {

// A whole text as a number; false where it is none, or one that T cannot hold.
template <typename T>
bool ReadNumber(std::string_view text, T* value) {
  text = Stripped(text);
  const bool plus = text.starts_with('+');
  if (plus) text.remove_prefix(1);
  if (text.empty() || (plus && text.starts_with('-'))) return false;
  const char* end = text.data() + text.size();
  if constexpr (std::is_floating_point_v<T>) {
    const size_t sign = text.starts_with('-') ? 1 : 0;
    const std::string_view digits = text.substr(sign);
    if (digits.starts_with("0x") || digits.starts_with("0X")) {
      const auto read = std::from_chars(digits.data() + 2, end, *value, std::chars_format::hex);
      if (sign > 0) *value = -*value;
      return digits.size() > 2 && read.ec == std::errc() && read.ptr == end;
    }
  }
  const auto read = std::from_chars(text.data(), end, *value);
  if (read.ptr != end) return false;
  if constexpr (std::is_floating_point_v<T>) {
    if (read.ec == std::errc::result_out_of_range) {  // infinite, or too small: zero
      const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
      const size_t exponent = digits.find_first_of("eE");
      const bool small = exponent != std::string_view::npos
                             ? digits.substr(exponent + 1).starts_with('-')
                             : digits.starts_with("0") || digits.starts_with(".");
      const T size = small ? T{0} : std::numeric_limits<T>::infinity();
      *value = text.starts_with('-') ? -size : size;
      return true;
    }
  }
  return read.ec == std::errc();
}

template <typename T>
Status ReadAll(KernelContext& ctx, const StringTensor& x, DType dtype) {
  T* to = ctx.Alloc("Out", dtype, x.shape).mutable_data<T>();
  for (const int64_t i : Watched(x.shape.numel()))
    if (!ReadNumber(x.elements[static_cast<size_t>(i)], &to[i]))
      return InvalidArgument("element ", i, " ('", x.elements[static_cast<size_t>(i)],
                             "') is no number that ", Name(dtype), " holds");
  return Status::Ok();
}

Status ToNumber(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const auto x, StringsOf(ctx, "X"));
  switch (const DType dtype = DTypeFromProto(ctx.Int("out_dtype")); dtype) {
    case DType::kF32:
      return ReadAll<float>(ctx, *x, dtype);
    case DType::kF64:
      return ReadAll<double>(ctx, *x, dtype);
    case DType::kI32:
      return ReadAll<int32_t>(ctx, *x, dtype);
    case DType::kI64:
      return ReadAll<int64_t>(ctx, *x, dtype);
    default:
      return Unimplemented("texts as numbers of ", Name(dtype));
  }
}

// How numbers are written.
struct Form {
  std::chars_format format = std::chars_format::fixed;
  int precision = -1;  // -1: printf's own, 6
  size_t width = 0;
  char fill = '\0';  // '\0' or one of " -0+", as printf's flags
};

// A number's text with the sign and the fill that the form asks for.
std::string Filled(std::string text, const Form& form, bool finite) {
  if ((form.fill == ' ' || form.fill == '+') && !text.starts_with('-'))
    text.insert(text.begin(), form.fill);
  if (text.size() >= form.width) return text;
  const size_t missing = form.width - text.size();
  if (form.fill == '-') return text + std::string(missing, ' ');
  if (form.fill == '0' && finite) return text.insert(text.starts_with('-') ? 1 : 0, missing, '0');
  return std::string(missing, ' ') + text;
}

// The sign flags are for numbers of types with a sign.
std::string WrittenNumber(int64_t value, const Form& form, bool has_sign) {
  Form mine = form;
  if (!has_sign && (form.fill == ' ' || form.fill == '+')) mine.fill = '\0';
  return Filled(std::to_string(value), mine, true);
}

std::string WrittenNumber(double value, const Form& form) {
  std::string text;
  if (!std::isfinite(value)) {
    text = std::isnan(value) ? "nan" : "inf";
    if (std::signbit(value)) text.insert(0, 1, '-');
    return Filled(std::move(text), form, false);
  }
  text.resize(512 + static_cast<size_t>(std::max(form.precision, 0)));
  const int precision = form.precision < 0 ? 6 : form.precision;
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), value, form.format, precision).ptr;
  text.resize(static_cast<size_t>(end - text.data()));
  return Filled(std::move(text), form, true);
}

Result<Form> FormOf(const KernelContext& ctx, bool floats) {
  Form form;
  const bool scientific = ctx.Bool("scientific"), shortest = ctx.Bool("shortest");
  const int64_t precision = ctx.Int("precision"), width = ctx.Int("width");
  const std::string& fill = ctx.Str("fill");
  constexpr int64_t kMost = 1 << 20;
  if (scientific && shortest) return InvalidArgument("both 'scientific' and 'shortest' are set");
  if (!floats && (scientific || shortest || precision >= 0))
    return InvalidArgument("'scientific', 'shortest' and 'precision' are for floats");
  if (precision > kMost || width > kMost)
    return ResourceExhausted("'precision' is ", precision, " and 'width' ", width, "; at most ",
                             kMost);
  if (fill.size() > 1 ||
      (!fill.empty() && std::string_view(" -0+").find(fill[0]) == std::string_view::npos))
    return InvalidArgument("'fill' is '", fill, "', expected one of ' ', '-', '0', '+'");
  form.format = scientific ? std::chars_format::scientific
                : shortest ? std::chars_format::general
                           : std::chars_format::fixed;
  form.precision = static_cast<int>(std::max<int64_t>(precision, -1));
  form.width = width < 0 ? 0 : static_cast<size_t>(width);
  form.fill = fill.empty() ? '\0' : fill[0];
  return form;
}

template <typename T>
Status WriteNumbers(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  constexpr bool kFloat = !std::is_integral_v<T>;
  HEDDLE_ASSIGN_OR_RETURN(const Form form, FormOf(ctx, kFloat));
  StringTensor out{x.shape(), {}};
  for (const int64_t i : Watched(x.numel())) {
    const T value = x.data<T>()[i];
    if constexpr (std::is_same_v<T, bool>)
      out.elements.emplace_back(value ? "true" : "false");
    else if constexpr (kFloat)
      out.elements.push_back(
          WrittenNumber(static_cast<double>(static_cast<ComputeType<T>>(value)), form));
    else
      out.elements.push_back(WrittenNumber(int64_t{value}, form, std::is_signed_v<T>));
  }
  SetStrings(ctx, "Out", std::move(out));
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(string_to_number) {
  op.Doc("texts as numbers of out_dtype; white space around them counts for nothing");
  op.Input("X", kAnyKind | kOtherOnly).Output("Out").Attr("out_dtype", 5).AnyKernel(ToNumber);
}

HEDDLE_OP(number_to_string) {
  op.Doc("numbers as texts: decimals, `scientific`, or the `shortest` of both, as by printf");
  op.Input("X").Output("Out", kOtherOnly);
  op.Attr("precision", -1).Attr("scientific", false).Attr("shortest", false);
  op.Attr("width", -1).Attr("fill", "");
  op.Kernel(DType::kBool, WriteNumbers<bool>)
      .Kernel(DType::kF32, WriteNumbers<float>)
      .Kernel(DType::kF64, WriteNumbers<double>)
      .Kernel(DType::kF16, WriteNumbers<float16>)
      .Kernel(DType::kBF16, WriteNumbers<bfloat16>)
      .Kernel(DType::kI64, WriteNumbers<int64_t>)
      .Kernel(DType::kI32, WriteNumbers<int32_t>)
      .Kernel(DType::kI16, WriteNumbers<int16_t>)
      .Kernel(DType::kI8, WriteNumbers<int8_t>)
      .Kernel(DType::kU8, WriteNumbers<uint8_t>);
}
