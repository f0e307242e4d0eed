// Programs made without a file: the same as those that a file gives, and the same errors.
#include "core/programs/program_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "passes/ir_text.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using ir::OpBuilder;
using ir::VarId;
using ::testing::AllOf;
using ::testing::HasSubstr;

ir::ProgramBuilder OneBlock() {
  ir::ProgramBuilder b("by hand", 7);
  b.ReserveBlocks(1);
  b.AddBlock(-1, -1);
  return b;
}

void AddUnary(ir::ProgramBuilder& b, int index, const char* type, const char* x, const char* out) {
  OpBuilder op(b, 0, index, type);
  ASSERT_TRUE(op);
  op.Input("X", 1)->push_back(b.Resolve(0, x));
  op.Output("Out", 1)->push_back(b.Resolve(0, out));
  b.Add(std::move(op));
}

TEST(ProgramBuilder, MakesWhatAFileMakes) {
  ir::ProgramBuilder b = OneBlock();
  b.AddFeed(b.AddVar({.name = "x", .dtype = DType::kF32}, std::vector<int64_t>{-1, 2}), 0);
  AddUnary(b, 1, "relu", "x", "y");
  OpBuilder scale(b, 0, 2, "scale");
  scale.Input("X", 1)->push_back(b.Resolve(0, "y"));
  scale.Output("Out", 1)->push_back(b.Resolve(0, "z"));
  scale.SetAttr(scale.def().FindAttr("scale"), AttrValue(2.0));
  b.Add(std::move(scale));
  b.AddFetch(b.Resolve(0, "z"), 0);
  auto made = std::move(b).Finish(nullptr);
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  EXPECT_EQ((*made)->name, "by hand");
  EXPECT_EQ((*made)->hash, 7u);
  EXPECT_FALSE((*made)->as_parsed()) << "nothing makes it again";

  ProgramBuilder file;
  file.Feed("x", DType::kF32, {-1, 2});
  file.Unary("relu", "x", "y");
  file.Scale("y", "z", 2);
  file.Fetch("z");
  const Program twin = file.Build();
  ASSERT_EQ((*made)->blocks[0].ops.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ((*made)->blocks[0].ops[i].type(), twin.ir().blocks[0].ops[i].type());
    EXPECT_EQ((*made)->blocks[0].ops[i].attrs, twin.ir().blocks[0].ops[i].attrs);
  }
  const std::vector<heddle::Feed> feeds = {{"x", F32({1, 2}, {-1, 3})}};
  Executor executor({.threads = 1});
  const auto ours = MustRun(executor, MustCompile(executor, Program(*made)), feeds);
  const auto theirs = MustRun(executor, MustCompile(executor, twin), feeds);
  EXPECT_TRUE(SameBits(Value(ours[0]), Value(theirs[0])));
}

TEST(ProgramBuilder, ListsAllMistakes) {
  ir::ProgramBuilder b = OneBlock();
  b.AddVar({.name = "deep"}, std::vector<int64_t>(20, 1));
  OpBuilder first(b, 0, 0, "relu");
  EXPECT_EQ(first.Input("X", 2), nullptr);  // takes one
  EXPECT_EQ(first.Input("Z", 1), nullptr);  // has none
  EXPECT_EQ(first.Output("Z", 1), nullptr);
  b.Add(std::move(first));
  EXPECT_FALSE(b.ok());
  OpBuilder second(b, 0, 1, "scale");
  second.SetAttr(0, InvalidArgument("no such number"));
  b.Add(std::move(second));
  const auto made = std::move(b).Finish(nullptr);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(made.status().message(),
            "by hand: 6 problems:\n"
            "  block 0, variable deep: rank 20 is above the limit of 10\n"
            "  block 0, op 0 (relu): slot 'X' takes one variable, not 2\n"
            "  block 0, op 0 (relu): has no input slot 'Z'\n"
            "  block 0, op 1 (scale): misses input 'X'\n"
            "  block 0, op 1 (scale): misses output 'Out'\n"
            "  block 0, op 1 (scale): no such number");
}

TEST(ProgramBuilder, UnknownOperatorsGoFirst) {
  ir::ProgramBuilder b = OneBlock();
  b.Problem("something else");
  EXPECT_FALSE(OpBuilder(b, 0, 4, "weft"));
  EXPECT_FALSE(OpBuilder(b, 0, 5, "weft"));
  const auto made = std::move(b).Finish(nullptr);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), StatusCode::kUnimplemented);
  EXPECT_THAT(made.status().message(),
              AllOf(HasSubstr("1 operator "), HasSubstr("weft (first: block 0, op 4)")));
}

TEST(ProgramBuilder, NeedsABlock) {
  const auto made = ir::ProgramBuilder("none").Finish(nullptr);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), StatusCode::kDataLoss);
}

// Whoever looks for a name goes through the blocks that a block sees. Two ways lead to most of them
// here; a name that none of them has was looked for along each way.
TEST(ProgramBuilder, BlocksThatSeveralWaysLeadToAreLookedAtOnce) {
  constexpr int kBlocks = 190;
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    std::mt19937 rng(seed);
    ir::ProgramBuilder b("ways", seed);
    b.ReserveBlocks(kBlocks);
    std::vector<std::vector<int>> ways;  // per block: forward, then outward
    for (int block = 0; block < kBlocks; ++block) {
      const auto before = [&] { return block - 1 - static_cast<int>(rng() % 3) % block; };
      const int parent = block == 0 ? -1 : before(), forward = block == 0 ? -1 : before();
      b.AddBlock(parent, forward);
      ways.push_back({forward, parent});
      if (rng() % 4 == 0) b.AddVar({.name = "v" + std::to_string(rng() % 9), .block = block});
    }
    const auto made = std::move(b).Finish(nullptr);
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    const ir::Program& p = **made;
    EXPECT_EQ(p.Find(kBlocks - 1, "missing"), ir::kNoVar);
    for (int k = 0; k < 9; ++k) {
      const std::string name = "v" + std::to_string(k);
      // The first in the order in which a walk meets the blocks.
      std::vector<bool> met(kBlocks, false);
      VarId expected = ir::kNoVar;
      const auto walk = [&](auto& self, int block) -> bool {
        if (block < 0 || met[static_cast<size_t>(block)]) return false;
        met[static_cast<size_t>(block)] = true;
        for (VarId v = 0; v < p.vars.size(); ++v)
          if (p.vars[v].block == block && p.vars[v].name == name) {
            expected = v;
            return true;
          }
        if (block == 0) return false;
        const auto& next = ways[static_cast<size_t>(block)];
        return self(self, next[0]) || self(self, next[1]);
      };
      walk(walk, kBlocks - 1);
      EXPECT_EQ(p.Find(kBlocks - 1, name), expected) << "seed " << seed << ", " << name;
    }
  }
}

TEST(ProgramBuilder, BlocksThatNobodyRunsAreNoDeeperThanOthers) {
  for (const bool forward : {false, true})
    for (const int blocks : {201, 202, 100'000}) {
      ir::ProgramBuilder b("deep", 1);
      b.ReserveBlocks(blocks);
      for (int block = 0; block < blocks; ++block)
        b.AddBlock(forward ? 0 : block - 1, forward ? block - 1 : -1);
      const auto made = std::move(b).Finish(nullptr);
      if (blocks == 201) {
        EXPECT_TRUE(made.ok()) << made.status().ToString();
        continue;
      }
      EXPECT_THAT(made.status().ToString(),
                  HasSubstr("block 201: more than 200 levels of blocks in blocks"));
      EXPECT_LT(made.status().ToString().size(), 4000u);
    }
}

// Names that passes give, and names that look like them.
TEST(ProgramBuilder, FreshNamesAreThoseOfNoBlock) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    std::mt19937 rng(seed);
    ir::Program p;
    p.blocks.resize(5);
    std::set<std::string> names;
    for (int k = 0; k < 300; ++k) {
      const std::string stem = "v" + std::to_string(rng() % 3);
      const std::string fresh = p.FreshName(stem);
      EXPECT_EQ(names.count(fresh), 0u) << fresh;
      // Now and then the file has a name that comes later.
      const size_t ahead = p.vars.size() + 1 + rng() % 5;
      const std::string name = rng() % 3 == 0 ? stem + "@heddle_" + std::to_string(ahead) : fresh;
      names.insert(name);
      p.AddVar({.name = name, .block = static_cast<int>(rng() % 5)});
    }
  }
}

TEST(ProgramBuilder, InputsAndOutputsAreSortedByColumn) {
  ir::ProgramBuilder b = OneBlock();
  const VarId x = b.AddVar({.name = "x"}), y = b.AddVar({.name = "y"});
  b.AddFeed(x, 1);
  b.AddFeed(y, 0);
  const auto made = std::move(b).Finish(nullptr);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ((*made)->feeds[0].var, y);
  EXPECT_EQ((*made)->feeds[1].var, x);
}

}  // namespace
}  // namespace heddle::testing
