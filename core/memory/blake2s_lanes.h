// Eight BLAKE2s (RFC 7693) side by side: the bulk of BLAKE2sp, whose parts take turns by blocks of
// 64 bytes. Threads: any, each with lanes of its own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace heddle {

inline constexpr size_t kBlake2sBlock = 64;  // bytes of one of eight
inline constexpr size_t kBlake2sLanes = 8;
inline constexpr std::array<uint32_t, 8> kBlake2sStart = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
// Which words of a block each round mixes.
inline constexpr uint8_t kBlake2sOrder[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

// Word w of the state of lane l is words[w][l].
struct Blake2sLanes {
  alignas(32) uint32_t words[8][kBlake2sLanes];
};

// Mixes `count` times eight blocks, which lie behind one another, into the lanes: none of them the
// last one of its lane. `before`: bytes that each lane has had. Defined in kernels/simd.
void MixBlake2sLanes(const void* blocks, size_t count, uint64_t before, Blake2sLanes* lanes);

}  // namespace heddle
