// Cuts of text that leave its characters whole.
#pragma once

#include <cstddef>
#include <string_view>

namespace heddle {

// The place of the UTF-8 character that has the byte at `at`, to cut there; `at` itself where the
// bytes before it begin none, and the text's end where `at` is behind that.
inline size_t CharacterAt(std::string_view text, size_t at) {
  constexpr size_t kMostBehind = 3;  // bytes of a character behind its first one
  const auto continues = [text](size_t i) { return (text[i] & 0xC0) == 0x80; };
  if (at >= text.size()) return text.size();
  size_t i = at;
  while (i > 0 && at - i < kMostBehind && continues(i)) --i;
  return continues(i) ? at : i;
}

}  // namespace heddle
