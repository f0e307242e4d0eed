// Cutting UTF-8 text between characters.
#pragma once

#include <cstddef>
#include <string_view>

namespace heddle {

// The position of the UTF-8 character that contains the byte `at`, as a place to cut; `at` itself
// if the bytes before it begin no character, and the text's size if `at` is beyond it.
inline size_t CharacterAt(std::string_view text, size_t at) {
  constexpr size_t kMostBehind = 3;  // continuation bytes of a character
  const auto continues = [text](size_t i) { return (text[i] & 0xC0) == 0x80; };
  if (at >= text.size()) return text.size();
  size_t i = at;
  while (i > 0 && at - i < kMostBehind && continues(i)) --i;
  return continues(i) ? at : i;
}

}  // namespace heddle
