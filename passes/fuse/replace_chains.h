// Base of fusion passes that replace a chain of operators by one.
#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/programs/ir.h"
#include "passes/graph_view.h"
#include "passes/pass.h"
#include "passes/places.h"

namespace heddle::passes {

// The operators of a block that a chain must not take: others have taken them, or they run at
// another place than the chain's first one.
class TakenOps {
 public:
  explicit TakenOps(const std::vector<ir::Op>& ops)
      : gone_(ops.size(), false), one_place_(OnePlace(ops)) {
    if (one_place_) return;
    std::map<std::pair<std::string_view, int64_t>, size_t> numbers;
    for (const ir::Op& op : ops)
      place_.push_back(
          numbers.try_emplace({op.device, PriorityOf(op)}, numbers.size()).first->second);
  }
  bool operator[](size_t at) const {
    return gone_[at] || (!one_place_ && place_[at] != place_[first_]);
  }
  bool IsGone(size_t at) const { return gone_[at]; }
  void BeginAt(size_t first) { first_ = first; }
  void Take(size_t at) { gone_[at] = true; }

 private:
  std::vector<bool> gone_;
  const bool one_place_;
  std::vector<size_t> place_;  // by operator; empty: all have the same
  size_t first_ = 0;
};

// Visits the operators of the context's block. For each that no chain has taken yet it makes a
// Fuser(program, context, view, position, more...). Its Grow(gone) returns whether a chain begins
// there, and fills `absorbed` with the positions that follow (operators that are `gone` belong to
// other chains, or run at another place); its Make() gives the operator that replaces the chain, at
// the position of the last one. A chain stays if its operators would read other values there.
// Returns whether something was replaced.
template <typename Fuser, typename... More>
bool ReplaceChains(ir::Program& program, PassContext& context, const More&... more) {
  const GraphView view(program, context);
  auto& ops = program.blocks[static_cast<size_t>(context.block)].ops;
  std::vector<std::optional<ir::Op>> replaced(ops.size());
  TakenOps gone(ops);
  bool changed = false;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (gone.IsGone(i) || ops[i].has_control_edges()) continue;
    gone.BeginAt(i);
    Fuser fuser(program, context, view, static_cast<int>(i), more...);
    const int first = static_cast<int>(i);
    if (!fuser.Grow(gone) || !SamePlace(ops, first, fuser.absorbed) ||
        !view.ReadTheSame({&first, 1}, fuser.absorbed.back()) ||
        !view.ReadTheSame(fuser.absorbed, fuser.absorbed.back()))
      continue;
    std::optional<ir::Op>& made = replaced[static_cast<size_t>(fuser.absorbed.back())];
    made = fuser.Make();
    TakePlace(ops[i], &*made);
    changed = true;
    gone.Take(i);
    for (int a : fuser.absorbed) gone.Take(static_cast<size_t>(a));
  }
  if (!changed) return false;
  std::vector<ir::Op> kept;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (replaced[i])
      kept.push_back(*std::move(replaced[i]));
    else if (!gone.IsGone(i))
      kept.push_back(std::move(ops[i]));
  }
  ops = std::move(kept);
  return true;
}

}  // namespace heddle::passes
