#include "passes/nested_blocks.h"

#include <unordered_set>

namespace heddle::passes {

std::vector<int> NestedBlocks(const ir::Program& program, const ir::Op& op) {
  std::vector<int> found;
  std::unordered_set<int> seen;
  const auto add = [&](const ir::Op& runs) {
    if (!runs.def->has(kControlFlow)) return;
    for (int sub : runs.SubBlocks())
      if (seen.insert(sub).second) found.push_back(sub);
  };
  add(op);
  for (size_t i = 0; i < found.size(); ++i)
    for (const ir::Op& inner : program.blocks[static_cast<size_t>(found[i])].ops) add(inner);
  return found;
}

}  // namespace heddle::passes
