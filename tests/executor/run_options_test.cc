// Control over runs from outside: cancelling, deadlines, stalls, reports and traces.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/program_builder.h"
#include "tests/support/test_ops.h"

namespace heddle::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

[[maybe_unused]] const bool kInstalled = InstallTestOps();

// Two branches of calls, joined. Calls have ids 0, 1, 2, … in program order.
ProgramBuilder Branches(int length) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {4});
  std::string ends[2];
  int id = 0;
  for (int k = 0; k < 2; ++k) {
    std::string at = "x";
    for (int i = 0; i < length; ++i) {
      const std::string next = "b" + std::to_string(k) + "_" + std::to_string(i);
      b.Op("test_call", {{"X", {at}}}, {{"Out", {next}}}, {{"id", id++}});
      at = next;
    }
    ends[k] = at;
  }
  return std::move(b.Binary("elementwise_add", ends[0], ends[1], "y").Fetch("y"));
}

class Control : public ::testing::TestWithParam<Schedule> {
 protected:
  Control() : compiled_(MustCompile(executor_, Branches(20).Build(), nullptr, {.schedule = GetParam()})) {}
  void ExpectUsable() {
    for (int k = 0; k < 3; ++k)
      EXPECT_EQ(Floats(MustRun(executor_, compiled_, feeds_)[0]), (std::vector<float>{2, 4, 6, 8}));
  }
  Executor executor_{{.threads = 2}};
  CompiledProgram compiled_;
  std::vector<Feed> feeds_{{"x", F32({4}, {1, 2, 3, 4})}};
};
INSTANTIATE_TEST_SUITE_P(Ways, Control,
                         ::testing::Values(Schedule::kSerial, Schedule::kParallel, Schedule::kLanes,
                                           Schedule::kAuto),
                         [](const auto& info) { return ScheduleName(info.param); });

TEST_P(Control, ARunCancelledInTheMiddleEndsAndTheExecutorGoesOn) {
  for (int at : {0, 7, 25, 38}) {
    std::stop_source stop;
    std::atomic<int> after{0};
    {
      ScopedHook hook([&](int64_t id) {
        if (stop.stop_requested()) ++after;
        if (id == at) stop.request_stop();
        return Status::Ok();
      });
      const auto out = executor_.Run(compiled_, feeds_, {.stop = stop.get_token()});
      ASSERT_FALSE(out.ok());
      EXPECT_EQ(out.status().code(), StatusCode::kCancelled) << out.status().ToString();
    }
    EXPECT_LE(after.load(), 2) << "instructions that were in execution already may end";
    ExpectUsable();
  }
}

TEST_P(Control, CancelledBeforeItBeginsNothingRuns) {
  std::stop_source stop;
  stop.request_stop();
  std::atomic<int> calls{0};
  ScopedHook hook([&](int64_t) {
    ++calls;
    return Status::Ok();
  });
  const auto out = executor_.Run(compiled_, feeds_, {.stop = stop.get_token()});
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().code(), StatusCode::kCancelled);
  EXPECT_EQ(calls.load(), 0);
}

TEST_P(Control, ADeadlineEndsARun) {
  {
    ScopedHook hook([](int64_t) {
      std::this_thread::sleep_for(milliseconds(5));
      return Status::Ok();
    });
    const auto start = steady_clock::now();
    const auto out = executor_.Run(compiled_, feeds_, {.deadline = start + milliseconds(30)});
    ASSERT_FALSE(out.ok());
    EXPECT_EQ(out.status().code(), StatusCode::kDeadlineExceeded) << out.status().ToString();
    EXPECT_GE(steady_clock::now() - start, milliseconds(30));
  }
  ExpectUsable();
  const auto out =
      executor_.Run(compiled_, feeds_, {.deadline = steady_clock::now() + std::chrono::hours(1)});
  EXPECT_TRUE(out.ok()) << out.status().ToString();
}

TEST_P(Control, ADeadlineAlsoEndsTheWaitForATurn) {
  std::atomic<bool> inside{false}, go{false};
  ScopedHook hook([&](int64_t id) {
    if (id == 0 && !inside.exchange(true))
      while (!go) std::this_thread::sleep_for(milliseconds(1));
    return Status::Ok();
  });
  std::thread first([&] { EXPECT_TRUE(executor_.Run(compiled_, feeds_).ok()); });
  while (!inside) std::this_thread::yield();
  const auto out =
      executor_.Run(compiled_, feeds_, {.deadline = steady_clock::now() + milliseconds(20)});
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().code(), StatusCode::kDeadlineExceeded) << out.status().ToString();
  go = true;
  first.join();
  ExpectUsable();
}

TEST_P(Control, AStallIsReportedWithTheInstructionThatIsStuck) {
  std::atomic<bool> told{false};
  std::string text;
  ScopedHook hook([&](int64_t id) {
    for (int i = 0; id == 13 && !told && i < 5000; ++i) std::this_thread::sleep_for(milliseconds(1));
    return Status::Ok();
  });
  RunOptions options;
  options.stall_limit = milliseconds(20);
  options.on_stall = [&](const std::string& what) {
    if (!told) text = what;
    told = true;
  };
  EXPECT_TRUE(executor_.Run(compiled_, feeds_, options).ok());
  ASSERT_TRUE(told.load());
  EXPECT_THAT(text, ::testing::HasSubstr("test_call"));
  EXPECT_THAT(text, ::testing::HasSubstr("b0_13"));
}

TEST_P(Control, AReportAndATraceTellWhatRan) {
  for (int k = 0; k < 40; ++k) {  // also while kAuto finds its way
    RunReport report;
    ASSERT_TRUE(executor_.Run(compiled_, feeds_, {.report = &report, .trace = true}).ok());
    EXPECT_GT(report.run_us, 0);
    ASSERT_EQ(report.events.size(), 41u);
    for (const TraceEvent& e : report.events) {
      EXPECT_LE(e.begin_us, e.end_us);
      EXPECT_GE(e.lane, 0);
      EXPECT_LT(e.lane, 2);
    }
    const auto json = nlohmann::json::parse(report.ToChromeTrace());
    ASSERT_EQ(json["traceEvents"].size(), 41u);
    EXPECT_EQ(json["traceEvents"][40]["name"], "elementwise_add");
    EXPECT_EQ(json["traceEvents"][40]["args"]["output"], "y");
    if (GetParam() == Schedule::kLanes) {
      EXPECT_EQ(report.dispatch, "lanes");
      EXPECT_EQ(report.lanes, 2);
      EXPECT_GT(report.work_us, report.critical_path_us);
    }
  }
}

TEST(Tuning, SettlesAndNeverOnLanesForAChain) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {16});
  for (int i = 0; i < 300; ++i) b.Scale(i ? "t" + std::to_string(i - 1) : "x", "t" + std::to_string(i), 1);
  b.Fetch("t299");
  Executor executor({.threads = 2});
  auto compiled = MustCompile(executor, b.Build(), nullptr, {});
  RunReport report;
  ASSERT_TRUE(executor.Run(compiled, {{"x", F32({16}, std::vector<float>(16, 1))}}, {.report = &report}).ok());
  EXPECT_TRUE(report.settled) << "a chain needs no measuring";
  EXPECT_EQ(report.dispatch, "serial");
}

// Twenty branches that need memory of their own, on a device with little more than the plan needs.
TEST(Tuning, KeepsWithinAMemoryLimitThatThePlanNeeds) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {4096});
  std::string sum = "x";
  for (int k = 0; k < 20; ++k) {
    const std::string t = "t" + std::to_string(k);
    b.Op("test_call", {{"X", {"x"}}}, {{"Out", {t}}}, {{"id", k}});
    b.Binary("elementwise_add", sum, t, "s" + std::to_string(k));
    sum = "s" + std::to_string(k);
  }
  b.Fetch(sum);
  ScopedHook hook([](int64_t) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    return Status::Ok();
  });
  const std::vector<Feed> feeds = {{"x", F32({4096}, std::vector<float>(4096, 1))}};
  size_t needed = 0;
  {
    Executor free({.threads = 2});
    needed = free.Prepare(MustCompile(free, b.Build(), nullptr, {.schedule = Schedule::kSerial}),
                          feeds)->arena_bytes;
  }
  Executor executor({.threads = 2, .memory_limit = needed + 4096 * sizeof(float) + 4096});
  auto compiled = MustCompile(executor, b.Build(), nullptr, {});
  for (int k = 0; k < 60; ++k) {
    const auto out = executor.Run(compiled, feeds);
    ASSERT_TRUE(out.ok()) << "run " << k << ": " << out.status().ToString();
  }
}

TEST(Tuning, RunsWithoutMemoryFailOneByOneAndNobodyWaitsForThem) {
  Executor executor({.threads = 2, .memory_limit = 64});
  auto compiled = MustCompile(executor, Branches(20).Build(), nullptr, {});
  for (int k = 0; k < 5; ++k) {  // a place in the gate that is not given back would end this here
    const auto out = executor.Run(compiled, {{"x", F32({4}, {1, 2, 3, 4})}});
    ASSERT_FALSE(out.ok());
    EXPECT_EQ(out.status().code(), StatusCode::kResourceExhausted) << out.status().ToString();
  }
}

TEST(Tuning, SettlesForBranchesWithinSomeRuns) {
  Executor executor({.threads = 2});
  auto compiled = MustCompile(executor, Branches(20).Build(), nullptr, {});
  ScopedHook hook([](int64_t) {
    const auto until = steady_clock::now() + std::chrono::microseconds(20);
    while (steady_clock::now() < until) {
    }
    return Status::Ok();
  });
  RunReport report;
  int runs = 0;
  do {
    ASSERT_TRUE(executor.Run(compiled, {{"x", F32({4}, {1, 2, 3, 4})}}, {.report = &report}).ok());
  } while (!report.settled && ++runs < 100);
  EXPECT_LT(runs, 100);
}

}  // namespace
}  // namespace heddle::testing
