// CRC-32C (Castagnoli's polynomial): the checksum of TensorFlow's variables and of the blocks of
// LevelDB's tables. Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace heddle {

// Continues the checksum `before` (0: of no bytes) with `bytes` further bytes. Defined in
// kernels/simd.
uint32_t Crc32c(const void* data, size_t bytes, uint32_t before = 0);
inline uint32_t Crc32c(std::string_view bytes, uint32_t before = 0) {
  return Crc32c(bytes.data(), bytes.size(), before);
}

// The checksum of two adjacent ranges from their checksums; the second has `second_bytes` bytes.
// Takes about a microsecond.
uint32_t JoinedCrc32c(uint32_t first, uint32_t second, size_t second_bytes);

// The form in which files store checksums, so that checksums of data that contains checksums stay
// useful.
inline uint32_t MaskedCrc32c(uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8u; }
inline uint32_t UnmaskedCrc32c(uint32_t masked) {
  const uint32_t turned = masked - 0xa282ead8u;
  return turned >> 17 | turned << 15;
}

}  // namespace heddle
