#include "executor/plan/dependency_graph.h"

#include <algorithm>
#include <unordered_map>

#include "core/interrupts.h"
#include "executor/plan/block_access.h"
#include "scheduler/prune.h"

namespace heddle {
namespace {

constexpr uint32_t kNone = ~0u;

struct SlotUse {
  uint32_t last_write = kNone, newest_read = kNone;
};

// Per slot: its last writer and its readers since. A block that touches few of a plan's slots uses
// a hash table, so that many small blocks cost no more than one large one.
class SlotUses {
 public:
  SlotUses(size_t slots, const std::vector<Instruction>& instructions)
      : all_(instructions.size() * kFew >= slots ? slots : 0) {}
  SlotUse& operator[](uint32_t slot) { return all_.empty() ? some_[slot] : all_[slot]; }

 private:
  static constexpr size_t kFew = 16;
  std::vector<SlotUse> all_;
  std::unordered_map<uint32_t, SlotUse> some_;
};

class Builder {
 public:
  Builder(const Plan& plan, const std::vector<Instruction>& instructions,
          const std::vector<bool>& at_once, BlockAccess& blocks)
      : plan_(plan),
        instructions_(instructions),
        at_once_(at_once),
        blocks_(blocks),
        slots_(plan.slots.size(), instructions) {}

  DependencyGraph Run() {
    DependencyGraph result;
    StaticGraph& g = result.graph;
    g.size = static_cast<uint32_t>(instructions_.size());
    g.pred_begin.reserve(instructions_.size() + 1);
    g.pred_begin.push_back(0);
    for (uint32_t i = 0; i < g.size; ++i) {
      row_.clear();
      Touch(i);
      ByTraits(i);
      ByControlEdges(i);
      std::sort(row_.begin(), row_.end());
      row_.erase(std::unique(row_.begin(), row_.end()), row_.end());
      g.pred.insert(g.pred.end(), row_.begin(), row_.end());
      g.pred_begin.push_back(static_cast<uint32_t>(g.pred.size()));
    }
    result.found = g.pred.size();
    PruneImpliedEdges(&g);
    g.priority = PrioritiesOf(plan_, instructions_);
    return result;
  }

 private:
  // Reads before writes, so that an instruction that does both ends as the slot's writer.
  void Touch(uint32_t i) {
    const Instruction& in = instructions_[i];
    const std::vector<int> blocks = BlocksOf(plan_, in);
    for (uint32_t s : in.op.in) Read(i, s);
    for (int b : blocks)
      for (uint32_t s : blocks_.Of(b).reads) Read(i, s);
    for (uint32_t s : in.op.out) Write(i, s);
    for (uint32_t s : RecordsOf(in)) Write(i, s);
    for (const auto& r : in.rewrites) Write(i, r.real);
    for (int b : blocks)
      for (uint32_t s : blocks_.Of(b).writes) Write(i, s);
  }

  void Read(uint32_t i, uint32_t s) {
    if (s == kNoSlot) return;
    s = plan_.RootOf(s);
    SlotUse& use = slots_[s];
    if (use.last_write != kNone) row_.push_back(use.last_write);
    if (!at_once_.empty() && at_once_[i] && plan_.slots[s].place == 0) return;
    const uint32_t newest = use.newest_read;
    if (newest != kNone && reads_[newest].by == i) return;
    uint32_t at = free_;
    if (at == kNone) {
      at = static_cast<uint32_t>(reads_.size());
      reads_.emplace_back();
    } else {
      free_ = reads_[at].next;
    }
    reads_[at] = {i, newest};
    use.newest_read = at;
  }

  void Write(uint32_t i, uint32_t s) {
    if (s == kNoSlot) return;
    s = plan_.RootOf(s);
    SlotUse& use = slots_[s];
    if (use.last_write == i) return;
    if (use.last_write != kNone) row_.push_back(use.last_write);
    for (uint32_t at = use.newest_read; at != kNone;) {
      if (reads_[at].by != i) row_.push_back(reads_[at].by);
      const uint32_t next = reads_[at].next;
      reads_[at].next = free_;
      free_ = at;
      at = next;
    }
    use = {i, kNone};
  }

  void ByTraits(uint32_t i) {
    unsigned traits = instructions_[i].op.def->traits();
    for (int b : BlocksOf(plan_, instructions_[i])) traits |= blocks_.Of(b).traits;
    for (auto* c : {&random_, &effect_, &comm_}) {
      if (!(traits & c->trait)) continue;
      if (c->last != kNone) row_.push_back(c->last);
      c->last = i;
    }
    if (reader_ != kNone) row_.push_back(reader_);
    if (traits & kReader) reader_ = i;
  }

  void ByControlEdges(uint32_t i) {
    const ir::Op* op = plan_.OperatorOf(instructions_[i]);
    if (op == nullptr || !op->has_control_edges()) return;
    for (const int64_t mark : op->hints->after)
      if (const auto at = marked_.find(mark); at != marked_.end()) row_.push_back(at->second);
    for (const int64_t mark : op->hints->marks) marked_[mark] = i;
  }

  // A reader of a slot since its last write. The readers of a slot form a list, newest first.
  struct ReadBy {
    uint32_t by, next;
  };
  // Instructions with a trait that keeps them in program order.
  struct Chain {
    unsigned trait;
    uint32_t last;
  };

  const Plan& plan_;
  const std::vector<Instruction>& instructions_;
  const std::vector<bool>& at_once_;
  BlockAccess& blocks_;
  std::vector<uint32_t> row_;  // predecessors of the present instruction
  SlotUses slots_;
  std::vector<ReadBy> reads_;
  uint32_t free_ = kNone;  // list of unused entries of reads_
  Chain random_{kRandom, kNone}, effect_{kSideEffect, kNone}, comm_{kCommunication, kNone};
  uint32_t reader_ = kNone;
  std::unordered_map<int64_t, uint32_t> marked_;  // by the marks of control edges
};

}  // namespace

std::vector<int64_t> PrioritiesOf(const Plan& plan, const std::vector<Instruction>& instructions) {
  std::vector<int64_t> priority;
  for (size_t i = 0; i < instructions.size(); ++i) {
    LookForInterrupt();
    const ir::Op* op = plan.OperatorOf(instructions[i]);
    if (op == nullptr || !op->hints || op->hints->scheduling_priority == 0) continue;
    priority.resize(instructions.size(), 0);
    priority[i] = op->hints->scheduling_priority;
  }
  return priority;
}

DependencyGraph BuildDependencies(const Plan& plan, const std::vector<Instruction>& instructions,
                                  const std::vector<bool>& at_once) {
  BlockAccess access(plan);
  return Builder(plan, instructions, at_once, access).Run();
}

DependencyGraph BuildDependencies(const Plan& plan, const std::vector<Instruction>& instructions,
                                  BlockAccess& access) {
  return Builder(plan, instructions, {}, access).Run();
}

}  // namespace heddle
