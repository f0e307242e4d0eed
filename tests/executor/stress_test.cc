// Many clients, many plans, everything that can go wrong, all at once on one executor.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>

#include "tests/support/random_program.h"
#include "tests/support/test_ops.h"

namespace heddle::testing {
namespace {

[[maybe_unused]] const bool kInstalled = InstallTestOps();

// HEDDLE_STRESS_RUNS sets another number.
int64_t Runs() {
  if (const char* runs = std::getenv("HEDDLE_STRESS_RUNS")) return std::atoll(runs);
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  return 4000;
#else
  return 20000;
#endif
}

// A program whose call with id 1 fails now and then: throws, or returns an error.
ProgramBuilder Failing() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {6});
  for (int k = 0; k < 4; ++k) {
    const std::string t = "t" + std::to_string(k);
    b.Scale("x", t, k + 1);
    for (int i = 0; i < 4; ++i) b.Scale(t, t, 1, 1);
  }
  b.Op("test_call", {{"X", {"t1"}}}, {{"Out", {"c"}}}, {{"id", 1}});
  b.Op("sum", {{"X", {"t0", "c", "t2", "t3"}}}, {{"Out", {"y"}}}).Fetch("y");
  return b;
}

struct Job {
  CompiledProgram compiled;
  std::vector<Feed> feeds;
  std::vector<std::string> expected;  // bits of the outputs
  bool fails = false;
};

std::vector<std::string> AllBits(const std::vector<Tensor>& tensors) {
  std::vector<std::string> bits;
  for (const Tensor& t : tensors) bits.push_back(Bits(t));
  return bits;
}

// 20 plans: programs with nested control flow, each schedule, and some that fail now and then.
std::vector<Job> Jobs(Executor& executor, Executor& reference) {
  constexpr Schedule kSchedules[] = {Schedule::kAuto, Schedule::kLanes, Schedule::kParallel,
                                     Schedule::kSerial};
  std::vector<Job> jobs;
  for (uint32_t k = 0; k < 20; ++k) {
    const CompileOptions options{.schedule = kSchedules[k % 4]};
    if (k >= 16) {
      const Program program = Failing().Build();
      const std::vector<Feed> feeds = {{"x", F32({6}, {1, 2, 3, 4, 5, 6})}};
      Job job{MustCompile(executor, program, nullptr, options), feeds, {}, true};
      job.expected =
          AllBits(MustRun(reference, MustCompile(reference, program, nullptr, {}), feeds));
      jobs.push_back(std::move(job));
      continue;
    }
    const RandomProgram random(100 + k, {.ops = 25, .control_flow = true, .parameters = false});
    const Program program = *Program::Parse(random.bytes(), "random");
    Job job{MustCompile(executor, program, random.NewScope(), options), random.Feeds(), {}, false};
    auto compiled = MustCompile(reference, program, random.NewScope(), {});
    job.expected = AllBits(MustRun(reference, compiled, random.Feeds()));
    jobs.push_back(std::move(job));
  }
  return jobs;
}

class Tally {
 public:
  std::atomic<int64_t> right{0}, cancelled{0}, late{0}, failed{0}, wrong{0}, stalls{0};
};

void RunOne(Executor& executor, const Job& job, std::mt19937_64& rng, Tally* tally) {
  std::stop_source stop;
  RunOptions options;
  options.stall_limit = std::chrono::seconds(20);
  options.on_stall = [&](const std::string&) { ++tally->stalls; };
  const auto kind = rng() % 10;
  std::jthread canceller;
  if (kind == 0) {
    options.stop = stop.get_token();
    canceller = std::jthread([&stop, us = rng() % 200] {
      std::this_thread::sleep_for(std::chrono::microseconds(us));
      stop.request_stop();
    });
  } else if (kind == 1) {
    options.deadline = std::chrono::steady_clock::now() + std::chrono::microseconds(rng() % 2000);
  }
  const auto out = executor.Run(job.compiled, job.feeds, options);
  const int64_t wrong = tally->wrong;
  if (out.ok())
    ++(AllBits(*out) == job.expected ? tally->right : tally->wrong);
  else if (out.status().code() == StatusCode::kCancelled)
    ++(kind == 0 ? tally->cancelled : tally->wrong);
  else if (out.status().code() == StatusCode::kDeadlineExceeded)
    ++(kind == 1 ? tally->late : tally->wrong);
  else
    ++(job.fails && out.status().code() == StatusCode::kInternal ? tally->failed : tally->wrong);
  if (tally->wrong > wrong)
    ADD_FAILURE() << "a run of kind " << kind << ": "
                  << (out.ok() ? "other bits" : out.status().ToString());
}

TEST(Stress, SixtyFourClientsTwentyPlansCancelsDeadlinesAndErrors) {
  Executor executor({.threads = 2, .plan_cache_capacity = 64});
  Executor reference({.threads = 1});
  const std::vector<Job> jobs = Jobs(executor, reference);
  std::atomic<int64_t> calls{0};
  ScopedHook hook([&](int64_t) -> Status {
    const int64_t n = ++calls;
    if (n % 7 == 0) throw std::runtime_error("thrown on purpose");
    if (n % 11 == 0) return Status(StatusCode::kInternal, "returned on purpose");
    return Status::Ok();
  });
  Tally tally;
  std::atomic<int64_t> left{Runs()};
  std::vector<std::thread> clients;
  for (uint32_t c = 0; c < 64; ++c)
    clients.emplace_back([&, c] {
      std::mt19937_64 rng(c);
      while (left.fetch_sub(1) > 0) RunOne(executor, jobs[rng() % jobs.size()], rng, &tally);
    });
  for (auto& t : clients) t.join();
  EXPECT_EQ(tally.wrong.load(), 0);
  EXPECT_EQ(tally.stalls.load(), 0);
  EXPECT_EQ(tally.right + tally.cancelled + tally.late + tally.failed, Runs());
  EXPECT_GT(tally.right.load(), Runs() / 2);
  EXPECT_GT(tally.failed.load(), 0);
  EXPECT_GT(tally.late + tally.cancelled, 0);
  std::printf("%ld right, %ld cancelled, %ld late, %ld failed on purpose\n",
              static_cast<long>(tally.right), static_cast<long>(tally.cancelled),
              static_cast<long>(tally.late), static_cast<long>(tally.failed));
}

}  // namespace
}  // namespace heddle::testing
