// Takes the call stacks out of a serialized ProgramDesc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/call_stack.h"

namespace heddle::paddle {

// A serialized ProgramDesc whose stacks were taken out.
struct SplitProgram {
  std::string bytes;  // without attributes op_callstack, otherwise the same
  std::vector<std::vector<CallStack>> stacks;  // by block and operator, in the file's order
};

// Takes the stacks out without reading anything else; false where `bytes` is not well formed as far
// as looked at, or there are none: nothing is changed then.
bool SplitCallStacks(std::string_view bytes, SplitProgram* split);

}  // namespace heddle::paddle
