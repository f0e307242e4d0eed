// The dtypes and shapes that passes go by. A file declares them for each variable, and may be
// wrong: so before the passes each variable is declared as the operator that writes it makes it, by
// the operator's own shape function, starting from what is fed and from the parameters that are
// there. A pass reads ir::Var::dtype and shape and need not ask anything more.
//
// A claim is the declaration of a variable that nothing else tells about before a run. Whoever
// makes a plan compares the claims with what is fed (Optimized::claims); if one does not hold, the
// program is optimised anew with what was found instead (Target::found). So a wrong declaration
// costs fusions, never a result. A run compares only what follows from values, and is made again
// where that is not as claimed; results of programs whose runs cannot be made again, since they
// change something, are not claimed.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/programs/ir.h"
#include "passes/pass.h"

namespace heddle::passes {

// Dtype and shape of a variable: -1 for dimensions that differ from run to run, Shape::Unknown()
// for ranks that do, DType::kUnknown likewise.
struct Fact {
  DType dtype = DType::kUnknown;
  Shape shape = Shape::Unknown();

  bool operator==(const Fact& o) const { return dtype == o.dtype && shape == o.shape; }
};
// The most exact fact that holds for both.
Fact Join(const Fact& a, const Fact& b);
// A tensor of dtype and shape `is` may be there where `said` is declared.
bool Holds(const Fact& said, const Fact& is);

// A variable by its name in its block.
struct NamedFact {
  int block = 0;
  std::string name;
  Fact fact;
  bool found = false;  // it stands instead of the declaration
};

struct Declarations {
  std::vector<std::pair<ir::VarId, Fact>> other;  // than in the program
  std::vector<NamedFact> claims;

  void Declare(ir::Program* program) const;
};
// `found`: what stands for the declarations of some variables. `repeats`: results that no operator
// tells are as declared, else nothing is known of them. Parameters' shapes are read from the
// context's scope, small contents that decide shapes too.
Declarations InferDeclarations(const ir::Program& program, const std::vector<NamedFact>& found,
                               bool repeats, PassContext& context);

}  // namespace heddle::passes
