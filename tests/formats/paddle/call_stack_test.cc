// Python stacks are taken out of a file before it is parsed: messages still show them, what is
// written holds them again, and damaged files are found as before.
#include "formats/paddle/call_stack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/programs/ir.h"
#include "formats/program_source.h"
#include "passes/ir_text.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kThird = "  File \"main.py\", line 3, in third";

void AddStack(proto::OpDesc* op, const std::vector<std::string>& lines) {
  auto* attr = op->add_attrs();
  attr->set_name("op_callstack");
  attr->set_type(proto::STRINGS);
  for (const std::string& line : lines) attr->add_strings(line);
}

// Two operators with stacks around one without, a sub-block with one.
ProgramBuilder WithStacks() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1, 2});
  b.Scale("x", "y", 2).Scale("y", "z", 2);
  b.Op("matmul_v2", {{"X", {"z"}}, {"Y", {"y"}}}, {{"Out", {"m"}}}, {});
  b.Fill("i", {1}, 0).Fill("n", {1}, 2).Binary("less_than", "i", "n", "go");
  const int body = b.Block(0);
  b.In(body).Increment("i").Binary("less_than", "i", "n", "go").In(0);
  b.Op("while", {{"X", {"i", "n"}}, {"Condition", {"go"}}},
       {{"Out", {"i", "go"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{body}}});
  b.Fetch("m");
  AddStack(b.desc().mutable_blocks(0)->mutable_ops(1), {"in main", "in first", ""});
  AddStack(b.desc().mutable_blocks(0)->mutable_ops(3), {"in main", kThird});
  AddStack(b.desc().mutable_blocks(body)->mutable_ops(0), {"in main", "in loop"});
  return b;
}

TEST(CallStack, BelongsToItsOperator) {
  const Program program = WithStacks().Build();
  const auto& ops = program.ir().blocks[0].ops;  // without the feed
  EXPECT_THAT(ops[0].call_stack.Lines(), ElementsAre("in main", "in first", ""));
  EXPECT_EQ(ops[0].call_stack.Text(), "    in main\n    in first\n    \n");
  EXPECT_TRUE(ops[1].call_stack.empty());
  EXPECT_EQ(ops[1].call_stack.Text(), "");
  EXPECT_THAT(ops[2].call_stack.Lines(), ElementsAre("in main", kThird));
  EXPECT_THAT(program.ir().blocks[1].ops[0].call_stack.Lines(), ElementsAre("in main", "in loop"));
  // One copy of what they share.
  EXPECT_EQ(ops[0].call_stack.Lines()[0].data(), ops[2].call_stack.Lines()[0].data());
}

// A program that was let go is made again as it was.
TEST(CallStack, OutlivesItsProgram) {
  const Program program = WithStacks().Build();
  ASSERT_TRUE(program.ir().as_parsed());
  EXPECT_FALSE(ir::Program(program.ir()).as_parsed()) << "a copy may be changed";
  const auto packed = formats::Pack(program.ir());
  const auto again = packed->Unpack();
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  EXPECT_TRUE((*again)->as_parsed());
  EXPECT_EQ((*again)->hash, program.hash());
  EXPECT_EQ((*again)->name, program.ir().name);
  EXPECT_EQ(ir::Fingerprint(**again), ir::Fingerprint(program.ir()));
  ASSERT_EQ((*again)->blocks.size(), program.ir().blocks.size());
  for (size_t b = 0; b < program.ir().blocks.size(); ++b) {
    const auto &was = program.ir().blocks[b].ops, &is = (*again)->blocks[b].ops;
    ASSERT_EQ(is.size(), was.size());
    for (size_t i = 0; i < was.size(); ++i) {
      EXPECT_EQ(is[i].index, was[i].index);
      EXPECT_EQ(is[i].call_stack.Text(), was[i].call_stack.Text());
    }
  }
}

TEST(CallStack, IsInTheMessage) {
  Executor executor({.threads = 1});
  auto compiled = MustCompile(executor, WithStacks().Build(), std::make_shared<Scope>());
  const auto run = executor.Run(compiled, {{"x", F32({3, 2}, {1, 2, 3, 4, 5, 6})}});
  ASSERT_FALSE(run.ok());
  EXPECT_THAT(run.status().ToString(), HasSubstr("in third"));
  EXPECT_THAT(run.status().ToString(), Not(HasSubstr("in first")));
}

TEST(CallStack, IsWrittenAgain) {
  auto bytes = WithStacks().Build().Serialize();
  ASSERT_TRUE(bytes.ok());
  auto again = Program::Parse(*bytes);
  ASSERT_TRUE(again.ok());
  EXPECT_THAT(again->ir().blocks[0].ops[2].call_stack.Lines(), ElementsAre("in main", kThird));
  EXPECT_THAT(again->ir().blocks[1].ops[0].call_stack.Lines(), ElementsAre("in main", "in loop"));
}

TEST(CallStack, SplittingLeavesEverythingElse) {
  ProgramBuilder b = WithStacks();
  paddle::SplitProgram split;
  ASSERT_TRUE(paddle::SplitCallStacks(b.Bytes(), &split));
  proto::ProgramDesc want = b.desc(), got;
  ASSERT_TRUE(got.ParseFromString(split.bytes));
  for (auto& block : *want.mutable_blocks())
    for (auto& op : *block.mutable_ops())
      for (int a = op.attrs_size(); a-- > 0;)
        if (op.attrs(a).name() == "op_callstack") op.mutable_attrs()->DeleteSubrange(a, 1);
  EXPECT_EQ(got.SerializeAsString(), want.SerializeAsString());
  paddle::SplitProgram none;
  EXPECT_FALSE(paddle::SplitCallStacks(split.bytes, &none));
  EXPECT_TRUE(none.bytes.empty());
}

// Cut anywhere or with a byte changed: the same answer as from protobuf alone, or an error; no
// crash.
TEST(CallStack, DamagedFiles) {
  const std::string bytes = WithStacks().Bytes();
  for (size_t n = 0; n < bytes.size(); ++n) {
    paddle::SplitProgram split;
    if (paddle::SplitCallStacks(bytes.substr(0, n), &split)) {
      proto::ProgramDesc cut, whole;
      EXPECT_EQ(cut.ParsePartialFromString(split.bytes),
                whole.ParsePartialFromString(bytes.substr(0, n)));
    }
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = bytes;
      changed[n] = static_cast<char>(changed[n] ^ 1 << bit);
      paddle::SplitProgram other;
      if (!paddle::SplitCallStacks(changed, &other)) continue;
      proto::ProgramDesc desc;
      if (!desc.ParsePartialFromString(other.bytes)) continue;
      ASSERT_EQ(static_cast<size_t>(desc.blocks_size()), other.stacks.size());
      for (int k = 0; k < desc.blocks_size(); ++k)
        ASSERT_EQ(static_cast<size_t>(desc.blocks(k).ops_size()), other.stacks[k].size());
    }
  }
}

// Stacks that begin as the one before does, for no line, some, all or more than it has; longer
// ones, shorter ones, and lines of which one is the other's beginning.
TEST(CallStack, StacksThatBeginAlike) {
  std::vector<std::vector<std::string>> stacks = {{"in main", "in a", "in b"},
                                                  {"in main", "in a", "in b"},
                                                  {"in main", "in a"},
                                                  {"in main", "in a", "in c"},
                                                  {"in main", "in ab", "in c"},
                                                  {},
                                                  {"in main", "in ab"},
                                                  {"in main", "in ab", "", "", ""},
                                                  {"in main", "in ab", ""},
                                                  {"out", "in ab", ""},
                                                  {"out", "in a"},
                                                  {"out", "in a"}};
  stacks[stacks.size() - 2].push_back(std::string(300, 'x'));
  stacks[stacks.size() - 1].push_back(std::string(300, 'x'));
  stacks[stacks.size() - 1].back().back() = 'y';
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1, 2});
  for (size_t k = 0; k < stacks.size(); ++k)
    b.Scale(k == 0 ? "x" : "x" + std::to_string(k - 1), "x" + std::to_string(k), 2);
  for (size_t k = 0; k < stacks.size(); ++k)
    AddStack(b.desc().mutable_blocks(0)->mutable_ops(static_cast<int>(k) + 1), stacks[k]);
  b.Fetch("x" + std::to_string(stacks.size() - 1));
  const Program program = b.Build();
  for (size_t k = 0; k < stacks.size(); ++k) {
    const auto lines = program.ir().blocks[0].ops[k].call_stack.Lines();
    EXPECT_EQ(std::vector<std::string>(lines.begin(), lines.end()), stacks[k]) << k;
  }
}

TEST(CallStack, WithoutATypeIsAnError) {
  ProgramBuilder b = WithStacks();
  for (auto& attr : *b.desc().mutable_blocks(0)->mutable_ops(1)->mutable_attrs())
    if (attr.name() == "op_callstack") attr.clear_type();
  EXPECT_EQ(Program::Parse(b.desc().SerializePartialAsString()).status().code(),
            StatusCode::kDataLoss);
}

}  // namespace
}  // namespace heddle::testing
