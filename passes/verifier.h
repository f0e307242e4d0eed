// Checks that a rewritten program can be planned and, as far as this shows without running it,
// still computes what the original computed.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/programs/ir.h"

namespace heddle::passes {

// Passes rely on required inputs and first outputs being present, and on required inputs having
// been written. Returns a sentence about the first operator that lacks one, or nothing. (Such a
// program is not optimised; planning or running it reports the error, as it does for the program as
// it is.) `fed`: variables that have values before the program runs.
std::string FindHole(const ir::Program& program, const std::set<ir::VarId>& fed);

// Checks rewritten forms of one program. Doubtful uses that the original already had (a variable
// that is read but never written) are accepted.
class Verifier {
 public:
  Verifier(std::shared_ptr<const ir::Program> original, const std::set<ir::VarId>& fetched);

  // Slots and attributes fit the definitions, ids exist, operands are visible where they are used,
  // blocks exist and nest; variables of the original keep name, kind, dtype and persistence;
  // nothing is read before it is written, and every fetched variable is written; operators with
  // side effects and communication are still there.
  Status Check(const ir::Program& program) const;

 private:
  std::shared_ptr<const ir::Program> original_;
  const std::set<ir::VarId> fetched_;
  std::vector<bool> undefined_;        // read before written in the original
  std::vector<bool> never_;            // not written at the end of the original
  std::vector<const OpDef*> effects_;  // of the original's operators, sorted
};

}  // namespace heddle::passes
