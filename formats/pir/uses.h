// Which operators use which values of a file, and which values share a variable because an in-place
// operator made one of the other.
#pragma once

#include <unordered_map>
#include <vector>

#include "formats/pir/file.h"
#include "formats/pir/op_table.h"

namespace heddle::pir {

class Uses {
 public:
  Uses(const File& file, OpTable* table);

  // Each function answers for all values that share a variable with `id`.
  //
  // Whether an operator uses them.
  bool used(ValueId id) const { return Of(id).count > 0; }
  // Whether select_input alone uses them.
  bool only_selected(ValueId id) const { return Of(id).count == Of(id).selected; }
  // Whether an operator writes to them in place.
  bool rewritten(ValueId id) const { return Of(id).last_write >= 0; }
  // Whether an operator after `op` and its regions writes to them in place.
  bool rewritten_behind(ValueId id, const Operation& op) const {
    return Of(id).last_write > ends_.at(&op);
  }
  // Whether an operator after `op` and its regions uses them.
  bool used_behind(ValueId id, const Operation& op) const {
    return Of(id).last_use > ends_.at(&op);
  }
  // Whether `op` is the last operator that uses them, and uses them as one operand only.
  bool ends_with(ValueId id, const Operation& op) const {
    return Of(id).last_use == starts_.at(&op) && Of(id).at_last == 1;
  }
  // Whether two values share a variable.
  bool are_one(ValueId a, ValueId b) const { return Root(a) == Root(b); }

 private:
  struct Info {
    int count = 0, selected = 0;
    // Position of the last user in the file's order, and as how many operands.
    int last_use = -1, at_last = 0;
    int last_write = -1;
  };

  void Walk(const Block& block);
  ValueId Root(ValueId id) const;
  const Info& Of(ValueId id) const;

  OpTable& table_;
  int order_ = 0;
  std::unordered_map<const Operation*, int> starts_, ends_;
  std::unordered_map<ValueId, ValueId> same_as_;  // result -> the operand with the same variable
  std::unordered_map<ValueId, Info> infos_;       // by root
  const Info none_;
};

// Whether the operator only gives its operand another number and computes nothing.
bool IsAlias(const Operation& op);

}  // namespace heddle::pir
