// The Python stacks of operators' creation, which files carry for messages. They repeat each other
// nearly line for line and may be most of a file: each line is held once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

class CallStackTable;

// One operator's stack, a share of its program's table. Copies are cheap. Threads: any may read.
class CallStack {
 public:
  CallStack() = default;  // none
  bool empty() const { return begin_ == end_; }
  std::vector<std::string_view> Lines() const;  // live as long as the table
  // For people: the lines, each indented by four spaces and ended.
  std::string Text() const;

 private:
  friend class CallStackTable;
  CallStack(std::shared_ptr<const CallStackTable> table, uint32_t begin, uint32_t end)
      : table_(std::move(table)), begin_(begin), end_(end) {}
  std::shared_ptr<const CallStackTable> table_;
  uint32_t begin_ = 0, end_ = 0;
};

// A serialized ProgramDesc whose stacks were taken out.
struct SplitProgram {
  std::string bytes;  // without attributes op_callstack, otherwise the same
  std::vector<std::vector<CallStack>> stacks;  // by block and operator, in the file's order
};

// Takes the stacks out without reading anything else; false where `bytes` is not well formed as far
// as looked at, or there are none: nothing is changed then.
bool SplitCallStacks(std::string_view bytes, SplitProgram* split);

}  // namespace heddle
