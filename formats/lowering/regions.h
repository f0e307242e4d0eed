// Branches and loops in a draft: blocks that operators run, and what goes into them and out.
#pragma once

#include <vector>

#include "formats/lowering/op_maker.h"

namespace heddle::formats {

// A new variable of block `home` that will have a value like `v`'s.
int LikeVar(OpMaker& m, int v, int home);
void Assign(OpMaker& m, int from, int to);
// A new variable of the present block with what `v` holds now.
int CopyOf(OpMaker& m, int v);

// Runs blocks that are lowered already: where the condition holds, or as long as it does.
void RunIf(OpMaker& m, int condition, int block);
void RunWhile(OpMaker& m, int condition, int block);

// The shape of one of these values, whichever it is: dimensions in which they agree.
Shape AgreedShape(OpMaker& m, const std::vector<int>& values);

// At the end of a body, the next values go where the loop carries them, all at once. One that stays
// as it is takes no operator.
void CarryOn(OpMaker& m, const std::vector<int>& carried, std::vector<int> next);

}  // namespace heddle::formats
