// Removes the call stacks from a serialized ProgramDesc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/programs/call_stack.h"

namespace heddle::paddle {

// A serialized ProgramDesc and the call stacks that were removed from it.
struct SplitProgram {
  std::string bytes;                           // without the attributes op_callstack
  std::vector<std::vector<CallStack>> stacks;  // by block and operator, in the file's order
};

// Removes the stacks without parsing anything else. Returns false and changes nothing if there are
// no stacks, or if `bytes` is found to be malformed.
bool SplitCallStacks(std::string_view bytes, SplitProgram* split);

}  // namespace heddle::paddle
