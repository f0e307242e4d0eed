#include <map>

#include "core/programs/ir.h"
#include "heddle/operators.h"

namespace heddle {

std::vector<OpRoleCount> OpRolesOf(const Program& program) {
  std::map<int64_t, OpRoleCount> counts;
  for (const ir::Block& block : program.ir().blocks)
    for (const ir::Op& op : block.ops) {
      const int64_t role = op.role ? op.role->bits : 0;
      OpRoleCount& count = counts[role];
      count.role = role;
      ++count.operators;
      if (op.role)
        count.pairs.insert(count.pairs.end(), op.role->pairs.begin(), op.role->pairs.end());
    }
  std::vector<OpRoleCount> list;
  for (auto& [role, count] : counts) list.push_back(std::move(count));
  return list;
}

std::string OpRoleText(int64_t role) {
  std::string text = role == ir::OpRole::kLoss ? "forward" : "";
  const auto add = [&](const std::string& word) { text += (text.empty() ? "" : ", ") + word; };
  for (const auto& [bit, word] : {std::pair(ir::OpRole::kBackward, "backward"),
                                  {ir::OpRole::kOptimize, "optimizer"},
                                  {ir::OpRole::kRate, "learning rate"},
                                  {ir::OpRole::kLoss, "loss"}}) {
    if ((role & bit) == 0) continue;
    add(word);
    role &= ~bit;
  }
  if (role != 0) add("role " + std::to_string(role));
  return text.empty() ? "forward" : text;
}

}  // namespace heddle
