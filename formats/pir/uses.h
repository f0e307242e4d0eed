// Who uses which values of a file, and which values are one variable because an operator that
// works in place made the one of the other.
#pragma once

#include <unordered_map>
#include <vector>

#include "formats/pir/file.h"
#include "formats/pir/op_table.h"

namespace heddle::pir {

class Uses {
 public:
  Uses(const File& file, OpTable* table);

  // Each answer holds for all values that share a variable with `id`.
  // Something uses them.
  bool used(ValueId id) const { return Of(id).count > 0; }
  // select_input alone reads them.
  bool only_selected(ValueId id) const { return Of(id).count == Of(id).selected; }
  // An operator writes to them in place.
  bool rewritten(ValueId id) const { return Of(id).last_write >= 0; }
  // An operator behind `op` and what is in it does so.
  bool rewritten_behind(ValueId id, const Operation& op) const {
    return Of(id).last_write > ends_.at(&op);
  }
  // An operator behind `op` uses them.
  bool used_behind(ValueId id, const Operation& op) const {
    return Of(id).last_use > ends_.at(&op);
  }
  // `op` uses them for the last time, and as one operand only.
  bool ends_with(ValueId id, const Operation& op) const {
    return Of(id).last_use == starts_.at(&op) && Of(id).at_last == 1;
  }
  // They share a variable.
  bool are_one(ValueId a, ValueId b) const { return Root(a) == Root(b); }

 private:
  struct Info {
    int count = 0, selected = 0;
    int last_use = -1, at_last = 0;  // the place of an operator in the order of the file
    int last_write = -1;
  };

  void Walk(const Block& block);
  ValueId Root(ValueId id) const;
  const Info& Of(ValueId id) const;

  OpTable& table_;
  int order_ = 0;
  std::unordered_map<const Operation*, int> starts_, ends_;
  std::unordered_map<ValueId, ValueId> same_as_;  // result -> operand that it is
  std::unordered_map<ValueId, Info> infos_;       // by root
  const Info none_;
};

// Whether the operator hands its operand on under another number and computes nothing.
bool IsAlias(const Operation& op);

}  // namespace heddle::pir
