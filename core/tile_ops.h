// Tile steps: operators that fused element-wise loops can contain, those with a line HEDDLE_TILE in
// kernels/. The list is made at first use and then constant; thread-safe.
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

// A step of a fused element-wise loop: what one operator does to a tile, a range of elements that
// stays in the first-level cache. Steps are made at plan time and immutable afterwards.
struct TileStep {
  static constexpr int kMaxIn = 3;
  static constexpr size_t kArgBytes = 32;
  // The length of a tile is a multiple of this, so that loops need no remainder.
  static constexpr int64_t kGroup = 8;

  // Computes `n` elements, a multiple of kGroup, of at[out] from those of at[in[…]]. at[out] may be
  // one of the operands.
  using Fn = void (*)(const TileStep& step, std::byte* const* at, int64_t n);

  Fn fn = nullptr;
  uint32_t in[kMaxIn] = {};
  uint32_t out = 0;
  float work = 0;  // of one element, as a share of what is worth a thread
  alignas(8) std::byte args[kArgBytes] = {};  // the operator's attributes, in a form of its own
};

// An operator whose first output is computed element by element from its first `operands` inputs,
// which have one dtype. It needs no other slot.
struct TileOp {
  // Makes a step, without its operands, from the attributes; `attrs` has no operands. An error:
  // there is no step for these attributes.
  using MakeFn = Status (*)(const KernelContext& attrs, TileStep* step);

  int operands = 0;
  MakeFn f32 = nullptr, f64 = nullptr;
  // The functions for operand 0, or 1, being one value for the whole tile. May be null.
  std::array<TileStep::Fn, 2> f32_repeat{}, f64_repeat{};

  TileStep::Fn repeat(DType dtype, uint32_t operand) const {
    return (dtype == DType::kF32 ? f32_repeat : f64_repeat)[operand];
  }
  MakeFn make(DType dtype) const {
    return dtype == DType::kF32 ? f32 : dtype == DType::kF64 ? f64 : nullptr;
  }
};

// nullptr: `op` has no tile step.
const TileOp* FindTileOp(std::string_view op);

// The step for an operator with these attributes; an error if there is none for this dtype.
Status MakeTileStep(const OpDef& def, const std::vector<AttrValue>& attrs, DType dtype,
                    TileStep* step);

// Appends the attributes that are numbers or bools, in the definition's order, to `values`. False
// if another attribute differs from its default: then the numbers are not complete.
bool PackNumbers(const OpDef& def, const std::vector<AttrValue>& attrs, Floats* values);
bool IsNumber(const AttrValue& value);
// The attributes packed by PackNumbers, from values[*at] on; advances *at.
std::vector<AttrValue> UnpackNumbers(const OpDef& def, const Floats& values, size_t* at);

// Declares how an operator of the same file works in a fused loop; the build finds every
// HEDDLE_TILE line of kernels/*.cc.
#define HEDDLE_TILE(name) \
  namespace heddle {      \
  TileOp TileOf_##name(); \
  }                       \
  heddle::TileOp heddle::TileOf_##name()

}  // namespace heddle
