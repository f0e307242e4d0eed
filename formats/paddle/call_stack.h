// Takes the call stacks out of a serialized ProgramDesc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/programs/call_stack.h"

namespace heddle::paddle {

// A serialized ProgramDesc whose stacks were taken out.
struct SplitProgram {
  std::string bytes;                           // the same but for attributes op_callstack
  std::vector<std::vector<CallStack>> stacks;  // by block and operator, in the file's order
};

// Takes the stacks out and reads nothing else. Returns false and changes nothing when there are no
// stacks, or `bytes` is not well formed as far as it was looked at.
bool SplitCallStacks(std::string_view bytes, SplitProgram* split);

}  // namespace heddle::paddle
