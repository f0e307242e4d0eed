#include "partition/parts.h"

#include <algorithm>
#include <deque>
#include <unordered_set>

#include "core/error.h"
#include "formats/wire_fields.h"
#include "partition/groups.h"

namespace heddle::partition {
namespace {

using wire::AppendBytesField;
using wire::AppendVarintField;
using wire::Field;
using wire::Fields;

// A variable of `kind` (VarType.Type) without a shape.
std::string HolderText(std::string_view name, uint64_t kind) {
  std::string type, var;
  AppendVarintField(1, kind, &type);
  AppendBytesField(1, name, &var);
  AppendBytesField(2, type, &var);
  AppendVarintField(3, 1, &var);
  return var;
}

std::string SlotText(std::string_view slot, std::string_view name) {
  std::string text;
  AppendBytesField(1, slot, &text);
  AppendBytesField(2, name, &text);
  return text;
}

// A feed or fetch operator.
std::string PortText(bool feed, std::string_view name, size_t col) {
  constexpr uint64_t kInt = 0;
  std::string op, attr;
  AppendBytesField(1, SlotText("X", feed ? "feed" : name), &op);
  AppendBytesField(2, SlotText("Out", feed ? name : "fetch"), &op);
  AppendBytesField(3, feed ? "feed" : "fetch", &op);
  AppendBytesField(1, "col", &attr);
  AppendVarintField(2, kInt, &attr);
  AppendVarintField(3, col, &attr);
  AppendBytesField(4, attr, &op);
  return op;
}

// The variable without its mark as a parameter, for a part to which it is fed.
std::string WithoutPersistable(std::string_view var) {
  std::string text;
  Fields fields(var);
  for (Field f; !fields.done() && fields.Next(&f);)
    if (f.number != 3) text.append(f.whole);
  return text;
}

class PartMaker {
 public:
  PartMaker(const Description& description, const BlockPartition& block)
      : d_(description),
        graph_(description, 0),
        block_(block),
        owner_(static_cast<size_t>(graph_.size()), -1) {}

  std::vector<Part> Run() {
    for (size_t k = 0; k < block_.groups.size(); ++k) {
      for (const int i : block_.groups[k].operators) owner_[At(i)] = static_cast<int>(k);
      for (const int i : block_.groups[k].helpers) owner_[At(i)] = static_cast<int>(k);
    }
    FindOrder();
    std::vector<Part> parts;
    size_t rests = 0;
    for (const Stretch& run : runs_) {
      Part part;
      part.group = run.group;
      part.name = run.group >= 0 ? StrCat("group_", run.group) : StrCat("rest_", rests++);
      Write(run, &part);
      parts.push_back(std::move(part));
    }
    return parts;
  }

 private:
  struct Stretch {
    int group = -1;
    std::vector<OpIndex> ops;
  };
  static size_t At(OpIndex i) { return static_cast<size_t>(i); }
  bool IsPort(OpIndex i) const {
    return graph_.never(i) == Never::kFeed || graph_.never(i) == Never::kFetch;
  }

  // Orders the parts. Nodes: operators that stay, followed by groups.
  void FindOrder() {
    const auto n = At(graph_.size());
    const auto node = [&](OpIndex i) {
      return owner_[At(i)] < 0 ? At(i) : n + static_cast<size_t>(owner_[At(i)]);
    };
    std::vector<size_t> waits(n + block_.groups.size());
    for (OpIndex i = 0; i < graph_.size(); ++i)
      for (const OpIndex p : graph_.before(i))
        if (node(p) != node(i)) ++waits[node(i)];
    std::deque<size_t> rest, groups;
    const auto ready = [&](size_t k) { (k < n ? rest : groups).push_back(k); };
    for (OpIndex i = 0; i < graph_.size(); ++i)
      if (owner_[At(i)] < 0 && waits[At(i)] == 0) ready(At(i));
    for (size_t k = 0; k < block_.groups.size(); ++k)
      if (waits[n + k] == 0) ready(n + k);
    const auto end = [&](OpIndex i) {
      for (const OpIndex next : graph_.after(i))
        if (node(next) != node(i) && --waits[node(next)] == 0) ready(node(next));
    };
    while (!rest.empty() || !groups.empty()) {
      Stretch stays;
      while (!rest.empty()) {
        const auto i = static_cast<OpIndex>(rest.front());
        rest.pop_front();
        if (!IsPort(i)) stays.ops.push_back(i);
        end(i);
      }
      if (!stays.ops.empty()) runs_.push_back(std::move(stays));
      while (!groups.empty() && rest.empty()) {
        const size_t k = groups.front() - n;
        groups.pop_front();
        Stretch run;
        run.group = static_cast<int>(k);
        run.ops = Sequence(block_.groups[k]);
        for (const OpIndex i : run.ops) end(i);
        runs_.push_back(std::move(run));
      }
    }
  }

  std::vector<OpIndex> Sequence(const PlacedGroup& group) const {
    std::unordered_set<OpIndex> left(group.helpers.begin(), group.helpers.end());
    return SequenceOf(graph_, group.operators, group.helpers,
                      [&](OpIndex i) { return left.erase(i) > 0; });
  }

  // The blocks that these operators run, their outer blocks, and the forward blocks of gradients;
  // without the outermost block.
  std::vector<bool> BlocksOf(const std::vector<OpIndex>& ops) const {
    const auto& blocks = d_.blocks();
    std::vector<bool> needed(blocks.size());
    std::vector<size_t> todo;
    const auto need = [&](int block) {
      if (block <= 0 || static_cast<size_t>(block) >= blocks.size()) return;
      const auto b = static_cast<size_t>(block);
      if (needed[b]) return;
      needed[b] = true;
      todo.push_back(b);
    };
    const auto need_run = [&](const Operator& op) {
      for (const int block : d_.SubBlocks(op)) need(block);
    };
    for (const OpIndex i : ops) need_run(graph_.op(i));
    while (!todo.empty()) {
      const BlockText& block = blocks[todo.back()];
      todo.pop_back();
      need(block.parent);
      need(block.forward);
      for (const Operator& op : block.ops) need_run(op);
    }
    return needed;
  }

  // An empty block, in place of one that no operator of the part runs, so that later blocks keep
  // their numbers.
  static std::string EmptyBlock(uint64_t index) {
    std::string block;
    AppendVarintField(1, index, &block);
    AppendVarintField(2, 0, &block);
    return block;
  }

  void Write(const Stretch& run, Part* part) const {
    std::unordered_set<OpIndex> inside(run.ops.begin(), run.ops.end());
    std::unordered_set<std::string_view> declared, given;
    std::string vars, ops, ports;
    bool blocks = false;
    struct Names {
      std::vector<std::string>* list;
      std::unordered_set<std::string_view> seen;
    } inputs{&part->inputs, {}}, outputs{&part->outputs, {}}, carried{&part->carried, {}};
    const auto pass = [&](ValueId v, Names* names) {
      const std::string_view name = graph_.var(v).name;
      if (!graph_.var(v).dense) names = &carried;
      if (names->seen.insert(name).second) names->list->emplace_back(name);
    };
    for (const OpIndex i : run.ops) {
      blocks = blocks || graph_.never(i) == Never::kControlFlow;
      for (const Use& use : graph_.reads(i)) {
        const Value& value = graph_.value(use.value);
        if (value.constant || inside.contains(value.maker)) continue;
        // A variable without a maker that is not a dense tensor holds state, which begins empty.
        if (value.maker == kNoOp && !graph_.var(use.value).dense) continue;
        pass(use.value, &inputs);
        if (graph_.var(use.value).dense) given.insert(graph_.var(use.value).name);
      }
      for (const Use& use : graph_.writes(i)) {
        const auto readers = graph_.readers(use.value);
        if (graph_.value(use.value).kept ||
            !std::all_of(readers.begin(), readers.end(),
                         [&](OpIndex r) { return inside.contains(r); }))
          pass(use.value, &outputs);
      }
      AppendBytesField(4, graph_.op(i).bytes, &ops);
    }
    const auto declare = [&](const Variable& var) {
      if (var.bytes.empty() || !declared.insert(var.name).second) return;
      AppendBytesField(3, given.contains(var.name) ? WithoutPersistable(var.bytes) : var.bytes,
                       &vars);
    };
    AppendBytesField(3, HolderText("feed", 9), &vars);
    AppendBytesField(3, HolderText("fetch", 10), &vars);
    declared = {"feed", "fetch"};
    if (blocks)  // the file only names what they use of the outermost block
      for (const Variable& var : d_.blocks()[0].declared) declare(var);
    for (const OpIndex i : run.ops)
      for (uint32_t k = 0; k < graph_.op(i).num_arguments; ++k)
        if (const auto at = d_.blocks()[0].names.find(d_.arguments(graph_.op(i))[k].name);
            at != d_.blocks()[0].names.end())
          declare(d_.blocks()[0].declared[at->second]);
    std::string block;
    AppendVarintField(1, 0, &block);
    AppendVarintField(2, ~uint64_t{0}, &block);  // no parent: -1
    block += vars;
    for (size_t k = 0; k < part->inputs.size(); ++k)
      AppendBytesField(4, PortText(true, part->inputs[k], k), &block);
    block += ops;
    for (size_t k = 0; k < part->outputs.size(); ++k)
      AppendBytesField(4, PortText(false, part->outputs[k], k), &block);
    AppendBytesField(1, block, &part->program);
    const std::vector<bool> needed = blocks ? BlocksOf(run.ops) : std::vector<bool>();
    const auto last = std::find(needed.rbegin(), needed.rend(), true);
    const auto end = static_cast<size_t>(needed.rend() - last);  // one past the last needed block
    size_t b = 0;
    Fields fields(d_.bytes());
    for (Field f; !fields.done() && fields.Next(&f);) {
      const size_t index = f.Is(1) ? b++ : 0;
      if (!f.Is(1) || (index < end && needed[index]))
        part->program.append(f.whole);
      else if (index > 0 && index < end)
        AppendBytesField(1, EmptyBlock(index), &part->program);
    }
  }

  const Description& d_;
  const Graph graph_;
  const BlockPartition& block_;
  std::vector<int> owner_;
  std::vector<Stretch> runs_;
};

}  // namespace

Result<std::vector<Part>> PartsOf(std::string_view program_desc, const Partition& partition) {
  HEDDLE_ASSIGN_OR_RETURN(const Description description, Description::Parse(program_desc));
  return PartMaker(description, partition.blocks[0]).Run();
}

}  // namespace heddle::partition
