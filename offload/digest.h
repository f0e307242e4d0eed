// BLAKE2b (RFC 7693) of 32 bytes: what tells contents apart that a stranger may have chosen, such
// as the weights of a model, and is fast without instructions of its own.
//
// Ownership: a value. Threads: one at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace heddle::offload {

using DigestBytes = std::array<uint8_t, 32>;

class Digest {
 public:
  void Add(const void* data, size_t bytes);
  void AddNumber(int64_t number) { Add(&number, sizeof number); }
  // With its length, so that the border between two texts counts.
  void AddText(std::string_view text) {
    AddNumber(static_cast<int64_t>(text.size()));
    Add(text.data(), text.size());
  }
  DigestBytes Finish() &&;

 private:
  static constexpr size_t kBlock = 128;
  void Mix(const uint8_t* block, bool last);

  // The first number of the standard, mixed with the length of the result.
  std::array<uint64_t, 8> state_ = {0x6a09e667f3bcc908 ^ 0x01010020,
                                    0xbb67ae8584caa73b,
                                    0x3c6ef372fe94f82b,
                                    0xa54ff53a5f1d36f1,
                                    0x510e527fade682d1,
                                    0x9b05688c2b3e6c1f,
                                    0x1f83d9abfb41bd6b,
                                    0x5be0cd19137e2179};
  uint64_t mixed_ = 0;  // bytes
  std::array<uint8_t, kBlock> rest_ = {};
  size_t rest_bytes_ = 0;
};

// In hexadecimal digits, lower case.
std::string HexOf(const DigestBytes& digest);

}  // namespace heddle::offload
