// SHA-1 (FIPS 180-4), to detect damage, not attacks.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace heddle::formats {

class Sha1 {
 public:
  static constexpr size_t kHexDigits = 40;
  void Add(std::string_view bytes);
  // The digest in lower-case hexadecimal digits.
  std::string Digest() &&;

 private:
  static constexpr size_t kBlock = 64;
  void Mix(const char* block);

  std::array<uint32_t, 5> state_ = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  std::string rest_;    // the last bytes, less than a block
  uint64_t bytes_ = 0;  // number of bytes so far
};

}  // namespace heddle::formats
