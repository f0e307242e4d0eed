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

// Required inputs and outputs name variables, and no variable is two outputs of one operator.
void CheckOperands(const Program& program, int block, const Op& op, const OpProblem& problem);

// Variables that slots of a kind have for themselves (kRecord, kNoData) are in no other slots.
void CheckReserved(const Program& program, const OpProblem& problem);

}  // namespace heddle::ir
