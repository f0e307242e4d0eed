#include "core/programs/call_stack.h"

namespace heddle {

std::vector<std::string_view> CallStack::Lines() const {
  std::vector<std::string_view> lines;
  for (uint32_t at = begin_; at < end_; ++at) lines.push_back(table_->line(at));
  return lines;
}

std::string CallStack::Text() const {
  std::string text;
  for (std::string_view line : Lines()) text.append("    ").append(line).append("\n");
  return text;
}

void CallStackTable::BeginStack() {
  before_ = begin_;
  begin_ = ids_.size();
}

void CallStackTable::AddAsBefore(size_t n) {
  for (size_t i = 0; i < n; ++i) ids_.push_back(ids_[before_ + i]);
}

void CallStackTable::Add(std::string_view line) {
  // Mostly the previous operator has the same line at the same position.
  const size_t there = before_ + (ids_.size() - begin_);
  if (there < begin_ && lines_[ids_[there]] == line) return ids_.push_back(ids_[there]);
  const auto found = known_.find(line);
  if (found != known_.end()) return ids_.push_back(found->second);
  const auto id = static_cast<uint32_t>(lines_.size());
  lines_.emplace_back(line);
  known_.emplace(lines_.back(), id);
  ids_.push_back(id);
}

void CallStackTable::Close() {
  known_ = {};
  ids_.shrink_to_fit();
}

}  // namespace heddle
