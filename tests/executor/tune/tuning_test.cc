// Choices of kernels by measuring: which way is taken, and the file that keeps it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <thread>

#include "executor/plan_service.h"
#include "executor/run_resources.h"
#include "executor/tune/tuning_cache.h"
#include "scheduler/cost_meter.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

class TuningFile : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::path(::testing::TempDir()) /
           ("heddle_tuning_" +
            std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(dir_);
    fs::create_directories(dir_);
    path_ = dir_ / "choices";
  }
  void TearDown() override { fs::remove_all(dir_); }

  std::string Content() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void SetContent(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }

  // Ways that take this many milliseconds each; the name of the choice.
  std::string Choose(TuningCache& cache, const std::vector<int>& ms) {
    std::vector<std::string> names;
    for (size_t i = 0; i < ms.size(); ++i) names.push_back("way" + std::to_string(i));
    Services services;
    const TuningCache::Measuring measuring(cache, services);
    const int i = cache.Measure("key", names, [&](int way, Services&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(ms[static_cast<size_t>(way)]));
    });
    return names[static_cast<size_t>(i)];
  }

  fs::path dir_, path_;
};

TEST_F(TuningFile, TheFastestWayIsKept) {
  {
    TuningCache cache(path_, true, "here");
    EXPECT_EQ(cache.Kept("key"), "");
    EXPECT_EQ(Choose(cache, {3, 0, 3}), "way1");
    EXPECT_EQ(cache.Kept("key"), "way1");
    cache.Save();
    EXPECT_EQ(cache.report().measured, 1);
    EXPECT_EQ(cache.report().changed, 1);
    EXPECT_THAT(cache.report().warnings, IsEmpty());
  }
  TuningCache later(path_, false, "here"), elsewhere(path_, false, "elsewhere");
  EXPECT_EQ(later.Kept("key"), "way1");
  EXPECT_EQ(later.Kept("other key"), "");
  EXPECT_EQ(later.report().kept, 1);
  EXPECT_EQ(elsewhere.Kept("key"), "");
  EXPECT_FALSE(later.measures());
  for (const auto& entry : fs::directory_iterator(dir_)) EXPECT_EQ(entry.path(), path_);
}

TEST_F(TuningFile, TheWayOfAPlanIsKeptWhereChoicesAreMeasured) {
  {
    TuningCache cache(path_, true, "here");
    EXPECT_EQ(cache.KeptWay("plan"), "");
    cache.KeepWay("plan", "serial", 2000);
    EXPECT_EQ(cache.KeptWay("plan"), "serial");
    EXPECT_EQ(cache.report().measured, 0) << "counts kernels";
  }
  TuningCache later(path_, false, "here"), elsewhere(path_, false, "elsewhere");
  EXPECT_EQ(later.KeptWay("plan"), "serial");
  EXPECT_EQ(later.KeptWay("other plan"), "");
  EXPECT_EQ(later.Kept("plan"), "") << "keys of kernels are others";
  EXPECT_EQ(elsewhere.KeptWay("plan"), "");
  later.KeepWay("other plan", "serial", 2000);
  EXPECT_EQ(later.KeptWay("other plan"), "") << "it does not measure";
}

TEST_F(TuningFile, WhatOthersHaveWrittenStays) {
  TuningCache one(path_, true, "one"), two(path_, true, "two");
  Choose(one, {0, 3});
  Choose(two, {3, 0});
  one.Save();
  two.Save();
  EXPECT_EQ(TuningCache(path_, false, "one").Kept("key"), "way0");
  EXPECT_EQ(TuningCache(path_, false, "two").Kept("key"), "way1");
}

TEST_F(TuningFile, ADamagedFileIsAWarningAndIsReplaced) {
  TunedChoices choices;
  choices[{"here", "key"}] = {"way1", 12.5};
  const std::string good = WriteTunedChoices(choices);
  ASSERT_EQ(ReadTunedChoices(good)->at({"here", "key"}).name, "way1");
  EXPECT_EQ(ReadTunedChoices(good)->at({"here", "key"}).us, 12.5);
  std::string flipped = good, newer = good;
  flipped[flipped.size() - 8] ^= 1;
  newer[newer.find('1')] = '2';
  std::vector<std::string> bad = {"", "x", flipped, newer, std::string(1000, '\0')};
  for (size_t n = 1; n < good.size(); ++n) bad.push_back(good.substr(0, n));
  for (const std::string& text : bad) {
    SetContent(text);
    TuningCache cache(path_, true, "here");
    EXPECT_EQ(cache.Kept("key"), "") << text;
    ASSERT_THAT(cache.report().warnings, ElementsAre(HasSubstr("is not used"))) << text;
  }
  TuningCache cache(path_, true, "here");
  Choose(cache, {3, 0});
  cache.Save();
  EXPECT_EQ(TuningCache(path_, false, "here").Kept("key"), "way1");
}

// Times decide the order of a device's work: none may be no number, or without bound.
TEST_F(TuningFile, AnImpossibleTimeIsAWarning) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double us : {std::nan(""), kInfinity, -1.0, 1e13}) {
    TunedChoices choices;
    choices[{"here", "key"}] = {"time", us};
    SetContent(WriteTunedChoices(choices));
    TuningCache cache(path_, false, "here");
    EXPECT_EQ(cache.KeptNs("key"), 0) << us;
    EXPECT_THAT(cache.report().warnings, ElementsAre(HasSubstr("a time is impossible"))) << us;
  }
}

// What earlier builds have written: the bytes of a file of version 1, and undamaged ones of others.
TEST_F(TuningFile, AnEarlierFileIsReadAndAnotherVersionRefusedInOneSentence) {
  const std::string rest = " bed588ca6976a087\nhere\tkey\tway1\t12.500\n";
  SetContent("heddle-tuning 1" + rest);
  TuningCache earlier(path_, true, "here");
  EXPECT_EQ(earlier.Kept("key"), "way1");
  EXPECT_THAT(earlier.report().warnings, IsEmpty());
  for (const char* version : {"0", "2"}) {
    SetContent("heddle-tuning " + std::string(version) + rest);
    TuningCache other(path_, true, "here");
    EXPECT_EQ(other.Kept("key"), "");
    EXPECT_THAT(other.report().warnings,
                ElementsAre(AllOf(HasSubstr(path_.string()), HasSubstr("is not used: "),
                                  HasSubstr("not of this version"))));
  }
}

TEST_F(TuningFile, AFileThatCannotBeWrittenIsAWarning) {
  TuningCache cache(dir_ / "no" / "such" / "directory", true, "here");
  EXPECT_EQ(Choose(cache, {3, 0}), "way1");
  cache.Save();
  EXPECT_THAT(cache.report().warnings, ElementsAre(HasSubstr("is not written")));
  EXPECT_EQ(cache.Kept("key"), "way1");
}

TEST_F(TuningFile, TheEnvironmentNamesProcessorThreadsAndBuild) {
  EXPECT_EQ(TuningEnvironment(2), TuningEnvironment(2));
  EXPECT_NE(TuningEnvironment(2), TuningEnvironment(3));
  EXPECT_THAT(TuningEnvironment(2), HasSubstr(", 2 threads, heddle "));
}

// Steps that take 20 us each.
void TimeSteps(size_t steps, CostMeter* meter) {
  meter->Begin();
  for (size_t step = 0; step < steps; ++step) {
    for (const uint64_t start = NowNs(); NowNs() - start < 20000;) {
    }
    meter->Lap(step);
  }
  meter->End();
}

// Eight chains side by side. A way that is found to be the fastest twice is written down, by times
// that are made up. The next process tries nothing where that is one step after another.
TEST_F(TuningFile, TheWayThatTrialsFindTwiceIsWrittenDown) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {64, 64});
  for (int chain = 0; chain < 8; ++chain) {
    const std::string name = "c" + std::to_string(chain);
    b.Scale("x", name + "a", 2).Scale(name + "a", name + "b", 3).Fetch(name + "b");
  }
  const Program program = b.Build();
  const std::vector<heddle::Feed> feeds = {{"x", F32({64, 64}, std::vector<float>(64 * 64, 1))}};
  CompileOptions options;
  options.opt_level = 0;
  options.tuning_file = path_;
  for (const bool serial : {true, false}) {
    SCOPED_TRACE(serial);
    fs::remove(path_);
    Executor executor({.threads = 2});
    options.tune = true;
    const auto compiled = MustCompile(executor, program, std::make_shared<Scope>(), options);
    internal::RunResources resources({.threads = 2});
    internal::PlanService plans(resources, 1);
    std::string key;
    for (int k = 0; k < 1000 && Content().find("\tplan ") == std::string::npos; ++k) {
      const auto cached = plans.ForRun(*compiled.impl(), feeds, &key);
      ASSERT_TRUE(cached.ok()) << cached.status().ToString();
      RunPolicy& policy = cached->plan->policy();
      const RunPolicy::Turn turn = policy.Next(true);
      if (turn.meter != nullptr)
        TimeSteps(cached->plan->plan()->blocks[0].instructions.size(), turn.meter);
      const double ns = turn.variant == 0 ? 5e6 : turn.variant == 1 && !serial ? 4e6 : 6e6;
      if (policy.Report(turn, ns)) cached->plan->KeepWay(ns);
    }
    ASSERT_THAT(Content(), HasSubstr("\tplan "));
    EXPECT_THAT(Content(), HasSubstr(serial ? "\tserial\t" : "\tlanes\t"));
    options.tune = false;
    Executor next({.threads = 2});
    const auto again = MustCompile(next, program, std::make_shared<Scope>(), options);
    RunReport report;
    ASSERT_TRUE(next.RunValues(again, feeds, {.report = &report}).ok());
    EXPECT_EQ(report.settled, serial);
  }
}

// Two convolutions of one form and one of another.
TEST_F(TuningFile, ConvolutionsAreMeasuredOnceAndThenKnown) {
  ProgramBuilder b;
  auto scope = std::make_shared<Scope>();
  std::mt19937 random(1);
  std::uniform_real_distribution<float> value(-1, 1);
  const auto tensor = [&](const Shape& shape) {
    std::vector<float> v(static_cast<size_t>(shape.numel()));
    for (float& x : v) x = value(random);
    return F32(shape, v);
  };
  const Shape image = {1, 16, 12, 12};
  b.Feed("x", DType::kF32, image);
  const std::vector<heddle::Feed> feeds = {{"x", tensor(image)}};
  std::string last = "x";
  for (int k = 0; k < 3; ++k) {
    const std::string w = "w" + std::to_string(k), to = "c" + std::to_string(k);
    const int64_t groups = k == 2 ? 2 : 1, kernel = k == 2 ? 1 : 3;
    const Shape filter = {16, 16 / groups, kernel, kernel};
    b.Param(w, DType::kF32, filter).Var(to, DType::kF32, image);
    scope->Set(w, Value(tensor(filter)));
    b.Op("conv2d", {{"Input", {last}}, {"Filter", {w}}}, {{"Output", {to}}},
         {{"paddings", k == 2 ? Ints{0, 0} : Ints{1, 1}}, {"groups", groups}});
    last = to;
  }
  b.Fetch(last);
  int threads = 1;
  const auto run = [&](bool tune, bool file, TuningReport* report) {
    Executor executor({.threads = threads});
    CompileOptions options;
    options.tune = tune;
    if (file) options.tuning_file = path_;
    const auto compiled = MustCompile(executor, b.Build(), scope, options);
    auto out = Floats(MustRun(executor, compiled, feeds)[0]);
    *report = compiled.tuning_report();
    return out;
  };
  // With several threads, too, one kernel after another is prepared: each measures alone.
  for (const int t : {1, 4}) {
    threads = t;
    SCOPED_TRACE(t);
    fs::remove(path_);
    TuningReport plain, first, second, only_read;
    const auto want = run(false, false, &plain);
    EXPECT_EQ(plain.measured + plain.kept, 0);
    const auto tuned = run(true, true, &first);
    if (first.measured == 0) GTEST_SKIP() << "this build has one way of convolving";
    EXPECT_EQ(first.measured, 1) << Content();  // two of one form; for groups there is one way
    EXPECT_EQ(first.kept, 1);
    run(true, true, &second);
    EXPECT_EQ(second.measured, 0);
    EXPECT_EQ(second.kept, 2);
    run(false, true, &only_read);
    EXPECT_EQ(only_read.measured, 0);
    EXPECT_EQ(only_read.kept, 2);
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(want[i], tuned[i], 1e-4 * (1 + std::abs(want[i])));
  }
}

}  // namespace
}  // namespace heddle::testing
