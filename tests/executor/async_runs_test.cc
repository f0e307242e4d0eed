// Asynchronous runs: order, cancelling, deadlines, callbacks, and the end of an executor.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <random>
#include <thread>

#include "heddle/async_run.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

Program Doubling() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Scale("x", "y", 2).Fetch("y");
  return b.Build();
}

// Goes on for as long as nobody ends it.
Program Endless() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {1}).Feed("go", DType::kBool, {1}).Scale("x", "y", 1);
  const int body = b.Block(0);
  b.Op("while", {{"X", {"y"}}, {"Condition", {"go"}}}, {{"Out", {"y"}}, {"StepScopes", {}}},
       {{"sub_block", BlockRef{body}}});
  b.In(body).Scale("y", "y", 1);
  b.Op("logical_or", {{"X", {"go"}}, {"Y", {"go"}}}, {{"Out", {"go"}}});
  b.In(0).Fetch("y");
  return b.Build();
}

std::vector<Feed> EndlessFeeds() { return {{"x", F32({1}, {1})}, {"go", Bool(true)}}; }

class AsyncRuns : public ::testing::TestWithParam<int> {
 protected:
  Executor executor_{{.threads = GetParam()}};
};

TEST_P(AsyncRuns, ManyInFlightHaveTheirOwnResults) {
  auto compiled = MustCompile(executor_, Doubling(), nullptr);
  std::vector<AsyncRun> runs;
  for (int k = 0; k < 64; ++k)
    runs.push_back(AsyncRun::Start(compiled, {{"x", F32({2}, {float(k), float(-k)})}}));
  std::vector<int> order(runs.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  std::shuffle(order.begin(), order.end(), std::mt19937(1));
  for (int k : order) {
    auto out = runs[k].Take();
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    EXPECT_EQ(Floats((*out)[0].tensor()), (std::vector<float>{2.f * k, -2.f * k}));
    EXPECT_TRUE(runs[k].done());
  }
  EXPECT_EQ(runs[0].Take().status().code(), StatusCode::kInvalidArgument);
}

TEST_P(AsyncRuns, WritersKeepTheOrderOfStarts) {
  ProgramBuilder b;
  b.Param("w", DType::kF32, {1}).Feed("x", DType::kF32, {1});
  b.Scale("w", "t", 2).Binary("elementwise_add", "t", "x", "w").Scale("w", "y", 1).Fetch("y");
  auto scope = std::make_shared<Scope>();
  scope->Set("w", F32({1}, {0}));
  auto compiled = MustCompile(executor_, b.Build(), scope);
  ProgramBuilder reader;
  reader.Param("w", DType::kF32, {1}).Feed("x", DType::kF32, {1});
  reader.Binary("elementwise_add", "w", "x", "y").Fetch("y");
  auto reading = MustCompile(executor_, reader.Build(), scope);
  std::vector<AsyncRun> runs, reads;
  for (int k = 0; k < 20; ++k) {
    runs.push_back(AsyncRun::Start(compiled, {{"x", F32({1}, {float(k % 3)})}}));
    reads.push_back(AsyncRun::Start(reading, {{"x", F32({1}, {0})}}));
  }
  float w = 0;
  for (int k = 0; k < 20; ++k) {
    w = 2 * w + static_cast<float>(k % 3);
    EXPECT_EQ(Floats((*runs[k].Take())[0].tensor())[0], w) << k;
    EXPECT_EQ(Floats((*reads[k].Take())[0].tensor())[0], w) << k;
  }
}

// A write to a variable that shares the parameter's storage is one to the parameter.
TEST_P(AsyncRuns, WritersUnderAnotherNameKeepTheOrderToo) {
  ProgramBuilder b;
  b.Param("w", DType::kF32, {1}).Feed("x", DType::kF32, {1});
  b.Op("share_data", {{"X", {"w"}}}, {{"Out", {"s"}}});
  b.Scale("s", "t", 2).Binary("elementwise_add", "t", "x", "s").Scale("w", "y", 1).Fetch("y");
  auto scope = std::make_shared<Scope>();
  scope->Set("w", F32({1}, {0}));
  auto compiled = MustCompile(executor_, b.Build(), scope);
  std::vector<AsyncRun> runs;
  for (int k = 0; k < 40; ++k)
    runs.push_back(AsyncRun::Start(compiled, {{"x", F32({1}, {float(k % 3)})}}));
  float w = 0;
  for (int k = 0; k < 40; ++k) {
    w = 2 * w + static_cast<float>(k % 3);
    EXPECT_EQ(Floats((*runs[k].Take())[0].tensor())[0], w) << k;
  }
}

TEST_P(AsyncRuns, FailAsRunsDo) {
  auto compiled = MustCompile(executor_, Doubling(), nullptr);
  auto run = AsyncRun::Start(compiled, {{"z", F32({1}, {1})}});
  EXPECT_THAT(run.Take().status().message(), ::testing::HasSubstr("'z'"));
  EXPECT_EQ(Floats(MustRun(executor_, compiled, {{"x", F32({1}, {4})}})[0])[0], 8);
}

TEST_P(AsyncRuns, CallBackOnce) {
  auto compiled = MustCompile(executor_, Doubling(), nullptr);
  auto second = std::make_shared<std::promise<float>>();
  std::atomic<int> calls{0};
  AsyncRun::Start(compiled, {{"x", F32({1}, {3})}}, {}, [&calls, compiled, second](AsyncRun run) {
    ++calls;
    const float y = Floats((*run.Take())[0].tensor())[0];
    AsyncRun::Start(compiled, {{"x", F32({1}, {y})}}, {}, [&calls, second](AsyncRun next) {
      ++calls;
      second->set_value(Floats((*next.Take())[0].tensor())[0]);
    });
  });
  EXPECT_EQ(second->get_future().get(), 12);
  EXPECT_EQ(calls.load(), 2);
}

TEST_P(AsyncRuns, AreCancelledWaitingOrGoing) {
  auto endless = MustCompile(executor_, Endless(), nullptr);
  std::vector<AsyncRun> going;
  for (int k = 0; k < GetParam(); ++k) going.push_back(AsyncRun::Start(endless, EndlessFeeds()));
  std::atomic<int> calls{0};
  std::stop_source stop;
  auto waiting = AsyncRun::Start(endless, EndlessFeeds(), {}, [&](AsyncRun) { ++calls; });
  auto stopped = AsyncRun::Start(endless, EndlessFeeds(), {.stop = stop.get_token()});
  EXPECT_FALSE(waiting.WaitUntil(steady_clock::now() + milliseconds(20)));
  waiting.Cancel();
  EXPECT_TRUE(waiting.done());
  EXPECT_EQ(calls.load(), 1);
  EXPECT_EQ(waiting.Take().status().code(), StatusCode::kCancelled);
  stop.request_stop();
  EXPECT_TRUE(stopped.done());
  EXPECT_EQ(stopped.Take().status().code(), StatusCode::kCancelled);
  for (AsyncRun& run : going) {
    EXPECT_FALSE(run.done());
    run.Cancel();
    EXPECT_EQ(run.Take().status().code(), StatusCode::kCancelled);
    run.Cancel();  // nothing
  }
}

TEST_P(AsyncRuns, HaveDeadlinesWaitingOrGoing) {
  auto endless = MustCompile(executor_, Endless(), nullptr);
  std::vector<AsyncRun> runs;
  for (int k = 0; k < 2 * GetParam(); ++k)
    runs.push_back(AsyncRun::Start(endless, EndlessFeeds(),
                                   {.deadline = steady_clock::now() + milliseconds(50)}));
  for (AsyncRun& run : runs) EXPECT_EQ(run.Take().status().code(), StatusCode::kDeadlineExceeded);
}

TEST_P(AsyncRuns, WaitInVainWhenTheirDeadlineIsPast) {
  auto endless = MustCompile(executor_, Endless(), nullptr);
  std::vector<AsyncRun> going;
  for (int k = 0; k < GetParam(); ++k) going.push_back(AsyncRun::Start(endless, EndlessFeeds()));
  auto late = AsyncRun::Start(endless, EndlessFeeds(), {.deadline = steady_clock::now()});
  EXPECT_TRUE(late.WaitUntil(steady_clock::now() + std::chrono::seconds(20)));
  EXPECT_EQ(late.Take().status().code(), StatusCode::kDeadlineExceeded);
  for (AsyncRun& run : going) run.Cancel();
}

// As many runs are made at once as there may be, also when they are started in one go while one
// thread sleeps.
TEST_P(AsyncRuns, UseAllThreads) {
  auto endless = MustCompile(executor_, Endless(), nullptr);
  auto warm = AsyncRun::Start(MustCompile(executor_, Doubling(), nullptr), {{"x", F32({1}, {1})}});
  warm.Wait();
  bool all_began = false;
  for (int pause = 20; pause <= 2000 && !all_began; pause *= 10) {
    std::vector<AsyncRun> runs;
    for (int k = 0; k < GetParam(); ++k) runs.push_back(AsyncRun::Start(endless, EndlessFeeds()));
    std::this_thread::sleep_for(milliseconds(pause));
    all_began = true;
    for (AsyncRun& run : runs) {
      run.Cancel();
      const Status status = run.Take().status();
      EXPECT_EQ(status.code(), StatusCode::kCancelled);
      all_began = all_began && status.message().find("before it began") == std::string::npos;
    }
  }
  EXPECT_TRUE(all_began);
}

// Nobody holds the run when it ends, while its stop is asked for.
TEST_P(AsyncRuns, GoWithTheirLastReference) {
  auto endless = MustCompile(executor_, Endless(), nullptr);
  for (int round = 0; round < 50; ++round) {
    std::stop_source stop;
    auto ended = std::make_shared<std::promise<void>>();
    AsyncRun::Start(endless, EndlessFeeds(), {.stop = stop.get_token()},
                    [ended](const AsyncRun&) { ended->set_value(); });
    std::jthread stopper([&] { stop.request_stop(); });
    ended->get_future().wait();
  }
}

TEST_P(AsyncRuns, OutliveTheirExecutorCancelled) {
  std::vector<AsyncRun> runs;
  std::atomic<int> calls{0};
  {
    Executor executor({.threads = GetParam()});
    auto endless = MustCompile(executor, Endless(), nullptr);
    for (int k = 0; k < GetParam() + 3; ++k)
      runs.push_back(AsyncRun::Start(endless, EndlessFeeds(), {}, [&](AsyncRun) { ++calls; }));
    std::this_thread::sleep_for(milliseconds(10));
    std::jthread canceller([&] {  // those that are being made are waited for
      std::this_thread::sleep_for(milliseconds(50));
      for (AsyncRun& run : runs) run.Cancel();
    });
    // The executor's end waits here.
    executor.Trim();
  }
  EXPECT_EQ(calls.load(), GetParam() + 3);
  for (AsyncRun& run : runs) EXPECT_EQ(run.Take().status().code(), StatusCode::kCancelled);
}

TEST_P(AsyncRuns, TheirExecutorWaitsForCallbacks) {
  std::atomic<bool> called{false};
  std::promise<void> in_callback;
  std::jthread canceller;
  {
    Executor executor({.threads = GetParam()});
    auto endless = MustCompile(executor, Endless(), nullptr);
    std::vector<AsyncRun> going;
    for (int k = 0; k < GetParam(); ++k) going.push_back(AsyncRun::Start(endless, EndlessFeeds()));
    auto waiting =
        AsyncRun::Start(endless, EndlessFeeds(),
                        {.deadline = steady_clock::now() + std::chrono::hours(1)}, [&](AsyncRun) {
                          in_callback.set_value();
                          std::this_thread::sleep_for(milliseconds(50));
                          called = true;
                        });
    canceller = std::jthread([waiting]() mutable { waiting.Cancel(); });
    in_callback.get_future().wait();
    for (AsyncRun& run : going) run.Cancel();
  }
  EXPECT_TRUE(called.load());
}

TEST_P(AsyncRuns, AreStartedFromManyThreads) {
  auto compiled = MustCompile(executor_, Doubling(), nullptr);
  std::atomic<int> wrong{0};
  std::vector<std::jthread> clients;
  for (int c = 0; c < 4; ++c)
    clients.emplace_back([&, c] {
      for (int k = 0; k < 100; ++k) {
        const float x = static_cast<float>(100 * c + k);
        auto run = AsyncRun::Start(compiled, {{"x", F32({1}, {x})}});
        if (k % 5 == 0) {
          run.Cancel();
          const auto out = run.Take();
          if (!out.ok() && out.status().code() != StatusCode::kCancelled) ++wrong;
        } else if (Floats((*run.Take())[0].tensor())[0] != 2 * x) {
          ++wrong;
        }
      }
    });
  clients.clear();
  EXPECT_EQ(wrong.load(), 0);
}

INSTANTIATE_TEST_SUITE_P(Threads, AsyncRuns, ::testing::Values(1, 2, 4));

}  // namespace
}  // namespace heddle::testing
