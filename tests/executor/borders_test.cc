// What goes in and comes out: programs without ports, unused feeds, sequence offsets, arrays, plans
// without instructions, values that must not survive a run.
#include <gtest/gtest.h>

#include "tests/support/program_builder.h"
#include "tests/support/test_ops.h"

namespace heddle::testing {
namespace {

using Rows = std::vector<float>;

[[maybe_unused]] const bool kInstalled = InstallTestOps();

class Borders : public ::testing::TestWithParam<Schedule> {
 protected:
  Borders() : executor_({.threads = 2}) {}
  CompiledProgram Compile(const ProgramBuilder& b, std::vector<std::string> fetches = {}) {
    return MustCompile(executor_, b.Build(), nullptr,
                       {.fetches = std::move(fetches), .schedule = GetParam()});
  }
  Executor executor_;
};
INSTANTIATE_TEST_SUITE_P(Ways, Borders,
                         ::testing::Values(Schedule::kSerial, Schedule::kParallel,
                                           Schedule::kLanes),
                         [](const auto& info) { return ScheduleName(info.param); });

TEST_P(Borders, AProgramWithoutPortsIsFedAndFetchedByName) {
  ProgramBuilder b;  // as the main program of a training is
  b.Var("x", DType::kF32, {-1}).Scale("x", "t", 2).Scale("t", "y", 1, 1);
  auto compiled = Compile(b, {"y", "t", "x"});
  for (float v : {1.f, 5.f}) {
    const auto out = MustRun(executor_, compiled, {{"x", F32({1}, {v})}});
    EXPECT_EQ(Floats(out[0]), (Rows{2 * v + 1}));
    EXPECT_EQ(Floats(out[1]), (Rows{2 * v}));
    EXPECT_EQ(Floats(out[2]), (Rows{v}));
  }
  EXPECT_FALSE(executor_.Run(compiled, {}).ok());
  EXPECT_FALSE(executor_.Run(compiled, {{"nobody", F32({1}, {1})}}).ok());
}

TEST_P(Borders, AnIntermediateVariableMayBeFed) {
  ProgramBuilder b;
  b.Var("x", DType::kF32, {-1}).Scale("x", "y", 2);
  auto compiled = Compile(b, {"y"});
  EXPECT_EQ(Floats(MustRun(executor_, compiled, {{"x", F32({1}, {3})}})[0]), (Rows{6}));
}

TEST_P(Borders, APlanWithoutInstructions) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Feed("unused", DType::kF32, {-1}).Fetch("x");
  auto compiled = Compile(b);
  const auto out = MustRun(executor_, compiled, {{"x", F32({1}, {3})}, {"unused", F32({1}, {4})}});
  EXPECT_EQ(Floats(out[0]), (Rows{3}));
}

TEST_P(Borders, OnlyConstants) {
  ProgramBuilder b;
  b.Fill("c", {2}, 4).Scale("c", "d", 2).Fetch("d").Fetch("d");
  auto compiled = Compile(b);
  for (int k = 0; k < 2; ++k) {
    auto out = MustRun(executor_, compiled, {});
    EXPECT_EQ(Floats(out[0]), (Rows{8, 8}));
    out[0].mutable_data<float>()[0] = 99;  // the caller's own
    EXPECT_EQ(Floats(out[1]), (Rows{8, 8}));
  }
}

TEST_P(Borders, SequenceOffsetsFollowTheFeed) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1, 1}).Scale("x", "t", 2).Unary("relu", "t", "y").Fetch("y");
  auto compiled = Compile(b);
  const LoD lods[] = {{{0, 1, 3}}, {{0, 2, 3}}, {}, {{0, 3}}, {}};
  for (const LoD& lod : lods) {
    Tensor x = F32({3, 1}, {1, 2, 3});
    x.set_lod(lod);
    const auto out = MustRun(executor_, compiled, {{"x", x}});
    EXPECT_EQ(out[0].lod(), lod);
    EXPECT_EQ(Floats(out[0]), (Rows{2, 4, 6}));
  }
}

TEST_P(Borders, NothingSurvivesARun) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Feed("go", DType::kBool, {1}).Var("y", DType::kF32, {-1});
  const int body = b.Block(0);
  b.In(body).Scale("x", "y", 2).In(0);
  b.Op("conditional_block", {{"Cond", {"go"}}, {"Input", {"x"}}}, {{"Out", {"y"}}, {"Scope", {}}},
       {{"sub_block", BlockRef{body}}, {"is_scalar_condition", true}});
  b.Fetch("y");
  auto compiled = Compile(b);
  for (int k = 0; k < 4; ++k) {
    auto out = executor_.Run(compiled, {{"x", F32({1}, {3})}, {"go", Bool(k % 2 == 0)}});
    EXPECT_EQ(out.ok(), k % 2 == 0);
    if (out.ok()) {
      EXPECT_EQ(Floats((*out)[0]), (Rows{6}));
    } else {
      EXPECT_NE(out.status().message().find("'y'"), std::string::npos);
    }
  }
}

TEST_P(Borders, AnArrayFillsAnewInEveryRun) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Feed("i", DType::kI64, {1}).Array("items");
  b.Op("write_to_array", {{"X", {"x"}}, {"I", {"i"}}}, {{"Out", {"items"}}});
  b.Unary("lod_array_length", "items", "n").Fetch("items").Fetch("n");
  auto compiled = Compile(b);
  Value kept;
  for (int64_t at : {3, 0, 1}) {
    auto out = executor_.RunValues(compiled, {{"x", F32({1}, {2})}, {"i", I64({1}, {at})}});
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    EXPECT_EQ((*out)[0].array().size(), static_cast<size_t>(at) + 1);
    EXPECT_EQ((*out)[1].tensor().data<int64_t>()[0], at + 1);
    if (at == 3) kept = (*out)[0];
  }
  EXPECT_EQ(kept.array().size(), 4u);
  EXPECT_EQ(Floats(kept.array()[3]), (Rows{2}));
  EXPECT_FALSE(executor_.Run(compiled, {{"x", F32({1}, {2})}, {"i", I64({1}, {0})}}).ok());
}

TEST_P(Borders, AFetchedListKeepsNothingOfAFedOne) {
  ProgramBuilder b;
  b.Var("x", DType::kF32, {-1}).Array("items").Array("more");
  b.Op("list_insert", {{"list", {"items"}}, {"item", {"x"}}}, {{"Out", {"more"}}});
  auto compiled = Compile(b, {"more"});
  Tensor item = F32({2}, {1, 2}), x = F32({1}, {3});
  auto out = executor_.RunValues(compiled, {{"items", Value(TensorArray{item})}, {"x", x}});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  item.mutable_data<float>()[0] = 99;  // the caller's own
  x.mutable_data<float>()[0] = 99;
  ASSERT_EQ((*out)[0].array().size(), 2u);
  EXPECT_EQ(Floats((*out)[0].array()[0]), (Rows{1, 2}));
  EXPECT_EQ(Floats((*out)[0].array()[1]), (Rows{3}));
}

TEST_P(Borders, OperatorsWithSideEffectsRunUnreadAndInOrder) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1});
  for (int k = 0; k < 8; ++k)
    b.Op("test_effect", {{"X", {"x"}}}, {{"Out", {"unread" + std::to_string(k)}}}, {{"id", k}});
  b.Scale("x", "y", 1).Fetch("y");
  auto compiled = Compile(b);
  for (int round = 0; round < 20; ++round) {
    std::vector<int64_t> order;  // no lock: the operators wait for each other
    ScopedHook hook([&](int64_t id) {
      order.push_back(id);
      return Status::Ok();
    });
    MustRun(executor_, compiled, {{"x", F32({1}, {1})}});
    EXPECT_EQ(order, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  }
}

TEST_P(Borders, AThousandFeedsAndFetches) {
  ProgramBuilder b;
  std::vector<heddle::Feed> feeds;
  for (int k = 0; k < 1000; ++k) {
    const std::string n = std::to_string(k);
    b.Feed("x" + n, DType::kF32, {1}).Scale("x" + n, "y" + n, 2);
    feeds.push_back({"x" + n, F32({1}, {static_cast<float>(k)})});
  }
  for (int k = 0; k < 1000; ++k) b.Fetch("y" + std::to_string(k));
  const auto out = MustRun(executor_, Compile(b), feeds);
  for (size_t k = 0; k < 1000; ++k) EXPECT_EQ(out[k].data<float>()[0], 2.f * static_cast<float>(k));
}

}  // namespace
}  // namespace heddle::testing
