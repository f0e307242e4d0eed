#include "tools/round_trip.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

namespace heddle::tools {
namespace {

constexpr int kBatches = 21, kTrips = 200;

// Two, or nothing.
std::optional<std::pair<int, int>> FirstProcessors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return std::nullopt;
  std::optional<int> first;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    if (first) return std::pair{*first, cpu};
    first = cpu;
  }
  return std::nullopt;
}

void Pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);  // of the calling thread
}

struct alignas(64) Signal {
  // 0 at first; the caller makes it odd, the other side even.
  std::atomic<int> value{0};
};

void Await(const Signal& signal, int value) {
  // The other thread may not be running, so this one must not keep a processor for long.
  for (int spins = 0; signal.value.load(std::memory_order_acquire) != value; ++spins)
    if (spins > 100000) std::this_thread::yield();
}

}  // namespace

double MeasureRoundTripNs() {
  const auto processors = FirstProcessors();
  if (!processors) return 0;
  constexpr int kLast = 2 * kTrips * kBatches;
  Signal signal;
  std::array<double, kBatches> ns;
  std::thread answering([&] {
    Pin(processors->second);
    for (int k = 0; k < kLast; k += 2) {
      Await(signal, k + 1);
      signal.value.store(k + 2, std::memory_order_release);
    }
  });
  std::thread asking([&] {
    Pin(processors->first);
    int k = 0;
    for (double& batch : ns) {
      const auto start = std::chrono::steady_clock::now();
      for (int trip = 0; trip < kTrips; ++trip, k += 2) {
        signal.value.store(k + 1, std::memory_order_release);
        Await(signal, k + 2);
      }
      batch = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start)
                  .count() /
              kTrips;
    }
  });
  asking.join();
  answering.join();
  std::nth_element(ns.begin(), ns.begin() + kBatches / 2, ns.end());
  return ns[kBatches / 2];
}

}  // namespace heddle::tools
