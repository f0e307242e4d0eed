// What a run holds, and gives back.
#include <gtest/gtest.h>

#include <set>

#include "heddle/device.h"
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

TEST(Memory, WorkingInPlaceCanBeSwitchedOff) {
  Executor executor({.threads = 1});
  auto compiled = MustCompile(executor, Chain(20, "relu").Build(), nullptr,
                              {.opt_level = 0, .schedule = Schedule::kSerial, .in_place = false});
  auto stats = executor.Prepare(compiled, BigFeed());
  ASSERT_TRUE(stats.ok());
  EXPECT_EQ(stats->arena_bytes, 2 * kBytes);
  EXPECT_EQ(Floats(MustRun(executor, compiled, BigFeed())[0])[0], 1);
}

// Side by side and on a device it is a matter of the run: the most that is held at a time.
TEST(Memory, InPlaceAndReuseHoldInEverySchedule) {
  constexpr int kLength = 12;
  for (const bool device : {false, true})
    for (const Schedule schedule : {Schedule::kSerial, Schedule::kParallel, Schedule::kLanes}) {
      const auto peak = [&](Reuse reuse, bool in_place) {
        Executor executor({.threads = 2, .device = device ? NewEmulatedDevice() : nullptr});
        const auto compiled = MustCompile(
            executor, Chain(kLength, "relu").Build(), nullptr,
            {.opt_level = 0, .schedule = schedule, .reuse = reuse, .in_place = in_place});
        for (int run = 0; run < 3; ++run)
          EXPECT_EQ(Floats(MustRun(executor, compiled, BigFeed())[0])[1], 1);
        return executor.MemoryUse().back().peak_bytes;
      };
      const size_t shared = peak(Reuse::kOrdered, true), apart = peak(Reuse::kOrdered, false),
                   all = peak(Reuse::kNone, true);
      SCOPED_TRACE(ScheduleName(schedule) + (device ? " on a device" : ""));
      EXPECT_GE(all, (kLength - 1) * kBytes) << "each has memory of its own";
      EXPECT_LT(apart, all / 2);
      EXPECT_LE(shared, apart);
    }
}

// Each value stays readable to the end of the run: no two temporaries lie in one place.
TEST(Memory, WithoutReuseEachTemporaryHasItsOwn) {
  Executor executor({.threads = 2});
  for (const Schedule schedule : {Schedule::kSerial, Schedule::kLanes}) {
    ProgramBuilder b = Chain(6, "relu");
    b.Unary("exp", "t2", "e").Unary("tanh", "e", "f").Fetch("f");
    const auto compiled =
        MustCompile(executor, b.Build(), nullptr,
                    {.opt_level = 0, .schedule = schedule, .reuse = Reuse::kNone});
    const auto plan = executor.DescribePlan(compiled, BigFeed());
    ASSERT_TRUE(plan.ok());
    std::set<int> storages;
    int arena = 0;
    for (const auto& slot : plan->slots) {
      if (slot.storage != "arena") continue;
      ++arena;
      storages.insert(slot.storage_id);
    }
    EXPECT_EQ(arena, 6) << "t0 to t4, and e";
    EXPECT_EQ(storages.size(), 6u);
    EXPECT_EQ(plan->arena_bytes, 6 * kBytes);
    MustRun(executor, compiled, BigFeed());
  }
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

// elementwise_add_grad reads the shapes of X and Y alone: their memory ends before.
ProgramBuilder ShapesReadLate() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1});
  b.Unary("test_call", "x", "a").Unary("test_call", "a", "b").Unary("test_call", "b", "c");
  b.Unary("test_call", "c", "g");
  b.Op("elementwise_add_grad", {{"X", {"a"}}, {"Y", {"b"}}, {"Out@GRAD", {"g"}}},
       {{"X@GRAD", {"da"}}, {"Y@GRAD", {"db"}}});
  b.Unary("test_call", "da", "e").Unary("test_call", "db", "f");
  b.Binary("elementwise_add", "e", "f", "sum").Unary("test_call", "sum", "y").Fetch("y");
  return b;
}

TEST(Memory, WhoReadsAShapeKeepsNoMemory) {
  Executor executor({.threads = 2});
  for (Schedule schedule : {Schedule::kSerial, Schedule::kLanes}) {
    auto compiled =
        MustCompile(executor, ShapesReadLate().Build(), nullptr, {.schedule = schedule});
    const auto report = executor.PlanMemory(compiled, BigFeed());
    ASSERT_TRUE(report.ok());
    // da and db, and what one of them becomes; with a and b there would be five, side by side six.
    EXPECT_EQ(report->bound_bytes, 3 * kBytes);
    EXPECT_EQ(report->planned_bytes, (schedule == Schedule::kSerial ? 3 : 4) * kBytes);
    EXPECT_TRUE(executor.Run(compiled, BigFeed()).ok());
  }
}

TEST(Memory, WhoReadsAShapeKeepsNoMemoryWhileRunning) {
  // Of the temporaries that are there at a time: da, db, e and the result.
  Executor executor({.threads = 1, .memory_limit = 4 * kBytes});
  auto queue =
      MustCompile(executor, ShapesReadLate().Build(), nullptr, {.schedule = Schedule::kParallel});
  for (int run = 0; run < 2; ++run) {
    const auto out = executor.Run(queue, BigFeed());
    EXPECT_TRUE(out.ok()) << out.status().ToString();
    executor.Trim();
  }
}

TEST(Memory, WhoReadsAShapeInABlockKeepsNoMemory) {
  for (const bool contents : {false, true}) {
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {-1}).Feed("flag", DType::kBool, {1});
    b.Unary("test_call", "x", "t").Unary("test_call", "t", "u").Unary("test_call", "u", "w");
    const int body = b.Block(0);
    b.In(body);
    b.Op(contents ? "elementwise_mul_grad" : "elementwise_add_grad",
         {{"X", {"t"}}, {"Y", {"t"}}, {"Out@GRAD", {"w"}}}, {{"X@GRAD", {"d"}}});
    b.Unary("test_call", "d", "w").In(0);
    b.Op("conditional_block", {{"Cond", {"flag"}}, {"Input", {"t", "w"}}},
         {{"Out", {"w"}}, {"Scope", {}}},
         {{"sub_block", BlockRef{body}}, {"is_scalar_condition", true}});
    b.Unary("test_call", "w", "y").Fetch("y");
    auto feeds = BigFeed();
    feeds.push_back({"flag", Bool(true)});
    Executor executor({.threads = 2});
    for (Schedule schedule : {Schedule::kSerial, Schedule::kLanes}) {
      auto compiled =
          MustCompile(executor, b.Build(), nullptr, {.opt_level = 0, .schedule = schedule});
      const auto report = executor.PlanMemory(compiled, feeds);
      ASSERT_TRUE(report.ok());
      EXPECT_EQ(report->bound_bytes, (contents ? 3 : 2) * kBytes);  // t, w and d
      EXPECT_TRUE(executor.Run(compiled, feeds).ok());
    }
  }
}

// Shapes that are found while running are kept when the contents are given back.
TEST(Memory, ShapesOutliveContentsWhileRunning) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Feed("flag", DType::kBool, {1});
  b.Unary("test_call", "x", "s");
  const int body = b.Block(0);
  b.In(body).Scale("s", "s", 2).In(0);
  b.Op("conditional_block", {{"Cond", {"flag"}}, {"Input", {"s"}}}, {{"Out", {"s"}}, {"Scope", {}}},
       {{"sub_block", BlockRef{body}}, {"is_scalar_condition", true}});
  std::string last = "s";
  std::vector<std::string> all;
  for (int k = 0; k < 12; ++k) {
    all.push_back("t" + std::to_string(k));
    b.Unary("test_call", last, all.back());
    last = all.back();
  }
  for (int k = 0; k + 2 < 12; k += 2)
    b.Op("elementwise_add_grad", {{"X", {all[k]}}, {"Y", {all[k + 1]}}, {"Out@GRAD", {last}}},
         {{"X@GRAD", {"g" + std::to_string(k)}}}),
        last = "g" + std::to_string(k);
  b.Fetch(last);
  auto feeds = BigFeed();
  feeds.push_back({"flag", Bool(true)});
  // x, s and its copy, two of the chain; each of t0 to t10 would be alive otherwise.
  Executor executor({.threads = 1, .memory_limit = 5 * kBytes});
  auto compiled = MustCompile(executor, b.Build(), nullptr,
                              {.schedule = Schedule::kSerial, .dynamic_bodies = true});
  for (int run = 0; run < 2; ++run) {
    const auto out = executor.Run(compiled, feeds);
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    EXPECT_EQ(Floats((*out)[0])[7], 2.f);
    executor.Trim();
  }
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

// Without support vectors, classes are not compared in pairs.
TEST(Memory, LinearClassifiersTakeNoneForPairsOfClasses) {
  constexpr int64_t kClasses = 2000;
  Ints labels;
  std::vector<double> coefficients;
  for (int64_t k = 0; k < kClasses; ++k) {
    labels.push_back(7 + k);
    coefficients.push_back(static_cast<double>(k));
  }
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {1, 1});
  b.Op("onnx_ml_svm_classifier", {{"X", {"x"}}}, {{"Y", {"label"}}, {"Z", {"scores"}}},
       {{"classlabels_ints", labels},
        {"coefficients", coefficients},
        {"rho", std::vector<double>{0.5}}});
  b.Fetch("label").Fetch("scores");
  Executor executor({.threads = 1, .memory_limit = 1 << 20});  // all pairs would take 8 MB
  const auto compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = 0});
  const std::vector<heddle::Feed> feeds = {{"x", F32({1, 1}, {2})}};
  const auto out = MustRun(executor, compiled, feeds);
  EXPECT_EQ(out[0].data<int64_t>()[0], 7 + kClasses - 1);
  EXPECT_EQ(out[1].data<float>()[3], 6.5F);
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
