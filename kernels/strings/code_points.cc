#include "kernels/strings/code_points.h"

namespace heddle {

int32_t TakeCodePoint(std::string_view* text) {
  const auto first = static_cast<uint8_t>((*text)[0]);
  const size_t length = first < 0x80   ? 1
                        : first < 0xC2 ? 0
                        : first < 0xE0 ? 2
                        : first < 0xF0 ? 3
                                       : 4;
  int32_t code = length < 2 ? first : first & (0x7F >> length);
  bool valid = length > 0 && first < 0xF5 && text->size() >= length;
  for (size_t i = 1; valid && i < length; ++i) {
    const auto byte = static_cast<uint8_t>((*text)[i]);
    valid = (byte & 0xC0) == 0x80;
    code = code << 6 | (byte & 0x3F);
  }
  constexpr int32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  valid = valid && code >= kLeast[length] && code <= kLastCodePoint &&
          !(code >= 0xD800 && code < 0xE000);
  text->remove_prefix(valid ? length : 1);
  return valid ? code : kNoCodePoint;
}

void AppendCodePoint(uint32_t code, std::string* out) {
  if (code < 0x80) {
    out->push_back(static_cast<char>(code));
    return;
  }
  const int behind = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr uint8_t kFirst[] = {0, 0xC0, 0xE0, 0xF0};
  out->push_back(static_cast<char>(kFirst[behind] | code >> (6 * behind)));
  for (int i = behind - 1; i >= 0; --i)
    out->push_back(static_cast<char>(0x80 | ((code >> (6 * i)) & 0x3F)));
}

}  // namespace heddle
