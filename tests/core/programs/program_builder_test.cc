// Programs made without a file: the same as those that a file gives, and the same errors.
#include "core/programs/program_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
