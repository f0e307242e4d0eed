// Which operators may read what nothing has written: behind branches and loops whose blocks leave a
// variable unwritten, and in later turns of a loop.
#include "passes/cleanup/unwritten_reads.h"

#include <gtest/gtest.h>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

passes::UnwrittenReads ReadsOf(const Program& program) {
  Scope source, folded;
  passes::PassContext context(source, folded);
  for (const ir::Port& feed : program.ir().feeds) context.fed.insert(feed.var);
  return passes::UnwrittenReads(program.ir(), context);
}

// norm writes Norm unless it is a test.
void Unwrite(const std::string& name, ProgramBuilder* b) {
  b->Op("norm", {{"X", {"x"}}}, {{"Out", {"normed"}}, {"Norm", {name}}},
        {{"axis", 0}, {"is_test", true}, {"epsilon", 1.0}});
}

struct Block {
  ProgramBuilder b;
  int block;

  Block() {
    b.Feed("x", DType::kF32, {4}).Feed("go", DType::kBool, {1}).Var("normed", DType::kF32, {4});
    for (const char* v : {"v", "r"}) b.Var(v, DType::kF32, {4});
    b.Scale("x", "v", 2);
    block = b.Block(0);
    b.In(block);
  }
  // Whether the last operator may fail, which reads `v` behind the block.
  bool MayFailBehind(bool loop) {
    End(loop);
    b.Unary("relu", "v", "r");
    const Program program = b.Build();
    return ReadsOf(program).MayFail(0, program.ir().blocks[0].ops.size() - 1);
  }
  void End(bool loop) {
    b.In(0);
    if (loop)
      b.Op("while", {{"X", {"x", "v"}}, {"Condition", {"go"}}},
           {{"Out", {"v", "r", "go"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{block}}});
    else
      b.Op("conditional_block", {{"Cond", {"go"}}, {"Input", {"x", "v"}}},
           {{"Out", {"v", "r"}}, {"Scope", {}}},
           {{"sub_block", BlockRef{block}}, {"is_scalar_condition", true}});
  }
};

TEST(UnwrittenReads, BlocksThatNeedNotRunMayUnwrite) {
  for (const bool loop : {false, true}) {
    Block plain, unwrites, writes_again;
    plain.b.Scale("v", "v", 2);
    EXPECT_FALSE(plain.MayFailBehind(loop));
    Unwrite("v", &unwrites.b);
    EXPECT_TRUE(unwrites.MayFailBehind(loop));
    Unwrite("v", &writes_again.b);
    writes_again.b.Scale("x", "v", 2);
    EXPECT_FALSE(writes_again.MayFailBehind(loop));
  }
}

TEST(UnwrittenReads, ATurnReadsWhatTheTurnBeforeLeft) {
  for (const bool loop : {false, true}) {
    Block block;
    block.b.Unary("relu", "v", "r");
    Unwrite("v", &block.b);
    block.End(loop);
    EXPECT_EQ(ReadsOf(block.b.Build()).MayFail(block.block, 0), loop);
  }
}

// Each turn leaves one more variable unwritten, for more turns than the body is looked at.
TEST(UnwrittenReads, AnyTurnCounts) {
  for (const int count : {2, 5, 200}) {
    Block block;
    const auto name = [](int k) { return "v" + std::to_string(k); };
    block.b.In(0);
    for (int k = 0; k < count; ++k) block.b.Var(name(k), DType::kF32, {4}).Scale("x", name(k), 2);
    block.b.In(block.block);
    for (int k = count; k-- > 1;) block.b.Unary("relu", name(k - 1), name(k));
    Unwrite("v0", &block.b);
    block.End(true);
    const Program program = block.b.Build();
    const passes::UnwrittenReads reads = ReadsOf(program);
    for (int at = 0; at < count - 1; ++at)
      EXPECT_TRUE(reads.MayFail(block.block, static_cast<size_t>(at))) << at << " of " << count;
  }
}

}  // namespace
}  // namespace heddle::testing
