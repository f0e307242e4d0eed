// A step of a fused element-wise loop: what one operator does to a tile, a stretch of elements that
// stays in the first-level cache. Steps are made at plan time (core/tile_ops.h) and immutable then.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle {

struct TileStep {
  static constexpr int kMaxIn = 3;
  static constexpr size_t kArgBytes = 32;
  // A tile's elements come in whole groups of so many: loops need no code for a rest.
  static constexpr int64_t kGroup = 8;

  // Computes `n` elements, a multiple of kGroup, of at[out] from those at[in[…]]. at[out] may be
  // one of the operands.
  using Fn = void (*)(const TileStep& step, std::byte* const* at, int64_t n);

  Fn fn = nullptr;
  uint32_t in[kMaxIn] = {};
  uint32_t out = 0;
  float work = 0;  // of one element, as a share of what is worth a thread of its own
  alignas(8) std::byte args[kArgBytes] = {};  // the operator's attributes, in its own form
};

}  // namespace heddle
