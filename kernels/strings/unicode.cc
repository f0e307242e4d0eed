// UTF-8 texts as code points, and back.
#include <array>

#include "core/interrupts.h"
#include "core/operands/slot_kinds.h"
#include "kernels/strings/code_points.h"
#include "kernels/strings/string_operand.h"

namespace heddle {
namespace {

// What is done with bytes that are no UTF-8, and with numbers that are no code points.
enum class OnError { kStrict, kReplace, kIgnore };

Result<OnError> OnErrorOf(const KernelContext& ctx) {
  const std::string& errors = ctx.Str("errors");
  if (errors == "strict") return OnError::kStrict;
  if (errors == "replace") return OnError::kReplace;
  if (errors == "ignore") return OnError::kIgnore;
  return InvalidArgument("'errors' is '", errors, "', expected strict, replace or ignore");
}

Result<int32_t> ReplacementOf(const KernelContext& ctx) {
  const int64_t code = ctx.Int("replacement_char");
  if (code < 0 || code > kLastCodePoint || (code >= 0xD800 && code < 0xE000))
    return InvalidArgument("'replacement_char' is ", code, ", which is no code point");
  return static_cast<int32_t>(code);
}

// The bytes behind a first one that begin a character of UTF-8 and do not complete it: they are one
// error together (Unicode 15, section 3.9, maximal subparts).
size_t BegunBytes(std::string_view text) {
  const auto first = static_cast<uint8_t>(text[0]);
  const size_t length = first < 0xC2   ? 0
                        : first < 0xE0 ? 2
                        : first < 0xF0 ? 3
                        : first < 0xF5 ? 4
                                       : 0;
  size_t begun = 1;
  for (; begun < length && begun < text.size(); ++begun) {
    const auto byte = static_cast<uint8_t>(text[begun]);
    uint8_t least = 0x80, most = 0xBF;
    if (begun == 1) {
      if (first == 0xE0) least = 0xA0;
      if (first == 0xED) most = 0x9F;
      if (first == 0xF0) least = 0x90;
      if (first == 0xF4) most = 0x8F;
    }
    if (byte < least || byte > most) break;
  }
  return begun;
}

struct Decoded {
  std::vector<int32_t> codes;
  Ints starts;  // of each, in bytes of its text
};

Status Append(std::string_view text, OnError on_error, int32_t replacement, bool controls,
              Decoded* out) {
  const size_t size = text.size();
  while (!text.empty()) {
    const std::string_view from = text;
    const auto start = static_cast<int64_t>(size - from.size());
    int32_t code = TakeCodePoint(&text);
    const bool is_control = controls && code >= 0 && code < 0x20;
    if (code == kNoCodePoint) text = from.substr(BegunBytes(from));
    if (code == kNoCodePoint || is_control) {
      if (on_error == OnError::kStrict && !is_control)
        return InvalidArgument("byte ", start, " of a text is no UTF-8");
      if (on_error == OnError::kIgnore) continue;
      code = replacement;
    }
    out->codes.push_back(code);
    out->starts.push_back(start);
  }
  return Status::Ok();
}

template <typename T>
void SetSplits(KernelContext& ctx, const Ints& splits, DType dtype) {
  T* to = ctx.Alloc("Splits", dtype, Shape{static_cast<int64_t>(splits.size())})
              .template mutable_data<T>();
  for (const int64_t at : splits) *to++ = static_cast<T>(at);
}

Status DecodeUtf8(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const auto x, StringsOf(ctx, "X"));
  HEDDLE_ASSIGN_OR_RETURN(const OnError on_error, OnErrorOf(ctx));
  HEDDLE_ASSIGN_OR_RETURN(const int32_t replacement, ReplacementOf(ctx));
  Decoded all;
  Ints splits = {0};
  for (const std::string& text : x->elements) {
    LookForInterrupt();
    HEDDLE_RETURN_IF_ERROR(
        Append(text, on_error, replacement, ctx.Bool("replace_control_characters"), &all));
    splits.push_back(static_cast<int64_t>(all.codes.size()));
  }
  if (ctx.Bool("narrow_splits"))
    SetSplits<int32_t>(ctx, splits, DType::kI32);
  else
    SetSplits<int64_t>(ctx, splits, DType::kI64);
  const Shape shape = {static_cast<int64_t>(all.codes.size())};
  std::copy(all.codes.begin(), all.codes.end(),
            ctx.Alloc("Codes", DType::kI32, shape).mutable_data<int32_t>());
  if (ctx.HasOut("Starts"))
    std::copy(all.starts.begin(), all.starts.end(),
              ctx.Alloc("Starts", DType::kI64, shape).mutable_data<int64_t>());
  return Status::Ok();
}

template <typename T>
Status EncodeRows(KernelContext& ctx) {
  const Tensor &codes = ctx.In("Codes"), &splits = ctx.In("Splits");
  HEDDLE_ASSIGN_OR_RETURN(const OnError on_error, OnErrorOf(ctx));
  HEDDLE_ASSIGN_OR_RETURN(const int32_t replacement, ReplacementOf(ctx));
  if (codes.dtype() != DType::kI32) return InvalidArgument("'Codes' must be int32");
  const T* at = splits.data<T>();
  if (splits.numel() == 0 || at[0] != 0 || int64_t{at[splits.numel() - 1]} != codes.numel())
    return InvalidArgument("'Splits' must begin with 0 and end with ", codes.numel(),
                           ", the number of 'Codes'");
  StringTensor out;
  out.shape = Shape{splits.numel() - 1};
  for (int64_t row = 1; row < splits.numel(); ++row) {
    if (at[row] < at[row - 1] || int64_t{at[row]} > codes.numel())
      return InvalidArgument("element ", row, " of 'Splits' is ", int64_t{at[row]},
                             "; expected between the one before and ", codes.numel());
    std::string& text = out.elements.emplace_back();
    for (const int64_t i : Watched(at[row - 1], at[row])) {
      int32_t code = codes.data<int32_t>()[i];
      if (code < 0 || code > kLastCodePoint || (code >= 0xD800 && code < 0xE000)) {
        if (on_error == OnError::kStrict)
          return InvalidArgument("element ", i, " of 'Codes' is ", code,
                                 ", which is no code point");
        if (on_error == OnError::kIgnore) continue;
        code = replacement;
      }
      AppendCodePoint(static_cast<uint32_t>(code), &text);
    }
  }
  SetStrings(ctx, "Out", std::move(out));
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(unicode_decode) {
  op.Doc(
      "the code points of UTF-8 texts: those of text i are Codes[Splits[i]:Splits[i + 1]]; "
      "Starts: the byte at which each begins");
  op.Input("X", kAnyKind | kOtherOnly)
      .Output("Splits")
      .Output("Codes")
      .Output("Starts", kOptional)
      .Attr("errors", "replace")
      .Attr("replacement_char", 0xFFFD)
      .Attr("replace_control_characters", false)
      .Attr("narrow_splits", false)
      .AnyKernel(DecodeUtf8);
}

HEDDLE_OP(unicode_encode) {
  op.Doc("UTF-8 texts of code points: text i has Codes[Splits[i]:Splits[i + 1]]");
  op.Input("Codes")
      .Input("Splits")
      .Output("Out", kOtherOnly)
      .Attr("errors", "replace")
      .Attr("replacement_char", 0xFFFD)
      .KernelKey("Splits");
  op.Kernel(DType::kI32, EncodeRows<int32_t>).Kernel(DType::kI64, EncodeRows<int64_t>);
}
