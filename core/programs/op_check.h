// Rules for every operator of a program, in any format. They follow from the operators'
// definitions. ProgramBuilder checks them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/programs/ir.h"

namespace heddle::ir {

// Receives a sentence about an error in an operator.
using OpProblem = std::function<void(int block, const Op& op, const std::string& problem)>;

// Checks that required inputs and outputs name variables, that each is of a kind which its slot
// accepts (core/operands/slot_kinds.h), and that no variable is two outputs of one operator.
void CheckOperands(const Program& program, int block, const Op& op, const OpProblem& problem);

// Whether the program declares the variable. One that is only named by operators may be anything.
bool IsDeclared(const Var& var);

// Checks that variables in slots which need a variable to themselves (kRecord, kNoData) are in no
// other slots.
void CheckReserved(const Program& program, const OpProblem& problem);

}  // namespace heddle::ir
