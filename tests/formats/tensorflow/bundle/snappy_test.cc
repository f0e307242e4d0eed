// Blocks as Google's snappy compresses them, and ones that lie.
#include "formats/tensorflow/bundle/snappy.h"

#include <gtest/gtest.h>

#include <random>

#include "formats/wire_fields.h"

namespace heddle::tensorflow {
namespace {

std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return bytes;
}

TEST(Snappy, LiteralsAndCopies) {
  std::string text;
  for (int i = 0; i < 8; ++i) text += "abc";
  text += "--" + std::string(70, 'x');
  for (int i = 0; i < 3; ++i)
    for (char c = 'A'; c <= 'Z'; ++c) text += c;
  // The bytes are those that the library makes of it.
  const auto made = Uncompress(FromHex(
      "ae0108616263520300082d2d78fe01000501644142434445464748494a4b4c4d4e4f50515253545556575"
      "8595ace1a00"));
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  EXPECT_EQ(*made, text);
  EXPECT_EQ(*Uncompress(std::string(1, '\0')), "");
}

// A literal whose length stands behind the tag, and copies by two and four bytes.
TEST(Snappy, LongLengthsAndDistances) {
  const std::string literal(300, 'q');
  std::string block;
  wire::AppendVarint(300 + 3 + 5 + 2, &block);
  block.append("\xf4\x2b\x01", 3).append(literal);  // of 300 bytes
  block.append("\x08xyz", 4);
  block.append("\x12\x2f\x01", 3);          // 5 bytes from 303 before
  block.append("\x07\x05\x00\x00\x00", 5);  // 2 bytes from 5 before
  const auto made = Uncompress(block);
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  EXPECT_EQ(*made, literal + "xyz" + "qqqqq" + "qq");
}

TEST(Snappy, BlocksThatLieAreRefused) {
  const auto error = [](std::string_view block) { return Uncompress(block).status().ToString(); };
  EXPECT_NE(error("").find("damaged"), std::string::npos);
  EXPECT_NE(error(std::string("\x05\x08xyz", 5)).find("damaged"), std::string::npos);  // too short
  EXPECT_NE(error(std::string("\x02\x08xyz", 5)).find("damaged"), std::string::npos);  // too long
  EXPECT_NE(error(std::string("\x07\x08xyz\x01\x04", 7)).find("damaged"), std::string::npos);
  EXPECT_NE(error(std::string("\x07\x08xyz\x01\x00", 7)).find("damaged"), std::string::npos);
  EXPECT_NE(error(std::string("\xff\xff\xff\xff\x0f\x00z", 7)).find("claims to hold"),
            std::string::npos);
  // Whatever bytes: a result or an error, and no more memory than the block can say.
  std::mt19937 random(5);
  for (int i = 0; i < 20000; ++i) {
    std::string block(random() % 40, '\0');
    for (char& c : block) c = static_cast<char>(random());
    const auto made = Uncompress(block);
    if (made.ok()) {
      EXPECT_LE(made->size(), 22 * block.size());
    }
  }
}

}  // namespace
}  // namespace heddle::tensorflow
