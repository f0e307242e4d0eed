#include "formats/paddle/call_stack.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "formats/paddle/desc_fields.h"
#include "formats/wire_fields.h"

namespace heddle::paddle {
namespace {

constexpr std::string_view kName = "op_callstack";

using desc::kAttrName;
using desc::kAttrs;
using desc::kAttrType;
using desc::kBlocks;
using desc::kOps;
using desc::kStrings;
using wire::AppendBytesField;
using wire::Field;
using wire::Fields;

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
        stacks.push_back(CallStack(table_, begin, end));
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
  // Sets *stack to whether the attribute is a call stack, and takes its lines if it is. False:
  // damaged.
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
    return true;  // the parser reports an attribute without a type
  }

  // Takes the attribute's lines. Lines that it shares with the previous stack, at the beginning,
  // are taken as a block. False: damaged.
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

  // The length of the longest common prefix.
  static size_t SameAtFirst(std::string_view a, std::string_view b) {
    constexpr size_t kStep = 64;  // bytes compared at once
    const size_t most = std::min(a.size(), b.size());
    size_t n = 0;
    while (n + kStep <= most && std::memcmp(a.data() + n, b.data() + n, kStep) == 0) n += kStep;
    while (n < most && a[n] == b[n]) ++n;
    return n;
  }

  std::shared_ptr<CallStackTable> table_ = std::make_shared<CallStackTable>();
  std::string_view last_;                    // the last stack's attribute
  std::vector<size_t> line_ends_;            // ends of its lines
  std::vector<std::vector<uint32_t>> ends_;  // by block and operator: where its lines end
};

}  // namespace

bool SplitCallStacks(std::string_view bytes, SplitProgram* split) {
  return bytes.find(kName) != std::string_view::npos && Splitter().Program(bytes, split);
}

}  // namespace heddle::paddle
