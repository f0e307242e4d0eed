// Branches and loops in a draft: blocks that operators run, and the values that enter and leave
// them.
#pragma once

#include <vector>

#include "formats/lowering/op_maker.h"

namespace heddle::formats {

// Adds a variable to block `home` that is to hold values like those of `v`.
int LikeVar(OpMaker& m, int v, int home);
void Assign(OpMaker& m, int from, int to);
// Adds a variable to the present block that holds a copy of `v`.
int CopyOf(OpMaker& m, int v);

// Adds an operator that runs a lowered block if the condition holds, or as long as it holds.
void RunIf(OpMaker& m, int condition, int block);
void RunWhile(OpMaker& m, int condition, int block);

// The common shape of several values: a dimension is known where all agree.
Shape AgreedShape(OpMaker& m, const std::vector<int>& values);

// At the end of a loop body, assigns the next values to the carried variables, as if all at once. A
// variable that keeps its value gets no operator.
void CarryOn(OpMaker& m, const std::vector<int>& carried, std::vector<int> next);

}  // namespace heddle::formats
