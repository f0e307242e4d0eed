// Eight lanes at once: what each would be by itself.
#include "core/memory/blake2s_lanes.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>
#include <vector>

namespace heddle::testing {
namespace {

// As the RFC writes it.
void MixOne(const uint8_t* block, uint64_t bytes, uint32_t* state) {
  uint32_t m[16], v[16];
  std::memcpy(m, block, sizeof m);
  for (size_t i = 0; i < 8; ++i) {
    v[i] = state[i];
    v[i + 8] = kBlake2sStart[i];
  }
  v[12] ^= static_cast<uint32_t>(bytes);
  v[13] ^= static_cast<uint32_t>(bytes >> 32);
  const auto mix = [&](size_t a, size_t b, size_t c, size_t d, uint32_t x, uint32_t y) {
    v[a] = v[a] + v[b] + x;
    v[d] = std::rotr(v[d] ^ v[a], 16);
    v[c] = v[c] + v[d];
    v[b] = std::rotr(v[b] ^ v[c], 12);
    v[a] = v[a] + v[b] + y;
    v[d] = std::rotr(v[d] ^ v[a], 8);
    v[c] = v[c] + v[d];
    v[b] = std::rotr(v[b] ^ v[c], 7);
  };
  for (const auto& s : kBlake2sOrder)
    for (size_t g = 0; g < 8; ++g) {
      const size_t turn = g / 4;  // columns, then diagonals
      mix(g % 4, 4 + (g + turn) % 4, 8 + (g + 2 * turn) % 4, 12 + (g + 3 * turn) % 4, m[s[2 * g]],
          m[s[2 * g + 1]]);
    }
  for (size_t i = 0; i < 8; ++i) state[i] ^= v[i] ^ v[i + 8];
}

TEST(Blake2sLanes, AreAsEachByItself) {
  std::mt19937 random(1);
  for (const size_t count : {0, 1, 2, 7}) {
    // Counters of more than 32 bits, too.
    for (const uint64_t before :
         {uint64_t{0}, uint64_t{64}, (uint64_t{1} << 32) - 64, (uint64_t{5} << 40) + 128}) {
      std::vector<uint8_t> blocks(count * kBlake2sLanes * kBlake2sBlock + 1);
      for (uint8_t& byte : blocks) byte = static_cast<uint8_t>(random());
      const uint8_t* const at = blocks.data() + 1;  // not aligned
      Blake2sLanes lanes;
      for (auto& row : lanes.words)
        for (uint32_t& word : row) word = static_cast<uint32_t>(random());
      Blake2sLanes want = lanes;
      for (size_t l = 0; l < kBlake2sLanes; ++l) {
        uint32_t state[8];
        for (size_t i = 0; i < 8; ++i) state[i] = want.words[i][l];
        for (size_t k = 0; k < count; ++k)
          MixOne(at + (k * kBlake2sLanes + l) * kBlake2sBlock, before + (k + 1) * kBlake2sBlock,
                 state);
        for (size_t i = 0; i < 8; ++i) want.words[i][l] = state[i];
      }
      MixBlake2sLanes(at, count, before, &lanes);
      EXPECT_EQ(std::memcmp(&lanes, &want, sizeof lanes), 0) << count << " behind " << before;
    }
  }
}

}  // namespace
}  // namespace heddle::testing
