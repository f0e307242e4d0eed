// Case and stop words, whatever the system's locale is.
#include <algorithm>

#include "core/interrupts.h"
#include "core/operands/slot_kinds.h"
#include "kernels/strings/string_operand.h"

namespace heddle {
namespace {

// Letters of Latin-1, Greek and Cyrillic whose other case is at a fixed distance.
struct CaseRange {
  uint32_t upper_first, upper_last, distance;
};
constexpr CaseRange kRanges[] = {
    {'A', 'Z', 32},     {0xC0, 0xD6, 32},   {0xD8, 0xDE, 32},
    {0x391, 0x3A9, 32}, {0x410, 0x42F, 32}, {0x400, 0x40F, 80},
};
// Latin Extended-A: capitals and small letters take turns.
constexpr uint32_t kPairsFirst = 0x100, kPairsLast = 0x17F;

bool IsPaired(uint32_t c) {
  return c >= kPairsFirst && c < kPairsLast && c != 0x130 && c != 0x131 && c != 0x138 &&
         c != 0x149 && c != 0x178;
}
// In parts of the block, capitals are odd.
bool IsOddCapital(uint32_t c) { return (c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17E); }

uint32_t OtherCase(uint32_t c, bool upper) {
  if (c == 0x3C2) return upper ? 0x3A3 : c;  // the final sigma has no capital of its own
  for (const CaseRange& r : kRanges) {
    if (upper && c >= r.upper_first + r.distance && c <= r.upper_last + r.distance && c != 0xF7)
      return c - r.distance;
    if (!upper && c >= r.upper_first && c <= r.upper_last && c != 0xD7) return c + r.distance;
  }
  if (!IsPaired(c)) return c;
  const bool is_capital = (c % 2 == 1) == IsOddCapital(c);
  if (upper == is_capital) return c;
  return is_capital ? c + 1 : c - 1;
}

void AppendUtf8(uint32_t c, std::string* out) {
  if (c < 0x80) {
    out->push_back(static_cast<char>(c));
  } else {
    out->push_back(static_cast<char>(0xC0 | c >> 6));
    out->push_back(static_cast<char>(0x80 | (c & 0x3F)));
  }
}

// Characters of more than two bytes, and what is no UTF-8, stay as they are.
std::string InCase(const std::string& text, bool upper) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    const bool two = byte >= 0xC2 && byte < 0xE0 && i + 1 < text.size() &&
                     (static_cast<uint8_t>(text[i + 1]) & 0xC0) == 0x80;
    if (byte < 0x80) {
      AppendUtf8(OtherCase(byte, upper), &out);
    } else if (two) {
      const uint32_t c = (byte & 0x1Fu) << 6 | (static_cast<uint8_t>(text[++i]) & 0x3Fu);
      AppendUtf8(OtherCase(c, upper), &out);
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

Status Normalize(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const auto x, StringsOf(ctx, "X"));
  const Shape& shape = x->shape;
  if (shape.rank() != 1 && !(shape.rank() == 2 && shape[0] == 1))
    return InvalidArgument("'X' has the shape ", shape.ToString(), "; [n] or [1, n] is expected");
  const std::string& action = ctx.Str("case_change_action");
  if (action != "NONE" && action != "LOWER" && action != "UPPER")
    return InvalidArgument("'case_change_action' is '", action, "', expected NONE, LOWER or UPPER");
  const bool exact = ctx.Int("is_case_sensitive") != 0;
  Strings stopped = ctx.Attr<Strings>("stopwords");
  if (!exact)
    for (std::string& word : stopped) word = InCase(word, false);
  StringTensor out;
  for (const std::string& word : x->elements) {
    LookForInterrupt();
    const std::string compared = exact ? word : InCase(word, false);
    if (std::find(stopped.begin(), stopped.end(), compared) != stopped.end()) continue;
    out.elements.push_back(action == "NONE" ? word : InCase(word, action == "UPPER"));
  }
  if (out.elements.empty()) out.elements.emplace_back();  // never nothing
  out.shape = shape;
  out.shape[shape.rank() - 1] = static_cast<int64_t>(out.elements.size());
  SetStrings(ctx, "Y", std::move(out));
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_string_normalizer) {
  op.Doc("strings without stop words, in upper or lower case");
  op.Input("X", kAnyKind | kOtherOnly).Output("Y", kOtherOnly).Attr("case_change_action", "NONE");
  op.Attr("is_case_sensitive", 0).Attr("stopwords", Strings{}).AnyKernel(Normalize);
}
