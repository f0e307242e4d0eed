// Variables written many times, in-place work, views and fetches: no value is ever touched by what
// comes after it.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using Rows = std::vector<float>;

struct Setting {
  int threads;
  Schedule schedule;
  int opt_level;
};

class InPlace : public ::testing::TestWithParam<Setting> {
 protected:
  InPlace() : executor_({.threads = GetParam().threads}) {}

  // Runs three times, so that reused memory shows, and returns the last run's values.
  std::vector<Rows> Run(const ProgramBuilder& b, const std::vector<heddle::Feed>& feeds,
                        std::shared_ptr<Scope> scope = nullptr) {
    auto compiled =
        MustCompile(executor_, b.Build(), std::move(scope),
                    {.opt_level = GetParam().opt_level, .schedule = GetParam().schedule});
    std::vector<Rows> result;
    std::vector<Tensor> kept;
    for (int k = 0; k < 3; ++k) {
      std::vector<Tensor> out = MustRun(executor_, compiled, feeds);
      result.clear();
      for (const Tensor& t : out) result.push_back(Floats(t));
      // What an earlier run returned stays as it was.
      if (k == 0) {
        kept = out;
        first_ = result;
      }
      for (size_t i = 0; i < kept.size(); ++i) EXPECT_EQ(Floats(kept[i]), first_[i]);
    }
    return result;
  }

  Executor executor_;
  std::vector<Rows> first_;
};

std::string NameOf(const ::testing::TestParamInfo<Setting>& info) {
  return ScheduleName(info.param.schedule) + std::to_string(info.param.threads) + "Opt" +
         std::to_string(info.param.opt_level);
}
INSTANTIATE_TEST_SUITE_P(
    All, InPlace,
    ::testing::Values(Setting{1, Schedule::kSerial, 0}, Setting{1, Schedule::kSerial, 2},
                      Setting{1, Schedule::kParallel, 0}, Setting{2, Schedule::kParallel, 0},
                      Setting{8, Schedule::kParallel, 0}, Setting{2, Schedule::kLanes, 0},
                      Setting{3, Schedule::kLanes, 2}, Setting{2, Schedule::kAuto, 2},
                      Setting{8, Schedule::kParallel, 2}),
    NameOf);

TEST_P(InPlace, AVariableWrittenManyTimesHasEachReaderSeeItsVersion) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1});
  b.Scale("x", "t", 1, 1);
  for (int k = 0; k < 10; ++k) {
    b.Scale("t", "copy" + std::to_string(k), 10);
    b.Scale("t", "t", 2, 1);
  }
  b.Fetch("t");
  for (int k = 0; k < 10; ++k) b.Fetch("copy" + std::to_string(k));
  const auto out = Run(b, {{"x", F32({2}, {0, 1})}});
  Rows t = {1, 2};
  for (size_t k = 0; k < 10; ++k) {
    EXPECT_EQ(out[k + 1], (Rows{t[0] * 10, t[1] * 10})) << k;
    for (float& v : t) v = 2 * v + 1;
  }
  EXPECT_EQ(out[0], t);
}

TEST_P(InPlace, AChainOfInPlaceWritesLeavesTheFeedAlone) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1});
  for (int k = 0; k < 6; ++k) b.Scale("x", "x", 2);
  b.Fetch("x");
  Tensor x = F32({2}, {1, 3});
  EXPECT_EQ(Run(b, {{"x", x}})[0], (Rows{64, 192}));
  EXPECT_EQ(Floats(x), (Rows{1, 3}));
}

TEST_P(InPlace, IncrementOfAFeedLeavesTheFeedAlone) {
  ProgramBuilder b;
  b.Feed("n", DType::kF32, {1});
  b.Increment("n").Increment("n").Fetch("n");
  Tensor n = F32({1}, {5});
  EXPECT_EQ(Run(b, {{"n", n}})[0], (Rows{7}));
  EXPECT_EQ(Floats(n), (Rows{5}));
}

TEST_P(InPlace, AViewIsNotTouchedWhenItsSourceIsIncremented) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {1});
  b.Scale("x", "t", 3);
  b.Reshape("t", "view", {1, 1});
  b.Increment("t", 100);
  b.Scale("view", "y", 2);
  b.Fetch("t").Fetch("y").Fetch("view");
  EXPECT_EQ(Run(b, {{"x", F32({1}, {2})}}), (std::vector<Rows>{{106}, {12}, {6}}));
}

TEST_P(InPlace, AViewOfAFeedIsNotTouchedWhenTheFeedIsIncremented) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {1});
  b.Reshape("x", "view", {1, 1});
  b.Increment("x", 100);
  b.Scale("view", "y", 2);
  b.Fetch("x").Fetch("y");
  EXPECT_EQ(Run(b, {{"x", F32({1}, {2})}}), (std::vector<Rows>{{102}, {4}}));
}

TEST_P(InPlace, TheSourceIsNotTouchedWhenAViewIsOverwrittenInPlace) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1});
  b.Scale("x", "t", 1, 1);
  b.Reshape("t", "view", {2, 2});
  b.Op("relu", {{"X", {"view"}}}, {{"Out", {"view"}}});
  b.Scale("view", "view", -1);
  b.Binary("elementwise_add", "t", "t", "twice");
  b.Fetch("twice").Fetch("view").Fetch("t");
  EXPECT_EQ(Run(b, {{"x", F32({4}, {-3, 0, 1, 2})}}),
            (std::vector<Rows>{{-4, 2, 4, 6}, {0, -1, -2, -3}, {-2, 1, 2, 3}}));
}

TEST_P(InPlace, ViewsOfViewsAndFetchesOfThem) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1});
  b.Reshape("x", "a", {2, 3}).Reshape("a", "b", {3, 2}).Reshape("b", "c", {6});
  b.Unary("assign", "c", "d");
  b.Scale("d", "d", 2);
  for (const char* name : {"x", "a", "b", "c", "d"}) b.Fetch(name);
  const Rows x = {1, 2, 3, 4, 5, 6};
  const auto out = Run(b, {{"x", F32({6}, x)}});
  for (int k = 0; k < 4; ++k) EXPECT_EQ(out[k], x) << k;
  EXPECT_EQ(out[4], (Rows{2, 4, 6, 8, 10, 12}));
}

TEST_P(InPlace, FetchedValuesHaveMemoryOfTheirOwn) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1});
  b.Scale("x", "t", 2);
  b.Reshape("t", "view", {2, 1});
  b.Fetch("t").Fetch("t").Fetch("view").Fetch("x").Fetch("x");
  auto compiled = MustCompile(executor_, b.Build(), nullptr,
                              {.opt_level = GetParam().opt_level, .schedule = GetParam().schedule});
  Tensor x = F32({2}, {1, 2});
  for (int round = 0; round < 3; ++round) {
    auto out = MustRun(executor_, compiled, {{"x", x}});
    EXPECT_EQ(out[2].shape(), (Shape{2, 1}));
    std::set<const void*> places = {x.raw()};
    for (Tensor& t : out) {
      EXPECT_TRUE(places.insert(t.raw()).second);
      EXPECT_EQ(Floats(t), &t < &out[3] ? (Rows{2, 4}) : (Rows{1, 2}));
      std::fill_n(t.mutable_data<float>(), 2, -7.f);  // the caller's to write to
    }
  }
  EXPECT_EQ(Floats(x), (Rows{1, 2}));
}

TEST_P(InPlace, AddOfAVariableToItself) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1});
  b.Scale("x", "t", 1);
  b.Binary("elementwise_add", "t", "t", "t");
  b.Binary("elementwise_mul", "t", "t", "u");
  b.Binary("elementwise_sub", "u", "u", "zero");
  b.Fetch("u").Fetch("zero").Fetch("t");
  EXPECT_EQ(Run(b, {{"x", F32({2}, {1, 3})}}), (std::vector<Rows>{{4, 36}, {0, 0}, {2, 6}}));
}

TEST_P(InPlace, AnOperandReadTwiceInDifferentOrderIsNotOverwritten) {
  // scatter may work in X's memory, but here X is also what is scattered.
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1, -1}).Feed("ids", DType::kI64, {-1});
  b.Scale("x", "t", 1);
  b.Op("scatter", {{"X", {"t"}}, {"Ids", {"ids"}}, {"Updates", {"t"}}}, {{"Out", {"reversed"}}});
  b.Scale("x", "s", 1);
  b.Reshape("s", "view", {3, 1});
  b.Op("scatter", {{"X", {"s"}}, {"Ids", {"ids"}}, {"Updates", {"view"}}}, {{"Out", {"again"}}});
  b.Scale("x", "w", 1);
  b.Op("scatter", {{"X", {"w"}}, {"Ids", {"ids"}}, {"Updates", {"w"}}}, {{"Out", {"w"}}});
  b.Scale("reversed", "r", 1).Scale("again", "a", 1).Scale("w", "v", 1);
  b.Fetch("r").Fetch("a").Fetch("v");
  const auto out = Run(b, {{"x", F32({3, 1}, {1, 2, 3})}, {"ids", I64({3}, {2, 1, 0})}});
  for (const Rows& r : out) EXPECT_EQ(r, (Rows{3, 2, 1}));
}

TEST_P(InPlace, AnOperandOfAnotherShapeIsNotOverwritten) {
  // Out has X's size, but Y (smaller) must be read for every row.
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1, -1}).Feed("y", DType::kF32, {-1});
  b.Scale("x", "a", 1).Scale("y", "c", 1);
  b.Binary("elementwise_add", "a", "c", "s1");
  b.Binary("elementwise_add", "s1", "c", "s2");
  b.Binary("elementwise_add", "c", "s2", "s3");
  b.Fetch("s3").Fetch("c");
  const auto out = Run(b, {{"x", F32({2, 2}, {0, 0, 1, 1})}, {"y", F32({2}, {1, 10})}});
  EXPECT_EQ(out, (std::vector<Rows>{{3, 30, 4, 31}, {1, 10}}));
}

TEST_P(InPlace, AnIncrementOfAParameterLastsAndReadersKeepTheirOrder) {
  ProgramBuilder b;
  b.Param("w", DType::kF32, {1}).Feed("x", DType::kF32, {1});
  b.Binary("elementwise_add", "x", "w", "before");
  b.Reshape("w", "view", {1, 1});
  b.Increment("w");
  b.Binary("elementwise_add", "x", "w", "after");
  b.Scale("view", "old", 1);
  b.Fetch("before").Fetch("after").Fetch("w").Fetch("old");
  auto scope = std::make_shared<Scope>();
  scope->Set("w", F32({1}, {10}));
  const auto out = Run(b, {{"x", F32({1}, {0.5})}}, scope);
  EXPECT_EQ(first_, (std::vector<Rows>{{10.5}, {11.5}, {11}, {10}}));
  EXPECT_EQ(out, (std::vector<Rows>{{12.5}, {13.5}, {13}, {12}}));
  EXPECT_EQ(Floats(scope->Find("w")->tensor()), (Rows{13}));
}

TEST_P(InPlace, ConstantsAreNotTouched) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {1});
  b.Fill("c", {1}, 5);
  b.Reshape("c", "view", {1, 1});
  b.Unary("assign", "c", "d");
  b.Increment("d").Increment("c", 10);
  b.Binary("elementwise_add", "x", "c", "y");
  b.Fetch("y").Fetch("d").Fetch("view").Fetch("c");
  EXPECT_EQ(Run(b, {{"x", F32({1}, {1})}}), (std::vector<Rows>{{16}, {6}, {5}, {15}}));
}

TEST_P(InPlace, AStridedFeedIsReadThroughItsStrides) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1, -1});
  b.Scale("x", "y", 2).Reshape("x", "v", {4}).Scale("v", "z", 3).Fetch("y").Fetch("z").Fetch("x");
  std::vector<float> data = {1, 2, 3, 4};
  Tensor x = Tensor::WrapStrided(data.data(), DType::kF32, {2, 2}, {1, 2});  // transposed
  EXPECT_EQ(Run(b, {{"x", x}}), (std::vector<Rows>{{2, 6, 4, 8}, {3, 9, 6, 12}, {1, 3, 2, 4}}));
}

TEST_P(InPlace, EmptyAndScalarTensors) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1, 3}).Feed("s", DType::kF32, {});
  b.Scale("x", "y", 2).Reshape("y", "v", {3, -1}).Scale("s", "t", 2);
  b.Binary("elementwise_add", "y", "t", "z");
  b.Fetch("y").Fetch("t").Fetch("z").Fetch("x");
  auto out = Run(b, {{"x", Tensor::Empty(DType::kF32, {0, 3})}, {"s", F32({}, {4})}});
  EXPECT_EQ(out, (std::vector<Rows>{{}, {8}, {}, {}}));
}

TEST_P(InPlace, ASumTakesAnInputsMemoryAndAddsInTheProgramsOrder) {
  // The last operand is the only one whose memory is free; the bits are those of (a + b) + c.
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1});
  b.Scale("x", "a", 1e8).Scale("x", "b", -1e8).Scale("x", "c", 1);
  b.Op("sum", {{"X", {"a", "b", "c"}}}, {{"Out", {"total"}}});
  b.Scale("a", "a_later", 2).Scale("b", "b_later", 2);
  b.Fetch("total").Fetch("a_later").Fetch("b_later");
  EXPECT_EQ(Run(b, {{"x", F32({2}, {1, 3})}}),
            (std::vector<Rows>{{1, 3}, {2e8f, 6e8f}, {-2e8f, -6e8f}}));
}

TEST_P(InPlace, FedAndFetchedGradientsAreNotAccumulatedInto) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1});
  b.Scale("x", "g", 2);
  b.Op("sum", {{"X", {"x", "g"}}}, {{"Out", {"total"}}});
  b.Scale("total", "y", 1, 1);
  b.Fetch("g").Fetch("y");
  Tensor x = F32({2}, {1, 3});
  EXPECT_EQ(Run(b, {{"x", x}}), (std::vector<Rows>{{2, 6}, {4, 10}}));
  EXPECT_EQ(Floats(x), (Rows{1, 3}));
}

TEST(Accumulation, AFanInNeedsNoMemoryBesideItsInputs) {
  // `held` lives on, so that only the second gradient's memory is free when they are added up.
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {1024});
  b.Scale("x", "held", 2).Scale("x", "g", 3);
  b.Op("sum", {{"X", {"held", "g"}}}, {{"Out", {"total"}}});
  b.Binary("elementwise_mul", "total", "held", "y");
  b.Op("reduce_sum", {{"X", {"y"}}}, {{"Out", {"z"}}}, {{"reduce_all", true}}).Fetch("z");
  Executor executor({.threads = 1});
  auto compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = 0});
  const std::vector<heddle::Feed> feeds{{"x", F32({1024}, std::vector<float>(1024, 1.f))}};
  auto stats = executor.Prepare(compiled, feeds);
  ASSERT_TRUE(stats.ok()) << stats.status().ToString();
  EXPECT_EQ(stats->arena_bytes, 2 * 4096u);
  EXPECT_EQ(Floats(MustRun(executor, compiled, feeds)[0]), (Rows{10 * 1024.f}));
}

TEST_P(InPlace, AParameterIsSteppedInItsOwnMemoryAndKeepsItsShape) {
  ProgramBuilder b;
  b.Feed("g", DType::kF32, {2}).Param("w", DType::kF32, {2}).Param("lr", DType::kF32, {1});
  b.Scale("w", "before", 1);
  b.Op("sgd", {{"Param", {"w"}}, {"Grad", {"g"}}, {"LearningRate", {"lr"}}}, {{"ParamOut", {"w"}}});
  b.Scale("w", "after", 1).Fetch("before").Fetch("after").Fetch("w");
  auto scope = std::make_shared<Scope>();
  scope->Set("w", F32({2}, {10, 20}));
  scope->Set("lr", F32({1}, {1}));
  const void* memory = scope->Find("w")->tensor().raw();
  auto compiled = MustCompile(executor_, b.Build(), scope,
                              {.opt_level = GetParam().opt_level, .schedule = GetParam().schedule});
  const std::vector<heddle::Feed> feeds{{"g", F32({2}, {1, 2})}};
  for (int k = 1; k <= 4; ++k) {
    const auto out = MustRun(executor_, compiled, feeds);
    const float f = static_cast<float>(k);
    EXPECT_EQ(Floats(out[0]), (Rows{11 - f, 22 - 2 * f}));
    EXPECT_EQ(Floats(out[1]), (Rows{10 - f, 20 - 2 * f}));
    EXPECT_EQ(Floats(out[2]), (Rows{10 - f, 20 - 2 * f}));
  }
  EXPECT_EQ(scope->Find("w")->tensor().raw(), memory);
  EXPECT_TRUE(executor_.Prepare(compiled, feeds)->static_shapes);
  // Another value of another shape: the next run must not write past it.
  scope->Set("w", F32({1}, {5}));
  EXPECT_FALSE(executor_.Run(compiled, feeds).ok());
  scope->Set("w", F32({2}, {5, 5}));
  EXPECT_EQ(Floats(MustRun(executor_, compiled, feeds)[2]), (Rows{4, 3}));
}

}  // namespace
}  // namespace heddle::testing
