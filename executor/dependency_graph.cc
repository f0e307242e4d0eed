#include "executor/dependency_graph.h"

#include <algorithm>

namespace heddle {
namespace {

// What one instruction touches, sub-blocks included.
struct Access {
  std::vector<uint32_t> reads, writes;
};

void Collect(const Plan& plan, const Instruction& in, Access* a) {
  for (uint32_t s : in.op.in)
    if (s != kNoSlot) a->reads.push_back(s);
  for (uint32_t s : in.op.out)
    if (s != kNoSlot) a->writes.push_back(s);
  for (const auto& r : in.rewrites) a->writes.push_back(r.real);
  for (int sub : plan.program->blocks[in.ir_block].ops[in.ir_op].SubBlocks())
    for (const Instruction& inner : plan.blocks[sub].instructions) Collect(plan, inner, a);
}

class Builder {
 public:
  Builder(const Plan& plan, const std::vector<Instruction>& instructions)
      : plan_(plan), instructions_(instructions), last_write_(plan.slots.size(), kNone),
        readers_(plan.slots.size()) {}

  DependencyGraph Run() {
    const auto n = static_cast<uint32_t>(instructions_.size());
    before_.resize(n);
    for (uint32_t i = 0; i < n; ++i) {
      Access a;
      Collect(plan_, instructions_[i], &a);
      Deduplicate(&a.reads);
      Deduplicate(&a.writes);
      // An instruction that reads and writes a slot counts as its writer.
      for (uint32_t s : a.reads) {
        if (last_write_[s] != kNone) before_[i].push_back(last_write_[s]);
        if (!std::binary_search(a.writes.begin(), a.writes.end(), s)) readers_[s].push_back(i);
      }
      for (uint32_t s : a.writes) {
        if (last_write_[s] != kNone) before_[i].push_back(last_write_[s]);
        for (uint32_t r : readers_[s])
          if (r != i) before_[i].push_back(r);
        readers_[s].clear();
        last_write_[s] = i;
      }
      ByTraits(i);
      Prune(i);
    }
    return Compress();
  }

 private:
  static constexpr uint32_t kNone = ~0u;
  static constexpr int kSearchSteps = 128;

  static void Deduplicate(std::vector<uint32_t>* v) {
    std::sort(v->begin(), v->end());
    v->erase(std::unique(v->begin(), v->end()), v->end());
  }

  void ByTraits(uint32_t i) {
    const unsigned traits = instructions_[i].op.def->traits();
    struct Chain {
      unsigned trait;
      uint32_t last;
    };
    for (auto* c : {&random_, &effect_, &comm_}) {
      if (!(traits & c->first)) continue;
      if (c->second != kNone) before_[i].push_back(c->second);
      c->second = i;
    }
    if (reader_ != kNone) before_[i].push_back(reader_);
    if (traits & kReader) reader_ = i;
  }

  // Drops predecessors that another predecessor already waits for, as far as a bounded search sees.
  void Prune(uint32_t i) {
    auto& p = before_[i];
    std::sort(p.begin(), p.end(), std::greater<>());
    p.erase(std::unique(p.begin(), p.end()), p.end());
    if (p.size() < 2) return;
    std::vector<uint32_t> kept, stack;
    int steps = kSearchSteps;
    for (uint32_t candidate : p) {
      bool implied = false;
      stack = kept;
      while (!stack.empty() && !implied && steps > 0) {
        const uint32_t at = stack.back();
        stack.pop_back();
        for (uint32_t q : before_[at]) {
          --steps;
          if (q == candidate) implied = true;
          if (q > candidate) stack.push_back(q);
        }
      }
      if (!implied) kept.push_back(candidate);
    }
    p = std::move(kept);
  }

  DependencyGraph Compress() const {
    DependencyGraph g;
    const size_t n = instructions_.size();
    g.in_degree.resize(n);
    g.begin.assign(n + 1, 0);
    for (size_t i = 0; i < n; ++i) {
      g.in_degree[i] = static_cast<uint32_t>(before_[i].size());
      for (uint32_t p : before_[i]) ++g.begin[p + 1];
    }
    for (size_t i = 0; i < n; ++i) g.begin[i + 1] += g.begin[i];
    g.edges.resize(g.begin[n]);
    std::vector<uint32_t> at(g.begin.begin(), g.begin.end() - 1);
    for (uint32_t i = 0; i < n; ++i)
      for (uint32_t p : before_[i]) g.edges[at[p]++] = i;
    return g;
  }

  const Plan& plan_;
  const std::vector<Instruction>& instructions_;
  std::vector<uint32_t> last_write_;
  std::vector<std::vector<uint32_t>> readers_;
  std::vector<std::vector<uint32_t>> before_;
  std::pair<unsigned, uint32_t> random_{kRandom, kNone}, effect_{kSideEffect, kNone},
      comm_{kCommunication, kNone};
  uint32_t reader_ = kNone;
};

}  // namespace

DependencyGraph BuildDependencies(const Plan& plan, const std::vector<Instruction>& instructions) {
  return Builder(plan, instructions).Run();
}

}  // namespace heddle
