// Checks that a rewritten program can be planned and, as far as that shows without a run, computes
// the same as the original.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/programs/ir.h"

namespace heddle::passes {

// Finds the first operator that lacks a required input or its first output, or reads a required
// input that was not written; passes rely on these. Returns a sentence about it, or an empty
// string. (Such a program is not optimised; planning or running it reports the error.) `fed`:
// variables that have values before the program runs.
std::string FindHole(const ir::Program& program, const std::set<ir::VarId>& fed);

// Checks rewritten forms of one program. What the original did already (reading a variable that is
// never written) is accepted.
class Verifier {
 public:
  Verifier(std::shared_ptr<const ir::Program> original, const std::set<ir::VarId>& fetched);

  // Checks that slots and attributes match the definitions; that ids exist, operands are visible
  // where they are used, and blocks exist and nest; that variables of the original keep name, kind,
  // dtype and persistence; that nothing is read before it is written, and every fetched variable is
  // written; and that operators with side effects and communication are still there.
  Status Check(const ir::Program& program) const;

 private:
  std::shared_ptr<const ir::Program> original_;
  const std::set<ir::VarId> fetched_;
  std::vector<bool> undefined_;        // read before written in the original
  std::vector<bool> never_;            // not written at the end of the original
  std::vector<const OpDef*> effects_;  // of the original's operators with effects, sorted
};

}  // namespace heddle::passes
