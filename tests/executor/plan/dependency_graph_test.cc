// The dependency graph of random instruction lists against a brute-force closure of all conflicts.
#include "executor/plan/dependency_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "core/op_registry.h"

namespace heddle {
namespace {

// One bit per instruction, row i = what must run before i, directly or not.
using Closure = std::vector<std::vector<bool>>;

void CloseOver(Closure* before) {
  for (size_t i = 0; i < before->size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if ((*before)[i][j])
        for (size_t k = 0; k < j; ++k)
          if ((*before)[j][k]) (*before)[i][k] = true;
}

// A plan that consists of instructions over numbered slots only.
class FakePlan {
 public:
  explicit FakePlan(int slots) : program_(std::make_shared<ir::Program>()) {
    plan_.slots.resize(static_cast<size_t>(slots));
    program_->blocks.resize(1);
    plan_.blocks.resize(1);
    plan_.program = program_;
  }
  // The block's number.
  int AddBlock() {
    program_->blocks.emplace_back();
    plan_.blocks.emplace_back();
    return static_cast<int>(plan_.blocks.size()) - 1;
  }
  Instruction& Add(const char* type, std::vector<uint32_t> in, std::vector<uint32_t> out,
                   int block = 0, int sub_block = -1) {
    ir::Op op = ir::MakeOp(*FindOp(type));
    for (AttrValue& a : op.attrs)
      if (auto* ref = std::get_if<BlockRef>(&a)) ref->id = sub_block;
    program_->blocks[block].ops.push_back(op);
    Instruction i;
    i.op.def = op.def;
    i.op.in = IdList(in);
    i.op.out = IdList(out);
    i.ir_block = block;
    i.ir_op = static_cast<int>(program_->blocks[block].ops.size()) - 1;
    plan_.blocks[block].instructions.push_back(std::move(i));
    return plan_.blocks[block].instructions.back();
  }
  DependencyGraph Graph() { return BuildDependencies(plan_, plan_.blocks[0].instructions); }

  // Everything an instruction touches.
  void Touched(const Instruction& in, std::set<uint32_t>* reads, std::set<uint32_t>* writes) const {
    reads->insert(in.op.in.begin(), in.op.in.end());
    writes->insert(in.op.out.begin(), in.op.out.end());
    for (const auto& r : in.rewrites) writes->insert(r.real);
    reads->erase(kNoSlot);
    writes->erase(kNoSlot);
    for (int sub : program_->blocks[in.ir_block].ops[in.ir_op].SubBlocks())
      for (const Instruction& inner : plan_.blocks[sub].instructions) Touched(inner, reads, writes);
  }
  unsigned Traits(const Instruction& in) const {
    unsigned traits = in.op.def->traits();
    for (int sub : program_->blocks[in.ir_block].ops[in.ir_op].SubBlocks())
      for (const Instruction& inner : plan_.blocks[sub].instructions) traits |= Traits(inner);
    return traits;
  }
  // Control edges of the instruction added last to block 0.
  void SetControl(std::vector<int64_t> marks, std::vector<int64_t> after) {
    ir::StreamHints hints;
    hints.marks = std::move(marks);
    hints.after = std::move(after);
    program_->blocks[0].ops.back().hints =
        std::make_shared<const ir::StreamHints>(std::move(hints));
  }
  // The latter waits for the former by a control edge.
  bool Waits(size_t i, size_t j) const {
    const auto &later = program_->blocks[0].ops[i].hints,
               &earlier = program_->blocks[0].ops[j].hints;
    if (!later || !earlier) return false;
    return std::any_of(earlier->marks.begin(), earlier->marks.end(), [&](int64_t mark) {
      return std::find(later->after.begin(), later->after.end(), mark) != later->after.end();
    });
  }
  Closure Expected() const {
    const auto& ins = plan_.blocks[0].instructions;
    Closure before(ins.size(), std::vector<bool>(ins.size(), false));
    for (size_t i = 0; i < ins.size(); ++i) {
      std::set<uint32_t> reads, writes;
      Touched(ins[i], &reads, &writes);
      for (size_t j = 0; j < i; ++j) {
        std::set<uint32_t> r, w;
        Touched(ins[j], &r, &w);
        bool conflict = false;
        for (uint32_t s : writes) conflict = conflict || r.count(s) || w.count(s);
        for (uint32_t s : reads) conflict = conflict || w.count(s);
        const unsigned both = Traits(ins[i]) & Traits(ins[j]);
        const bool ordered = (both & (kRandom | kSideEffect | kCommunication)) != 0 ||
                             (Traits(ins[j]) & kReader) != 0;
        if (conflict || ordered || Waits(i, j)) before[i][j] = true;
      }
    }
    CloseOver(&before);
    return before;
  }

 private:
  std::shared_ptr<ir::Program> program_;
  Plan plan_;
};

Closure ClosureOf(const DependencyGraph& dependencies) {
  const StaticGraph& g = dependencies.graph;
  const size_t n = g.size;
  Closure before(n, std::vector<bool>(n, false));
  std::vector<uint32_t> incoming(n, 0);
  for (uint32_t i = 0; i < n; ++i) {
    for (uint32_t e = g.succ_begin[i]; e < g.succ_begin[i + 1]; ++e) {
      EXPECT_GT(g.succ[e], i);
      EXPECT_FALSE(before[g.succ[e]][i]) << "edge " << i << " -> " << g.succ[e] << " twice";
      before[g.succ[e]][i] = true;
      ++incoming[g.succ[e]];
    }
  }
  for (uint32_t i = 0; i < n; ++i) {
    EXPECT_EQ(g.pred_begin[i + 1] - g.pred_begin[i], incoming[i]);
    for (uint32_t e = g.pred_begin[i]; e < g.pred_begin[i + 1]; ++e)
      EXPECT_TRUE(before[i][g.pred[e]]);
  }
  CloseOver(&before);
  return before;
}

// Pairs (from, to) of the graph's edges.
std::set<std::pair<uint32_t, uint32_t>> Edges(const DependencyGraph& dependencies) {
  const StaticGraph& g = dependencies.graph;
  std::set<std::pair<uint32_t, uint32_t>> edges;
  for (uint32_t i = 0; i < g.size; ++i)
    for (uint32_t e = g.succ_begin[i]; e < g.succ_begin[i + 1]; ++e) edges.emplace(i, g.succ[e]);
  return edges;
}
using EdgeSet = std::set<std::pair<uint32_t, uint32_t>>;

TEST(DependencyGraph, ReadAfterWrite) {
  FakePlan p(3);
  p.Add("relu", {0}, {1});
  p.Add("relu", {1}, {2});
  EXPECT_EQ(Edges(p.Graph()), (EdgeSet{{0, 1}}));
}

TEST(DependencyGraph, WriteAfterReadWaitsForEveryReader) {
  FakePlan p(5);
  p.Add("relu", {0}, {1});
  p.Add("relu", {0}, {2});
  p.Add("relu", {3}, {0});
  EXPECT_EQ(Edges(p.Graph()), (EdgeSet{{0, 2}, {1, 2}}));
}

TEST(DependencyGraph, WriteAfterWrite) {
  FakePlan p(3);
  p.Add("relu", {0}, {2});
  p.Add("relu", {1}, {2});
  EXPECT_EQ(Edges(p.Graph()), (EdgeSet{{0, 1}}));
}

TEST(DependencyGraph, ReadersAreFreeOfEachOther) {
  FakePlan p(5);
  p.Add("relu", {0}, {1});
  for (uint32_t k = 2; k < 5; ++k) p.Add("relu", {1}, {k});
  EXPECT_EQ(Edges(p.Graph()), (EdgeSet{{0, 1}, {0, 2}, {0, 3}}));
}

TEST(DependencyGraph, AnInstructionThatReadsAndWritesASlotDoesNotWaitForItself) {
  FakePlan p(2);
  p.Add("relu", {0}, {0});
  p.Add("relu", {0}, {0});
  p.Add("relu", {0, 0}, {1});
  EXPECT_EQ(Edges(p.Graph()), (EdgeSet{{0, 1}, {1, 2}}));
}

TEST(DependencyGraph, RewritesWriteTheRealSlot) {
  FakePlan p(4);
  p.Add("relu", {0}, {1});
  p.Add("increment", {0}, {2}).rewrites.push_back({2, 0, true});
  p.Add("relu", {0}, {3});
  EXPECT_EQ(Edges(p.Graph()), (EdgeSet{{0, 1}, {1, 2}}));
}

TEST(DependencyGraph, RandomOperatorsKeepTheirOrder) {
  FakePlan p(8);
  for (uint32_t k = 0; k < 4; ++k) p.Add("gaussian_random", {}, {k});
  EXPECT_EQ(Edges(p.Graph()), (EdgeSet{{0, 1}, {1, 2}, {2, 3}}));
}

TEST(DependencyGraph, ImpliedEdgesAreDropped) {
  FakePlan p(4);
  p.Add("relu", {0}, {1});
  p.Add("relu", {1}, {2});
  p.Add("sum", {1, 2}, {3});
  EXPECT_EQ(Edges(p.Graph()), (EdgeSet{{0, 1}, {1, 2}}));
}

TEST(DependencyGraph, ABlockReadsAndWritesWhatItsOperatorsDo) {
  FakePlan p(6);
  const int body = p.AddBlock(), inner = p.AddBlock();
  p.Add("relu", {0}, {1});           // 0
  p.Add("while", {5}, {}, 0, body);  // 1 runs body, which runs inner
  p.Add("conditional_block", {5}, {}, body, inner);
  p.Add("relu", {1}, {2}, inner);  // reads 1, writes 2
  p.Add("relu", {2}, {3});         // 2 reads what inner wrote
  p.Add("relu", {0}, {1});         // 3 overwrites what inner read
  EXPECT_EQ(Edges(p.Graph()), (EdgeSet{{0, 1}, {1, 2}, {1, 3}}));
}

// While a loop's gradient goes back through the steps, the loop's variables have values of steps.
TEST(DependencyGraph, AGradientOfALoopPutsRecordedValuesBack) {
  for (const char* slot : {"sub_block:carried", "sub_block:kept"}) {
    FakePlan p(8);
    const int body = p.AddBlock();
    p.Add("relu", {1}, {3});  // 0 reads what the loop left
    Instruction& in = p.Add("while_grad", {1}, {5}, 0, body);
    const size_t inputs = in.op.def->inputs().size();
    const auto at = static_cast<size_t>(in.op.def->FindInput(slot));
    for (size_t s = 0; s <= inputs; ++s) in.op.in_begin.push_back(s > at);
    p.Add("relu", {1}, {4});  // 2 reads it again
    EXPECT_EQ(Edges(p.Graph()), (EdgeSet{{0, 1}, {1, 2}})) << slot;
  }
}

// What a block draws, it draws in the order of the program.
TEST(DependencyGraph, ABlockHasTheTraitsOfItsOperators) {
  FakePlan p(8);
  const int body = p.AddBlock(), inner = p.AddBlock();
  p.Add("gaussian_random", {}, {0});  // 0
  p.Add("while", {5}, {}, 0, body);   // 1 runs body, which runs inner
  p.Add("conditional_block", {5}, {}, body, inner);
  p.Add("gaussian_random", {}, {1}, inner);
  p.Add("gaussian_random", {}, {2});  // 2
  p.Add("print", {6}, {7});           // 3 draws nothing
  EXPECT_EQ(Edges(p.Graph()), (EdgeSet{{0, 1}, {1, 2}}));
}

TEST(DependencyGraph, RandomListsMatchTheBruteForceClosure) {
  // At random, with a side effect, for other ranks, before all others.
  const char* const kOrdered[] = {"gaussian_random", "print", "c_allreduce_sum", "read"};
  std::mt19937 rng(7);
  auto pick = [&](int n) { return static_cast<int>(rng() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 400; ++round) {
    const int slots = 2 + pick(20), count = 1 + pick(60);
    FakePlan p(slots);
    const bool blocks = round % 3 == 0;
    auto some = [&](int most) {
      std::vector<uint32_t> list;
      for (int k = pick(most + 1); k > 0; --k)
        list.push_back(pick(8) == 0 ? kNoSlot : static_cast<uint32_t>(pick(slots)));
      return list;
    };
    for (int i = 0; i < count; ++i) {
      if (blocks && pick(6) == 0) {
        const int body = p.AddBlock();
        for (int k = pick(4); k > 0; --k)
          p.Add(pick(6) == 0 ? kOrdered[pick(4)] : "relu", some(2), some(2), body);
        p.Add("while", some(1), {}, 0, body);
      } else {
        p.Add(pick(10) == 0 ? kOrdered[pick(4)] : "relu", some(3), some(2));
      }
      if (round % 2 == 0 && pick(3) == 0) {
        std::vector<int64_t> after;
        for (int k = pick(4); k > 0 && i > 0; --k) after.push_back(pick(i));
        p.SetControl({i}, after);
      }
      if (HasFatalFailure()) return;
    }
    ASSERT_EQ(ClosureOf(p.Graph()), p.Expected()) << "round " << round;
  }
}

TEST(DependencyGraph, SmallGraphsAreFullyReduced) {
  std::mt19937 rng(11);
  for (int round = 0; round < 200; ++round) {
    FakePlan p(5);
    auto slot = [&] { return static_cast<uint32_t>(rng() % 5); };
    for (int i = 0; i < 8; ++i) p.Add("relu", {slot(), slot()}, {slot()});
    const DependencyGraph g = p.Graph();
    const EdgeSet edges = Edges(g);
    for (const auto& [from, to] : edges) {  // no other way from `from` to `to`
      for (const auto& [a, b] : edges) {
        if (a != from || b == to) continue;
        const Closure c = ClosureOf(g);
        ASSERT_FALSE(c[to][b]) << "edge " << from << " -> " << to << " is implied through " << b;
      }
    }
  }
}

TEST(DependencyGraph, ManyInstructionsOnOneSlotStayNearLinear) {
  constexpr uint32_t kCount = 20000;
  FakePlan p(kCount + 1);
  for (uint32_t i = 0; i < kCount; ++i) p.Add("relu", {0, i}, {i + 1});
  const DependencyGraph g = p.Graph();
  EXPECT_LE(g.graph.pred.size(), size_t{2} * kCount);
}

}  // namespace
}  // namespace heddle
