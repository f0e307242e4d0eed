// Processes that fork: what the child can do while the parent's other threads are in the middle of
// something.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <optional>
#include <random>
#include <thread>

#include "heddle/async_run.h"
#include "tests/support/program_builder.h"
#include "tests/support/test_ops.h"

namespace heddle::testing {
namespace {

using std::chrono::steady_clock;

[[maybe_unused]] const bool kInstalled = InstallTestOps();

Program Doubled() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Scale("x", "a", 4).Scale("x", "b", 2);
  b.Binary("elementwise_sub", "a", "b", "y").Fetch("y").Fetch("a");
  return b.Build();
}

// Goes on for as long as nobody ends it.
Program Unending() {
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

// What a test's processes share.
struct Household {
  explicit Household(int threads)
      : executor(std::make_unique<Executor>(ExecutorOptions{.threads = threads})),
        doubled(MustCompile(*executor, Doubled(), nullptr)),
        slow(std::make_unique<Executor>(ExecutorOptions{.threads = threads})),
        unending(MustCompile(*slow, Unending(), nullptr)) {}

  bool Runs(Executor& on, const CompiledProgram& program) {
    auto out = on.Run(program, {{"x", F32({2}, {3, -1})}});
    return out.ok() && Floats((*out)[0]) == std::vector<float>{6, -2};
  }
  bool Runs() { return Runs(*executor, *doubled); }
  // Outputs of other shapes than before need memory from the system or the pool.
  std::vector<Tensor> Outputs(int n) {
    auto out = executor->Run(*doubled, {{"x", F32({n}, std::vector<float>(size_t(n), 1))}});
    return out.ok() ? *out : std::vector<Tensor>();
  }

  std::unique_ptr<Executor> executor;
  std::optional<CompiledProgram> doubled;
  std::unique_ptr<Executor> slow;  // for others, a run that began alone has all threads to its end
  std::optional<CompiledProgram> unending;
  std::vector<Tensor> outputs;
  std::optional<AsyncRun> ended, under_way;
};

using Act = std::function<bool(Household&)>;

// In a child process: whatever the parent's threads did.
const std::vector<Act> kAlways = {
    [](Household& h) {  // drops what it has
      h.outputs.clear();
      return true;
    },
    [](Household& h) {  // begins anew
      Household mine(2);
      h.outputs.clear();
      return mine.Runs() && mine.Runs();
    },
    [](Household& h) {  // a run of the other process is none of this one's
      if (!h.under_way) return true;
      return h.under_way->done() && !h.under_way->Take().ok() && h.ended->done() &&
             h.ended->Take().ok();
    }};

// Where nobody else was in the executor.
const std::vector<Act> kAlone = {
    [](Household& h) { return h.Runs() && h.Runs(); },
    [](Household& h) {  // deadlines hold
      const auto end = steady_clock::now() + std::chrono::milliseconds(50);
      auto out =
          h.slow->Run(*h.unending, {{"x", F32({1}, {1})}, {"go", Bool(true)}}, {.deadline = end});
      return out.status().code() == StatusCode::kDeadlineExceeded;
    },
    [](Household& h) {  // runs go on by themselves
      AsyncRun run = AsyncRun::Start(*h.doubled, {{"x", F32({2}, {3, -1})}});
      auto out = run.Take();
      return out.ok() && Floats((*out)[0].tensor()) == std::vector<float>{6, -2};
    },
    [](Household& h) {  // several threads share it
      std::atomic<int> right{0};
      std::vector<std::thread> threads;
      for (int k = 0; k < 3; ++k)
        threads.emplace_back([&] {
          for (int i = 0; i < 5; ++i) right += h.Runs();
        });
      for (std::thread& t : threads) t.join();
      return right == 15;
    },
    [](Household& h) {  // all of it goes
      h.outputs.clear();
      h.ended.reset();
      h.under_way.reset();
      h.doubled.reset();
      h.unending.reset();
      h.executor.reset();
      h.slow.reset();
      return true;
    }};

bool EndsWell(Household& household, const Act& act) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(10);  // ends the process
    ::_exit(act(household) ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status == 0;
}

class Fork : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "the thread sanitizer ends processes that fork while they have threads";
#endif
  }
};

TEST_P(Fork, AChildHasAnExecutorThatNobodyWasIn) {
  std::mt19937 rng(1);
  Household h(GetParam());
  h.ended = AsyncRun::Start(*h.doubled, {{"x", F32({1}, {1})}});
  h.ended->Wait();
  for (int k = 0; k < 40; ++k) {
    h.outputs = h.Outputs(1 + int(rng() % 1000));
    const size_t all = kAlways.size() + kAlone.size(), at = rng() % all;
    const Act& act = at < kAlone.size() ? kAlone[at] : kAlways[at - kAlone.size()];
    ASSERT_TRUE(EndsWell(h, act)) << "fork " << k << ", act " << at;
    ASSERT_TRUE(h.Runs());
  }
}

TEST_P(Fork, AChildDropsAndBeginsAnewWhateverOthersDo) {
  std::mt19937 rng(2);
  Household h(GetParam());
  h.ended = AsyncRun::Start(*h.doubled, {{"x", F32({1}, {1})}});
  h.ended->Wait();
  std::stop_source stop;
  h.under_way = AsyncRun::Start(*h.unending, {{"x", F32({1}, {1})}, {"go", Bool(true)}},
                                {.stop = stop.get_token()});
  std::vector<std::thread> threads;
  for (int k = 0; k < 3; ++k)
    threads.emplace_back([&h, k, token = stop.get_token()] {
      std::mt19937 mine(static_cast<unsigned>(k));
      std::vector<Tensor> held;
      while (!token.stop_requested()) {
        for (Tensor& t : h.Outputs(1 + int(mine() % 5000))) held.push_back(std::move(t));
        if (held.size() > 20) held.clear();
        if (k == 0 && mine() % 64 == 0) h.executor->Trim();
        if (k >= 1 && mine() % 4 == 0) Household(2).Runs();
      }
    });
  for (int k = 0; k < 40; ++k) {
    h.outputs = h.Outputs(1 + int(rng() % 5000));
    const size_t at = rng() % kAlways.size();
    EXPECT_TRUE(EndsWell(h, kAlways[at])) << "fork " << k << ", act " << at;
  }
  stop.request_stop();
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(h.under_way->Take().status().code(), StatusCode::kCancelled);
  EXPECT_TRUE(h.Runs());
}

// A run's own thread forks: the child has no run of the executor's, however that one ends there.
TEST_P(Fork, AChildOfARunLeavesItsLinesAlone) {
  pid_t child = -1;
  const ScopedHook hook([&](int64_t) {
    child = ::fork();
    if (child == 0) ::alarm(10);
    return Status::Ok();
  });
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1});
  b.Op("test_call", {{"X", {"x"}}}, {{"Out", {"y"}}}).Fetch("y");
  Executor executor({.threads = 1});
  const auto compiled = MustCompile(executor, b.Build(), nullptr);
  AsyncRun run =
      AsyncRun::Start(compiled, {{"x", F32({2}, {3, -1})}}, {}, [&](const AsyncRun& ended) {
        if (child == 0) ::_exit(ended.done() ? 0 : 1);
      });
  EXPECT_TRUE(run.Take().ok());
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// The end of a process waits for what a new executor's threads have begun.
TEST_P(Fork, AProcessEndsRightAfterItsExecutorWasMade) {
  for (int k = 0; k < 10; ++k) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(10);
      new Executor({.threads = GetParam()});  // NOLINT: nobody frees it
      ::usleep(static_cast<useconds_t>(100 * k));
      std::exit(0);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, Fork, ::testing::Values(1, 2));

}  // namespace
}  // namespace heddle::testing
