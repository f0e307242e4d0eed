#include "passes/nested_blocks.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/support/mixed_program.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using ir::VarId;
using passes::BlockUses;

struct Names {
  std::set<VarId> reads, writes;
};

void AddNames(const ir::Op& op, Names* names) {
  for (const auto& slot : op.inputs) names->reads.insert(slot.begin(), slot.end());
  for (const auto& slot : op.outputs) names->writes.insert(slot.begin(), slot.end());
}

// What the block names, and the blocks inside it, by a walk; but for what one block alone names.
Names Walk(const ir::Program& program, int block) {
  Names names;
  for (const ir::Op& op : program.blocks[static_cast<size_t>(block)].ops) {
    AddNames(op, &names);
    for (const int sub : passes::NestedBlocks(program, op))
      for (const ir::Op& inner : program.blocks[static_cast<size_t>(sub)].ops)
        AddNames(inner, &names);
  }
  const std::vector<int> owner = passes::FindBlockUses(program, false).owner;
  for (std::set<VarId>* list : {&names.reads, &names.writes})
    std::erase_if(*list,
                  [&](VarId v) { return v == ir::kNoVar || owner[v] != BlockUses::kSeveral; });
  return names;
}

TEST(BlockUses, ListsHaveWhatAWalkFindsOnce) {
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    const Program parsed = *Program::Parse(MixedProgram(seed).bytes(), "mixed");
    const ir::Program& program = parsed.ir();
    const BlockUses uses = passes::FindBlockUses(program);
    if (program.blocks.size() < 2) continue;
    for (const ir::Block& block : program.blocks) {
      const passes::BlockNames& names = uses.names[static_cast<size_t>(block.id)];
      const Names walked = Walk(program, block.id);
      const auto is = [&](const std::vector<VarId>& list, const std::set<VarId>& expected) {
        EXPECT_EQ(std::set<VarId>(list.begin(), list.end()), expected) << seed << ' ' << block.id;
        EXPECT_EQ(list.size(), expected.size()) << "seed " << seed << ", block " << block.id;
      };
      is(names.reads, walked.reads);
      is(names.writes, walked.writes);
    }
  }
}

// Operands of single blocks become other variables, as passes make them.
TEST(BlockUses, ListsKeepUpWithBlocksThatChange) {
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    std::mt19937 rng(seed);
    ir::Program program = Program::Parse(MixedProgram(seed).bytes(), "mixed")->ir();
    if (program.blocks.size() < 2) continue;
    BlockUses uses = passes::FindBlockUses(program);
    for (int change = 0; change < 20; ++change) {
      const int b = static_cast<int>(rng() % program.blocks.size());
      for (ir::Op& op : program.blocks[static_cast<size_t>(b)].ops)
        for (auto* slots : {&op.inputs, &op.outputs})
          for (auto& slot : *slots)
            for (VarId& v : slot)
              if (v != ir::kNoVar && rng() % 8 == 0)
                v = static_cast<VarId>(rng() % program.vars.size());
      passes::AddBlockUses(program, b, &uses);
      if (uses.names.empty()) break;  // blocks are walked through from now on
      for (size_t k = 1; k < program.blocks.size(); ++k) {
        const Names walked = Walk(program, static_cast<int>(k));
        const auto has_all = [&](const std::vector<VarId>& list, const std::set<VarId>& expected) {
          const std::set<VarId> listed(list.begin(), list.end());
          for (VarId v : expected)
            EXPECT_TRUE(listed.contains(v))
                << "seed " << seed << ", block " << k << ": " << program.vars[v].name;
        };
        has_all(uses.names[k].reads, walked.reads);
        has_all(uses.names[k].writes, walked.writes);
      }
    }
  }
}

// However deep blocks stand in each other: what is local to them stays there.
TEST(BlockUses, ListsAreAsLongAsWhatLeavesBlocks) {
  constexpr int kDeep = 60, kMany = 50;
  ProgramBuilder b;
  b.Feed("go", DType::kBool, {1}).Feed("x", DType::kF32, {4});
  int block = 0;
  for (int level = 0; level < kDeep; ++level) {
    const std::string stem = "v" + std::to_string(level) + "_";
    std::string last = "x";
    for (int i = 0; i < kMany; ++i) {
      const std::string next = stem + std::to_string(i);
      b.In(block).Var(next, DType::kF32, {4}).Unary("relu", last, next);
      last = next;
    }
    const int inner = b.Block(block);
    b.In(block).Op("conditional_block", {{"Cond", {"go"}}, {"Input", {"x"}}},
                   {{"Out", {}}, {"Scope", {}}},
                   {{"sub_block", BlockRef{inner}}, {"is_scalar_condition", true}});
    block = inner;
  }
  const Program parsed = b.In(0).Build();
  size_t listed = 0;
  for (const passes::BlockNames& names : passes::FindBlockUses(parsed.ir()).names)
    listed += names.reads.size() + names.writes.size();
  EXPECT_LE(listed, size_t{4} * kDeep);
}

}  // namespace
}  // namespace heddle::testing
