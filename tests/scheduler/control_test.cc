// The gate that admits runs, and the thread that calls at given times.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <thread>

#include "scheduler/host_pool.h"
#include "scheduler/run_gate.h"
#include "scheduler/watcher.h"

namespace heddle {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

TEST(RunGate, AloneARunGetsAllThreads) {
  RunGate gate(4);
  EXPECT_EQ(gate.Enter(), 4);
  gate.Leave(4);
  EXPECT_EQ(gate.Enter(), 4);
  gate.Leave(4);
}

TEST(RunGate, WhoMeetsOthersGetsOneAndWhoComesTooManyWaits) {
  RunGate gate(2);
  ASSERT_EQ(gate.Enter(), 2);
  EXPECT_EQ(gate.Enter(steady_clock::now() + milliseconds(5)), 0);
  gate.Leave(2);
  std::atomic<int> inside{0}, most{0}, entered{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 12; ++t)
    threads.emplace_back([&] {
      for (int k = 0; k < 200; ++k) {
        const int n = gate.Enter();
        const int now = inside += n;
        for (int m = most; now > m && !most.compare_exchange_weak(m, now);) {
        }
        ++entered;
        if (k % 16 == 0) std::this_thread::yield();
        inside -= n;
        gate.Leave(n);
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(entered.load(), 12 * 200);
  EXPECT_LE(most.load(), 2);
  EXPECT_EQ(gate.Enter(), 2) << "everybody has left";
}

TEST(RunGate, FirstComeFirstServed) {
  RunGate gate(2);
  ASSERT_EQ(gate.Enter(), 2);
  std::mutex mutex;
  std::vector<int> order;
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      const int n = gate.Enter();
      {
        std::lock_guard lock(mutex);
        order.push_back(t);
      }
      std::this_thread::sleep_for(milliseconds(20));
      gate.Leave(n);
    });
    std::this_thread::sleep_for(milliseconds(20));
  }
  gate.Leave(2);
  for (auto& t : threads) t.join();
  // Two at a time: each pair may be noted in either order.
  for (size_t k = 0; k < 6; k += 2) {
    EXPECT_EQ(std::min(order[k], order[k + 1]), static_cast<int>(k));
    EXPECT_EQ(std::max(order[k], order[k + 1]), static_cast<int>(k) + 1);
  }
}

TEST(RunGate, DeadlinesAmongTheAdmittedLoseNoPlace) {
  RunGate gate(2);
  std::atomic<int> entered{0}, late{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int k = 0; k < 300; ++k) {
        const auto until = steady_clock::now() + std::chrono::microseconds(t % 2 == 0 ? 1 + k : 1000000);
        const int n = gate.Enter(until);
        ++(n > 0 ? entered : late);
        if (k % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
        if (n > 0) gate.Leave(n);
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(entered + late, 8 * 300);
  EXPECT_GE(entered.load(), 4 * 300 / 2);
  EXPECT_EQ(gate.Enter(), 2) << "everybody has left";
}

TEST(RunGate, WithOneThreadSomeMayBeInside) {
  RunGate gate(1, 2);
  ASSERT_EQ(gate.Enter(), 1);
  ASSERT_EQ(gate.Enter(), 1);
  const auto soon = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
  EXPECT_EQ(gate.Enter(soon), 0);
  std::atomic<int> got{0};
  std::thread third([&] { got = gate.Enter(); });
  gate.Leave(1);
  third.join();
  EXPECT_EQ(got, 1);
  EXPECT_EQ(gate.Enter(std::chrono::steady_clock::now()), 0);
  gate.Leave(1);
  EXPECT_EQ(gate.Enter(), 1);
}

TEST(RunGate, WithOneThreadNobodyWaits) {
  RunGate gate(1);
  EXPECT_EQ(gate.Enter(), 1);
  EXPECT_EQ(gate.Enter(), 1);
}

TEST(Watcher, CallsInTheOrderOfTheTimes) {
  std::vector<int> called;  // by the watcher's thread only
  std::atomic<int> count{0};
  Watcher watcher;
  const auto now = steady_clock::now();
  for (int k : {3, 1, 2, 0})
    watcher.At(now + milliseconds(10 + 5 * k), [&, k] {
      called.push_back(k);
      ++count;
    });
  while (count < 4) std::this_thread::yield();
  EXPECT_EQ(called, (std::vector<int>{0, 1, 2, 3}));
}

TEST(Watcher, WhatIsRemovedIsNotCalledAndNotUnderWay) {
  Watcher watcher;
  for (int k = 0; k < 200; ++k) {
    auto alive = std::make_unique<std::atomic<int>>(0);
    const uint64_t id = watcher.At(steady_clock::now() + std::chrono::microseconds(k), [&] { ++*alive; });
    if (k % 2) std::this_thread::sleep_for(std::chrono::microseconds(k));
    watcher.Remove(id);
    alive.reset();  // the sanitizers see a late call
  }
}

TEST(Watcher, AFunctionMayArrangeItsNextCall) {
  std::atomic<int> calls{0};
  Watcher watcher;
  std::function<void()> again = [&] {
    if (++calls < 5) watcher.At(steady_clock::now() + milliseconds(1), again);
  };
  watcher.At(steady_clock::now(), again);
  while (calls < 5) std::this_thread::yield();
}

TEST(HostPool, AParkedPoolTakesNoProcessorTime) {
  HostPool pool(4);
  pool.Run([](int) {});
  std::this_thread::sleep_for(milliseconds(50));  // they spin for some microseconds, then sleep
  const std::clock_t before = std::clock();       // of all threads of the process
  std::this_thread::sleep_for(milliseconds(1000));
  const double used = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  EXPECT_LE(used, 0.001) << "of one second";
}

}  // namespace
}  // namespace heddle
