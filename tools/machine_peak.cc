#include "tools/machine_peak.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace heddle::tools {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Each does `rounds` times kSums independent multiply-adds of a vector, and returns something that
// depends on all.
constexpr int kSums = 12;

#if defined(__x86_64__)
__attribute__((target("avx512f"))) float MultiplyAvx512(int rounds) {
  __m512 sum[kSums];
  for (__m512& s : sum) s = _mm512_set1_ps(1.f);
  const __m512 x = _mm512_set1_ps(0.999f), y = _mm512_set1_ps(0.001f);
  for (int r = 0; r < rounds; ++r)
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) sum[i] = _mm512_fmadd_ps(sum[i], x, y);
  for (int i = 1; i < kSums; ++i) sum[0] = _mm512_add_ps(sum[0], sum[i]);
  return _mm512_cvtss_f32(sum[0]);
}

__attribute__((target("avx2,fma"))) float MultiplyAvx2(int rounds) {
  __m256 sum[kSums];
  for (__m256& s : sum) s = _mm256_set1_ps(1.f);
  const __m256 x = _mm256_set1_ps(0.999f), y = _mm256_set1_ps(0.001f);
  for (int r = 0; r < rounds; ++r)
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) sum[i] = _mm256_fmadd_ps(sum[i], x, y);
  for (int i = 1; i < kSums; ++i) sum[0] = _mm256_add_ps(sum[0], sum[i]);
  return _mm256_cvtss_f32(sum[0]);
}
#endif

struct Multiplier {
  float (*run)(int rounds);
  int lanes;
};

Multiplier WidestMultiplier() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {MultiplyAvx512, 16};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {MultiplyAvx2, 8};
#endif
  return {nullptr, 0};
}

// The best of some rates that all threads reach together: each calls work(thread), which does
// `amount`.
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

MachinePeak MeasurePeak(int threads) {
  MachinePeak peak;
  if (const Multiplier m = WidestMultiplier(); m.run != nullptr) {
    constexpr int kRounds = 400000;
    std::vector<float> results(static_cast<size_t>(threads));
    peak.gflops = BestRate(threads, 2.0 * kRounds * kSums * m.lanes,
                           [&](int t) { results[static_cast<size_t>(t)] = m.run(kRounds); }) *
                  1e-9;
    volatile float keep = results[0];  // or nothing would have to be computed
    (void)keep;
  }
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

}  // namespace heddle::tools
