#include "offload/digest.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace heddle::offload {
namespace {

using State = std::array<uint32_t, 8>;
constexpr uint32_t kAll = ~uint32_t{0};

// Where a digest stands in the tree: eight parts below one root.
State StartOf(uint32_t part, uint32_t level) {
  State state = kBlake2sStart;
  state[0] ^= sizeof(DigestBytes) | uint32_t{kBlake2sLanes} << 16 | uint32_t{2} << 24;
  state[2] ^= part;
  state[3] ^= level << 16 | uint32_t{sizeof(DigestBytes)} << 24;
  return state;
}

inline void MixFour(uint32_t* a, uint32_t* b, uint32_t* c, uint32_t* d, uint32_t x, uint32_t y) {
  *a += *b + x;
  *d = std::rotr(*d ^ *a, 16);
  *c += *d;
  *b = std::rotr(*b ^ *c, 12);
  *a += *b + y;
  *d = std::rotr(*d ^ *a, 8);
  *c += *d;
  *b = std::rotr(*b ^ *c, 7);
}

// One block. `bytes`: of all that has come, with it; `last`: it ends the digest, and, with
// `last_node`, its level of the tree.
void MixOne(const uint8_t* block, uint64_t bytes, bool last, bool last_node, State* state) {
  uint32_t m[16], v[16];
  std::memcpy(m, block, sizeof m);
  std::copy(state->begin(), state->end(), v);
  std::copy(kBlake2sStart.begin(), kBlake2sStart.end(), v + 8);
  v[12] ^= static_cast<uint32_t>(bytes);
  v[13] ^= static_cast<uint32_t>(bytes >> 32);
  v[14] ^= last ? kAll : 0;
  v[15] ^= last && last_node ? kAll : 0;
  for (const auto& s : kBlake2sOrder) {
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
  for (size_t i = 0; i < 8; ++i) (*state)[i] ^= v[i] ^ v[i + 8];
}

}  // namespace

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

Digest::Digest() {
  for (size_t l = 0; l < kBlake2sLanes; ++l) {
    const State start = StartOf(static_cast<uint32_t>(l), 0);
    for (size_t i = 0; i < start.size(); ++i) lanes_.words[i][l] = start[i];
  }
}

void Digest::Mix(const uint8_t* stripes, size_t count) {
  MixBlake2sLanes(stripes, count, mixed_, &lanes_);
  mixed_ += count * kBlake2sBlock;
}

void Digest::Add(const void* data, size_t bytes) {
  const auto* at = static_cast<const uint8_t*>(data);
  while (bytes > 0) {
    if (rest_bytes_ == rest_.size()) {
      Mix(rest_.data(), 1);
      std::copy_n(rest_.data() + kStripe, kStripe, rest_.data());
      rest_bytes_ = kStripe;
    }
    // Whole stripes behind one are mixed where they lie, but for the last one.
    if (rest_bytes_ == kStripe && bytes >= 2 * kStripe) {
      Mix(rest_.data(), 1);
      const size_t count = bytes / kStripe - 1;
      Mix(at, count);
      at += count * kStripe;
      bytes -= count * kStripe;
      rest_bytes_ = 0;
    }
    const size_t room = (rest_bytes_ < kStripe ? kStripe : rest_.size()) - rest_bytes_;
    const size_t part = std::min(bytes, room);
    std::memcpy(rest_.data() + rest_bytes_, at, part);
    rest_bytes_ += part;
    at += part;
    bytes -= part;
  }
}

DigestBytes Digest::Finish() && {
  std::fill(rest_.begin() + static_cast<std::ptrdiff_t>(rest_bytes_), rest_.end(), 0);
  std::array<uint8_t, kBlake2sLanes * sizeof(DigestBytes)> parts;
  for (size_t l = 0; l < kBlake2sLanes; ++l) {
    State state;
    for (size_t i = 0; i < state.size(); ++i) state[i] = lanes_.words[i][l];
    const auto bytes_of = [&](size_t stripe) {  // of this part, in one that was not mixed
      const size_t begin = stripe * kStripe + l * kBlake2sBlock;
      return std::min(rest_bytes_ - std::min(begin, rest_bytes_), kBlake2sBlock);
    };
    const uint8_t* block = rest_.data() + l * kBlake2sBlock;
    uint64_t bytes = mixed_ + bytes_of(0);
    if (bytes_of(1) > 0) {
      MixOne(block, bytes, false, false, &state);
      block += kStripe;
      bytes += bytes_of(1);
    }
    MixOne(block, bytes, true, l + 1 == kBlake2sLanes, &state);
    std::memcpy(parts.data() + l * sizeof(DigestBytes), state.data(), sizeof(DigestBytes));
  }
  State root = StartOf(0, 1);
  for (size_t at = 0; at < parts.size(); at += kBlake2sBlock)
    MixOne(parts.data() + at, at + kBlake2sBlock, at + kBlake2sBlock == parts.size(), true, &root);
  DigestBytes digest;
  std::memcpy(digest.data(), root.data(), digest.size());
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
