// Contents that come in any stretches, from several threads.
#include "formats/lowering/contents_checksum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/memory/crc32c.h"

namespace heddle::formats {
namespace {

std::string RandomBytes(std::mt19937* random, size_t count) {
  std::string bytes(count, '\0');
  for (char& b : bytes) b = static_cast<char>((*random)());
  return bytes;
}

// Pieces of any sizes, in any order, some twice, some that overlap: damage is told when the last
// byte has been seen, and neither before nor without damage.
TEST(ContentsChecksum, TellsDamageWhenAllIsSeen) {
  std::mt19937 random(11);
  for (int i = 0; i < 500; ++i) {
    const std::string right = RandomBytes(&random, 1 + random() % 400);
    std::string bytes = right;
    const bool damaged = i % 2 == 0;
    const size_t at = random() % bytes.size();
    if (damaged) bytes[at] = static_cast<char>(bytes[at] ^ 1 << random() % 8);
    ContentsChecksum checksum(bytes.size(), Crc32c(right));
    std::vector<bool> seen(bytes.size());
    for (bool all = false; !all;) {
      const size_t begin = random() % bytes.size();
      const size_t end = begin + 1 + random() % (bytes.size() - begin);
      std::fill(seen.begin() + static_cast<std::ptrdiff_t>(begin),
                seen.begin() + static_cast<std::ptrdiff_t>(end), true);
      all = std::find(seen.begin(), seen.end(), false) == seen.end();
      EXPECT_EQ(checksum.Add(bytes.data() + begin, begin, end), !damaged || !all);
    }
    EXPECT_EQ(checksum.Add(bytes.data(), 0, bytes.size()), !damaged);
  }
}

TEST(ContentsChecksum, StretchesComeFromSeveralThreads) {
  std::mt19937 random(12);
  for (int i = 0; i < 20; ++i) {
    const std::string right = RandomBytes(&random, 64 << 10);
    std::string bytes = right;
    const bool damaged = i % 2 == 0;
    if (damaged) bytes[random() % bytes.size()] ^= 1;
    ContentsChecksum checksum(bytes.size(), Crc32c(right));
    std::atomic<int> refused{0};
    std::vector<std::thread> threads;
    for (size_t k = 0; k < 4; ++k)
      threads.emplace_back([&, k] {
        constexpr size_t kPiece = 1 << 10;
        for (size_t begin = k * kPiece; begin < bytes.size(); begin += 4 * kPiece)
          if (!checksum.Add(bytes.data() + begin, begin, begin + kPiece)) ++refused;
      });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(refused, damaged ? 1 : 0);
  }
}

}  // namespace
}  // namespace heddle::formats
