// One group of operators as a program of its own.
//
// Ownership: values; programs and tensors are shared. Threads: any may read.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/programs/ir.h"
#include "heddle/tensor.h"

namespace heddle::offload {

struct Group {
  std::string symbol;  // no other group of the program has it
  size_t offloader = 0;
  int block = 0;                  // of the whole program
  std::vector<size_t> positions;  // of its operators in that block, ascending
  // Variables of the whole program that go in and come out, parameters left out.
  std::vector<ir::VarId> inputs, outputs;
  // One block, whose feeds are `inputs` and whose fetches are `outputs`.
  std::shared_ptr<const ir::Program> program;
  std::vector<std::pair<ir::VarId, Tensor>> parameters;  // variables of `program`, contiguous
  std::string refused;                                   // why it stays; empty: it may go
  // As it was before passes rewrote it, for inputs that are not as it declares them, and for
  // heddle's own program where it stays. Null: no pass did.
  std::shared_ptr<const Group> plain;
};

}  // namespace heddle::offload
