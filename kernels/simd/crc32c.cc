// The processor's CRC-32C takes three cycles for eight bytes and begins one each cycle: long
// stretches are cut into three, whose checksums are joined. Checksums are polynomials over GF(2)
// modulo Castagnoli's, the highest coefficient in the lowest bit.
#include "core/memory/crc32c.h"

#include <array>
#include <cstring>

#ifdef __SSE4_2__
#include <nmmintrin.h>
#endif

namespace heddle {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78u;
constexpr size_t kPart = 2048;  // bytes of each of the three

constexpr uint32_t Times(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = 1u << 31; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) product ^= b;
    b = (b & 1) != 0 ? b >> 1 ^ kPolynomial : b >> 1;
  }
  return product;
}

// x to the power of 2^k.
constexpr auto kPowers = [] {
  std::array<uint32_t, 67> powers{};
  powers[0] = 1u << 30;
  for (size_t k = 1; k < powers.size(); ++k) powers[k] = Times(powers[k - 1], powers[k - 1]);
  return powers;
}();

// x to the power of 8 * bytes: the factor of a checksum before which so many bytes come.
constexpr uint32_t FactorOf(size_t bytes) {
  uint32_t factor = 1u << 31;
  for (size_t k = 3; bytes != 0; bytes >>= 1, ++k)
    if ((bytes & 1) != 0) factor = Times(kPowers[k], factor);
  return factor;
}

#ifdef __SSE4_2__

// Each byte of a checksum times the factor of kPart bytes.
constexpr auto kShifted = [] {
  std::array<std::array<uint32_t, 256>, 4> shifted{};
  std::array<uint32_t, 32> of_bits{};
  for (size_t bit = 0; bit < 32; ++bit) of_bits[bit] = Times(FactorOf(kPart), 1u << bit);
  for (size_t byte = 0; byte < 4; ++byte)
    for (size_t value = 0; value < 256; ++value)
      for (size_t bit = 0; bit < 8; ++bit)
        if ((value >> bit & 1) != 0) shifted[byte][value] ^= of_bits[8 * byte + bit];
  return shifted;
}();

uint32_t Shifted(uint64_t crc) {
  return kShifted[0][crc & 0xff] ^ kShifted[1][crc >> 8 & 0xff] ^ kShifted[2][crc >> 16 & 0xff] ^
         kShifted[3][crc >> 24 & 0xff];
}

uint64_t Step(uint64_t crc, const unsigned char* at) {
  uint64_t word = 0;
  std::memcpy(&word, at, sizeof(word));
  return _mm_crc32_u64(crc, word);
}

uint32_t Extended(uint32_t crc, const unsigned char* at, size_t bytes) {
  uint64_t first = crc;
  for (; bytes >= 3 * kPart; at += 3 * kPart, bytes -= 3 * kPart) {
    uint64_t second = 0, third = 0;
    for (size_t i = 0; i < kPart; i += sizeof(uint64_t)) {
      first = Step(first, at + i);
      second = Step(second, at + kPart + i);
      third = Step(third, at + 2 * kPart + i);
    }
    first = Shifted(Shifted(first) ^ second) ^ third;
  }
  for (; bytes >= sizeof(uint64_t); at += sizeof(uint64_t), bytes -= sizeof(uint64_t))
    first = Step(first, at);
  auto last = static_cast<uint32_t>(first);
  for (; bytes > 0; ++at, --bytes) last = _mm_crc32_u8(last, *at);
  return last;
}

#else

constexpr auto kOfBytes = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int k = 0; k < 8; ++k) c = (c & 1) != 0 ? c >> 1 ^ kPolynomial : c >> 1;
    table[i] = c;
  }
  return table;
}();

uint32_t Extended(uint32_t crc, const unsigned char* at, size_t bytes) {
  for (; bytes > 0; ++at, --bytes) crc = kOfBytes[(crc ^ *at) & 0xff] ^ crc >> 8;
  return crc;
}

#endif

}  // namespace

uint32_t Crc32c(const void* data, size_t bytes, uint32_t before) {
  return ~Extended(~before, static_cast<const unsigned char*>(data), bytes);
}

uint32_t JoinedCrc32c(uint32_t first, uint32_t second, size_t second_bytes) {
  return Times(FactorOf(second_bytes), first) ^ second;
}

}  // namespace heddle
