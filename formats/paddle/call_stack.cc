#include "formats/paddle/call_stack.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <unordered_map>

#include "formats/paddle/wire_fields.h"

namespace heddle {

class CallStackTable {
 public:
  uint32_t size() const { return static_cast<uint32_t>(ids_.size()); }
  std::string_view line(uint32_t at) const { return lines_[ids_[at]]; }
  // The lines that follow are another operator's.
  void BeginStack() {
    before_ = begin_;
    begin_ = ids_.size();
  }
  // Adds the first `n` lines of the stack before. Precondition: it has so many, and nothing was
  // added to this one.
  void AddAsBefore(size_t n) {
    for (size_t i = 0; i < n; ++i) ids_.push_back(ids_[before_ + i]);
  }
  void Add(std::string_view line) {
    // Most often the operator before has the same line in the same place.
    const size_t there = before_ + (ids_.size() - begin_);
    if (there < begin_ && lines_[ids_[there]] == line) return ids_.push_back(ids_[there]);
    const auto found = known_.find(line);
    if (found != known_.end()) return ids_.push_back(found->second);
    const auto id = static_cast<uint32_t>(lines_.size());
    lines_.emplace_back(line);
    known_.emplace(lines_.back(), id);
    ids_.push_back(id);
  }
  // No more lines will come.
  void Close() {
    known_ = {};
    ids_.shrink_to_fit();
  }
  static CallStack Share(const std::shared_ptr<const CallStackTable>& table, uint32_t begin,
                         uint32_t end) {
    return {table, begin, end};
  }

 private:
  std::deque<std::string> lines_;  // stay where they are: known_ points to them
  std::vector<uint32_t> ids_;      // stack after stack
  std::unordered_map<std::string_view, uint32_t> known_;
  size_t before_ = 0, begin_ = 0;  // where the former stack and this one begin
};

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

namespace {

constexpr std::string_view kName = "op_callstack";

using wire::AppendBytesField;
using wire::Field;
using wire::Fields;
using wire::kAttrName;
using wire::kAttrs;
using wire::kAttrType;
using wire::kBlocks;
using wire::kOps;
using wire::kStrings;

class Splitter {
 public:
  bool Program(std::string_view bytes, SplitProgram* split) {
    SplitProgram made;
    std::string block;
    Field f;
    for (Fields fields(bytes); !fields.done();) {
      if (!fields.Next(&f)) return false;
      if (!f.Is(kBlocks)) {
        made.bytes.append(f.whole);
        continue;
      }
      ends_.emplace_back();
      block.clear();
      if (!Block(f.payload, &block)) return false;
      AppendBytesField(kBlocks, block, &made.bytes);
    }
    table_->Close();
    made.bytes.shrink_to_fit();
    uint32_t begin = 0;
    for (const auto& ends : ends_) {
      auto& stacks = made.stacks.emplace_back();
      for (uint32_t end : ends) {
        stacks.push_back(CallStackTable::Share(table_, begin, end));
        begin = end;
      }
    }
    *split = std::move(made);
    return true;
  }

 private:
  bool Block(std::string_view bytes, std::string* out) {
    std::string op;
    Field f;
    for (Fields fields(bytes); !fields.done();) {
      if (!fields.Next(&f)) return false;
      if (!f.Is(kOps)) {
        out->append(f.whole);
        continue;
      }
      op.clear();
      if (!Op(f.payload, &op)) return false;
      AppendBytesField(kOps, op, out);
      ends_.back().push_back(table_->size());
    }
    return true;
  }
  bool Op(std::string_view bytes, std::string* out) {
    Field f;
    for (Fields fields(bytes); !fields.done();) {
      if (!fields.Next(&f)) return false;
      bool stack = false;
      if (f.Is(kAttrs) && !Attr(f.payload, &stack)) return false;
      if (!stack) out->append(f.whole);
    }
    return true;
  }
  // Is it a stack? Its lines are taken if so.
  bool Attr(std::string_view bytes, bool* stack) {
    bool named = false, typed = false;
    Field f;
    for (Fields fields(bytes); !fields.done();) {
      if (!fields.Next(&f)) return false;
      if (f.Is(kAttrName)) named = f.payload == kName;
      typed |= f.number == kAttrType;
      if (f.number > kAttrType && !named) return true;  // writers put the name first
      *stack = named && typed;
      if (*stack) return AddStack(bytes);
    }
    return true;  // what misses its type is left for the parser to complain of
  }

  // The attribute's lines. Most often it begins as the one before: so far, nothing is looked at
  // line by line. False: damaged.
  bool AddStack(std::string_view bytes) {
    table_->BeginStack();
    const size_t same = SameAtFirst(bytes, last_);
    size_t shared = 0;
    while (shared < line_ends_.size() && line_ends_[shared] <= same) ++shared;
    table_->AddAsBefore(shared);
    line_ends_.resize(shared);
    const size_t begin = shared > 0 ? line_ends_.back() : 0;
    Field f;
    for (Fields fields(bytes.substr(begin)); !fields.done();) {
      if (!fields.Next(&f)) return false;
      if (!f.Is(kStrings)) continue;
      table_->Add(f.payload);
      line_ends_.push_back(static_cast<size_t>(f.whole.data() + f.whole.size() - bytes.data()));
    }
    last_ = bytes;
    return true;
  }

  // How many bytes both begin with.
  static size_t SameAtFirst(std::string_view a, std::string_view b) {
    constexpr size_t kStep = 64;  // what is compared at once
    const size_t most = std::min(a.size(), b.size());
    size_t n = 0;
    while (n + kStep <= most && std::memcmp(a.data() + n, b.data() + n, kStep) == 0) n += kStep;
    while (n < most && a[n] == b[n]) ++n;
    return n;
  }

  std::shared_ptr<CallStackTable> table_ = std::make_shared<CallStackTable>();
  std::string_view last_;                    // the last stack's attribute
  std::vector<size_t> line_ends_;            // where its lines end there
  std::vector<std::vector<uint32_t>> ends_;  // by block and operator: where its lines end
};

}  // namespace

bool SplitCallStacks(std::string_view bytes, SplitProgram* split) {
  return bytes.find(kName) != std::string_view::npos && Splitter().Program(bytes, split);
}

}  // namespace heddle
