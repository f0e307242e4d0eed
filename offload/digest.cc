#include "offload/digest.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace heddle::offload {
namespace {

constexpr std::array<uint64_t, 8> kStart = {
    0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
    0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};

// Which words of a block each round mixes; the last two rounds are the first two again.
constexpr uint8_t kOrder[10][16] = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                                    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
                                    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
                                    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
                                    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
                                    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
                                    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
                                    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
                                    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
                                    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

inline void MixFour(uint64_t* a, uint64_t* b, uint64_t* c, uint64_t* d, uint64_t x, uint64_t y) {
  *a += *b + x;
  *d = std::rotr(*d ^ *a, 32);
  *c += *d;
  *b = std::rotr(*b ^ *c, 24);
  *a += *b + y;
  *d = std::rotr(*d ^ *a, 16);
  *c += *d;
  *b = std::rotr(*b ^ *c, 63);
}

}  // namespace

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

void Digest::Mix(const uint8_t* block, bool last) {
  std::array<uint64_t, 16> m;
  std::memcpy(m.data(), block, kBlock);
  std::array<uint64_t, 16> v;
  std::copy(state_.begin(), state_.end(), v.begin());
  std::copy(kStart.begin(), kStart.end(), v.begin() + 8);
  v[12] ^= mixed_;
  if (last) v[14] = ~v[14];
  for (size_t round = 0; round < 12; ++round) {
    const uint8_t* const s = kOrder[round % 10];
    const auto mix = [&](size_t a, size_t b, size_t c, size_t d, size_t k) {
      MixFour(&v[a], &v[b], &v[c], &v[d], m[s[k]], m[s[k + 1]]);
    };
    mix(0, 4, 8, 12, 0);
    mix(1, 5, 9, 13, 2);
    mix(2, 6, 10, 14, 4);
    mix(3, 7, 11, 15, 6);
    mix(0, 5, 10, 15, 8);
    mix(1, 6, 11, 12, 10);
    mix(2, 7, 8, 13, 12);
    mix(3, 4, 9, 14, 14);
  }
  for (size_t i = 0; i < 8; ++i) state_[i] ^= v[i] ^ v[i + 8];
}

void Digest::Add(const void* data, size_t bytes) {
  const auto* at = static_cast<const uint8_t*>(data);
  while (bytes > 0) {
    // The last block is mixed by Finish, so a full one waits until more comes.
    if (rest_bytes_ == kBlock) {
      mixed_ += kBlock;
      Mix(rest_.data(), false);
      rest_bytes_ = 0;
    }
    if (rest_bytes_ == 0)
      for (; bytes > kBlock; at += kBlock, bytes -= kBlock) {
        mixed_ += kBlock;
        Mix(at, false);
      }
    const size_t part = std::min(bytes, kBlock - rest_bytes_);
    std::memcpy(rest_.data() + rest_bytes_, at, part);
    rest_bytes_ += part;
    at += part;
    bytes -= part;
  }
}

DigestBytes Digest::Finish() && {
  std::fill(rest_.begin() + static_cast<std::ptrdiff_t>(rest_bytes_), rest_.end(), 0);
  mixed_ += rest_bytes_;
  Mix(rest_.data(), true);
  DigestBytes digest;
  std::memcpy(digest.data(), state_.data(), digest.size());
  return digest;
}

std::string HexOf(const DigestBytes& digest) {
  std::string text;
  for (const uint8_t byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

}  // namespace heddle::offload
