#include "passes/nested_blocks.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "core/interrupts.h"

namespace heddle::passes {

namespace {

// Blocks in the order in which they are found, each once. Most operators run few, which are
// searched; of many, all are marked.
class FoundBlocks {
 public:
  explicit FoundBlocks(const ir::Program& program) : blocks_(program.blocks.size()) {}
  void AddThoseOf(const ir::Op& op) {
    ForEachSubBlock(op, [this](int sub) {
      if (IsNew(sub)) list.push_back(sub);
    });
  }
  // Adds the blocks that the operators of listed blocks run, recursively.
  void AddNested(const ir::Program& program) {
    for (size_t i = 0; i < list.size(); ++i)
      for (const ir::Op& op : program.blocks[static_cast<size_t>(list[i])].ops) AddThoseOf(op);
  }

  std::vector<int> list;

 private:
  bool IsNew(int block) {
    constexpr size_t kFew = 16;
    if (list.size() < kFew) return std::find(list.begin(), list.end(), block) == list.end();
    if (seen_.empty()) {
      seen_.resize(blocks_);
      for (const int b : list) seen_[static_cast<size_t>(b)] = true;
    }
    const bool is_new = !seen_[static_cast<size_t>(block)];
    seen_[static_cast<size_t>(block)] = true;
    return is_new;
  }
  const size_t blocks_;
  std::vector<bool> seen_;
};

}  // namespace

std::vector<int> NestedBlocks(const ir::Program& program, const ir::Op& op) {
  FoundBlocks found(program);
  found.AddThoseOf(op);
  found.AddNested(program);
  return std::move(found.list);
}

std::vector<int> BlocksThatRun(const ir::Program& program) {
  FoundBlocks found(program);
  found.list.push_back(0);
  found.AddNested(program);
  return std::move(found.list);
}

namespace {

// Finds the names that inner blocks share with outer ones, inner blocks first. The depth of blocks
// is limited (heddle/bounds.h).
class NameLister {
 public:
  NameLister(const ir::Program& program, BlockUses* uses)
      : p_(program),
        uses_(*uses),
        listed_(program.blocks.size(), false),
        read_by_(program.vars.size(), -1),
        written_by_(program.vars.size(), -1) {
    uses_.names.resize(program.blocks.size());
  }

  void List(int block) {
    const auto b = static_cast<size_t>(block);
    if (listed_[b]) return;
    listed_[b] = true;
    for (const ir::Op& op : p_.blocks[b].ops) ForEachSubBlock(op, [this](int sub) { List(sub); });
    BlockNames& names = uses_.names[b];
    const auto add = [&](ir::VarId v, bool written) {
      std::vector<int>& met = written ? written_by_ : read_by_;
      if (uses_.owner[v] != BlockUses::kSeveral || met[v] == block) return;
      met[v] = block;
      (written ? names.writes : names.reads).push_back(v);
    };
    for (const ir::Op& op : p_.blocks[b].ops) {
      LookForInterrupt();
      for (const auto& slot : op.inputs)
        for (ir::VarId v : slot)
          if (v != ir::kNoVar) add(v, false);
      for (const auto& slot : op.outputs)
        for (ir::VarId v : slot)
          if (v != ir::kNoVar) add(v, true);
      ForEachNestedName(p_, uses_, op, add);
    }
  }

 private:
  const ir::Program& p_;
  BlockUses& uses_;
  std::vector<bool> listed_;
  std::vector<int> read_by_, written_by_;  // per variable: the last block that lists it
};

// The block whose operator runs `block`; -1: none.
int RunnerBlock(const BlockUses& uses, int block) {
  return static_cast<size_t>(block) < uses.runner.size()
             ? uses.runner[static_cast<size_t>(block)].block
             : -1;
}

// Lets the block, and all blocks in which it runs, list the variable as read and written.
void ListOutwards(ir::VarId v, int block, BlockUses* uses) {
  if (uses->shared_blocks) return uses->names.clear();  // it also runs in other blocks
  for (; block > 0; block = RunnerBlock(*uses, block)) {
    BlockNames& names = uses->names[static_cast<size_t>(block)];
    names.reads.push_back(v);
    names.writes.push_back(v);
  }
}

// Adds the names of a block that has changed to the lists.
class NameAdder {
 public:
  NameAdder(int block, BlockUses* uses) : block_(block), uses_(*uses) {
    if (uses_.names.empty() || block == 0) return;
    const BlockNames& names = uses_.names[static_cast<size_t>(block)];
    read_.insert(names.reads.begin(), names.reads.end());
    written_.insert(names.writes.begin(), names.writes.end());
  }
  // `before`: the variable's owner before the block was visited again.
  void Add(ir::VarId v, int before, bool written) {
    if (uses_.names.empty() || uses_.owner[v] != BlockUses::kSeveral) return;
    if (before >= 0 && before != block_) ListOutwards(v, before, &uses_);
    if (uses_.names.empty() || block_ == 0 || !(written ? written_ : read_).insert(v).second)
      return;
    ListOutwards(v, block_, &uses_);
  }

 private:
  const int block_;
  BlockUses& uses_;
  std::unordered_set<ir::VarId> read_, written_;
};

}  // namespace

BlockUses FindBlockUses(const ir::Program& program, bool list_names) {
  BlockUses uses;
  for (const ir::Block& block : program.blocks) AddBlockUses(program, block.id, &uses);
  if (!list_names || program.blocks.size() < 2) return uses;
  NameLister lister(program, &uses);
  for (const ir::Block& block : program.blocks) lister.List(block.id);
  return uses;
}

void AddBlockUses(const ir::Program& program, int b, BlockUses* uses) {
  uses->owner.resize(program.vars.size(), BlockUses::kNobody);
  uses->written.resize(program.vars.size(), false);
  uses->runner.resize(program.blocks.size());
  if (uses->names.size() != program.blocks.size()) uses->names.clear();
  const ir::Block& block = program.blocks[static_cast<size_t>(b)];
  NameAdder adder(b, uses);
  const auto name = [&](ir::VarId v, bool written) {
    int& owner = uses->owner[v];
    const int before = owner;
    owner = owner == BlockUses::kNobody || owner == b ? b : BlockUses::kSeveral;
    adder.Add(v, before, written);
  };
  for (size_t i = 0; i < block.ops.size(); ++i) {
    LookForInterrupt();
    const ir::Op& op = block.ops[i];
    ForEachSubBlock(op, [&](int sub) {
      BlockUses::Place& runner = uses->runner[static_cast<size_t>(sub)];
      uses->shared_blocks = uses->shared_blocks || (runner.block >= 0 && runner.block != b);
      runner = {b, static_cast<int>(i)};
    });
    for (const auto& slot : op.inputs)
      for (ir::VarId v : slot)
        if (v != ir::kNoVar) name(v, false);
    for (const auto& slot : op.outputs) {
      for (ir::VarId v : slot) {
        if (v == ir::kNoVar) continue;
        name(v, true);
        uses->written[v] = true;
      }
    }
  }
}

const ir::Op* RunnerOf(const ir::Program& program, const BlockUses& uses, int block) {
  const auto b = static_cast<size_t>(block);
  if (b >= uses.runner.size() || uses.runner[b].block < 0) return nullptr;
  const auto& ops = program.blocks[static_cast<size_t>(uses.runner[b].block)].ops;
  const auto at = static_cast<size_t>(uses.runner[b].op);
  if (at >= ops.size()) return nullptr;
  const std::vector<int> subs = ops[at].SubBlocks();
  return std::find(subs.begin(), subs.end(), block) != subs.end() ? &ops[at] : nullptr;
}

}  // namespace heddle::passes
