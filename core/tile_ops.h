// Operators that fused element-wise loops know: those with a line HEDDLE_TILE in kernels/. The list
// is made at first use, frozen afterwards; thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/attr.h"
#include "heddle/dtype.h"
#include "heddle/status.h"

namespace heddle {

class KernelContext;
class OpDef;

// A step of a fused element-wise loop: what one operator does to a tile, a stretch of elements that
// stays in the first-level cache. Steps are made at plan time and immutable then.
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

// The operator's first output is computed element by element from its first `operands` inputs,
// which have one dtype. No other slot need be there.
struct TileOp {
  // Makes a step (all but its operands) from the attributes: `attrs` has no operands. An error says
  // that with these attributes there is none.
  using MakeFn = Status (*)(const KernelContext& attrs, TileStep* step);

  int operands = 0;
  MakeFn f32 = nullptr, f64 = nullptr;
  // The step's function where operand 0, or 1, is one value for all of the tile. May be absent.
  std::array<TileStep::Fn, 2> f32_repeat{}, f64_repeat{};

  TileStep::Fn repeat(DType dtype, uint32_t operand) const {
    return (dtype == DType::kF32 ? f32_repeat : f64_repeat)[operand];
  }
  MakeFn make(DType dtype) const {
    return dtype == DType::kF32 ? f32 : dtype == DType::kF64 ? f64 : nullptr;
  }
};

// nullptr when `op` has none.
const TileOp* FindTileOp(std::string_view op);

// The step that an operator with these attributes is; an error when it is none for this dtype.
Status MakeTileStep(const OpDef& def, const std::vector<AttrValue>& attrs, DType dtype,
                    TileStep* step);

// Numbers and truth values among the attributes, in the definition's order, appended to `values`.
// False when another attribute differs from its default: then these numbers do not say all.
bool PackNumbers(const OpDef& def, const std::vector<AttrValue>& attrs, Floats* values);
bool IsNumber(const AttrValue& value);
// The attributes that PackNumbers packed, from values[*at] on; moves *at behind them.
std::vector<AttrValue> UnpackNumbers(const OpDef& def, const Floats& values, size_t* at);

// Says how an operator of the same file works in a fused loop; the build lists every HEDDLE_TILE
// line of kernels/*.cc by itself.
#define HEDDLE_TILE(name) \
  namespace heddle {      \
  TileOp TileOf_##name(); \
  }                       \
  heddle::TileOp heddle::TileOf_##name()

}  // namespace heddle
