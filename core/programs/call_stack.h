// Call stacks: the Python stacks in which operators were made, which programs keep for messages.
// They are nearly equal line by line and may be most of a file, so each line is stored once.
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

// One operator's stack, a range of its program's table. Copies are cheap. Threads: any may read.
class CallStack {
 public:
  CallStack() = default;  // none
  // Entries [begin, end) of the table.
  CallStack(std::shared_ptr<const CallStackTable> table, uint32_t begin, uint32_t end)
      : table_(std::move(table)), begin_(begin), end_(end) {}
  bool empty() const { return begin_ == end_; }
  std::vector<std::string_view> Lines() const;  // valid as long as the table
  // The lines as text, each indented by four spaces and ended by a newline.
  std::string Text() const;

 private:
  std::shared_ptr<const CallStackTable> table_;
  uint32_t begin_ = 0, end_ = 0;
};

// The lines of all stacks of a program, stack after stack; the reader of a file fills it. Threads:
// one may fill it; any may read once it is closed.
class CallStackTable {
 public:
  uint32_t size() const { return static_cast<uint32_t>(ids_.size()); }
  std::string_view line(uint32_t at) const { return lines_[ids_[at]]; }
  // Begins the stack of the next operator.
  void BeginStack();
  // Adds the first `n` lines of the previous stack. Precondition: it has so many, and nothing was
  // added to this one.
  void AddAsBefore(size_t n);
  void Add(std::string_view line);
  // To be called after the last line.
  void Close();

 private:
  std::deque<std::string> lines_;  // a deque, since known_ points to its elements
  std::vector<uint32_t> ids_;      // stack after stack
  std::unordered_map<std::string_view, uint32_t> known_;
  size_t before_ = 0, begin_ = 0;  // begins of the previous stack and of this one
};

}  // namespace heddle
