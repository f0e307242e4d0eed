// Versions of variables: who reads the value that one operator wrote. A variable may be written
// many times, so that passes which move a read from one variable to another have to show that both
// hold the same at that place.
#pragma once

#include <limits>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "core/ir.h"
#include "passes/position_lists.h"

namespace heddle::passes {

// Looks at one block at a time. Positions are indices into the block's operators; what an
// operator's sub-blocks do counts as done by it. An operator reads before it writes. Stays valid
// while operands are replaced by variables that Same() allows, not when operators come, go or write
// elsewhere.
class VersionView {
 public:
  VersionView(const ir::Program& program, const std::set<ir::VarId>& fetched);
  void Enter(int block);

  // Positions of the operators that write or read `v`, ascending.
  std::span<const int> writes(ir::VarId v) const { return writes_[v]; }
  std::span<const int> reads(ir::VarId v) const { return reads_[v]; }
  // How often `v` has been written when the operator at `at` reads it.
  int VersionAt(ir::VarId v, int at) const;
  // The position of the operator whose value the one at `at` reads; -1 when it comes from outside.
  int WriterBefore(ir::VarId v, int at) const;
  // What `v` holds for the operator at `from` it still holds for the one at `to`.
  bool Same(ir::VarId v, int from, int to) const {
    return from >= to || VersionAt(v, from) == VersionAt(v, to);
  }
  // A plain tensor that only this block's own operators touch (none that runs blocks writes it),
  // that nobody fetches, and that is written before it is read.
  bool Private(ir::VarId v) const;
  // The readers of what the operator at `at` writes to `v`, when all of them are plain operators of
  // this block that do not write `v` themselves: their operand may be replaced.
  std::optional<std::vector<int>> Readers(ir::VarId v, int at) const;
  // Nobody in the whole program writes it.
  bool NeverWritten(ir::VarId v) const { return !written_[v]; }

 private:
  static constexpr int kNobody = -1, kSeveral = -2;
  void Touch(const ir::Op& op, int at);

  const ir::Program& program_;
  const std::set<ir::VarId>& fetched_;
  std::vector<int> owner_;  // the only block that names it
  std::vector<bool> written_;
  int block_ = 0;
  PositionLists writes_, reads_;
  std::vector<bool> nested_;  // per operator of the block: it runs sub-blocks
};

// Readers of `from` at `positions` of the block read `to` instead.
void ReplaceReads(ir::Block* block, const std::vector<int>& positions, ir::VarId from,
                  ir::VarId to);
// Takes the marked operators out.
void EraseOps(ir::Block* block, const std::vector<bool>& gone);
// Depends on its inputs and attributes alone, and does nothing besides writing its outputs.
bool IsPure(const ir::Op& op);
// Sequence offsets may be about: declared for some variable, or made by some operator.
bool UsesLoD(const ir::Program& program);
// The only variable of the slot; kNoVar when there is none or another number, or no such slot.
ir::VarId OnlyIn(const ir::Op& op, std::string_view slot);
ir::VarId OnlyOut(const ir::Op& op, std::string_view slot);
// No input but those of `slot` names a variable, and no attribute is held by one.
bool HasOnlyInput(const ir::Op& op, std::string_view slot);

}  // namespace heddle::passes
