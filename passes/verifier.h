// Is a rewritten program still one that can be planned, and does it still mean what the original
// did, as far as that can be seen without running it?
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/ir.h"

namespace heddle::passes {

// Passes take for granted that operators have their required inputs and their first output. Says
// which one has not, in words; empty when all have. (Such a program is planned as it is, and that
// says what is wrong if it comes to it.)
std::string FindHole(const ir::Program& program);

// Checks rewritten forms of one program. What was doubtful in the original already (a variable that
// is read but never written) may stay so.
class Verifier {
 public:
  Verifier(std::shared_ptr<const ir::Program> original, const std::set<ir::VarId>& fetched);

  // Slots and attributes fit the definitions, ids exist, operands are visible where they are used,
  // blocks exist and nest; variables of the original keep name, kind, dtype and persistence;
  // nothing is read before it is written, nor fetched without being written; operators with side
  // effects and communication are still there.
  Status Check(const ir::Program& program) const;

 private:
  std::shared_ptr<const ir::Program> original_;
  const std::set<ir::VarId> fetched_;
  std::vector<bool> undefined_;        // read before written in the original
  std::vector<bool> never_;            // not written at the end of the original
  std::vector<const OpDef*> effects_;  // of the original's operators, sorted
};

}  // namespace heddle::passes
