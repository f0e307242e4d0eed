#include "core/call_stack.h"

#include <deque>
#include <unordered_map>

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

// One field of a message in protobuf's wire format
// (https://protobuf.dev/programming-guides/encoding).
struct Field {
  static constexpr uint32_t kBytes = 2;  // the wire type of strings, messages and packed lists
  uint32_t number = 0, wire_type = 0;
  std::string_view whole;    // tag and value
  std::string_view payload;  // of wire type kBytes
  bool Is(uint32_t n) const { return number == n && wire_type == kBytes; }
};

class Fields {
 public:
  explicit Fields(std::string_view message) : rest_(message) {}
  bool done() const { return rest_.empty(); }
  // False: damaged, or of a form that no version of protobuf writes any more.
  bool Next(Field* f) {
    const std::string_view start = rest_;
    uint64_t tag = 0, length = 0;
    if (!Varint(&tag) || tag >> 35 != 0) return false;
    f->number = static_cast<uint32_t>(tag >> 3);
    f->wire_type = tag & 7;
    f->payload = {};
    switch (f->wire_type) {
      case 0:
        if (!Varint(&length)) return false;
        length = 0;
        break;
      case 1:
        length = 8;
        break;
      case Field::kBytes:
        if (!Varint(&length)) return false;
        break;
      case 5:
        length = 4;
        break;
      default:
        return false;
    }
    if (f->number == 0 || length > rest_.size()) return false;
    if (f->wire_type == Field::kBytes) f->payload = rest_.substr(0, length);
    rest_.remove_prefix(length);
    f->whole = start.substr(0, start.size() - rest_.size());
    return true;
  }

 private:
  bool Varint(uint64_t* value) {
    *value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) return false;
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      *value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  std::string_view rest_;
};

void AppendBytesField(uint32_t number, std::string_view payload, std::string* out) {
  auto varint = [&](uint64_t v) {
    for (; v >= 0x80; v >>= 7) out->push_back(static_cast<char>(v | 0x80));
    out->push_back(static_cast<char>(v));
  };
  varint(number << 3 | Field::kBytes);
  varint(payload.size());
  out->append(payload);
}

// The numbers of proto/framework.proto.
constexpr uint32_t kBlocks = 1, kOps = 4, kAttrs = 4, kAttrName = 1, kAttrType = 2, kStrings = 8;

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
    }
    // What misses its type is left for the parser to complain of.
    *stack = named && typed;
    if (!*stack) return true;
    table_->BeginStack();
    for (Fields fields(bytes); !fields.done();) {
      fields.Next(&f);
      if (f.Is(kStrings)) table_->Add(f.payload);
    }
    return true;
  }

  std::shared_ptr<CallStackTable> table_ = std::make_shared<CallStackTable>();
  std::vector<std::vector<uint32_t>> ends_;  // by block and operator: where its lines end
};

}  // namespace

bool SplitCallStacks(std::string_view bytes, SplitProgram* split) {
  return bytes.find(kName) != std::string_view::npos && Splitter().Program(bytes, split);
}

}  // namespace heddle
