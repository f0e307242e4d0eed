// Tokens: values whose memory is taken one by one, put into as few blocks as their lives allow, the
// way Relay's GraphPlanMemory does it. Unlike an arena's offsets a token is a block of its own, so
// that it may grow when a value turns out larger than was thought, and nothing else has to move.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace heddle {

inline constexpr uint32_t kNoToken = ~uint32_t{0};

// A value that is defined at step `first` and read for the last time at step `last`; one that
// nobody reads (last <= first) is over with its own step.
struct TokenValue {
  size_t bytes = 0;
  int32_t first = 0, last = 0;
  uint32_t kind = 0;    // place and dtype, say: values of different kinds never share
  uint32_t scope = 0;   // the block whose steps these are: nor do those of different scopes
  bool pinned = false;  // parameters, constants, results: has a token of its own
};

struct TokenPlan {
  std::vector<uint32_t> token;  // per value; kNoToken: it has no bytes
  std::vector<size_t> bytes;    // per token: its largest value
  size_t total = 0;             // bytes of all tokens
};

// A value takes a free token of size/range to size*range bytes: the smallest that suffices, else
// the largest of the others, which is enlarged; else a new one. Values are served in the order of
// their first steps, those of one step in the order given, and what ends with a step is free in the
// next. range 0: no token is used twice. O(n log n). Nothing where the total is beyond size_t.
inline constexpr size_t kTokenRange = 16;
std::optional<TokenPlan> PlanTokens(std::span<const TokenValue> values, size_t range = kTokenRange);

// Bytes of so many elements of `numbers` numbers of `bits` bits each; an element starts on a byte.
// Nothing where they are beyond size_t.
std::optional<size_t> TokenBytes(uint64_t elements, uint32_t bits, uint32_t numbers = 1);

}  // namespace heddle
