// Rules that every operator of a program obeys, whatever format the program was read from. They
// follow from the operators' definitions. ProgramBuilder checks them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/programs/ir.h"

namespace heddle::ir {

// Receives a sentence about an operator.
using OpProblem = std::function<void(int block, const Op& op, const std::string& problem)>;

// Required inputs and outputs name variables, each of a kind that its slot takes
// (core/operands/slot_kinds.h), and no variable is two outputs of one operator.
void CheckOperands(const Program& program, int block, const Op& op, const OpProblem& problem);

// The program says what the variable is. One that operators name without a declaration may be
// anything.
bool IsDeclared(const Var& var);

// Variables that slots of a kind have for themselves (kRecord, kNoData) are in no other slots.
void CheckReserved(const Program& program, const OpProblem& problem);

}  // namespace heddle::ir
