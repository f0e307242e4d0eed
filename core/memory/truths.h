// Bytes of bools. In files and in users' memory any byte but 0 is true; in kernels' memory true is
// 1, and any other byte is undefined behaviour.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle {

// Whether all bytes are 0 or 1.
inline bool AreTruths(const void* bytes, size_t count) {
  const auto* b = static_cast<const uint8_t*>(bytes);
  uint8_t bits = 0;
  for (size_t i = 0; i < count; ++i) bits |= b[i];
  return bits <= 1;
}

// Replaces all bytes other than 0 by 1.
inline void MakeTruths(void* bytes, size_t count) {
  auto* b = static_cast<uint8_t*>(bytes);
  for (size_t i = 0; i < count; ++i) b[i] = b[i] != 0 ? 1 : 0;
}

}  // namespace heddle
