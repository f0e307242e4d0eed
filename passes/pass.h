// A pass rewrites a program. All work on one copy, one after another: when one fails, the copy is
// thrown away. A pass that says that it changed nothing has left the program as it was.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/ir.h"

namespace heddle::passes {

class GraphView;

// What a pass may read and add besides the program.
class PassContext {
 public:
  // `source`: the user's parameters, only read. `folded`: where new parameters go; its parent is
  // `source`.
  PassContext(const Scope& source, Scope& folded) : source_(source), folded_(folded) {}

  std::set<ir::VarId> fetched;  // variables that must keep their meaning

  // The value of a float parameter that no operator of `program` writes, or nullptr. Results that
  // depend on it are made anew when the user replaces it.
  const Tensor* Constant(const ir::Program& program, const GraphView& view, ir::VarId var);
  // A new parameter of `program`; returns its variable.
  ir::VarId AddConstant(ir::Program& program, const std::string& stem, Tensor value);
  // The parameters that Constant() handed out, as they were.
  const std::vector<std::pair<std::string, Scope::Stamp>>& used() const { return used_; }

 private:
  const Scope& source_;
  Scope& folded_;
  std::vector<std::pair<std::string, Scope::Stamp>> used_;
};

struct PassDef {
  std::string name, doc;
  int level = 1;   // the lowest optimisation level that runs it
  int phase = 0;   // ascending; passes of one phase run in the order of their names
  Result<bool> (*run)(ir::Program&, PassContext&) = nullptr;  // true = something changed
};

// Defines a pass; the build lists every HEDDLE_PASS line of passes/*.cc by itself.
#define HEDDLE_PASS(name)                \
  namespace heddle::passes {             \
  void DefinePass_##name(PassDef& pass); \
  }                                      \
  void heddle::passes::DefinePass_##name(PassDef& pass)

// Every registered pass in the order of phase and name.
std::vector<PassDef> AllPasses();

}  // namespace heddle::passes
