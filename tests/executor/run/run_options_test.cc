// Control over runs from outside: cancelling, deadlines, stalls, reports and traces.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
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
  Control()
      : compiled_(MustCompile(executor_, Branches(20).Build(), nullptr, {.schedule = GetParam()})) {
  }
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
    std::atomic<bool> stopped{false};  // the run knows: request_stop calls it
    {
      ScopedHook hook([&](int64_t id) {
        if (stopped) ++after;
        if (id == at) {
          stop.request_stop();
          stopped = true;
        }
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

TEST_P(Control, APastDeadlineLetsNothingRun) {
  const auto out = executor_.Run(compiled_, feeds_, {.deadline = steady_clock::now()});
  EXPECT_EQ(out.status().code(), StatusCode::kDeadlineExceeded) << out.status().ToString();
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
    for (int i = 0; id == 13 && !told && i < 5000; ++i)
      std::this_thread::sleep_for(milliseconds(1));
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
    ASSERT_GT(json["traceEvents"].size(), 41u);  // spans and memory come behind the events
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
  for (int i = 0; i < 300; ++i)
    b.Scale(i ? "t" + std::to_string(i - 1) : "x", "t" + std::to_string(i), 1);
  b.Fetch("t299");
  Executor executor({.threads = 2});
  auto compiled = MustCompile(executor, b.Build(), nullptr, {});
  RunReport report;
  ASSERT_TRUE(
      executor.Run(compiled, {{"x", F32({16}, std::vector<float>(16, 1))}}, {.report = &report})
          .ok());
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
    needed =
        free.Prepare(MustCompile(free, b.Build(), nullptr, {.schedule = Schedule::kSerial}), feeds)
            ->arena_bytes;
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

// y = log(x) scaled, beside a branch that stays finite; then a step that moves w by the gradient y.
ProgramBuilder Diverging() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, 3}).Param("w", DType::kF32, {2, 3}).Param("lr", DType::kF32, {1});
  b.Scale("x", "other", 2).Unary("log", "x", "logged").Scale("logged", "y", 3);
  b.Binary("elementwise_add", "other", "y", "sum");
  b.Op("sgd", {{"Param", {"w"}}, {"Grad", {"y"}}, {"LearningRate", {"lr"}}}, {{"ParamOut", {"w"}}});
  return std::move(b.Fetch("sum"));
}
std::shared_ptr<Scope> DivergingScope() {
  auto scope = std::make_shared<Scope>();
  scope->Set("w", F32({2, 3}, std::vector<float>(6, 1.f)));
  scope->Set("lr", F32({1}, {1}));
  return scope;
}

TEST_P(Control, CheckNanInfNamesTheOperatorTheVariableAndTheElement) {
  auto scope = DivergingScope();
  const auto compiled =
      MustCompile(executor_, Diverging().Build(), scope, {.schedule = GetParam()});
  const std::vector<Feed> good{{"x", F32({2, 3}, std::vector<float>(6, 1.f))}};
  const std::vector<Feed> bad{{"x", F32({2, 3}, {1, 1, 1, 1, 1, 0})}};
  for (int k = 0; k < 3; ++k) {
    ASSERT_TRUE(executor_.Run(compiled, good, {.check_nan_inf = true}).ok());
    const Status status = executor_.Run(compiled, bad, {.check_nan_inf = true}).status();
    EXPECT_EQ(status.code(), StatusCode::kOutOfRange) << status.ToString();
    EXPECT_THAT(status.ToString(), ::testing::AllOf(::testing::HasSubstr("op 2 (log"),
                                                    ::testing::HasSubstr("variable 'logged'"),
                                                    ::testing::HasSubstr("-inf at [1, 2]")));
    EXPECT_EQ(Floats(scope->Find("w")->tensor()), std::vector<float>(6, 1.f))
        << "what comes after the bad value must not run";
  }
  // Without the option the value goes where it goes.
  ASSERT_TRUE(executor_.Run(compiled, bad).ok());
  EXPECT_EQ(Floats(scope->Find("w")->tensor())[5], std::numeric_limits<float>::infinity());
}

TEST(CheckNanInf, SeesAVariableThatIsRewrittenInPlace) {
  Executor executor({.threads = 1});
  ProgramBuilder b;
  b.Feed("g", DType::kF32, {2}).Param("w", DType::kF32, {2}).Param("lr", DType::kF32, {1});
  b.Op("sgd", {{"Param", {"w"}}, {"Grad", {"g"}}, {"LearningRate", {"lr"}}}, {{"ParamOut", {"w"}}});
  auto scope = std::make_shared<Scope>();
  scope->Set("w", F32({2}, {1, 1}));
  scope->Set("lr", F32({1}, {1}));
  const auto compiled = MustCompile(executor, b.Build(), scope);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Status status =
      executor.Run(compiled, {{"g", F32({2}, {0, nan})}}, {.check_nan_inf = true}).status();
  EXPECT_THAT(
      status.ToString(),
      ::testing::AllOf(::testing::HasSubstr("sgd"), ::testing::HasSubstr("'ParamOut'"),
                       ::testing::HasSubstr("variable 'w'"), ::testing::HasSubstr("nan at [1]")));
}

TEST(CheckNanInf, LooksInsideSubBlocksAndAtSparseRows) {
  Executor executor({.threads = 1});
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {1}).Feed("go", DType::kBool, {1}).Var("y", DType::kF32, {1});
  b.Fill("y", {1}, 0);
  const int body = b.Block(0);
  b.In(body).Unary("log", "x", "y");
  b.In(0).Op("conditional_block", {{"Cond", {"go"}}, {"Input", {"x"}}},
             {{"Out", {"y"}}, {"Scope", {"steps"}}},
             {{"sub_block", BlockRef{body}}, {"is_scalar_condition", true}});
  b.Fetch("y");
  const auto compiled = MustCompile(executor, b.Build(), nullptr);
  const std::vector<Feed> zero{{"x", F32({1}, {0})}, {"go", Bool(true)}};
  const Status status = executor.Run(compiled, zero, {.check_nan_inf = true}).status();
  EXPECT_EQ(status.code(), StatusCode::kOutOfRange) << status.ToString();
  EXPECT_THAT(status.ToString(), ::testing::HasSubstr("log"));
}

TEST_P(Control, KeptVariablesAreReadableAfterARun) {
  auto scope = DivergingScope();
  const auto compiled = MustCompile(executor_, Diverging().Build(), scope,
                                    {.keep = {"logged", "w", "other"}, .schedule = GetParam()});
  ASSERT_EQ(compiled.outputs().size(), 1u);
  const float e = std::exp(1.f);
  for (int k = 1; k <= 6; ++k) {
    std::vector<std::pair<std::string, Value>> kept;
    const auto out =
        executor_.Run(compiled, {{"x", F32({2, 3}, {e, e, e, e, e, e})}}, {.kept = &kept});
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    EXPECT_EQ(out->size(), 1u);
    ASSERT_EQ(kept.size(), 3u);
    EXPECT_EQ(kept[0].first, "logged");
    EXPECT_NEAR(Floats(kept[0].second.tensor())[4], 1.f, 1e-6f);
    EXPECT_NEAR(Floats(kept[1].second.tensor())[4], 1.f - 3.f * static_cast<float>(k), 1e-4f);
    EXPECT_EQ(Floats(kept[2].second.tensor())[4], 2 * e);
    // A kept copy is the caller's own.
    kept[1].second.tensor().mutable_data<float>()[4] = 100;
    kept[0].second.tensor().mutable_data<float>()[4] = 100;
  }
  EXPECT_TRUE(executor_.Run(compiled, {{"x", F32({2, 3}, {e, e, e, e, e, e})}}).ok());
}

TEST(Keep, SaysWhichVariableTheProgramLacks) {
  Executor executor({.threads = 1});
  const auto compiled =
      executor.Compile(Diverging().Build(), DivergingScope(), {.keep = {"nothing"}});
  EXPECT_EQ(compiled.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(compiled.status().ToString(), ::testing::HasSubstr("cannot keep 'nothing'"));
}

// for (i = 0; i < n; ++i) h = h + x
ProgramBuilder Loop() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2}).Feed("n", DType::kI64, {1}).Scale("x", "h", 0);
  b.Fill("i", {1}, 0, DType::kI64).Binary("less_than", "i", "n", "go");
  const int body = b.Block(0);
  b.In(body).Binary("elementwise_add", "h", "x", "t").Unary("assign", "t", "h");
  b.Increment("i").Binary("less_than", "i", "n", "go").In(0);
  b.Op("while", {{"X", {"h", "x", "i", "n"}}, {"Condition", {"go"}}},
       {{"Out", {"h", "i", "go"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{body}}});
  return std::move(b.Scale("h", "y", 1).Fetch("y"));
}

TEST_P(Control, EachIterationHasItsEvents) {
  auto compiled =
      MustCompile(executor_, Loop().Build(), nullptr, {.opt_level = 0, .schedule = GetParam()});
  for (const int64_t n : {0, 1, 5}) {
    RunReport report;
    const auto out = executor_.Run(compiled, {{"x", F32({2}, {1, 2})}, {"n", I64({1}, {n})}},
                                   {.report = &report, .trace = true});
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    EXPECT_EQ(Floats((*out)[0]), (std::vector<float>{1.f * n, 2.f * n}));
    const TraceEvent* loop = nullptr;
    double inside = 0;
    int64_t sums = 0;
    for (const TraceEvent& e : report.events) {
      if (e.op == "while") loop = &e;
      if (e.block == 1) inside += e.end_us - e.begin_us;
      sums += e.block == 1 && e.op == "elementwise_add" ? e.times : 0;
    }
    EXPECT_EQ(sums, n);
    ASSERT_NE(loop, nullptr);
    EXPECT_NEAR(loop->self_us + inside, loop->end_us - loop->begin_us, 1e-6);
    for (const TraceEvent& e : report.events) {
      if (e.block != 1) continue;
      EXPECT_GE(e.begin_us, loop->begin_us);
      EXPECT_LE(e.end_us, loop->end_us);
      EXPECT_EQ(e.lane, loop->lane);
      EXPECT_EQ(e.times, 1);
    }
  }
}

// More instructions than there is room for: the rest is added up, and nothing is lost.
TEST_P(Control, EventsOfALongLoopAreAddedUp) {
  auto compiled =
      MustCompile(executor_, Loop().Build(), nullptr, {.opt_level = 0, .schedule = GetParam()});
  constexpr int64_t kTrips = 50000;
  RunReport report;
  const auto out = executor_.Run(compiled, {{"x", F32({2}, {1, 2})}, {"n", I64({1}, {kTrips})}},
                                 {.report = &report, .trace = true});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_LT(report.events.size(), 70000u);
  std::map<std::string, int64_t> times;
  double self = 0, loop = 0;
  for (const TraceEvent& e : report.events) {
    if (e.block == 1) times[e.op] += e.times;
    if (e.block == 1 || e.op == "while") self += e.self_us;
    if (e.op == "while") loop = e.end_us - e.begin_us;
  }
  EXPECT_EQ(times["elementwise_add"], kTrips);
  EXPECT_EQ(times["increment"], kTrips);
  EXPECT_NEAR(self, loop, 1e-3 * loop);
}

}  // namespace
}  // namespace heddle::testing
