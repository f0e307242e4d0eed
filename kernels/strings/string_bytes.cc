// Bytes of texts: as letters (base64, RFC 4648, section 5: the alphabet for URLs and file names),
// and as elements of numbers.
#include <algorithm>
#include <array>
#include <cstring>

#include "core/interrupts.h"
#include "core/operands/slot_kinds.h"
#include "kernels/base/shape_arg.h"
#include "kernels/strings/string_operand.h"

namespace heddle {
namespace {

constexpr std::string_view kLetters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::string ToLetters(std::string_view bytes, bool pad) {
  std::string letters;
  letters.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t n = std::min<size_t>(3, bytes.size() - i);
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k)
      bits = bits << 8 | (k < n ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (size_t k = 0; k <= n; ++k) letters += kLetters[bits >> (18 - 6 * k) & 63];
    if (pad) letters.append(3 - n, '=');
  }
  return letters;
}

Result<std::string> FromLetters(std::string_view letters) {
  if (letters.size() % 4 == 0 && letters.ends_with('='))
    letters.remove_suffix(letters.ends_with("==") ? 2 : 1);
  if (letters.size() % 4 == 1)
    return InvalidArgument("a text of 'X' has ", letters.size(),
                           " letters of base64: one is left over");
  std::string bytes;
  bytes.reserve(letters.size() * 3 / 4);
  for (size_t i = 0; i < letters.size(); i += 4) {
    const size_t n = std::min<size_t>(4, letters.size() - i);
    uint32_t bits = 0;
    for (size_t k = 0; k < 4; ++k) {
      const size_t value = k < n ? kLetters.find(letters[i + k]) : 0;
      if (value == std::string_view::npos)
        return InvalidArgument("a text of 'X' is no base64: it has the byte ",
                               static_cast<int>(static_cast<unsigned char>(letters[i + k])));
      bits = bits << 6 | static_cast<uint32_t>(value);
    }
    for (size_t k = 0; k + 1 < n; ++k) bytes += static_cast<char>(bits >> (16 - 8 * k) & 255);
  }
  return bytes;
}

Status EncodeBytes(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const auto x, StringsOf(ctx, "X"));
  StringTensor out{x->shape, {}};
  for (const std::string& text : x->elements) {
    LookForInterrupt();
    out.elements.push_back(ToLetters(text, ctx.Bool("pad")));
  }
  SetStrings(ctx, "Out", std::move(out));
  return Status::Ok();
}

Status DecodeLetters(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const auto x, StringsOf(ctx, "X"));
  StringTensor out{x->shape, {}};
  for (const std::string& text : x->elements) {
    LookForInterrupt();
    HEDDLE_ASSIGN_OR_RETURN(std::string bytes, FromLetters(text));
    out.elements.push_back(std::move(bytes));
  }
  SetStrings(ctx, "Out", std::move(out));
  return Status::Ok();
}

Status AsNumbers(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const auto x, StringsOf(ctx, "X"));
  HEDDLE_ASSIGN_OR_RETURN(const DType dtype, CheckedDType(ctx.Int("out_type")));
  const size_t each = SizeOf(dtype), bytes = x->elements.empty() ? 0 : x->elements[0].size();
  for (const std::string& text : x->elements)
    if (text.size() != bytes)
      return InvalidArgument("'X' has texts of ", bytes, " and of ", text.size(),
                             " bytes; all must have one length");
  if (bytes % each != 0)
    return InvalidArgument("'X' has texts of ", bytes, " bytes, and an element of ", Name(dtype),
                           " has ", each);
  if (x->shape.rank() == Shape::kMaxRank) return InvalidArgument("too many dimensions to add one");
  Shape shape = x->shape;
  shape.push_back(static_cast<int64_t>(bytes / each));
  auto* to = static_cast<char*>(ctx.Alloc("Out", dtype, shape).mutable_raw());
  for (const std::string& text : x->elements) {
    LookForInterrupt();
    if (bytes > 0) std::memcpy(to, text.data(), bytes);
    // Of a complex number the parts are turned around one by one.
    const size_t part = IsComplex(dtype) ? each / 2 : each;
    for (size_t at = 0; !ctx.Bool("little_endian") && at < bytes; at += part)
      std::reverse(to + at, to + at + part);
    to += bytes;
  }
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(string_to_base64) {
  op.Doc("the bytes of each text as letters of base64 for URLs; `pad`: up to a multiple of four");
  op.Input("X", kAnyKind | kOtherOnly).Output("Out", kOtherOnly).Attr("pad", false);
  op.AnyKernel(EncodeBytes);
}
HEDDLE_OP(base64_to_string) {
  op.Doc("the bytes that each text says in base64 for URLs, padded or not");
  op.Input("X", kAnyKind | kOtherOnly).Output("Out", kOtherOnly).AnyKernel(DecodeLetters);
}
HEDDLE_OP(string_to_elements) {
  op.Doc("the bytes of each text as elements of a dtype, on a new last axis");
  op.Input("X", kAnyKind | kOtherOnly).Output("Out");
  op.Attr("out_type", 5).Attr("little_endian", true).AnyKernel(AsNumbers);
}
