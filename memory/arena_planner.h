// Offsets for buffers of known size and lifetime in one block of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/function_ref.h"

namespace heddle {

// A buffer needed during steps [first, last] of a fixed order.
struct LiveRange {
  size_t bytes = 0;
  int32_t first = 0;
  int32_t last = 0;
};

struct ArenaLayout {
  std::vector<size_t> offsets;  // per buffer; multiples of the alignment
  size_t bytes = 0;             // of the whole block
  size_t bound = 0;             // peak of live bytes: no layout can be smaller
};

// Buffers whose ranges meet get disjoint places. Greedy in several orders (by start, by size, by
// length of life, by their product, by end), best fit and first fit, as TFLite's arena planner and
// XLA's GlobalDecreasingSizeBestFitHeap do it; then the same, buffers that come to lie above the
// peak of live bytes going first the next time, some times. The smallest result is kept; one at the
// peak ends the search. O(n log n + steps) by start; the other orders, O(n²) in buffers alive at
// the same time, share a fixed amount of work. Steps start at 0.
ArenaLayout PlanArena(std::span<const LiveRange> buffers, size_t alignment = 64);

// The peak of live bytes, each buffer rounded up.
size_t PeakOf(std::span<const LiveRange> buffers, size_t alignment = 64);

// Offsets for buffers without a common order, as where several threads use them: conflict(i, j),
// with i < j, says that i and j must not share memory. Greedy in several orders, as above. A
// conflict is asked for once a pair, and for not more than kMostConflicting buffers: beyond, the
// layout has no offsets. `bound` stays 0.
inline constexpr size_t kMostConflicting = 1000;
ArenaLayout PlanArenaByConflicts(std::span<const size_t> bytes,
                                 FunctionRef<bool(int32_t, int32_t)> conflict,
                                 size_t alignment = 64);

}  // namespace heddle
