// What a run holds, and gives back.
#include <gtest/gtest.h>

#include "tests/support/program_builder.h"
#include "tests/support/test_ops.h"

namespace heddle::testing {
namespace {

[[maybe_unused]] const bool kInstalled = InstallTestOps();

constexpr int64_t kFloats = 64 << 10;  // 256 KiB
constexpr size_t kBytes = kFloats * sizeof(float);

std::vector<heddle::Feed> BigFeed() {
  return {{"x", F32({kFloats}, std::vector<float>(kFloats, 1.f))}};
}

// A chain of `length` tensors, none of which is needed after the next.
ProgramBuilder Chain(int length, const char* op = "test_call") {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1});
  for (int k = 0; k < length; ++k)
    b.Op(op, {{"X", {k == 0 ? "x" : "t" + std::to_string(k - 1)}}},
         {{"Out", {"t" + std::to_string(k)}}});
  b.Fetch("t" + std::to_string(length - 1));
  return b;
}

TEST(Memory, AChainNeedsTwoBuffers) {
  Executor executor({.threads = 1});
  auto compiled =
      MustCompile(executor, Chain(20).Build(), nullptr, {.schedule = Schedule::kSerial});
  auto stats = executor.Prepare(compiled, BigFeed());
  ASSERT_TRUE(stats.ok());
  EXPECT_EQ(stats->arena_bytes, stats->arena_bound_bytes);
  EXPECT_EQ(stats->arena_bytes, 2 * kBytes);
}

TEST(Memory, ElementwiseChainsWorkInPlace) {
  Executor executor({.threads = 1});
  auto compiled = MustCompile(executor, Chain(20, "relu").Build(), nullptr,
                              {.opt_level = 0, .schedule = Schedule::kSerial});
  auto stats = executor.Prepare(compiled, BigFeed());
  ASSERT_TRUE(stats.ok());
  EXPECT_EQ(stats->arena_bytes, kBytes);
}

TEST(Memory, DynamicAndParallelRunsGiveBackWhatIsReadNoMore) {
  // 20 buffers would not fit the limit; three (input, output, result) do.
  Executor executor({.threads = 2, .memory_limit = 5 * kBytes});
  ProgramBuilder dynamic;
  dynamic.Feed("x", DType::kF32, {-1}).Feed("flag", DType::kBool, {1});
  dynamic.Op("test_call", {{"X", {"x"}}}, {{"Out", {"s"}}});
  const int body = dynamic.Block(0);
  dynamic.In(body).Scale("s", "s", 2).In(0);
  dynamic.Op("conditional_block", {{"Cond", {"flag"}}, {"Input", {"s"}}},
             {{"Out", {"s"}}, {"Scope", {}}},
             {{"sub_block", BlockRef{body}}, {"is_scalar_condition", true}});
  for (int k = 0; k < 20; ++k)
    dynamic.Op("test_call", {{"X", {k == 0 ? "s" : "t" + std::to_string(k - 1)}}},
               {{"Out", {"t" + std::to_string(k)}}});
  dynamic.Fetch("t19");
  for (Schedule schedule : {Schedule::kSerial, Schedule::kParallel, Schedule::kLanes}) {
    auto chain = MustCompile(executor, Chain(20).Build(), nullptr, {.schedule = schedule});
    auto unknown = MustCompile(executor, dynamic.Build(), nullptr, {.schedule = schedule});
    auto feeds = BigFeed();
    for (int round = 0; round < 3; ++round) {
      auto out = executor.Run(chain, feeds);
      EXPECT_TRUE(out.ok()) << out.status().ToString();
      executor.Trim();
      auto more = feeds;
      more.push_back({"flag", Bool(true)});
      out = executor.Run(unknown, more);
      EXPECT_TRUE(out.ok()) << out.status().ToString();
      executor.Trim();
    }
  }
}

TEST(Memory, TheLimitCountsOutputsAndIsFreedWithThem) {
  Executor executor({.threads = 1, .memory_limit = 4 * kBytes});
  auto compiled = MustCompile(executor, Chain(1).Build(), nullptr, {.schedule = Schedule::kSerial});
  std::vector<Tensor> held;
  Status last;
  for (int k = 0; k < 6 && last.ok(); ++k) {
    auto out = executor.Run(compiled, BigFeed());
    last = out.status();
    if (out.ok()) held.push_back((*out)[0]);
  }
  EXPECT_EQ(last.code(), StatusCode::kResourceExhausted) << last.ToString();
  EXPECT_EQ(held.size(), 4u);
  held.clear();
  EXPECT_TRUE(executor.Run(compiled, BigFeed()).ok());
}

// A sum in parts needs some; where two tensors became one there is room.
TEST(Memory, WorkSpaceLiesInTheArenaWhereNothingElseDoes) {
  constexpr int64_t kMany = 16 * kFloats;
  constexpr size_t kEach = kMany * sizeof(float);
  const std::vector<heddle::Feed> feeds = {{"x", F32({kMany}, std::vector<float>(kMany, 1.f))}};
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {kMany}).Scale("x", "a", 2).Scale("x", "b", 3);
  b.Binary("elementwise_add", "a", "b", "c");
  b.Op("reduce_sum", {{"X", {"c"}}}, {{"Out", {"s"}}}, {{"reduce_all", true}}).Fetch("s");
  Executor executor({.threads = 1, .memory_limit = 2 * kEach + 64});
  auto compiled =
      MustCompile(executor, b.Build(), nullptr, {.opt_level = 0, .schedule = Schedule::kSerial});
  const auto report = executor.PlanMemory(compiled, feeds);
  ASSERT_TRUE(report.ok());
  ASSERT_EQ(report->planned_bytes, 2 * kEach);
  EXPECT_EQ(Floats(MustRun(executor, compiled, feeds)[0]), std::vector<float>{5.f * kMany});
}

TEST(Memory, ResultsOutliveTheExecutor) {
  Tensor kept;
  {
    Executor executor({.threads = 2});
    kept = MustRun(executor, MustCompile(executor, Chain(3, "relu").Build()), BigFeed())[0];
  }
  EXPECT_EQ(Floats(kept), std::vector<float>(kFloats, 1.f));
}

TEST(Memory, AFeedIsGivenBackAfterTheRun) {
  Executor executor({.threads = 2});
  std::vector<float> data(4, 1.f);
  int released = 0;
  for (Schedule schedule : {Schedule::kSerial, Schedule::kParallel, Schedule::kLanes}) {
    auto compiled =
        MustCompile(executor, Chain(3, "relu").Build(), nullptr, {.schedule = schedule});
    released = 0;
    {
      Tensor x = Tensor::Wrap(data.data(), DType::kF32, {4}, [&] { ++released; });
      MustRun(executor, compiled, {{"x", x}});
      EXPECT_EQ(released, 0);
    }
    EXPECT_EQ(released, 1);
  }
}

TEST(Memory, AFeedIsGivenBackAfterAFailedRun) {
  Executor executor({.threads = 2});
  std::vector<float> data(4, 1.f);
  for (Schedule schedule : {Schedule::kSerial, Schedule::kParallel, Schedule::kLanes}) {
    auto compiled = MustCompile(executor, Chain(3).Build(), nullptr, {.schedule = schedule});
    int released = 0;
    {
      ScopedHook hook([](int64_t) { return Status(StatusCode::kInternal, "no"); });
      Tensor x = Tensor::Wrap(data.data(), DType::kF32, {4}, [&] { ++released; });
      EXPECT_FALSE(executor.Run(compiled, {{"x", x}}).ok());
    }
    EXPECT_EQ(released, 1);
  }
}

}  // namespace
}  // namespace heddle::testing
