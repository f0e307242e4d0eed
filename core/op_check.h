// What every operator of a program has to keep to, whatever format the program is read from: the
// rules follow from the definitions alone. ProgramBuilder asks; passes keep them by construction.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/ir.h"

namespace heddle::ir {

// Receives a sentence about an operator.
using OpProblem = std::function<void(int block, const Op& op, const std::string& problem)>;

// Required inputs and outputs name variables, and no variable is two outputs of one operator.
void CheckOperands(const Program& program, int block, const Op& op, const OpProblem& problem);

// Variables that slots of a kind have for themselves (kRecord, kNoData) are in no other slots.
void CheckReserved(const Program& program, const OpProblem& problem);

}  // namespace heddle::ir
