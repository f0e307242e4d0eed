// A vector holds a word of each lane, so all lanes take each step at once.
#include "core/memory/blake2s_lanes.h"

#include <bit>
#include <cstring>
#include <utility>

#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace heddle {
namespace {

constexpr size_t kLanes = kBlake2sLanes;

#ifdef __AVX2__

using Lane8 = __m256i;

Lane8 Load(const void* at) { return _mm256_loadu_si256(static_cast<const Lane8*>(at)); }
void Store(Lane8 x, void* to) { _mm256_storeu_si256(static_cast<Lane8*>(to), x); }
Lane8 All(uint32_t word) { return _mm256_set1_epi32(static_cast<int>(word)); }
Lane8 Sum(Lane8 a, Lane8 b) { return _mm256_add_epi32(a, b); }
Lane8 Xor(Lane8 a, Lane8 b) { return _mm256_xor_si256(a, b); }

// By 16 and by 8 bits whole bytes move.
template <int kBits>
Lane8 Turned(Lane8 x) {
  if constexpr (kBits == 16) {
    const __m128i order = _mm_setr_epi8(2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
    return _mm256_shuffle_epi8(x, _mm256_broadcastsi128_si256(order));
  } else if constexpr (kBits == 8) {
    const __m128i order = _mm_setr_epi8(1, 2, 3, 0, 5, 6, 7, 4, 9, 10, 11, 8, 13, 14, 15, 12);
    return _mm256_shuffle_epi8(x, _mm256_broadcastsi128_si256(order));
  } else {
    return _mm256_or_si256(_mm256_srli_epi32(x, kBits), _mm256_slli_epi32(x, 32 - kBits));
  }
}

// Eight words of eight blocks, by word.
void LoadEight(const unsigned char* at, Lane8* words) {
  Lane8 row[8], pair[8], quad[8];
  for (size_t l = 0; l < 8; ++l) row[l] = Load(at + kBlake2sBlock * l);
  for (size_t i = 0; i < 8; i += 2) {
    pair[i] = _mm256_unpacklo_epi32(row[i], row[i + 1]);
    pair[i + 1] = _mm256_unpackhi_epi32(row[i], row[i + 1]);
  }
  for (size_t i = 0; i < 8; i += 4) {
    quad[i] = _mm256_unpacklo_epi64(pair[i], pair[i + 2]);
    quad[i + 1] = _mm256_unpackhi_epi64(pair[i], pair[i + 2]);
    quad[i + 2] = _mm256_unpacklo_epi64(pair[i + 1], pair[i + 3]);
    quad[i + 3] = _mm256_unpackhi_epi64(pair[i + 1], pair[i + 3]);
  }
  for (size_t i = 0; i < 4; ++i) {
    words[i] = _mm256_permute2x128_si256(quad[i], quad[i + 4], 0x20);
    words[i + 4] = _mm256_permute2x128_si256(quad[i], quad[i + 4], 0x31);
  }
}

#else

struct Lane8 {
  uint32_t of[kLanes];
};

template <typename Fn>
Lane8 Each(Fn&& fn) {
  Lane8 result;
  for (size_t l = 0; l < kLanes; ++l) result.of[l] = fn(l);
  return result;
}
Lane8 Load(const void* at) {
  Lane8 x;
  std::memcpy(&x, at, sizeof x);
  return x;
}
void Store(const Lane8& x, void* to) { std::memcpy(to, &x, sizeof x); }
Lane8 All(uint32_t word) {
  return Each([&](size_t) { return word; });
}
Lane8 Sum(const Lane8& a, const Lane8& b) {
  return Each([&](size_t l) { return a.of[l] + b.of[l]; });
}
Lane8 Xor(const Lane8& a, const Lane8& b) {
  return Each([&](size_t l) { return a.of[l] ^ b.of[l]; });
}
template <int kBits>
Lane8 Turned(const Lane8& x) {
  return Each([&](size_t l) { return std::rotr(x.of[l], kBits); });
}
void LoadEight(const unsigned char* at, Lane8* words) {
  for (size_t l = 0; l < kLanes; ++l)
    for (size_t w = 0; w < 8; ++w)
      std::memcpy(&words[w].of[l], at + kBlake2sBlock * l + 4 * w, sizeof(uint32_t));
}

#endif

void MixFour(Lane8* a, Lane8* b, Lane8* c, Lane8* d, const Lane8& x, const Lane8& y) {
  *a = Sum(Sum(*a, *b), x);
  *d = Turned<16>(Xor(*d, *a));
  *c = Sum(*c, *d);
  *b = Turned<12>(Xor(*b, *c));
  *a = Sum(Sum(*a, *b), y);
  *d = Turned<8>(Xor(*d, *a));
  *c = Sum(*c, *d);
  *b = Turned<7>(Xor(*b, *c));
}

// The order is known when this is compiled, so that words are operands and no addresses.
template <size_t kRound>
void MixRound(Lane8* v, const Lane8* m) {
  constexpr const uint8_t* s = kBlake2sOrder[kRound];
  MixFour(&v[0], &v[4], &v[8], &v[12], m[s[0]], m[s[1]]);
  MixFour(&v[1], &v[5], &v[9], &v[13], m[s[2]], m[s[3]]);
  MixFour(&v[2], &v[6], &v[10], &v[14], m[s[4]], m[s[5]]);
  MixFour(&v[3], &v[7], &v[11], &v[15], m[s[6]], m[s[7]]);
  MixFour(&v[0], &v[5], &v[10], &v[15], m[s[8]], m[s[9]]);
  MixFour(&v[1], &v[6], &v[11], &v[12], m[s[10]], m[s[11]]);
  MixFour(&v[2], &v[7], &v[8], &v[13], m[s[12]], m[s[13]]);
  MixFour(&v[3], &v[4], &v[9], &v[14], m[s[14]], m[s[15]]);
}

template <size_t... kRounds>
void MixRounds(Lane8* v, const Lane8* m, std::index_sequence<kRounds...>) {
  (MixRound<kRounds>(v, m), ...);
}

}  // namespace

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

void MixBlake2sLanes(const void* blocks, size_t count, uint64_t before, Blake2sLanes* lanes) {
  const auto* at = static_cast<const unsigned char*>(blocks);
  Lane8 state[8];
  for (size_t i = 0; i < 8; ++i) state[i] = Load(lanes->words[i]);
  for (; count > 0; --count, at += kLanes * kBlake2sBlock) {
    before += kBlake2sBlock;
    Lane8 m[16], v[16];
    LoadEight(at, m);
    LoadEight(at + kBlake2sBlock / 2, m + 8);
    for (size_t i = 0; i < 8; ++i) {
      v[i] = state[i];
      v[i + 8] = All(kBlake2sStart[i]);
    }
    v[12] = Xor(v[12], All(static_cast<uint32_t>(before)));
    v[13] = Xor(v[13], All(static_cast<uint32_t>(before >> 32)));
    MixRounds(v, m, std::make_index_sequence<10>());
    for (size_t i = 0; i < 8; ++i) state[i] = Xor(state[i], Xor(v[i], v[i + 8]));
  }
  for (size_t i = 0; i < 8; ++i) Store(state[i], lanes->words[i]);
}

}  // namespace heddle
