// BLAKE2sp of 32 bytes (RFC 7693, and the tree of eight parts that its authors describe): what
// tells contents apart that a stranger may have chosen, such as the weights of a model. Eight parts
// take turns by blocks of 64 bytes, and are mixed side by side; the result is the digest of theirs.
//
// Ownership: a value. Threads: one at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/memory/blake2s_lanes.h"

namespace heddle::offload {

using DigestBytes = std::array<uint8_t, 32>;

class Digest {
 public:
  Digest();
  void Add(const void* data, size_t bytes);
  void AddNumber(int64_t number) { Add(&number, sizeof number); }
  // With its length, so that the border between two texts counts.
  void AddText(std::string_view text) {
    AddNumber(static_cast<int64_t>(text.size()));
    Add(text.data(), text.size());
  }
  DigestBytes Finish() &&;

 private:
  static constexpr size_t kStripe = kBlake2sLanes * kBlake2sBlock;
  void Mix(const uint8_t* stripes, size_t count);

  Blake2sLanes lanes_;
  uint64_t mixed_ = 0;  // bytes of each part
  // The last block of each part is mixed by Finish: once something was mixed, there is a stripe.
  std::array<uint8_t, 2 * kStripe> rest_;
  size_t rest_bytes_ = 0;
};

// In hexadecimal digits, lower case.
std::string HexOf(const DigestBytes& digest);

}  // namespace heddle::offload
