#include "core/utf8.h"

#include <gtest/gtest.h>

#include <string>

#include "heddle/bounds.h"
#include "heddle/status.h"

namespace heddle::testing {
namespace {

// Bytes that begin no character follow one that says how many they are.
bool IsUtf8(const std::string& text) {
  size_t behind = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool continues = (byte & 0xC0) == 0x80;
    if (continues != (behind > 0)) return false;
    if (continues)
      --behind;
    else
      behind = byte >= 0xF0 ? 3 : byte >= 0xE0 ? 2 : byte >= 0xC0 ? 1 : 0;
  }
  return behind == 0;
}

TEST(Utf8, ALongMessageIsCutBetweenCharacters) {
  for (const std::string character : {"a", "\u00e9", "\u20ac", "\U0001f9f5"})
    for (size_t first = 0; first < 4; ++first) {
      std::string text(first, '.');
      while (text.size() < 2 * kMostErrorBytes) text += character;
      const std::string message = Status(StatusCode::kInternal, text).message();
      EXPECT_TRUE(IsUtf8(message)) << character << ' ' << first;
      EXPECT_LT(message.size(), kMostErrorBytes + 100);
      const size_t left_out = message.find(" ... (");
      ASSERT_NE(left_out, std::string::npos);
      const size_t count = std::stoul(message.substr(left_out + 6));
      const size_t said = std::string(" ... ( bytes) ... ").size() + std::to_string(count).size();
      EXPECT_EQ(message.size() - said + count, text.size());
    }
}

TEST(Utf8, BytesThatAreNoCharactersAreCutAnywhere) {
  const std::string text(10, '\x80');
  for (size_t at = 0; at < 10; ++at) EXPECT_EQ(CharacterAt(text, at), at);
  EXPECT_EQ(CharacterAt(text, 12), 10u);
  EXPECT_EQ(CharacterAt("\u20ac", 2), 0u);
  EXPECT_EQ(CharacterAt("a\u20ac", 1), 1u);
}

}  // namespace
}  // namespace heddle::testing
