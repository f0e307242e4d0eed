#include "formats/sha1.h"

#include <algorithm>
#include <bit>

namespace heddle::formats {

void Sha1::Mix(const char* block) {
  std::array<uint32_t, 80> w;
  for (size_t t = 0; t < 16; ++t) {
    uint32_t word = 0;
    for (size_t i = 0; i < 4; ++i) word = word << 8 | static_cast<uint8_t>(block[4 * t + i]);
    w[t] = word;
  }
  for (size_t t = 16; t < w.size(); ++t)
    w[t] = std::rotl(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
  auto [a, b, c, d, e] = state_;
  for (size_t t = 0; t < w.size(); ++t) {
    uint32_t f = b ^ c ^ d, k = t < 40 ? 0x6ed9eba1u : 0xca62c1d6u;
    if (t < 20) {
      f = (b & c) | (~b & d);
      k = 0x5a827999u;
    } else if (t >= 40 && t < 60) {
      f = (b & c) | (b & d) | (c & d);
      k = 0x8f1bbcdcu;
    }
    const uint32_t next = std::rotl(a, 5) + f + e + k + w[t];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  const std::array<uint32_t, 5> added = {a, b, c, d, e};
  for (size_t i = 0; i < state_.size(); ++i) state_[i] += added[i];
}

void Sha1::Add(std::string_view bytes) {
  bytes_ += bytes.size();
  if (!rest_.empty()) {
    const size_t taken = std::min(kBlock - rest_.size(), bytes.size());
    rest_ += bytes.substr(0, taken);
    bytes.remove_prefix(taken);
    if (rest_.size() < kBlock) return;
    Mix(rest_.data());
    rest_.clear();
  }
  for (; bytes.size() >= kBlock; bytes.remove_prefix(kBlock)) Mix(bytes.data());
  rest_ = bytes;
}

std::string Sha1::Digest() && {
  const uint64_t bits = bytes_ * 8;
  std::string end(1, '\x80');
  end.append((2 * kBlock - 9 - rest_.size()) % kBlock, '\0');
  for (int shift = 56; shift >= 0; shift -= 8) end += static_cast<char>(bits >> shift & 0xff);
  Add(end);
  std::string digits;
  for (uint32_t word : state_)
    for (int shift = 28; shift >= 0; shift -= 4) digits += "0123456789abcdef"[word >> shift & 15];
  return digits;
}

}  // namespace heddle::formats
