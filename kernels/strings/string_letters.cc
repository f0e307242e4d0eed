// Functions of one text: its case, its length, a part of it.
#include <algorithm>

#include "core/interrupts.h"
#include "core/operands/slot_kinds.h"
#include "core/shapes.h"
#include "kernels/base/index_args.h"
#include "kernels/strings/code_points.h"
#include "kernels/strings/letter_case.h"
#include "kernels/strings/string_operand.h"

namespace heddle {
namespace {

template <typename Fn>
Status MapTexts(KernelContext& ctx, Fn&& fn) {
  HEDDLE_ASSIGN_OR_RETURN(const auto x, StringsOf(ctx, "X"));
  StringTensor out{x->shape, {}};
  out.elements.reserve(x->elements.size());
  for (const std::string& text : x->elements) {
    LookForInterrupt();
    out.elements.push_back(fn(text));
  }
  SetStrings(ctx, "Out", std::move(out));
  return Status::Ok();
}

Status ChangeCase(KernelContext& ctx) {
  const Case to = ctx.Bool("upper") ? Case::kUpper : Case::kLower;
  const bool ascii = ctx.Bool("ascii");
  return MapTexts(ctx, [=](const std::string& text) {
    return ascii ? InAsciiCase(text, to) : InCase(text, to, true);
  });
}

Status Strip(KernelContext& ctx) {
  return MapTexts(ctx, [](const std::string& text) { return std::string(Stripped(text)); });
}

Result<bool> CountsCharacters(const KernelContext& ctx) {
  const std::string& unit = ctx.Str("unit");
  if (unit == "UTF8_CHAR") return true;
  if (unit == "BYTE") return false;
  return InvalidArgument("'unit' is '", unit, "', expected BYTE or UTF8_CHAR");
}

int64_t CharactersIn(std::string_view text) {
  return std::count_if(text.begin(), text.end(), BeginsCharacter);
}

Status Length(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const auto x, StringsOf(ctx, "X"));
  HEDDLE_ASSIGN_OR_RETURN(const bool characters, CountsCharacters(ctx));
  int32_t* to = ctx.Alloc("Out", DType::kI32, x->shape).mutable_data<int32_t>();
  for (const std::string& text : x->elements) {
    LookForInterrupt();
    *to++ =
        static_cast<int32_t>(characters ? CharactersIn(text) : static_cast<int64_t>(text.size()));
  }
  return Status::Ok();
}

// The byte at which character `n` begins, or the size.
size_t ByteOfCharacter(std::string_view text, int64_t n) {
  for (size_t i = 0; i < text.size(); ++i)
    if (BeginsCharacter(text[i]) && n-- == 0) return i;
  return text.size();
}

// The element of an integer operand for element `i` of a result to which it is broadcast.
int64_t BroadcastInt(const Ints& values, const Shape& shape, const Shape& all, int64_t i) {
  int64_t place = 0, stride = 1;
  for (int d = 1; d <= shape.rank(); ++d) {
    if (shape.dim(-d) != 1) place += i % all.dim(-d) * stride;
    i /= all.dim(-d);
    stride *= shape.dim(-d);
  }
  return values[static_cast<size_t>(place)];
}

Status Substring(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const auto x, StringsOf(ctx, "X"));
  HEDDLE_ASSIGN_OR_RETURN(const bool characters, CountsCharacters(ctx));
  const Tensor &begin = ctx.In("Begin"), &length = ctx.In("Length");
  HEDDLE_ASSIGN_OR_RETURN(const Shape both, BroadcastShape(begin.shape(), length.shape(), -1));
  HEDDLE_ASSIGN_OR_RETURN(const Shape all, BroadcastShape(x->shape, both, -1));
  const Ints begins = ToInts(begin), lengths = ToInts(length);
  StringTensor out{all, {}};
  for (const int64_t i : Watched(all.numel())) {
    const std::string& text = BroadcastElement(*x, all, i);
    const int64_t size = characters ? CharactersIn(text) : static_cast<int64_t>(text.size());
    int64_t from = BroadcastInt(begins, begin.shape(), all, i);
    const int64_t most = BroadcastInt(lengths, length.shape(), all, i);
    if (from > size || from < -size)
      return OutOfRange("'Begin' is ", from, " for element ", i, ", a text of ", size,
                        characters ? " characters" : " bytes");
    if (from < 0) from += size;
    const int64_t to = most < 0 || most > size - from ? size : from + most;
    const size_t first = characters ? ByteOfCharacter(text, from) : static_cast<size_t>(from);
    const size_t last = characters ? ByteOfCharacter(text, to) : static_cast<size_t>(to);
    out.elements.push_back(text.substr(first, last - first));
  }
  SetStrings(ctx, "Out", std::move(out));
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(string_case) {
  op.Doc("texts in small letters, or with `upper` in capitals; `ascii`: only letters of ASCII");
  op.Input("X", kAnyKind | kOtherOnly).Output("Out", kOtherOnly);
  op.Attr("upper", false).Attr("ascii", false).AnyKernel(ChangeCase);
}

HEDDLE_OP(string_strip) {
  op.Doc("texts without the white space at both ends");
  op.Input("X", kAnyKind | kOtherOnly).Output("Out", kOtherOnly).AnyKernel(Strip);
}

HEDDLE_OP(string_length) {
  op.Doc("the length of each text in bytes, or in characters (`unit` UTF8_CHAR)");
  op.Input("X", kAnyKind | kOtherOnly).Output("Out").Attr("unit", "BYTE").AnyKernel(Length);
}

HEDDLE_OP(substring) {
  op.Doc(
      "at most Length bytes or characters of each text from Begin on, which counts from the end "
      "where it is negative; with broadcasting");
  op.Input("X", kAnyKind | kOtherOnly)
      .Input("Begin")
      .Input("Length")
      .Output("Out", kOtherOnly)
      .Attr("unit", "BYTE")
      .AnyKernel(Substring);
}
