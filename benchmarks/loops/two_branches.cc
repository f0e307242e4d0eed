// heddle_bench_loop_lanes: a loop whose body has two branches that need nothing of each other, on
// one thread and on two, in turns.
//
//   heddle_bench_loop_lanes [ROUNDS [MS]]
//
// One line for each size of the branches' square matrices: microseconds of a run of 100 iterations
// on one thread; on two, one instruction after another (each kernel may use both), in lanes, and as
// the executor chooses; and the ratio of that to one thread.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "heddle/bound_run.h"
#include "heddle/executor.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kProducts = 4, kWarmRuns = 100;

// for (i = 0; i < 100; ++i) { a = tanh(a w) ...; b = tanh(b w) ... }
Program TwoBranches(int64_t size) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {size, size}).Param("w", DType::kF32, {size, size});
  for (const char* name : {"a", "b"}) b.Scale("x", name, 1);
  b.Fill("i", {1}, 0).Fill("n", {1}, 100).Binary("less_than", "i", "n", "go");
  const int body = b.Block(0);
  b.In(body);
  for (const std::string name : {"a", "b"})
    for (int k = 0; k < kProducts; ++k) {
      const auto at = [&](int step) {
        return step % kProducts == 0 ? name : name + std::to_string(step);
      };
      b.Op("matmul_v2", {{"X", {at(k)}}, {"Y", {"w"}}}, {{"Out", {at(k) + "_w"}}});
      b.Unary("tanh", at(k) + "_w", at(k + 1));
    }
  b.Increment("i").Binary("less_than", "i", "n", "go").In(0);
  b.Op("while", {{"X", {"i", "n", "a", "b", "w"}}, {"Condition", {"go"}}},
       {{"Out", {"i", "go", "a", "b"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{body}}});
  b.Fetch("a").Fetch("b");
  return b.Build();
}

struct Side {
  Side(int64_t size, int threads, Schedule schedule)
      : executor(std::make_unique<Executor>(ExecutorOptions{.threads = threads})),
        scope(std::make_shared<Scope>()) {
    scope->Set("w", RandomF32({size, size}, 1, 0.2F));
    run = std::make_unique<BoundRun>(
        MustCompile(*executor, TwoBranches(size), scope, {.schedule = schedule}),
        std::vector<heddle::Feed>{{"x", RandomF32({size, size}, 2)}});
  }
  std::unique_ptr<Executor> executor;
  std::shared_ptr<Scope> scope;
  std::unique_ptr<BoundRun> run;
  std::vector<double> medians;
};

double MedianUs(BoundRun& run, double ms) {
  std::vector<double> times;
  const auto start = Clock::now();
  const auto since = [](Clock::time_point from) {
    return std::chrono::duration<double, std::micro>(Clock::now() - from).count();
  };
  do {
    const auto begin = Clock::now();
    if (const Status status = run.Run(); !status.ok()) {
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
      std::exit(1);
    }
    times.push_back(since(begin));
  } while (since(start) < 1e3 * ms);
  std::nth_element(times.begin(), times.begin() + std::ssize(times) / 2, times.end());
  return times[times.size() / 2];
}

void Measure(int64_t size, int rounds, double ms) {
  std::vector<Side> sides;
  sides.emplace_back(size, 1, Schedule::kSerial);
  sides.emplace_back(size, 2, Schedule::kSerial);
  sides.emplace_back(size, 2, Schedule::kLanes);
  sides.emplace_back(size, 2, Schedule::kAuto);
  for (Side& side : sides)
    for (int k = 0; k < kWarmRuns; ++k) MedianUs(*side.run, 0);
  for (int round = 0; round < rounds; ++round)
    for (Side& side : sides) side.medians.push_back(MedianUs(*side.run, ms));
  std::printf("%6d", static_cast<int>(size));
  std::vector<double> us;
  for (Side& side : sides) {
    std::sort(side.medians.begin(), side.medians.end());
    us.push_back(side.medians[side.medians.size() / 2]);
    std::printf(" %11.1f", us.back());
  }
  std::printf(" %10.2f\n", us[3] / us[0]);
  std::fflush(stdout);
}

}  // namespace
}  // namespace heddle::testing

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 7;
  const double ms = argc > 2 ? std::atof(argv[2]) : 50;
  std::printf("%6s %11s %11s %11s %11s %10s\n", "size", "1 thread", "2, serial", "2, lanes",
              "2, chosen", "chosen / 1");
  for (const int64_t size : {16, 32, 64, 128, 256}) heddle::testing::Measure(size, rounds, ms);
  return 0;
}
