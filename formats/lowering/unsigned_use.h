// Operators on unsigned integers that heddle holds in signed ones: of 16 and 32 bits in twice as
// many with their values, of 64 bits in int64 with the same bits.
//
// A format has one table that names every operator whose definition allows such operands. Its
// reader looks there before it lowers a node: an operator that the table lacks is refused, so that
// none computes with signed numbers by mistake.
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
  // The bits of results follow from bits of operands: they are moved, counted, compared for
  // equality, or combined bit by bit.
  kMoves,
  // Sums, differences and products, of which the low bits count: results are cut to the type.
  kWraps,
  // The order of operands counts: uint64 is turned into the int64 of the same order. Results that
  // hold elements are turned back.
  kOrders,
  // Its handler does with these types what is theirs to do.
  kOwn,
  // kWraps that changes a variable, whose type is not cut to: of uint64 alone.
  kWrapsInPlace,
  // The numbers count: there is no form for uint64.
  kValues,
};

struct UnsignedEntry {
  std::string_view op;
  UnsignedUse use;
};

// The entry of a table in alphabetical order; null: it has none.
inline const UnsignedEntry* FindUnsigned(std::span<const UnsignedEntry> table,
                                         std::string_view op) {
  const auto found =
      std::lower_bound(table.begin(), table.end(), op,
                       [](const UnsignedEntry& e, std::string_view name) { return e.op < name; });
  return found != table.end() && found->op == op ? &*found : nullptr;
}

// The use for operands that are uint64, or another unsigned type; nothing: there is no form.
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

// uint64 to the int64 of the same order, and back.
inline int TurnHighestBit(OpMaker& maker, int v) {
  return maker.Binary("bitwise_xor", v,
                      maker.IntConstant(std::numeric_limits<int64_t>::min(), DType::kI64));
}
// The low 16 or 32 bits.
inline int CutToBits(OpMaker& maker, int v, int bits) {
  const int64_t mask = (int64_t{1} << bits) - 1;
  return maker.Binary("bitwise_and", v, maker.IntConstant(mask, maker.dtype(v)));
}

// One node's operands of unsigned types: what its handler is given in their place, and what becomes
// of its results. Ownership: refers to the node's maker. Threads: one at a time.
class UnsignedForm {
 public:
  explicit UnsignedForm(OpMaker& maker) : maker_(maker) {}

  // From here on. `type`: the format's, of the first operand that has an unsigned one.
  void Set(UnsignedUse use, int type);
  int type() const { return type_; }
  // Whether Result() may give another variable than it is given.
  bool ChangesResults() const {
    return use_ == UnsignedUse::kOrders || use_ == UnsignedUse::kWraps;
  }
  // With kOrders, a uint64 operand with its sign bit turned; `v` otherwise.
  int Operand(int v);
  // The result `v` in the type, where that is what the use gives; `v` otherwise. `is_position`: it
  // holds indices, not elements; `of_nothing`: it may be the extreme of no elements, which is that
  // of the wider type.
  int Result(int v, bool is_position, bool of_nothing);

 private:
  bool IsUint64(int type) const;

  OpMaker& maker_;
  std::optional<UnsignedUse> use_;
  int type_ = 0;
  std::vector<std::pair<int, int>> turned_;  // operands, and what stands for them
};

}  // namespace heddle::formats
