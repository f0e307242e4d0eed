// Runs that are made again by another plan, since what their first one went by did not hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/program_builder.h"
#include "tests/support/test_ops.h"

namespace heddle::testing {
namespace {

[[maybe_unused]] const bool kInstalled = InstallTestOps();

// y = what the mask selects of x, of which the file declares that it is one element, plus a.
ProgramBuilder Selecting() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Feed("mask", DType::kBool, {-1}).Feed("a", DType::kF32, {-1});
  b.Op("masked_select", {{"X", {"x"}}, {"Mask", {"mask"}}}, {{"Y", {"some"}}});
  b.Var("same", DType::kF32, {1});
  b.Op("test_call", {{"X", {"some"}}}, {{"Out", {"same"}}});
  return b;
}

std::vector<heddle::Feed> SelectingFeeds() {
  Tensor mask = Tensor::Empty(DType::kBool, {4});
  for (int i = 0; i < 4; ++i) mask.mutable_data<bool>()[i] = i != 2;
  return {{"x", F32({4}, {1, 2, 3, 4})}, {"mask", mask}, {"a", F32({3}, {10, 20, 30})}};
}

// A call is kept before its kernel has run: when that fails, what it writes was not compared.
TEST(RepeatedRuns, ClaimsAreComparedWhereACallIsMadeAgain) {
  ProgramBuilder b = Selecting();
  b.Binary("elementwise_add", "a", "same", "y").Unary("tanh", "y", "z").Fetch("z");
  const Program program = b.Build();
  const auto calls_of = [&](int level, bool first_fails) {
    Executor executor({.threads = 1});
    const auto compiled = MustCompile(executor, program, nullptr, {.opt_level = level});
    if (first_fails) {
      const ScopedHook fails([](int64_t) { return Status(StatusCode::kInternal, "not now"); });
      EXPECT_FALSE(executor.Run(compiled, SelectingFeeds()).ok());
    }
    int calls = 0;
    const ScopedHook counts([&](int64_t) {
      ++calls;
      return Status::Ok();
    });
    for (int k = 0; k < 2; ++k) MustRun(executor, compiled, SelectingFeeds());
    return calls;
  };
  EXPECT_EQ(calls_of(0, true), 2);
  EXPECT_EQ(calls_of(2, false), 3);  // the first run is made again
  EXPECT_EQ(calls_of(2, true), 3);
}

// Each run draws the numbers of its place among the runs, though several are made again at once.
TEST(RepeatedRuns, RunsAtTheSameTimeDrawDifferentNumbers) {
  ProgramBuilder b = Selecting();
  b.Op("uniform_random", {}, {{"Out", {"noise"}}},
       {{"shape", Ints{3}},
        {"min", -1.0},
        {"max", 1.0},
        {"seed", int64_t{0}},
        {"dtype", int64_t{5}}});
  b.Binary("elementwise_add", "a", "same", "y").Unary("tanh", "y", "z").Fetch("z").Fetch("noise");
  const Program program = b.Build();
  Executor executor({.threads = 1});  // with more, a run that began alone keeps others waiting
  constexpr int kRuns = 4;
  const auto plain = MustCompile(executor, program, nullptr, {.opt_level = 0});
  std::vector<std::vector<float>> expected;
  for (int k = 0; k < kRuns; ++k)
    expected.push_back(Floats(MustRun(executor, plain, SelectingFeeds())[1]));
  std::sort(expected.begin(), expected.end());
  for (int times = 0; times < 10; ++times) {
    const auto compiled = MustCompile(executor, program, nullptr, {.opt_level = 2});
    // All are under way before the first one finds out.
    std::atomic<int> calls{0};
    const ScopedHook meet([&](int64_t) {
      ++calls;
      while (calls < kRuns) std::this_thread::yield();
      return Status::Ok();
    });
    std::vector<std::vector<float>> drawn(kRuns);
    std::vector<std::thread> callers;
    for (auto& mine : drawn)
      callers.emplace_back(
          [&] { mine = Floats(MustRun(executor, compiled, SelectingFeeds())[1]); });
    for (std::thread& t : callers) t.join();
    EXPECT_GT(calls, kRuns);
    std::sort(drawn.begin(), drawn.end());
    EXPECT_EQ(drawn, expected);
  }
}

// A run that was cancelled beside one that finds out is not made again.
TEST(RepeatedRuns, ACancelledRunStaysCancelled) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Feed("n", DType::kI64, {1}).Unary("assign", "x", "all");
  b.Fill("i", {1}, 0, DType::kI64).Binary("less_than", "i", "n", "go");
  const int body = b.Block(0);
  b.In(body);
  b.Op("test_jump", {{"X", {"all"}}}, {{"Out", {"some"}}});
  b.Op("concat", {{"X", {"all", "x"}}}, {{"Out", {"more"}}}, {{"axis", int64_t{0}}});
  b.Unary("assign", "more", "all").Increment("i").Binary("less_than", "i", "n", "go").In(0);
  b.Op("while", {{"X", {"all", "x", "i", "n"}}, {"Condition", {"go"}}},
       {{"Out", {"all", "i", "go"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{body}}});
  b.Op("test_call", {{"X", {"all"}}}, {{"Out", {"y"}}}).Scale("y", "z", 1).Fetch("z");
  Executor executor({.threads = 1});
  const auto compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = 0});
  const auto feeds = [](int64_t n) {
    return std::vector<heddle::Feed>{{"x", F32({1}, {1})}, {"n", I64({1}, {n})}};
  };
  std::stop_source stop;
  std::atomic<int> calls{0};
  const ScopedHook hook([&](int64_t) {
    if (++calls > 1) return Status::Ok();
    std::thread([&] { (void)executor.Run(compiled, feeds(8)); }).join();
    stop.request_stop();
    return Status::Ok();
  });
  const Status status = executor.Run(compiled, feeds(3), {.stop = stop.get_token()}).status();
  EXPECT_EQ(status.code(), StatusCode::kCancelled) << status.ToString();
  EXPECT_THAT(status.message(), ::testing::Not(::testing::HasSubstr("before it began")));
}

}  // namespace
}  // namespace heddle::testing
