// Operators that read variables which may be unwritten: these fail then, and so a program must at
// every level, whether or not anybody needs their results.
#pragma once

#include <vector>

#include "passes/pass.h"

namespace heddle::passes {

// Describes a program as it is at construction; takes no memory if there are no such operators.
class UnwrittenReads {
 public:
  UnwrittenReads(const ir::Program& program, PassContext& context);

  // Whether the operator at this position needs a variable that may be empty when it runs: a block
  // that need not run writes it, an operator may leave it unwritten (core/operands/unwritten.h), it
  // is an element of an array, or a parameter without a value.
  bool MayFail(int block, size_t at) const {
    const auto b = static_cast<size_t>(block);
    return b < marks_.size() && at < marks_[b].size() && marks_[b][at];
  }

 private:
  std::vector<std::vector<bool>> marks_;  // per block; empty: none
};

}  // namespace heddle::passes
