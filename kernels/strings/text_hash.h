// Hashes of texts that are the same on every machine: FarmHash's 64-bit fingerprint (Pike and
// Alakuijala, 2014), and with a key SipHash-2-4 (Aumasson and Bernstein, 2012).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

namespace heddle {

class Fingerprint {
 public:
  static uint64_t Of(std::string_view text) {
    if (text.size() <= 16) return OfUpTo16(text);
    if (text.size() <= 32) return OfUpTo32(text);
    if (text.size() <= 64) return OfUpTo64(text);
    return OfLong(text);
  }

 private:
  static constexpr uint64_t k0 = 0xc3a5c85c97cb3127, k1 = 0xb492b66fbe98f273,
                            k2 = 0x9ae16a3b2f90404f;
  struct Pair {
    uint64_t first = 0, second = 0;
  };

  static uint64_t Word(std::string_view text, size_t at) {
    uint64_t word;
    std::memcpy(&word, text.data() + at, sizeof(word));
    return word;
  }
  static uint64_t HalfWord(std::string_view text, size_t at) {
    uint32_t word;
    std::memcpy(&word, text.data() + at, sizeof(word));
    return word;
  }
  static uint64_t Mix(uint64_t x) { return x ^ x >> 47; }
  static uint64_t Join(uint64_t u, uint64_t v, uint64_t factor) {
    const uint64_t a = Mix((u ^ v) * factor);
    return Mix((v ^ a) * factor) * factor;
  }
  static uint64_t Factor(std::string_view text) { return k2 + text.size() * 2; }

  static uint64_t OfUpTo16(std::string_view text) {
    const size_t n = text.size();
    if (n >= 8) {
      const uint64_t factor = Factor(text), a = Word(text, 0) + k2, b = Word(text, n - 8);
      return Join(std::rotr(b, 37) * factor + a, (std::rotr(a, 25) + b) * factor, factor);
    }
    if (n >= 4) return Join(n + (HalfWord(text, 0) << 3), HalfWord(text, n - 4), Factor(text));
    if (n == 0) return k2;
    const auto byte = [&](size_t at) { return uint64_t{static_cast<uint8_t>(text[at])}; };
    const uint64_t y = byte(0) + (byte(n >> 1) << 8), z = n + (byte(n - 1) << 2);
    return Mix(y * k2 ^ z * k0) * k2;
  }

  static uint64_t OfUpTo32(std::string_view text) {
    const size_t n = text.size();
    const uint64_t factor = Factor(text), a = Word(text, 0) * k1, b = Word(text, 8),
                   c = Word(text, n - 8) * factor, d = Word(text, n - 16) * k2;
    return Join(std::rotr(a + b, 43) + std::rotr(c, 30) + d, a + std::rotr(b + k2, 18) + c, factor);
  }

  static uint64_t OfUpTo64(std::string_view text) {
    const size_t n = text.size();
    const uint64_t factor = Factor(text), a = Word(text, 0) * k2, b = Word(text, 8),
                   c = Word(text, n - 8) * factor, d = Word(text, n - 16) * k2;
    const uint64_t y = std::rotr(a + b, 43) + std::rotr(c, 30) + d;
    const uint64_t z = Join(y, a + std::rotr(b + k2, 18) + c, factor);
    const uint64_t e = Word(text, 16) * factor, f = Word(text, 24),
                   g = (y + Word(text, n - 32)) * factor, h = (z + Word(text, n - 24)) * factor;
    return Join(std::rotr(e + f, 43) + std::rotr(g, 30) + h, e + std::rotr(f + a, 18) + g, factor);
  }

  static Pair Weak(std::string_view text, size_t at, uint64_t a, uint64_t b) {
    const uint64_t z = Word(text, at + 24);
    a += Word(text, at);
    b = std::rotr(b + a + z, 21);
    const uint64_t c = a;
    a += Word(text, at + 8) + Word(text, at + 16);
    b += std::rotr(a, 44);
    return {a + z, b + c};
  }

  // The state that blocks of 64 bytes change.
  struct State {
    uint64_t x = 0, y = 0, z = 0;
    Pair v, w;
    void Take(std::string_view text, size_t at, uint64_t factor, uint64_t often) {
      x = std::rotr(x + y + v.first + Word(text, at + 8), 37) * factor;
      y = std::rotr(y + v.second + Word(text, at + 48), 42) * factor;
      x ^= w.second * often;
      y += v.first * often + Word(text, at + 40);
      z = std::rotr(z + w.first, 33) * factor;
      v = Weak(text, at, v.second * factor, x + w.first);
      w = Weak(text, at + 32, z + w.second, y + Word(text, at + 16));
      std::swap(z, x);
    }
  };

  static uint64_t OfLong(std::string_view text) {
    constexpr uint64_t kSeed = 81;
    State s;
    s.y = kSeed * k1 + 113;
    s.z = Mix(s.y * k2 + 113) * k2;
    s.x = kSeed * k2 + Word(text, 0);
    const size_t last = text.size() - 1;
    for (size_t at = 0; at < last / 64 * 64; at += 64) s.Take(text, at, k1, 1);
    const uint64_t factor = k1 + ((s.z & 0xff) << 1);
    s.w.first += last & 63;
    s.v.first += s.w.first;
    s.w.first += s.v.first;
    s.Take(text, text.size() - 64, factor, 9);
    return Join(Join(s.v.first, s.w.first, factor) + Mix(s.y) * k0 + s.z,
                Join(s.v.second, s.w.second, factor) + s.x, factor);
  }
};

class SipHash {
 public:
  SipHash(uint64_t k0, uint64_t k1)
      : v0_(k0 ^ 0x736f6d6570736575),
        v1_(k1 ^ 0x646f72616e646f6d),
        v2_(k0 ^ 0x6c7967656e657261),
        v3_(k1 ^ 0x7465646279746573) {}

  uint64_t Of(std::string_view text) {
    const size_t whole = text.size() / 8 * 8;
    for (size_t at = 0; at < whole; at += 8) Take(WordAt(text, at));
    Take(WordAt(text, whole) | uint64_t{text.size() & 0xff} << 56);
    v2_ ^= 0xff;
    for (int i = 0; i < 4; ++i) Round();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  // The eight bytes at a place, zeros behind the end.
  static uint64_t WordAt(std::string_view text, size_t at) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + at, std::min<size_t>(sizeof(word), text.size() - at));
    return word;
  }
  void Take(uint64_t word) {
    v3_ ^= word;
    Round();
    Round();
    v0_ ^= word;
  }
  void Round() {
    v0_ += v1_;
    v2_ += v3_;
    v1_ = std::rotl(v1_, 13) ^ v0_;
    v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ = std::rotl(v0_, 32);
    v2_ += v1_;
    v0_ += v3_;
    v1_ = std::rotl(v1_, 17) ^ v2_;
    v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ = std::rotl(v2_, 32);
  }
  uint64_t v0_, v1_, v2_, v3_;
};

// One hash of two.
inline uint64_t JoinedHash(uint64_t first, uint64_t second) {
  constexpr uint64_t kFactor = 0xc6a4a7935bd1e995;
  const auto mix = [](uint64_t x) { return x ^ x >> 47; };
  const uint64_t joined = (first ^ kFactor ^ mix(second * kFactor) * kFactor) * kFactor;
  return mix(mix(joined) * kFactor);
}

}  // namespace heddle
