// What operators are for (ir::Op::role), kept by all passes: an operator that a pass makes has the
// roles of the operators whose results it computes or, if its results are new, that of the first
// operator that reads one. Programs without roles cost one look at each operator.
//
// Threads: one at a time.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/programs/ir.h"

namespace heddle::passes {

class RoleKeeper {
 public:
  // Looks at the program before a pass changes it.
  void Before(const ir::Program& program);
  // Gives roles to the operators that the pass made.
  void After(ir::Program* program) const;

 private:
  struct Of {
    bool known = false;
    std::shared_ptr<const ir::OpRole> role;
  };
  // An operator of the file, which a pass may extend in its place.
  struct Known {
    const OpDef* def = nullptr;
    std::vector<std::vector<ir::VarId>> outputs;
  };
  bool IsNew(const ir::Block& block, const ir::Op& op) const;

  std::vector<Of> writers_;                     // by variable; empty: the program has no roles
  std::map<std::pair<int, int>, Known> known_;  // by the block's id and the operator's index
};

}  // namespace heddle::passes
