// Pieces of joined and cut tensors in the memory of the whole: where they may lie there and where
// not, and that no value is disturbed.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

constexpr int64_t kRow = 64;  // floats
constexpr size_t kBytes = kRow * sizeof(float);

class ArenaSharing : public ::testing::Test {
 protected:
  void Compile(const ProgramBuilder& b, const Shape& shape) {
    std::vector<float> values(static_cast<size_t>(shape.numel()));
    std::iota(values.begin(), values.end(), 1.f);
    feeds_ = {{"x", F32(shape, values)}};
    compiled_ = std::make_unique<CompiledProgram>(MustCompile(
        executor_, b.Build(), nullptr, {.opt_level = 0, .schedule = Schedule::kSerial}));
    auto report = executor_.PlanMemory(*compiled_, feeds_);
    ASSERT_TRUE(report.ok()) << report.status().ToString();
    for (const MemoryReport::Value& v : report->values) values_[v.name] = v;
    report_ = *std::move(report);
  }
  std::vector<float> Run() { return Floats(MustRun(executor_, *compiled_, feeds_)[0]); }
  // Whether `piece` lies in `whole`, `rows` rows from its start.
  bool Lies(const std::string& piece, const std::string& whole, size_t rows) {
    return values_.at(piece).offset == values_.at(whole).offset + rows * kBytes &&
           values_.at(piece).buffer == values_.at(whole).buffer;
  }

  Executor executor_{{.threads = 1, .poison = true}};
  std::unique_ptr<CompiledProgram> compiled_;
  std::vector<heddle::Feed> feeds_;
  MemoryReport report_;
  std::map<std::string, MemoryReport::Value> values_;  // by name
};

ProgramBuilder Base(const Shape& shape = {1, kRow}) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, shape);
  return b;
}
void Concat(ProgramBuilder& b, const std::vector<std::string>& x, const std::string& out,
            int64_t axis = 0) {
  b.Op("concat", {{"X", x}}, {{"Out", {out}}}, {{"axis", axis}});
}

TEST_F(ArenaSharing, AConcatOfFourMovesNothing) {
  for (const int64_t axis : {0, 1, -2}) {  // [1, kRow]: axis 1 is outermost as well
    ProgramBuilder b = Base();
    const std::vector<std::string> parts = {"a", "b", "c", "d"};
    for (size_t k = 0; k < 4; ++k) b.Scale("x", parts[k], static_cast<double>(k + 1));
    Concat(b, parts, "all", axis);
    b.Scale("all", "twice", 2).Fetch("twice");
    values_.clear();
    Compile(b, {1, kRow});
    for (size_t k = 0; k < 4; ++k) EXPECT_TRUE(Lies(parts[k], "all", k)) << axis << " " << k;
    EXPECT_EQ(report_.planned_bytes, 4 * kBytes);
    const auto out = Run();
    ASSERT_EQ(out.size(), size_t{4 * kRow});
    for (size_t i = 0; i < out.size(); ++i)
      EXPECT_EQ(out[i], static_cast<float>(2 * (i / kRow + 1) * (i % kRow + 1)));
  }
}

// What must be copied is, whatever lies beside it.
TEST_F(ArenaSharing, FeedsFetchesAndWhatIsThereAlreadyAreCopied) {
  ProgramBuilder b = Base();
  b.Scale("x", "a", 2).Scale("x", "b", 3).Scale("x", "kept", 4);
  Concat(b, {"x", "a", "a", "kept", "b"}, "all");
  Concat(b, {"b", "b"}, "other");
  b.Scale("all", "twice", 2).Scale("other", "thrice", 3);
  b.Fetch("twice").Fetch("kept").Fetch("thrice");
  Compile(b, {1, kRow});
  EXPECT_TRUE(Lies("a", "all", 1));
  EXPECT_TRUE(Lies("b", "all", 4));
  EXPECT_NE(values_.at("other").buffer, values_.at("b").buffer);
  const auto outs = MustRun(executor_, *compiled_, feeds_);
  constexpr float kFactors[] = {1, 2, 2, 4, 3};
  const auto twice = Floats(outs[0]), thrice = Floats(outs[2]);
  for (size_t i = 0; i < twice.size(); ++i)
    EXPECT_EQ(twice[i], 2 * kFactors[i / kRow] * static_cast<float>(i % kRow + 1)) << i;
  for (size_t i = 0; i < thrice.size(); ++i)
    EXPECT_EQ(thrice[i], 9 * static_cast<float>(i % kRow + 1)) << i;
}

TEST_F(ArenaSharing, OneConcatInAnother) {
  ProgramBuilder b = Base();
  b.Scale("x", "a", 2).Scale("a", "b", 3);
  Concat(b, {"a", "b"}, "ab");
  b.Scale("ab", "c", 5);
  Concat(b, {"c", "ab"}, "all");
  b.Unary("relu", "all", "out0").Scale("b", "late", 1).Scale("out0", "out", 1);
  Concat(b, {"out", "late"}, "end");
  b.Fetch("end");
  Compile(b, {1, kRow});
  EXPECT_TRUE(Lies("ab", "all", 2));
  EXPECT_TRUE(Lies("a", "all", 2));
  EXPECT_TRUE(Lies("b", "all", 3));
  const auto out = Run();
  constexpr float kFactors[] = {10, 30, 2, 6, 6};
  ASSERT_EQ(out.size(), size_t{5 * kRow});
  for (size_t i = 0; i < out.size(); ++i)
    EXPECT_EQ(out[i], kFactors[i / kRow] * static_cast<float>(i % kRow + 1)) << i;
}

TEST_F(ArenaSharing, AnInnerAxisIsCopied) {
  ProgramBuilder b = Base({2, kRow});
  b.Scale("x", "a", 2).Scale("x", "b", 3);
  Concat(b, {"a", "b"}, "all", 1);
  b.Scale("all", "out", 1).Fetch("out");
  Compile(b, {2, kRow});
  EXPECT_NE(values_.at("a").buffer, values_.at("all").buffer);
  const auto out = Run();
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t row = i / (2 * kRow), column = i % (2 * kRow);
    EXPECT_EQ(out[i], static_cast<float>((column / kRow + 2) * (row * kRow + column % kRow + 1)));
  }
}

// Places that are no multiple of 64 bytes would let results depend on where a value lies.
TEST_F(ArenaSharing, PiecesOfOddSizeAreCopied) {
  ProgramBuilder b = Base({1, 5});
  b.Scale("x", "a", 2).Scale("x", "b", 3);
  Concat(b, {"a", "b"}, "all");
  b.Scale("all", "out", 1).Fetch("out");
  Compile(b, {1, 5});
  EXPECT_EQ(values_.at("a").buffer, values_.at("all").buffer);  // the first one lies at the start
  EXPECT_NE(values_.at("b").buffer, values_.at("all").buffer);
  EXPECT_EQ(Run(), (std::vector<float>{2, 4, 6, 8, 10, 3, 6, 9, 12, 15}));
}

TEST_F(ArenaSharing, TheItemsOfASplitLieInTheWhole) {
  ProgramBuilder b = Base({4, kRow});
  b.Scale("x", "t", 2);
  b.Op("split", {{"X", {"t"}}}, {{"Out", {"a", "b", "c"}}},
       {{"axis", int64_t{0}}, {"sections", Ints{1, -1, 1}}});
  b.Unary("relu", "a", "r").Scale("c", "s", -1);  // not in place: t is still needed
  b.Binary("elementwise_add", "r", "s", "u").Binary("elementwise_add", "b", "u", "v");
  b.Binary("elementwise_add", "t", "u", "w");
  Concat(b, {"v", "w"}, "out");
  b.Fetch("out");
  Compile(b, {4, kRow});
  EXPECT_TRUE(Lies("a", "t", 0));
  EXPECT_TRUE(Lies("b", "t", 1));
  EXPECT_TRUE(Lies("c", "t", 3));
  const auto out = Run();
  ASSERT_EQ(out.size(), size_t{6 * kRow});
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t row = i / kRow < 2 ? i / kRow + 1 : i / kRow - 2, column = i % kRow;
    const float u =
        2.f * (static_cast<float>(column + 1) - static_cast<float>(3 * kRow + column + 1));
    EXPECT_EQ(out[i], 2 * static_cast<float>(row * kRow + column + 1) + u) << i;
  }
}

// A first piece that is there long before the rest would hold the whole's memory all that time.
TEST_F(ArenaSharing, NotWhereMemoryWouldGrow) {
  ProgramBuilder b = Base({1, kRow});
  b.Scale("x", "early", 2);
  b.Op("tile", {{"X", {"x"}}}, {{"Out", {"big0"}}}, {{"repeat_times", Ints{256, 1}}});
  for (int k = 0; k < 4; ++k)
    b.Op("softmax", {{"X", {"big" + std::to_string(k)}}},
         {{"Out", {"big" + std::to_string(k + 1)}}});
  b.Op("reduce_max", {{"X", {"big4"}}}, {{"Out", {"row"}}}, {{"dim", Ints{0}}, {"keep_dim", true}});
  b.Op("tile", {{"X", {"row"}}}, {{"Out", {"late"}}}, {{"repeat_times", Ints{64, 1}}});
  Concat(b, {"early", "late"}, "all");
  b.Scale("all", "out", 1).Fetch("out");
  Compile(b, {1, kRow});
  EXPECT_NE(values_.at("early").buffer, values_.at("all").buffer);
  EXPECT_EQ(report_.ratio(), 1.0);
  const auto out = Run();
  for (size_t i = 0; i < static_cast<size_t>(kRow); ++i)
    EXPECT_EQ(out[i], 2 * static_cast<float>(i + 1)) << i;
}

// s = tanh(s + w) twice, and its gradient: that of w goes outside, in memory of its own; that of
// the sum takes the place of what it is made from nevertheless.
TEST(ArenaSharingInBodies, AnOperatorWithAnOutputElsewhereWorksInPlace) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Param("w", DType::kF32, {4}).Scale("x", "s", 1);
  b.Fill("i", {1}, 0).Fill("n", {1}, 2).Binary("less_than", "i", "n", "go");
  const int body = b.Block(0), back = b.Block(body);
  b.In(body).Binary("elementwise_add", "s", "w", "u").Unary("tanh", "u", "t");
  b.Unary("assign", "t", "s").Increment("i").Binary("less_than", "i", "n", "go").In(0);
  b.Op("while", {{"X", {"w", "s", "i", "n"}}, {"Condition", {"go"}}},
       {{"Out", {"s", "i", "go"}}, {"StepScopes", {"scopes"}}}, {{"sub_block", BlockRef{body}}});
  b.Op("fill_any_like", {{"X", {"s"}}}, {{"Out", {"s@GRAD"}}}, {{"value", 1.0}});
  b.desc().mutable_blocks(back)->set_forward_block_idx(body);
  b.In(back).Var("w@GRAD", DType::kF32, {4});
  b.Op("tanh_grad", {{"Out", {"t"}}, {"Out@GRAD", {"s@GRAD"}}}, {{"X@GRAD", {"u@GRAD"}}});
  b.Op("elementwise_add_grad", {{"X", {"u"}}, {"Y", {"w"}}, {"Out@GRAD", {"u@GRAD"}}},
       {{"X@GRAD", {"v@GRAD"}}, {"Y@GRAD", {"w@GRAD"}}});
  b.Scale("v@GRAD", "s@GRAD", 2).In(0);
  b.Op("while_grad",
       {{"X", {"w", "s"}}, {"Out", {"s"}}, {"Out@GRAD", {"s@GRAD"}}, {"StepScopes", {"scopes"}}},
       {{"X@GRAD", {"w@GRAD0", "s@GRAD"}}},
       {{"sub_block", BlockRef{back}}, {"original_output_grad", Strings{"s@GRAD"}}});
  b.Fetch("w@GRAD0");
  Executor executor({.threads = 1});
  auto scope = std::make_shared<Scope>();
  scope->Set("w", F32({4}, {0, 0, 0, 0}));
  const auto compiled = MustCompile(executor, b.Build(), scope, {.opt_level = 0});
  const std::vector<heddle::Feed> feeds = {{"x", F32({4}, {0, 0, 0, 0})}};
  EXPECT_EQ(Floats(MustRun(executor, compiled, feeds)[0]), (std::vector<float>{3, 3, 3, 3}));
  const auto plan = executor.DescribePlan(compiled, feeds);
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  const auto place = [&](const char* variable) {
    for (const auto& slot : plan->slots)
      if (slot.variable == variable && slot.storage == "arena") return slot.offset;
    return SIZE_MAX;
  };
  EXPECT_NE(place("u@GRAD"), SIZE_MAX) << *executor.PlanText(compiled, feeds);
  EXPECT_EQ(place("u@GRAD"), place("v@GRAD"));
}

}  // namespace
}  // namespace heddle::testing
