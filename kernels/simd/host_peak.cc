#include "heddle/host_peak.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "kernels/simd/microkernels.h"

namespace heddle {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The highest of several measured rates of all threads together: each thread calls work(thread),
// which does `amount` of work.
double BestRate(int threads, double amount, const std::function<void(int)>& work) {
  double best = 0;
  const auto end = Clock::now() + std::chrono::milliseconds(50);
  do {
    const auto start = Clock::now();
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back(work, t);
    work(0);
    for (std::thread& t : others) t.join();
    best = std::max(best, amount * threads / Seconds(start));
  } while (Clock::now() < end);
  return best;
}

}  // namespace

HostPeak MeasureHostPeak(int threads) {
  HostPeak peak;
  constexpr int kRounds = 400000;
  const simd::Microkernels& kernels = *simd::BestMicrokernels();
  std::vector<float> results(static_cast<size_t>(threads));
  peak.gflops =
      BestRate(threads, 2.0 * kRounds * kernels.multiply_adds_per_round,
               [&](int t) { results[static_cast<size_t>(t)] = kernels.multiply_adds(kRounds); }) *
      1e-9;
  volatile float keep = results[0];  // otherwise the compiler drops the work
  (void)keep;
  constexpr size_t kBytes = size_t{24} << 20;
  std::vector<std::vector<char>> from, to;
  for (int t = 0; t < threads; ++t) {
    from.emplace_back(kBytes, 'a');
    to.emplace_back(kBytes, 'b');
  }
  peak.copy_gbs = BestRate(threads, 2.0 * kBytes,
                           [&](int t) {
                             const auto i = static_cast<size_t>(t);
                             std::memcpy(to[i].data(), from[i].data(), kBytes);
                           }) *
                  1e-9;
  return peak;
}

}  // namespace heddle
