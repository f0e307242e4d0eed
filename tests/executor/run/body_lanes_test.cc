// Sub-blocks whose instructions several threads share while block 0 waits for them.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <stop_token>
#include <thread>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

constexpr int64_t kSize = 48;

// for (i = 0; i < n; ++i) { a = step(a); b = step(b); h += a + b tanh(x) }, where a step is a few
// products: the two need nothing of each other, and tanh(x) is the same in each iteration.
class TwoBranches {
 public:
  TwoBranches() {
    b_.Feed("x", DType::kF32, {kSize, kSize}).Feed("n", DType::kF32, {1});
    b_.Param("w", DType::kF32, {kSize, kSize});
    for (const char* name : {"a", "b", "h"}) b_.Scale("x", name, 1);
    b_.Fill("i", {1}, 0).Binary("less_than", "i", "n", "go");
    body_ = b_.Block(0);
    b_.In(body_);
    for (const char* name : {"a", "b"}) Branch(name);
    b_.Unary("tanh", "x", "same").Binary("elementwise_mul", "b", "same", "c");
    b_.Binary("elementwise_add", "a", "c", "d").Binary("elementwise_add", "h", "d", "h");
  }

  ProgramBuilder& builder() { return b_; }
  int body() const { return body_; }

  Program Build() {
    b_.Increment("i").Binary("less_than", "i", "n", "go").In(0);
    b_.Op("while", {{"X", {"i", "n", "a", "b", "h", "x", "w"}}, {"Condition", {"go"}}},
          {{"Out", {"i", "go", "a", "b", "h"}}, {"StepScopes", {}}},
          {{"sub_block", BlockRef{body_}}});
    for (const char* name : {"a", "b", "h"}) b_.Fetch(name);
    return b_.Build();
  }

  static std::vector<heddle::Feed> Feeds(float n) {
    return {{"x", RandomF32({kSize, kSize}, 1)}, {"n", F32({1}, {n})}};
  }
  static std::shared_ptr<Scope> Weights() {
    auto scope = std::make_shared<Scope>();
    scope->Set("w", RandomF32({kSize, kSize}, 2, 0.2F));
    return scope;
  }

 private:
  void Branch(const std::string& name) {
    std::string from = name;
    for (int k = 0; k < 3; ++k) {
      const std::string product = name + "p" + std::to_string(k),
                        next = k == 2 ? name : name + std::to_string(k);
      b_.Op("matmul_v2", {{"X", {from}}, {"Y", {"w"}}}, {{"Out", {product}}});
      b_.Unary("tanh", product, next);
      from = next;
    }
  }

  ProgramBuilder b_;
  int body_ = 0;
};

class BodyLanes : public ::testing::TestWithParam<int> {
 protected:
  CompiledProgram Compile(TwoBranches& loop, Schedule schedule = Schedule::kLanes) {
    return MustCompile(executor_, loop.Build(), TwoBranches::Weights(),
                       {.opt_level = 0, .schedule = schedule});
  }
  Executor executor_{{.threads = GetParam(), .poison = true}};
};
INSTANTIATE_TEST_SUITE_P(Threads, BodyLanes, ::testing::Values(2, 8));

std::string BitsOf(const std::vector<Tensor>& values) {
  std::string bits;
  for (const Tensor& t : values) bits += Bits(t);
  return bits;
}

std::string SerialBits(TwoBranches& loop, float n) {
  Executor executor({.threads = 1});
  return BitsOf(MustRun(executor,
                        MustCompile(executor, loop.Build(), TwoBranches::Weights(),
                                    {.opt_level = 0, .schedule = Schedule::kSerial}),
                        TwoBranches::Feeds(n)));
}

TEST_P(BodyLanes, ThePlanHasThem) {
  TwoBranches loop;
  const auto compiled = Compile(loop);
  const auto plan = executor_.DescribePlan(compiled, TwoBranches::Feeds(3));
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_EQ(plan->dispatch, "serial");
  std::set<int> lanes;
  for (const auto& in : plan->instructions) {
    if (in.block == loop.body()) lanes.insert(in.lane);
    EXPECT_TRUE(in.block != 0 || in.lane == -1) << in.op;
  }
  EXPECT_EQ(lanes.count(-1), 0u);
  EXPECT_GE(lanes.size(), 2u);
  EXPECT_NE(executor_.PlanText(compiled, TwoBranches::Feeds(3)).value().find("lanes in blocks"),
            std::string::npos);
}

TEST_P(BodyLanes, GiveTheSameBits) {
  TwoBranches loop, again;
  const auto compiled = Compile(loop);
  for (const float n : {3.F, 0.F, 1.F, 40.F}) {
    TwoBranches serial;
    EXPECT_EQ(BitsOf(MustRun(executor_, compiled, TwoBranches::Feeds(n))), SerialBits(serial, n))
        << n;
  }
}

// Nobody is told to use them: trials find it out.
TEST_P(BodyLanes, AreTried) {
  TwoBranches loop, serial;
  const auto compiled = Compile(loop, Schedule::kAuto);
  const std::string want = SerialBits(serial, 20);
  std::set<int> threads;
  for (int run = 0; run < 200; ++run) {
    RunReport report;
    const auto out = executor_.Run(compiled, TwoBranches::Feeds(20), {.report = &report});
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    ASSERT_EQ(BitsOf(*out), want) << run;
    threads.insert(report.threads);
    EXPECT_EQ(report.lanes, report.threads);
    EXPECT_EQ(report.dispatch, "serial");
  }
  EXPECT_GT(*threads.rbegin(), 1);
}

TEST_P(BodyLanes, RunsOfOneLoopBesideEachOther) {
  TwoBranches loop, serial;
  const auto compiled = Compile(loop);
  const std::string want = SerialBits(serial, 20);
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c)
    callers.emplace_back([&] {
      for (int run = 0; run < 10; ++run)
        wrong += BitsOf(MustRun(executor_, compiled, TwoBranches::Feeds(20))) != want;
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

// An instruction of one lane fails: the error names it, and the executor stays usable.
TEST_P(BodyLanes, AnErrorEndsTheLoop) {
  TwoBranches loop;
  auto& b = loop.builder();
  b.Fill("last", {1}, 4).Binary("less_than", "i", "last", "fine");
  b.Op("assert", {{"Cond", {"fine"}}, {"Data", {"i"}}}, {});
  const auto compiled = Compile(loop);
  const auto out = executor_.Run(compiled, TwoBranches::Feeds(9));
  ASSERT_FALSE(out.ok());
  EXPECT_NE(out.status().ToString().find("assert"), std::string::npos) << out.status().ToString();
  TwoBranches serial;
  EXPECT_EQ(BitsOf(MustRun(executor_, compiled, TwoBranches::Feeds(3))), SerialBits(serial, 3));
}

TEST_P(BodyLanes, ADeadlineEndsTheLoop) {
  TwoBranches loop;
  const auto compiled = Compile(loop);
  const auto soon = std::chrono::steady_clock::now() + std::chrono::milliseconds(30);
  const auto out = executor_.Run(compiled, TwoBranches::Feeds(1e7F), {.deadline = soon});
  EXPECT_EQ(out.status().code(), StatusCode::kDeadlineExceeded) << out.status().ToString();
}

// The plan is there before the run: the stop comes while lanes are under way.
TEST_P(BodyLanes, CancellingEndsTheLoop) {
  TwoBranches loop, serial;
  const auto compiled = Compile(loop);
  ASSERT_TRUE(executor_.Prepare(compiled, TwoBranches::Feeds(3)).ok());
  std::stop_source stop;
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    stop.request_stop();
  });
  const auto out = executor_.Run(compiled, TwoBranches::Feeds(1e7F), {.stop = stop.get_token()});
  canceller.join();
  EXPECT_EQ(out.status().code(), StatusCode::kCancelled) << out.status().ToString();
  EXPECT_EQ(BitsOf(MustRun(executor_, compiled, TwoBranches::Feeds(3))), SerialBits(serial, 3));
}

// Each thread's events and spans fill its time, whichever threads came.
TEST_P(BodyLanes, TracesNameTheThreads) {
  TwoBranches loop;
  const auto compiled = Compile(loop);
  std::set<int> threads;
  for (int run = 0; run < 50 && threads.size() < 2; ++run) {
    RunReport report;
    const auto out =
        executor_.Run(compiled, TwoBranches::Feeds(50), {.report = &report, .trace = true});
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    int64_t products = 0;
    for (const TraceEvent& e : report.events) {
      if (e.block == loop.body()) threads.insert(e.thread);
      products += e.op == "matmul_v2" ? e.times : 0;
    }
    EXPECT_EQ(products, 50 * 6);
    std::vector<std::pair<double, double>> times;  // of thread 1
    for (const TraceEvent& e : report.events)
      if (e.thread == 1) times.emplace_back(e.begin_us, e.end_us);
    for (const TraceSpan& s : report.spans)
      if (s.thread == 1) times.emplace_back(s.begin_us, s.end_us);
    std::sort(times.begin(), times.end());
    double end = 0;
    for (const auto& [from, to] : times) {
      EXPECT_LE(from, end + 1e-3) << "a gap";
      end = std::max(end, to);
    }
  }
  EXPECT_GE(threads.size(), 2u);
}

TEST_P(BodyLanes, AreFollowed) {
  TwoBranches first, second, serial;
  const auto compiled = Compile(first);
  auto plan = executor_.DescribePlan(compiled, TwoBranches::Feeds(3));
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  Executor executor({.threads = GetParam()});
  const auto follows =
      MustCompile(executor, second.Build(), TwoBranches::Weights(),
                  {.opt_level = 0, .follow = std::make_shared<const PlanDescription>(*plan)});
  EXPECT_EQ(BitsOf(MustRun(executor, follows, TwoBranches::Feeds(3))), SerialBits(serial, 3));
}

}  // namespace
}  // namespace heddle::testing
