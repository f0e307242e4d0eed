// heddle_bench_levels: random programs at each optimisation level, in turns, for
// benchmarks/levels.py.
//
//   heddle_bench_levels FIRST COUNT THREADS ROUNDS MS
//
// For each of COUNT programs, from seed FIRST on, one line: the seed, the number of operators, and
// per round and level the median time of a run in microseconds.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "heddle/bound_run.h"
#include "heddle/executor.h"
#include "tests/support/mixed_program.h"

namespace heddle::testing {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kLevels = 3, kWarmRuns = 60;

double MicrosecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// From 10 to 500 operators, as many small programs as large ones.
int SizeOf(uint32_t seed) {
  constexpr double kSmallest = 10, kLargest = 500;
  return static_cast<int>(kSmallest * std::pow(kLargest / kSmallest, (seed % 16) / 15.0));
}

double MedianOfRuns(BoundRun& run, double ms, Status* status) {
  std::vector<double> times;
  const auto start = Clock::now();
  do {
    const auto begin = Clock::now();
    *status = run.Run();
    times.push_back(MicrosecondsSince(begin));
  } while (status->ok() && MicrosecondsSince(start) < 1e3 * ms);
  std::nth_element(times.begin(), times.begin() + std::ssize(times) / 2, times.end());
  return times[times.size() / 2];
}

Status Measure(Executor& executor, uint32_t seed, int rounds, double ms) {
  const MixedProgram mixed(seed, SizeOf(seed));
  auto program = Program::Parse(mixed.bytes(), "random " + std::to_string(seed));
  if (!program.ok()) return program.status();
  std::vector<BoundRun> runs;
  for (int level = 0; level < kLevels; ++level) {
    auto compiled = executor.Compile(*program, mixed.NewScope(), {.opt_level = level});
    if (!compiled.ok()) return compiled.status();
    runs.emplace_back(*std::move(compiled), mixed.Feeds());
    for (int k = 0; k < kWarmRuns; ++k)
      if (Status status = runs.back().Run(); !status.ok()) return status;
  }
  int operators = 0;
  for (const auto& [type, count] : mixed.OpCounts()) operators += count;
  std::vector<double> medians;
  for (int round = 0; round < rounds; ++round)
    for (BoundRun& run : runs) {
      Status status;
      medians.push_back(MedianOfRuns(run, ms, &status));
      if (!status.ok()) return status;
    }
  std::printf("%u %d", seed, operators);
  for (double us : medians) std::printf(" %.3f", us);
  std::printf("\n");
  std::fflush(stdout);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle::testing

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: %s FIRST COUNT THREADS ROUNDS MS\n", argv[0]);
    return 2;
  }
  const auto first = static_cast<uint32_t>(std::atoi(argv[1]));
  const int count = std::atoi(argv[2]), rounds = std::atoi(argv[4]);
  heddle::Executor executor({.threads = std::atoi(argv[3])});
  for (int k = 0; k < count; ++k) {
    const uint32_t seed = first + static_cast<uint32_t>(k);
    const heddle::Status status =
        heddle::testing::Measure(executor, seed, rounds, std::atof(argv[5]));
    // A random program may fail by what it computes, an aliased variable for instance.
    if (!status.ok()) std::printf("%u failed: %s\n", seed, status.ToString().c_str());
  }
  return 0;
}
