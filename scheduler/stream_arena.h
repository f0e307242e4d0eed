// Offsets in one block of memory for buffers that nodes on several streams use.
//
// Two buffers may lie in the same place when one's last users are finished for certain (StreamSync)
// before the other's first one starts. Where streams know too little of each other for that, the
// block would grow beyond what one stream needs; then some nodes are made to wait for others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "scheduler/stream_sync.h"

namespace heddle {

struct StreamBuffer {
  size_t bytes = 0;
  uint32_t first = 0;           // the node that uses it before all others: these wait for it
  std::vector<uint32_t> users;  // per lane: the last user there, kNoUser where there is none
  static constexpr uint32_t kNoUser = ~0u;
  uint32_t last() const;  // the last user in the host's order
};

struct StreamArena {
  std::vector<size_t> offsets;  // per buffer
  size_t bytes = 0;
  // Pairs (u, v): node v must wait for node u besides. Ascending in v.
  std::vector<std::pair<uint32_t, uint32_t>> waits;
};

// `serial`, `serial_bytes`: offsets that are good when each node is finished before the next one
// starts. The result is at most `limit` bytes large, which must be as many as `serial_bytes` at
// least. Sizes and offsets are kept as multiples of 256. The buffers come in the order of `first`.
// Time grows with the buffers times those in use at once.
StreamArena PlanStreamArena(std::span<const StreamBuffer> buffers, const StreamSync& sync,
                            const std::vector<uint32_t>& lane_of, std::span<const size_t> serial,
                            size_t serial_bytes, size_t limit);

}  // namespace heddle
