// What rules for operators with blocks share.
#pragma once

#include <unordered_map>
#include <vector>

#include "gradient/block_gradient.h"

namespace heddle::gradient {

using VarMap = std::unordered_map<ir::VarId, ir::VarId>;

// Variables of outer blocks that an operator with blocks reads or writes.
struct OuterVar {
  ir::VarId var = ir::kNoVar;
  BlockGradient::ValueId read = BlockGradient::kNoValue, before = BlockGradient::kNoValue,
                         after = BlockGradient::kNoValue;
  bool is_read() const { return read != BlockGradient::kNoValue; }
  bool is_written() const { return after != BlockGradient::kNoValue; }
  // The value that it has in front of the operator.
  BlockGradient::ValueId start() const { return is_read() ? read : before; }
};
std::vector<OuterVar> OuterVarsOf(const BlockGradient& pass, size_t at);

// Copies of operators in `block`, with copies of the blocks that they run. Variables of the copied
// block become new ones; `vars` has the others that change, and gets the new ones.
std::vector<ir::Op> CopyOps(Shared& shared, const std::vector<ir::Op>& ops, int from, int block,
                            VarMap* vars);
// Replaces variables in operators and in the blocks that they run.
void ReplaceVars(Shared& shared, std::vector<ir::Op>* ops, const VarMap& vars);

// The array of the gradients of an array's elements, which begin as zeros. Made where it is first
// asked for.
ir::VarId ArrayGradient(BlockGradient& pass, ir::VarId array);

// Lists all outer variables that an operator's blocks read and write among its operands, where its
// blocks were changed.
void ListOperands(const ir::Program& program, ir::Op* op, std::string_view reads,
                  std::string_view writes);

// Whether the operators, or those of their blocks, draw random numbers.
bool DrawsNumbers(const ir::Program& program, const std::vector<ir::Op>& ops);

}  // namespace heddle::gradient
