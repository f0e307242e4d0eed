// What operators are for (ir::Op::role), kept by all passes: an operator that a pass makes has the
// roles of the operators whose results it computes or, if its results are new, that of the first
// operator that reads one. Programs without roles cost one look at each operator.
//
// Threads: one at a time.
#pragma once

#include <memory>
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
    bool known = false, several = false;  // several: writers that are for other things
    std::shared_ptr<const ir::OpRole> role;
  };
  std::vector<Of> writers_;  // by variable; empty: the program has no roles
};

}  // namespace heddle::passes
