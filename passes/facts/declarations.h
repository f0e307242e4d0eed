// The dtypes and shapes that passes rely on. A file declares them for each variable, and may be
// wrong. So before the passes each variable's declaration is replaced by what its writer makes,
// according to the writer's shape function, starting from the feeds and the parameters. A pass
// reads ir::Var::dtype and shape and needs no further checks.
//
// A claim is the declaration of a variable whose dtype and shape nothing else determines before a
// run. Whoever makes a plan compares the claims with the feeds (Optimized::claims); if one does not
// hold, the program is optimised again with what was found instead (Target::found). So a wrong
// declaration costs fusions, but never changes a result. Claims that depend on values are compared
// during the run, which is repeated if one does not hold; results of programs whose runs cannot be
// repeated, since they have side effects, are not claimed.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/programs/ir.h"
#include "passes/pass.h"

namespace heddle::passes {

// Dtype and shape of a variable; -1: a dimension that differs from run to run; Shape::Unknown() and
// DType::kUnknown: a rank or a dtype that does.
struct Fact {
  DType dtype = DType::kUnknown;
  Shape shape = Shape::Unknown();

  bool operator==(const Fact& o) const { return dtype == o.dtype && shape == o.shape; }
};
// The strongest fact that holds whenever `a` or `b` does.
Fact Join(const Fact& a, const Fact& b);
// Whether a tensor with dtype and shape `is` agrees with the declaration `said`.
bool Holds(const Fact& said, const Fact& is);

// A variable by its name in its block.
struct NamedFact {
  int block = 0;
  std::string name;
  Fact fact;
  bool found = false;  // it replaces the declaration
};

struct Declarations {
  std::vector<std::pair<ir::VarId, Fact>> other;  // than in the program
  std::vector<NamedFact> claims;

  void Declare(ir::Program* program) const;
};
// `found`: facts that replace the declarations of some variables. `repeats`: results that no shape
// function determines are assumed to be as declared, else nothing is assumed. Shapes of parameters
// are read from the context's scope, and so are small contents that determine shapes.
Declarations InferDeclarations(const ir::Program& program, const std::vector<NamedFact>& found,
                               bool repeats, PassContext& context);

}  // namespace heddle::passes
