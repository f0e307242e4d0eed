// Versions of variables: the readers of the value that one operator wrote. A variable may be
// written many times. A pass that lets an operator read another variable must show that both have
// the same value there.
#pragma once

#include <limits>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "core/programs/ir.h"
#include "passes/nested_blocks.h"
#include "passes/position_lists.h"

namespace heddle::passes {

class PassContext;

// Shows one block at a time. Positions are indices into the block's operators; an operator counts
// as doing what its blocks do, and reads before it writes. The view stays valid while operands are
// replaced by variables that Same() permits, and becomes invalid when operators are added, are
// erased, or write other variables; Enter() then shows the block as it is. Variables that were
// added since the view was made count as used by several blocks and never written.
class VersionView {
 public:
  // Uses context.uses: for a pass that has changed nothing yet, changes only operators of the shown
  // block, and enters blocks in ascending order. Other passes must call WalkNested().
  VersionView(const ir::Program& program, const PassContext& context);
  // Finds the uses of the whole program, and walks through inner blocks.
  VersionView(const ir::Program& program, const std::set<ir::VarId>& fetched);
  VersionView(const VersionView&) = delete;
  VersionView& operator=(const VersionView&) = delete;
  void WalkNested() { walks_ = true; }
  void Enter(int block);
  int block() const { return block_; }

  // Positions of the operators that write or read `v`, ascending.
  std::span<const int> writes(ir::VarId v) const { return writes_[v]; }
  std::span<const int> reads(ir::VarId v) const { return reads_[v]; }
  // The number of writes of `v` before the operator at `at` reads it.
  int VersionAt(ir::VarId v, int at) const;
  // The position of the operator whose value the one at `at` reads; -1: the value comes from
  // outside.
  int WriterBefore(ir::VarId v, int at) const;
  // Whether the operators at `from` and `to` read the same value of `v`.
  bool Same(ir::VarId v, int from, int to) const {
    return from >= to || VersionAt(v, from) == VersionAt(v, to);
  }
  // Whether `v` is a plain tensor that only this block's operators use (none that runs blocks
  // writes it), is not fetched, and is written before it is read.
  bool Private(ir::VarId v) const;
  // The readers of what the operator at `at` writes to `v`, if their operand may be replaced: all
  // are plain operators of this block that do not write `v` themselves. nullopt: it may not.
  std::optional<std::vector<int>> Readers(ir::VarId v, int at) const;
  // Whether Readers() would return one reader: takes constant time, so that it may be called for
  // each of many readers.
  bool HasOneReader(ir::VarId v, int at) const;
  // Calls fn(variable, written) for the names of the blocks that an operator of the block runs.
  template <typename Fn>
  void ForEachNested(const ir::Op& op, Fn&& fn) const {
    ForEachNestedName(program_, walks_ ? kNothingListed : uses_, op, fn);
  }
  // Whether no operator of the program writes `v`.
  bool NeverWritten(ir::VarId v) const { return v >= uses_.written.size() || !uses_.written[v]; }

 private:
  void Read(ir::VarId v, int at) { reads_.Add(v, at); }
  void Write(ir::VarId v, int at);

  const ir::Program& program_;
  const std::set<ir::VarId>& fetched_;
  static const BlockUses kNothingListed;
  const BlockUses own_;
  const BlockUses& uses_;  // own_, or the context's
  bool walks_;
  int block_ = 0;
  PositionLists writes_, reads_;
  std::vector<bool> nested_;  // per operator of the block: whether it runs blocks
  // Per variable: the number of the last Enter() in which an operator that runs blocks writes it.
  std::vector<uint32_t> kept_in_;
  uint32_t entered_ = 0;
};

// Lets readers of `from` at `positions` of the block read `to`.
void ReplaceReads(ir::Block* block, const std::vector<int>& positions, ir::VarId from,
                  ir::VarId to);
// Erases the marked operators.
void EraseOps(ir::Block* block, const std::vector<bool>& gone);
// Whether the operator depends only on its inputs and attributes, does nothing besides writing its
// outputs, and has no control edges.
bool IsPure(const ir::Op& op);
// Whether the program may use sequence offsets: a variable declares them, or an operator makes
// them.
bool UsesLoD(const ir::Program& program);
// The same for a pass that calls it for each block: the program is searched once.
bool UsesLoD(const ir::Program& program, PassContext& context);
// The slot's variable; kNoVar unless the slot exists and names exactly one.
ir::VarId OnlyIn(const ir::Op& op, std::string_view slot);
ir::VarId OnlyOut(const ir::Op& op, std::string_view slot);
// Whether only `slot` has input variables, and no variable gives an attribute.
bool HasOnlyInput(const ir::Op& op, std::string_view slot);

}  // namespace heddle::passes
