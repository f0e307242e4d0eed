// The frame of fusion passes that replace a chain of operators by one.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "core/programs/ir.h"
#include "passes/graph_view.h"
#include "passes/pass.h"
#include "passes/places.h"

namespace heddle::passes {

// Goes through the context's block; for each operator that no chain has taken yet a Fuser is made,
// as Fuser(program, context, view, position, more...). Its Grow(gone) says whether there is a chain
// that begins there, and fills `absorbed` with the positions that follow (operators that are `gone`
// belong to others, or run at another place); Make() gives the operator that takes the chain's
// place, where its last one stood. A chain stays whose operators would read other values there.
// True when something was replaced.
template <typename Fuser, typename... More>
bool ReplaceChains(ir::Program& program, PassContext& context, const More&... more) {
  const GraphView view(program, context);
  auto& ops = program.blocks[static_cast<size_t>(context.block)].ops;
  std::vector<std::optional<ir::Op>> replaced(ops.size());
  std::vector<bool> gone(ops.size(), false);
  bool changed = false;
  const bool one_place = OnePlace(ops);
  std::vector<bool> elsewhere;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (gone[i] || ops[i].has_control_edges()) continue;
    if (!one_place) {
      elsewhere = gone;
      for (size_t k = 0; k < ops.size(); ++k)
        if (!SamePlace(ops[k], ops[i])) elsewhere[k] = true;
    }
    Fuser fuser(program, context, view, static_cast<int>(i), more...);
    const int first = static_cast<int>(i);
    if (!fuser.Grow(one_place ? gone : elsewhere) || !SamePlace(ops, first, fuser.absorbed) ||
        !view.ReadTheSame({&first, 1}, fuser.absorbed.back()) ||
        !view.ReadTheSame(fuser.absorbed, fuser.absorbed.back()))
      continue;
    std::optional<ir::Op>& made = replaced[static_cast<size_t>(fuser.absorbed.back())];
    made = fuser.Make();
    TakePlace(ops[i], &*made);
    gone[i] = changed = true;
    for (int a : fuser.absorbed) gone[static_cast<size_t>(a)] = true;
  }
  if (!changed) return false;
  std::vector<ir::Op> kept;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (replaced[i])
      kept.push_back(*std::move(replaced[i]));
    else if (!gone[i])
      kept.push_back(std::move(ops[i]));
  }
  ops = std::move(kept);
  return true;
}

}  // namespace heddle::passes
