#include "kernels/strings/letter_case.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "kernels/strings/code_points.h"

namespace heddle {
namespace {

// Letters first, first + step, … last, whose other case is at a distance.
struct Range {
  uint32_t first, last, step;
  int32_t distance;
};
// A letter whose other case has several code points, in UTF-8.
struct Long {
  uint32_t code;
  std::string_view other;
};

#define LOWER(first, last, step, distance) {first, last, step, distance},
#define UPPER(first, last, step, distance)
#define LONG_LOWER(code, other)
#define LONG_UPPER(code, other)
constexpr Range kLower[] = {
#include "kernels/strings/letter_case.inc"
};
#undef LOWER
#undef UPPER
#define LOWER(first, last, step, distance)
#define UPPER(first, last, step, distance) {first, last, step, distance},
constexpr Range kUpper[] = {
#include "kernels/strings/letter_case.inc"
};
#undef UPPER
#undef LONG_LOWER
#define UPPER(first, last, step, distance)
#define LONG_LOWER(code, other) {code, other},
constexpr Long kLongLower[] = {
#include "kernels/strings/letter_case.inc"
};
#undef LONG_LOWER
#undef LONG_UPPER
#define LONG_LOWER(code, other)
#define LONG_UPPER(code, other) {code, other},
constexpr Long kLongUpper[] = {
#include "kernels/strings/letter_case.inc"
};
#undef LOWER
#undef UPPER
#undef LONG_LOWER
#undef LONG_UPPER

template <size_t n>
uint32_t Mapped(const Range (&ranges)[n], uint32_t code) {
  const Range* r = std::upper_bound(std::begin(ranges), std::end(ranges), code,
                                    [](uint32_t c, const Range& range) { return c < range.first; });
  // Ranges with steps may lie in each other: letters of two kinds that take turns.
  for (int back = 0; back < 2 && r != std::begin(ranges); ++back) {
    --r;
    if (code <= r->last && (code - r->first) % r->step == 0)
      return static_cast<uint32_t>(static_cast<int32_t>(code) + r->distance);
  }
  return code;
}

template <size_t n>
std::string_view LongOf(const Long (&all)[n], uint32_t code) {
  const Long* found = std::lower_bound(std::begin(all), std::end(all), code,
                                       [](const Long& l, uint32_t c) { return l.code < c; });
  return found != std::end(all) && found->code == code ? found->other : std::string_view();
}

constexpr uint32_t kSigma = 0x3A3, kFinalSigma = 0x3C2;

bool HasCase(int32_t code) {
  if (code < 0) return false;
  const auto c = static_cast<uint32_t>(code);
  return Mapped(kLower, c) != c || Mapped(kUpper, c) != c;
}

// Characters that are no letters and end no word: points, apostrophes, accents (Unicode's property
// Case_Ignorable, without the rarer scripts).
bool IsInWord(int32_t code) {
  static constexpr std::pair<int32_t, int32_t> kRanges[] = {
      {'\'', '\''},   {'.', '.'},       {':', ':'},       {'^', '^'},       {'`', '`'},
      {0xA8, 0xA8},   {0xAD, 0xAD},     {0xAF, 0xAF},     {0xB4, 0xB4},     {0xB7, 0xB8},
      {0x2B0, 0x36F}, {0x2018, 0x2019}, {0x2024, 0x2024}, {0x2027, 0x2027}, {0x200B, 0x200F}};
  return std::any_of(std::begin(kRanges), std::end(kRanges),
                     [&](const auto& r) { return r.first <= code && code <= r.second; });
}

// Whether no letter follows in the word.
bool EndsWord(std::string_view ahead) {
  while (!ahead.empty()) {
    const int32_t code = TakeCodePoint(&ahead);
    if (!IsInWord(code)) return !HasCase(code);
  }
  return true;
}

}  // namespace

std::string InCase(std::string_view text, Case to, bool whole) {
  std::string out;
  out.reserve(text.size());
  bool in_word = false;
  while (!text.empty()) {
    const std::string_view from = text;
    const int32_t read = TakeCodePoint(&text);
    if (read == kNoCodePoint) {
      out.append(from.substr(0, from.size() - text.size()));
      in_word = false;
      continue;
    }
    const auto code = static_cast<uint32_t>(read);
    const std::string_view several = !whole               ? std::string_view()
                                     : to == Case::kLower ? LongOf(kLongLower, code)
                                                          : LongOf(kLongUpper, code);
    if (!several.empty()) {
      out.append(several);
    } else if (whole && to == Case::kLower && code == kSigma && in_word) {
      AppendCodePoint(EndsWord(text) ? kFinalSigma : Mapped(kLower, code), &out);
    } else {
      AppendCodePoint(to == Case::kLower ? Mapped(kLower, code) : Mapped(kUpper, code), &out);
    }
    if (!IsInWord(read)) in_word = HasCase(read);
  }
  return out;
}

std::string InAsciiCase(std::string_view text, Case to) {
  std::string out(text);
  const char first = to == Case::kLower ? 'A' : 'a';
  for (char& c : out)
    if (c >= first && c <= first + 25) c = static_cast<char>(c ^ 0x20);
  return out;
}

}  // namespace heddle
