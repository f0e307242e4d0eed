// Offsets in one block of memory for buffers that are used by nodes on several streams.
//
// Two buffers may share memory when the last users of one are certainly finished (StreamSync)
// before the first user of the other starts. Where the streams know too little of each other for
// that, the block would become larger than one stream needs; then some nodes are made to wait for
// others.
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
  uint32_t first = 0;           // the node that uses it before all others; they wait for it
  std::vector<uint32_t> users;  // per stream: its last user there, kNoUser where there is none
  static constexpr uint32_t kNoUser = ~0u;
  uint32_t last() const;  // the last user in the host's order
};

struct StreamArena {
  std::vector<size_t> offsets;  // per buffer
  size_t bytes = 0;
  // Additional waits: for a pair (u, v) node v must wait for node u. Ascending in v.
  std::vector<std::pair<uint32_t, uint32_t>> waits;
};

// Plans the offsets. `serial` and `serial_bytes`: offsets that are valid when each node is finished
// before the next one starts, and the size of their block. The result has at most `limit` bytes;
// `limit` must be at least `serial_bytes`. Sizes and offsets are multiples of 256. The buffers must
// be in the order of `first`. Time: the number of buffers times the largest number in use at once.
StreamArena PlanStreamArena(std::span<const StreamBuffer> buffers, const StreamSync& sync,
                            const std::vector<uint32_t>& stream_of, std::span<const size_t> serial,
                            size_t serial_bytes, size_t limit);

}  // namespace heddle
