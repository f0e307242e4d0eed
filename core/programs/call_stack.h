// The Python stacks of operators' creation, which programs carry for messages. They repeat each
// other nearly line for line and may be most of a file: each line is held once.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace heddle {

class CallStackTable;

// One operator's stack, a share of its program's table. Copies are cheap. Threads: any may read.
class CallStack {
 public:
  CallStack() = default;  // none
  // Entries [begin, end) of the table.
  CallStack(std::shared_ptr<const CallStackTable> table, uint32_t begin, uint32_t end)
      : table_(std::move(table)), begin_(begin), end_(end) {}
  bool empty() const { return begin_ == end_; }
  std::vector<std::string_view> Lines() const;  // live as long as the table
  // For people: the lines, each indented by four spaces and ended.
  std::string Text() const;

 private:
  std::shared_ptr<const CallStackTable> table_;
  uint32_t begin_ = 0, end_ = 0;
};

// The lines of all stacks of a program, stack after stack; a reader of a file fills it. Threads:
// one may fill it; any may read once it is closed.
class CallStackTable {
 public:
  uint32_t size() const { return static_cast<uint32_t>(ids_.size()); }
  std::string_view line(uint32_t at) const { return lines_[ids_[at]]; }
  // The lines that follow are another operator's.
  void BeginStack();
  // Adds the first `n` lines of the stack before. Precondition: it has so many, and nothing was
  // added to this one.
  void AddAsBefore(size_t n);
  void Add(std::string_view line);
  // No more lines will come.
  void Close();

 private:
  std::deque<std::string> lines_;  // stay where they are: known_ points to them
  std::vector<uint32_t> ids_;      // stack after stack
  std::unordered_map<std::string_view, uint32_t> known_;
  size_t before_ = 0, begin_ = 0;  // where the former stack and this one begin
};

}  // namespace heddle
