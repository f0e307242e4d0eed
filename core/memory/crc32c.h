// CRC-32C (Castagnoli's polynomial): the checksum of TensorFlow's variables and of the blocks of
// LevelDB's tables. Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace heddle {

// The checksum of some bytes whose checksum is `before` (0: there are none) and of `bytes` behind
// them. Defined in kernels/simd.
uint32_t Crc32c(const void* data, size_t bytes, uint32_t before = 0);
inline uint32_t Crc32c(std::string_view bytes, uint32_t before = 0) {
  return Crc32c(bytes.data(), bytes.size(), before);
}

// The checksum of two stretches, the second of so many bytes behind the first. Takes about a
// microsecond, whatever they hold.
uint32_t JoinedCrc32c(uint32_t first, uint32_t second, size_t second_bytes);

// As files have it: turned, so that checksums of bytes that hold checksums are of use.
inline uint32_t MaskedCrc32c(uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8u; }
inline uint32_t UnmaskedCrc32c(uint32_t masked) {
  const uint32_t turned = masked - 0xa282ead8u;
  return turned >> 17 | turned << 15;
}

}  // namespace heddle
