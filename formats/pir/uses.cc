#include "formats/pir/uses.h"

namespace heddle::pir {

bool IsAlias(const Operation& op) {
  return (op.name == "pd_op.share_data_" || op.name == "pd_op.assign_array_") &&
         op.operands.size() == 1 && op.results.size() == 1;
}

Uses::Uses(const File& file, OpTable* table) : table_(*table) { Walk(file.main); }

ValueId Uses::Root(ValueId id) const {
  for (auto at = same_as_.find(id); at != same_as_.end(); at = same_as_.find(id)) id = at->second;
  return id;
}

const Uses::Info& Uses::Of(ValueId id) const {
  const auto found = infos_.find(Root(id));
  return found == infos_.end() ? none_ : found->second;
}

void Uses::Walk(const Block& block) {
  for (const Operation& op : block.operations) {
    const int at = order_++;
    starts_[&op] = at;
    const bool selects = op.name == "pd_op.select_input";
    for (ValueId id : op.operands) {
      if (id == 0) continue;
      Info& info = infos_[Root(id)];
      ++info.count;
      if (selects && id != op.operands[0]) ++info.selected;
      info.at_last = info.last_use == at ? info.at_last + 1 : 1;
      info.last_use = at;
    }
    const auto join = [&](size_t result, size_t operand) {
      if (result >= op.results.size() || operand >= op.operands.size()) return;
      const ValueId from = Root(op.operands[operand]);
      // Damaged files have operands that do not exist, and values that are their own operand.
      if (from == 0 || from == op.results[result].id) return;
      same_as_[op.results[result].id] = from;
      infos_[from].last_write = at;
    };
    if (IsAlias(op)) join(0, 0);
    for (const auto& [result, operand] : table_.InPlace(op.name))
      join(static_cast<size_t>(result), static_cast<size_t>(operand));
    for (const Block& region : op.regions) Walk(region);
    ends_[&op] = order_ - 1;
  }
}

}  // namespace heddle::pir
