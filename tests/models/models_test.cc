// The recorded inference programs: the numbers Paddle gave, at every thread count and schedule, run
// after run, shape after shape.
#include <gtest/gtest.h>

#include <map>

#include "heddle/device.h"
#include "tests/models/recorded_model.h"

namespace heddle::testing {
namespace {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ModelTest);
INSTANTIATE_TEST_SUITE_P(Shared, ModelTest, ::testing::ValuesIn(InferenceModels()),
                         [](const auto& info) { return info.param; });

TEST_P(ModelTest, GivesPaddlesNumbersAtEveryThreadCountAndSchedule) {
  Open(GetParam());
  if (IsSkipped() || HasFatalFailure()) return;
  const int runs = kSlow || large_ ? 2 : 10;
  for (int threads : {1, 2, 8}) {
    if (large_ && threads == 8) continue;
    Executor executor({.threads = threads});
    std::map<std::string, std::string> bits;  // of each case at this thread count
    for (Schedule schedule : {Schedule::kSerial, Schedule::kParallel, Schedule::kLanes}) {
      SCOPED_TRACE("threads " + std::to_string(threads) + ", " + ScheduleName(schedule));
      auto compiled = executor.Compile(model_, {.schedule = schedule});
      ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
      for (const Case& c : cases_) {
        for (int run = 0; run < runs; ++run) {
          auto out = executor.Run(*compiled, c.feeds);
          ASSERT_TRUE(out.ok()) << out.status().ToString();
          if (run == 0 || run == runs - 1) Expect(*out, c);
          auto [known, first] = bits.emplace(c.name, AllBits(*out));
          ASSERT_EQ(first || known->second == AllBits(*out), true)
              << "run " << run << " of case " << c.name << " gives other bits";
        }
      }
    }
  }
}

TEST_P(ModelTest, KeepsItsBitsWhileTheFastestWayIsFound) {
  Open(GetParam());
  if (IsSkipped() || HasFatalFailure()) return;
  const int runs = kSlow || large_ ? 3 : 30;
  Executor executor({.threads = 2});
  auto compiled = executor.Compile(model_);
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  for (const Case& c : cases_) {
    std::string bits;
    for (int run = 0; run < runs; ++run) {
      RunReport report;
      auto out = executor.Run(*compiled, c.feeds, {.report = &report});
      ASSERT_TRUE(out.ok()) << out.status().ToString();
      if (run == 0) bits = AllBits(*out);
      ASSERT_EQ(bits == AllBits(*out), true) << "run " << run << " (" << report.dispatch
                                             << ") of case " << c.name << " gives other bits";
    }
    auto out = executor.Run(*compiled, c.feeds);
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    Expect(*out, c);
  }
}

TEST_P(ModelTest, GivesPaddlesNumbersWithoutPasses) {
  Open(GetParam());
  if (IsSkipped() || HasFatalFailure()) return;
  Executor executor({.threads = 2});
  auto compiled = executor.Compile(model_, {.opt_level = 0});
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  for (const Case& c : cases_) Expect(MustRun(executor, *compiled, c.feeds), c);
}

TEST_P(ModelTest, GivesPaddlesNumbersInLittleMemory) {
  Open(GetParam());
  if (IsSkipped() || HasFatalFailure()) return;
  for (int threads : {1, 2}) {
    Executor executor({.threads = threads});
    auto compiled = executor.Compile(model_, {.lean = true});
    ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
    for (const Case& c : cases_) {
      const std::vector<Tensor> out = MustRun(executor, *compiled, c.feeds);
      Expect(out, c);
      EXPECT_EQ(AllBits(out) == AllBits(MustRun(executor, *compiled, c.feeds)), true);
    }
  }
}

TEST_P(ModelTest, ShapesMayChangeFromRunToRun) {
  Open(GetParam());
  if (IsSkipped() || HasFatalFailure()) return;
  if (cases_.size() < 2) return;  // recorded at one shape
  Executor executor({.threads = 2});
  auto compiled = executor.Compile(model_);
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  std::vector<std::string> bits(cases_.size());
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < cases_.size(); ++i) {
      const std::vector<Tensor> out = MustRun(executor, *compiled, cases_[i].feeds);
      Expect(out, cases_[i]);
      if (round == 0) bits[i] = AllBits(out);
      EXPECT_EQ(bits[i] == AllBits(out), true) << "case " << cases_[i].name;
    }
  }
  EXPECT_LE(executor.plans_built(), static_cast<int64_t>(cases_.size()));
}

// On the device alone, captured or not: the host's bits. With three streams the device's memory is
// at most a tenth more than with one, and one granule: where loops take values as they come, it
// depends on the moment whether a block of 512 bytes is already free again.
TEST_P(ModelTest, DevicesGiveTheHostsBitsInLittleMoreMemory) {
  Open(GetParam());
  if (IsSkipped() || HasFatalFailure()) return;
  if (large_ && Repeats("HEDDLE_PLACE_SEEDS", 0) < 2) GTEST_SKIP() << "large";
  Executor host({.threads = 2});
  auto here = host.Compile(model_);
  ASSERT_TRUE(here.ok()) << here.status().ToString();
  std::map<int, size_t> arena, peak;  // by streams
  for (int streams : {1, 3}) {
    auto device = NewEmulatedDevice();
    Executor executor({.threads = 2, .device = device, .device_streams = streams});
    auto there = executor.Compile(model_);
    ASSERT_TRUE(there.ok()) << there.status().ToString();
    for (const Case& c : cases_) {
      const std::string want = AllBits(MustRun(host, *here, c.feeds));
      for (int run = 0; run < 3; ++run)
        ASSERT_EQ(AllBits(MustRun(executor, *there, c.feeds)) == want, true)
            << "case " << c.name << ", run " << run << ", " << streams << " streams";
      arena[streams] += executor.Prepare(*there, c.feeds)->device_arena_bytes;
    }
    peak[streams] = CountsOf(*device).peak_bytes;
  }
  std::printf("%s: arena %zu and %zu bytes, peak %zu and %zu\n", GetParam().c_str(), arena[1],
              arena[3], peak[1], peak[3]);
  EXPECT_LE(arena[3] * 10, arena[1] * 11);
  EXPECT_LE(peak[3] * 10, peak[1] * 11 + 10 * 512);
}

TEST_P(ModelTest, MixedPlacesGiveTheHostsBits) {
  Open(GetParam());
  if (IsSkipped() || HasFatalFailure()) return;
  const int seeds = Repeats("HEDDLE_PLACE_SEEDS", 2);
  if (large_ && seeds <= 2) GTEST_SKIP() << "large";
  Executor host({.threads = 2});
  auto here = host.Compile(model_);
  ASSERT_TRUE(here.ok()) << here.status().ToString();
  std::vector<std::string> want;
  for (const Case& c : cases_) want.push_back(AllBits(MustRun(host, *here, c.feeds)));
  for (int seed = 0; seed < seeds; ++seed) {
    Executor executor(
        {.threads = 2, .device = NewEmulatedDevice(), .device_streams = 1 + seed % 3});
    auto there = executor.Compile(
        model_, {.placement = Placement::kRandom, .placement_seed = static_cast<uint64_t>(seed)});
    ASSERT_TRUE(there.ok()) << there.status().ToString();
    for (int run = 0; run < 2; ++run)
      for (size_t i = 0; i < cases_.size(); ++i)
        ASSERT_EQ(AllBits(MustRun(executor, *there, cases_[i].feeds)) == want[i], true)
            << "case " << cases_[i].name << ", run " << run << ", seed " << seed;
  }
}

// The trip count is a value: other counts use the same plan.
TEST_F(ModelTest, ArraysOfOtherLengthsOnOnePlan) {
  if (SharedDir().empty()) GTEST_SKIP() << "no shared models at " HEDDLE_SHARED_DIR;
  Open("cf_array");
  if (IsSkipped() || HasFatalFailure()) return;
  const Case& n4 = cases_[1];
  ASSERT_EQ(n4.name, "n4");
  Executor executor({.threads = 2});
  auto compiled = executor.Compile(model_);
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  for (int64_t n : {10, 4, 10, 1, 4}) {
    std::vector<heddle::Feed> feeds = n4.feeds;
    for (heddle::Feed& f : feeds)
      if (f.name == "n") f.value = I64({1}, {n});
    const std::vector<Tensor> out = MustRun(executor, *compiled, feeds);
    if (n == 4) Expect(out, n4);
    EXPECT_EQ(out[1].dim(1), n + 1);
  }
  EXPECT_EQ(executor.plans_built(), 1);
}

TEST(SharedFolder, IsThere) {
  if (SharedDir().empty()) GTEST_SKIP() << "no shared models at " HEDDLE_SHARED_DIR;
  EXPECT_FALSE(InferenceModels().empty());
}

}  // namespace
}  // namespace heddle::testing
