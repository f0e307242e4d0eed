// Code points of UTF-8 texts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace heddle {

inline constexpr int32_t kLastCodePoint = 0x10FFFF;
inline constexpr int32_t kNoCodePoint = -1;

// The code point at the beginning of a text that is not empty, which is taken off. Where there is
// no UTF-8: kNoCodePoint, and one byte is taken off.
int32_t TakeCodePoint(std::string_view* text);

// Appends the UTF-8 of a code point.
void AppendCodePoint(uint32_t code, std::string* out);

// A byte that begins a character, or stands for itself.
inline bool BeginsCharacter(char byte) { return (byte & 0xC0) != 0x80; }

}  // namespace heddle
