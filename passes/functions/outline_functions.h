// Finds equal stretches of operators again, such as the layers of a network that an exporter wrote
// out one behind another, and makes them calls of one block: the operator `call`, whose operands
// are what differs from stretch to stretch, parameters included. A plan then analyses the block
// once.
//
// This is no pass: the result is for a plan that binds the operands of calls instead of copying
// them (executor/plan/calls/). All other readers want the program as it is.
#pragma once

#include <cstddef>
#include <set>
#include <unordered_map>
#include <vector>

#include "core/programs/ir.h"

namespace heddle::passes {

struct OutlineLimits {
  size_t least_calls = 3;   // of one block
  size_t least_period = 4;  // operators in the block
  size_t least_saved = 24;  // operators that the program has less
  double least_ns = 0;      // the time of the block, if the program says all shapes in it
};

// Changes block 0; true: something was found. `kept`: variables that the caller names, besides
// feeds and fetches; no stretch hides them. The operators of a stretch keep their order and their
// attributes, so results have the same bits.
//
// Left as they are: operators that run blocks, have side effects, communicate or read data, that
// write parameters or what other blocks name, that write a variable again, or that have control
// edges; variables that are no tensors or have sequence offsets.
bool OutlineFunctions(ir::Program& program, const std::set<ir::VarId>& kept,
                      const OutlineLimits& limits = {});

// Puts the operators of the blocks back in the place of the calls: exactly the operators that
// OutlineFunctions was given, with other variables. `block`: the only one to put back; -1: all that
// OutlineFunctions can have made. True: something was put back.
bool ExpandFunctions(ir::Program& program, int block = -1);

// Which operators are such calls. Ownership: refers to the program, whose blocks other than 0 must
// not change meanwhile.
class OutlinedCalls {
 public:
  explicit OutlinedCalls(const ir::Program& program) : program_(program) {}
  bool Is(const ir::Op& op);

 private:
  struct Body {
    std::vector<ir::VarId> parameters, results;
    bool closed = false;
  };
  bool IsClosed(int body, const std::vector<ir::VarId>& parameters,
                const std::vector<ir::VarId>& results) const;

  const ir::Program& program_;
  std::unordered_map<int, Body> bodies_;
};

}  // namespace heddle::passes
