// Checksums, compared with those taken bit by bit.
#include "core/memory/crc32c.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace heddle {
namespace {

uint32_t BitByBit(const std::vector<uint8_t>& bytes, size_t begin, size_t end) {
  uint32_t crc = ~0u;
  for (size_t i = begin; i < end; ++i) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
  }
  return ~crc;
}

TEST(Crc32c, IsThatOfTheStandard) {
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);  // the check value of CRC-32C's catalogues
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);  // RFC 3720, B.4
  EXPECT_EQ(UnmaskedCrc32c(MaskedCrc32c(0x12345678)), 0x12345678u);
}

TEST(Crc32c, StretchesAreExtendedAndJoined) {
  std::mt19937 random(3);
  std::vector<uint8_t> bytes(60000);
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(random());
  for (int i = 0; i < 600; ++i) {
    const size_t begin = random() % (i % 3 == 0 ? 20000 : 40);
    const size_t size = random() % (i % 3 == 0 ? 40000 : 200);
    const size_t cut = begin + random() % (size + 1), end = begin + size;
    const uint32_t whole = BitByBit(bytes, begin, end);
    const uint32_t first = Crc32c(&bytes[begin], cut - begin);
    EXPECT_EQ(Crc32c(&bytes[begin], size), whole);
    EXPECT_EQ(Crc32c(bytes.data() + cut, end - cut, first), whole);
    EXPECT_EQ(JoinedCrc32c(first, Crc32c(bytes.data() + cut, end - cut), end - cut), whole);
  }
}

}  // namespace
}  // namespace heddle
