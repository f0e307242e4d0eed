// Limits of time and memory of a run hold inside loops and long kernels, and the executor goes on.
#include "heddle/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <latch>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>

#include "heddle/bounds.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::AllOf;
using ::testing::HasSubstr;

class Limits : public ::testing::TestWithParam<int> {
 protected:
  CompiledProgram Compile(Executor& executor, const ProgramBuilder& b) {
    return MustCompile(executor, b.Build(), nullptr, {.opt_level = GetParam()});
  }
  static void ExpectUsable(Executor& executor) {
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {1}).Scale("x", "y", 2).Fetch("y");
    const auto out = MustRun(executor, MustCompile(executor, b.Build()), {{"x", F32({1}, {3})}});
    EXPECT_EQ(Floats(out[0]), std::vector<float>{6});
  }
};
INSTANTIATE_TEST_SUITE_P(Levels, Limits, ::testing::Values(0, 2));

// Draws numbers above and below the range of ExecutorOptions::threads and runs_at_once.
TEST(Bounds, NumbersOfThreadsAndRunsOutOfRangeAreErrors) {
  std::mt19937 random(4);
  for (int i = 0; i < 500; ++i) {
    const bool above = i % 2 == 0;
    const int value = above ? kMostThreads + 1 + static_cast<int>(random() >> (1 + random() % 21))
                            : -1 - static_cast<int>(random() >> (1 + random() % 31));
    ExecutorOptions options;
    const bool of_threads = i % 4 < 2;
    (of_threads ? options.threads : options.runs_at_once) = value;
    const Status status = CheckOptions(options);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << value;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(of_threads ? "threads" : "runs_at_once"), HasSubstr("0 to 1024")));
    EXPECT_THROW(Executor{options}, std::invalid_argument) << value;
  }
}

// n counts down to 0; with `grows`, x gets twice as long in each step.
ProgramBuilder Loop(double steps, bool grows) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Fill("n", {1}, steps, DType::kF64);
  b.Fill("none", {1}, 0, DType::kF64).Binary("greater_than", "n", "none", "go");
  const int body = b.Block(0);
  b.Op("while", {{"X", {"x", "n", "none"}}, {"Condition", {"go"}}},
       {{"Out", {"x", "n", "go"}}, {"StepScopes", {"s"}}},
       {{"sub_block", BlockRef{body}}, {"is_test", true}});
  b.Fetch("x");
  b.In(body).Increment("n", -1);
  if (grows)
    b.Op("concat", {{"X", {"x", "x"}}}, {{"Out", {"xx"}}}, {{"axis", 0}});
  else
    b.Scale("x", "xx", 1);
  b.Op("assign", {{"X", {"xx"}}}, {{"Out", {"x"}}});
  b.Binary("greater_than", "n", "none", "on").Op("assign", {{"X", {"on"}}}, {{"Out", {"go"}}});
  return b;
}

TEST_P(Limits, ADeadlineEndsALoop) {
  Executor executor({.threads = 2});
  const CompiledProgram loop = Compile(executor, Loop(1e15, false));
  const auto start = steady_clock::now();
  const auto out =
      executor.Run(loop, {{"x", F32({1}, {1})}}, {.deadline = start + milliseconds(50)});
  EXPECT_EQ(out.status().code(), StatusCode::kDeadlineExceeded) << out.status().ToString();
  EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(5));
  ExpectUsable(executor);
}

TEST_P(Limits, AStopEndsALoop) {
  Executor executor({.threads = 2});
  const CompiledProgram loop = Compile(executor, Loop(1e15, false));
  std::stop_source source;
  std::jthread stopper([&] {
    std::this_thread::sleep_for(milliseconds(30));
    source.request_stop();
  });
  const auto out = executor.Run(loop, {{"x", F32({1}, {1})}}, {.stop = source.get_token()});
  EXPECT_EQ(out.status().code(), StatusCode::kCancelled) << out.status().ToString();
  ExpectUsable(executor);
}

// A carried value doubles in each iteration, until it exceeds the limit of 4 MiB.
TEST_P(Limits, TheMemoryLimitHoldsInALoop) {
  Executor executor({.threads = 1, .memory_limit = 4 << 20});
  EXPECT_EQ(MustRun(executor, Compile(executor, Loop(10, true)), {{"x", F32({1}, {1})}})[0].numel(),
            1024);
  const auto out = executor.Run(Compile(executor, Loop(40, true)), {{"x", F32({1}, {1})}});
  EXPECT_EQ(out.status().code(), StatusCode::kResourceExhausted) << out.status().ToString();
  EXPECT_THAT(out.status().ToString(), HasSubstr("block 1, op "));
  ExpectUsable(executor);
}

TEST_P(Limits, OutputsThatAreTooLargeNameTheirOperator) {
  Executor executor({.threads = 1, .memory_limit = 1 << 20});
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {1});
  b.Op("expand_v2", {{"X", {"x"}}}, {{"Out", {"y"}}}, {{"shape", Ints{1 << 20}}}).Fetch("y");
  const auto out = executor.Run(Compile(executor, b), {{"x", F32({1}, {1})}});
  EXPECT_EQ(out.status().code(), StatusCode::kResourceExhausted) << out.status().ToString();
  EXPECT_THAT(out.status().ToString(), HasSubstr("(expand_v2 -> y)"));
  ExpectUsable(executor);
}

TEST_P(Limits, ALoopWithoutEndIsFoundOut) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {1}).Feed("go", DType::kBool, {1}).Fill("one", {1}, 1);
  b.Fill("two", {1}, 2);
  const int body = b.Block(0);
  b.Op("while", {{"X", {"x", "one", "two"}}, {"Condition", {"go"}}},
       {{"Out", {"x", "go"}}, {"StepScopes", {"s"}}},
       {{"sub_block", BlockRef{body}}, {"is_test", true}});
  b.Fetch("x");
  b.In(body).Increment("x").Binary("less_than", "one", "two", "on");
  b.Op("assign", {{"X", {"on"}}}, {{"Out", {"go"}}});
  Executor executor({.threads = 1});
  const CompiledProgram loop = Compile(executor, b);
  const auto run = [&](uint8_t go) {
    return executor.Run(
        loop, {{"x", F32({1}, {1})}, {"go", Tensor::Of<uint8_t>(DType::kBool, {1}, {go})}});
  };
  EXPECT_TRUE(run(0).ok());
  EXPECT_EQ(run(1).status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(run(1).status().ToString(), AllOf(HasSubstr("(while"), HasSubstr("never ends")));
}

TEST_P(Limits, WorkThatAnAttributeDecidesIsBoundedAndCanBeStopped) {
  const auto norm = [](int64_t iterations) {
    ProgramBuilder b;
    b.Feed("w", DType::kF32, {512, 512})
        .Feed("u", DType::kF32, {512})
        .Feed("v", DType::kF32, {512});
    b.Op("spectral_norm", {{"Weight", {"w"}}, {"U", {"u"}}, {"V", {"v"}}}, {{"Out", {"y"}}},
         {{"power_iters", iterations}});
    b.Fetch("y");
    return b;
  };
  const Tensor w = F32({512, 512}, std::vector<float>(512 * 512, 0.5f));
  const Tensor u = F32({512}, std::vector<float>(512, 1.f));
  Executor executor({.threads = 1});
  const std::vector<heddle::Feed> feeds = {{"w", w}, {"u", u}, {"v", u}};
  const auto beyond = executor.Run(Compile(executor, norm(int64_t{1} << 30)), feeds);
  EXPECT_EQ(beyond.status().code(), StatusCode::kInvalidArgument) << beyond.status().ToString();
  const auto start = steady_clock::now();
  const auto late =
      executor.Run(Compile(executor, norm(1 << 16)), feeds, {.deadline = start + milliseconds(20)});
  EXPECT_EQ(late.status().code(), StatusCode::kDeadlineExceeded) << late.status().ToString();
  EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(3));
}

TEST_P(Limits, TheHostIsCalledMeanwhileAndEndsARun) {
  for (const int threads : {1, 2}) {
    Executor executor({.threads = threads});
    const CompiledProgram loop = Compile(executor, Loop(1e15, false));
    const auto here = std::this_thread::get_id();
    int calls = 0;
    HostCalls* asks = nullptr;
    HostCalls host([&] {
      EXPECT_EQ(std::this_thread::get_id(), here);
      asks->Request();
      return ++calls < 100 ? Status::Ok() : Status(StatusCode::kCancelled, "the host is done");
    });
    asks = &host;
    host.Request();
    const auto out = executor.Run(loop, {{"x", F32({1}, {1})}}, {.host = &host});
    EXPECT_EQ(out.status().code(), StatusCode::kCancelled) << out.status().ToString();
    EXPECT_THAT(out.status().ToString(), HasSubstr("the host is done"));
    EXPECT_EQ(calls, 100);
    ExpectUsable(executor);
    // The failure of that call does not end the next run.
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {1}).Scale("x", "y", 2).Fetch("y");
    calls = 0;
    EXPECT_TRUE(executor.Run(Compile(executor, b), {{"x", F32({1}, {3})}}, {.host = &host}).ok());
  }
}

TEST_P(Limits, ACallOfTheHostMakesNoRun) {
  Executor executor({.threads = 2});
  const CompiledProgram loop = Compile(executor, Loop(1e15, false));
  Status inner;
  HostCalls host([&] {
    inner = executor.Run(loop, {{"x", F32({1}, {1})}}).status();
    return Status(StatusCode::kCancelled, "enough");
  });
  host.Request();
  EXPECT_EQ(executor.Run(loop, {{"x", F32({1}, {1})}}, {.host = &host}).status().code(),
            StatusCode::kCancelled);
  EXPECT_EQ(inner.code(), StatusCode::kInvalidArgument) << inner.ToString();
  ExpectUsable(executor);
}

// Whoever has the scope's lock may have it for long.
TEST_P(Limits, AWaitForAWriterEndsToo) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {1}).Scale("x", "y", 2).Fetch("y");
  b.Param("n", DType::kF32, {1}).Increment("n", 1);
  const auto scope = std::make_shared<Scope>();
  scope->Set("n", F32({1}, {0}));
  Executor executor({.threads = 2});
  const CompiledProgram counts = MustCompile(executor, b.Build(), scope, {.opt_level = GetParam()});
  const std::vector<heddle::Feed> feeds = {{"x", F32({1}, {3})}};
  for (const bool planned : {false, true}) {
    std::latch held(1), done(1);
    std::jthread other([&] {
      std::lock_guard lock(scope->write_mutex());
      held.count_down();
      done.wait();
    });
    held.wait();
    const auto late =
        executor.Run(counts, feeds, {.deadline = steady_clock::now() + milliseconds(20)});
    EXPECT_EQ(late.status().code(), StatusCode::kDeadlineExceeded) << late.status().ToString();
    std::stop_source stop;
    std::jthread stopper([&] { stop.request_stop(); });
    EXPECT_EQ(executor.Run(counts, feeds, {.stop = stop.get_token()}).status().code(),
              StatusCode::kCancelled);
    done.count_down();
    other.join();
    if (!planned) {
      EXPECT_TRUE(executor.Run(counts, feeds).ok());
    }
  }
  EXPECT_EQ(Floats(scope->Find("n")->tensor()), std::vector<float>{1});
}

TEST_P(Limits, CompilingEndsAtAnyLook) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {4});
  for (int i = 0; i < 30; ++i)
    b.Scale(i == 0 ? "x" : "v" + std::to_string(i - 1), "v" + std::to_string(i), 1.5);
  b.Fetch("v29");
  const Program program = b.Build();
  int end_at = 0, looks = 0;
  HostCalls* asks = nullptr;
  HostCalls host([&] {
    asks->Request();
    return ++looks == end_at ? Status(StatusCode::kCancelled, "enough") : Status::Ok();
  });
  asks = &host;
  Executor executor({.threads = 1});
  const auto prepare = [&] {
    looks = 0;
    host.Request();
    const LimitScope limits({.host = &host});
    const auto compiled =
        executor.Compile(program, nullptr, CompileOptions{.opt_level = GetParam()});
    if (!compiled.ok()) return compiled.status();
    return executor.Prepare(*compiled, {{"x", F32({4}, {1, 2, 3, 4})}}).status();
  };
  EXPECT_TRUE(prepare().ok());
  const int all = looks;
  EXPECT_GT(all, 10);
  for (end_at = 1; end_at <= all; end_at += 1 + all / 40) {
    EXPECT_EQ(prepare().code(), StatusCode::kCancelled) << "at look " << end_at << " of " << all;
    EXPECT_EQ(looks, end_at);
  }
  end_at = 0;
  EXPECT_TRUE(prepare().ok());
}

}  // namespace
}  // namespace heddle::testing
