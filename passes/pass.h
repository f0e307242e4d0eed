// A pass rewrites a program. It works on a copy: what it leaves behind when it fails is thrown away.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/ir.h"

namespace heddle::passes {

struct PassContext {
  Scope& scope;                  // parameters; a pass may add new ones, never change existing ones
  std::set<ir::VarId> fetched;   // variables that must keep their meaning
  int level = 2;
};

struct PassDef {
  std::string name, doc;
  int level = 1;   // the lowest optimisation level that runs it
  int phase = 0;   // ascending; passes of one phase run in the order of their names
  Result<bool> (*run)(ir::Program&, PassContext&) = nullptr;  // true = something changed
};

// Defines a pass; the build lists every HEDDLE_PASS line of passes/*.cc by itself.
#define HEDDLE_PASS(name)                          \
  namespace heddle::passes {                       \
  void DefinePass_##name(PassDef& pass);           \
  }                                                \
  void heddle::passes::DefinePass_##name(PassDef& pass)

// Every registered pass in the order of phase and name.
std::vector<PassDef> AllPasses();

}  // namespace heddle::passes
