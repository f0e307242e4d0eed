// Operators on unsigned integers, which heddle holds in signed ones: uint16 and uint32 as values of
// the next wider signed type, uint64 as the same bits in int64.
//
// A format has one table of all operators whose definition allows such operands. Its reader looks a
// node up there before it lowers it: an operator that is not in the table is refused, so that none
// computes with signed numbers by mistake.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/lowering/op_maker.h"

namespace heddle::formats {

enum class UnsignedUse : uint8_t {
  // Result bits are copies of operand bits, or follow from them bit by bit: moves, counts,
  // equality, bitwise logic. Nothing is to be done.
  kMoves,
  // Sums, differences and products: results are cut to the low bits of the type.
  kWraps,
  // Comparisons and extremes: the highest bit of uint64 operands is flipped, which gives int64
  // numbers in the same order; results that hold elements are flipped back.
  kOrders,
  // The operator's own handler deals with these types.
  kOwn,
  // As kWraps, but the result is written to a variable and cannot be cut: uint64 alone is allowed.
  kWrapsInPlace,
  // The numeric values matter: uint64 is not allowed.
  kValues,
};

struct UnsignedEntry {
  std::string_view op;
  UnsignedUse use;
};

// The entry of an operator in a table in alphabetical order; null: there is none.
inline const UnsignedEntry* FindUnsigned(std::span<const UnsignedEntry> table,
                                         std::string_view op) {
  const auto found =
      std::lower_bound(table.begin(), table.end(), op,
                       [](const UnsignedEntry& e, std::string_view name) { return e.op < name; });
  return found != table.end() && found->op == op ? &*found : nullptr;
}

// The use for uint64 operands, or for operands of another unsigned type; nothing: not allowed.
inline std::optional<UnsignedUse> UseFor(UnsignedUse use, bool is_uint64) {
  switch (use) {
    case UnsignedUse::kWrapsInPlace:
      return is_uint64 ? std::optional(UnsignedUse::kMoves) : std::nullopt;
    case UnsignedUse::kValues:
      return is_uint64 ? std::nullopt : std::optional(UnsignedUse::kOwn);
    default:
      return use;
  }
}

// Flips the highest bit: turns uint64 into int64 numbers in the same order, and back.
inline int TurnHighestBit(OpMaker& maker, int v) {
  return maker.Binary("bitwise_xor", v,
                      maker.IntConstant(std::numeric_limits<int64_t>::min(), DType::kI64));
}
// Keeps the low `bits` bits (16 or 32).
inline int CutToBits(OpMaker& maker, int v, int bits) {
  const int64_t mask = (int64_t{1} << bits) - 1;
  return maker.Binary("bitwise_and", v, maker.IntConstant(mask, maker.dtype(v)));
}

// UnsignedForm: converts one node's operands of unsigned types for its handler, and its results
// back. Ownership: refers to the node's maker. Threads: one at a time.
class UnsignedForm {
 public:
  explicit UnsignedForm(OpMaker& maker) : maker_(maker) {}

  // Sets the conversion from now on. `type`: the element type of the first unsigned operand.
  void Set(UnsignedUse use, int type);
  int type() const { return type_; }
  // Whether Result() may return another variable than it is given.
  bool ChangesResults() const {
    return use_ == UnsignedUse::kOrders || use_ == UnsignedUse::kWraps;
  }
  // With kOrders, a uint64 operand with its highest bit flipped; otherwise `v`.
  int Operand(int v);
  // Converts the result `v` where the use requires it; otherwise returns `v`. `is_position`: it
  // holds indices, not elements. `of_nothing`: it may be the minimum or maximum of no elements,
  // which is that of the wider type.
  int Result(int v, bool is_position, bool of_nothing);

 private:
  bool IsUint64(int type) const;

  OpMaker& maker_;
  std::optional<UnsignedUse> use_;
  int type_ = 0;
  std::vector<std::pair<int, int>> turned_;  // operands and their flipped copies
};

}  // namespace heddle::formats
