// The admission of runs, and the thread that calls at given times.
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <thread>
#include <vector>

#include "scheduler/host_pool.h"
#include "scheduler/run_admission.h"
#include "scheduler/watcher.h"

namespace heddle {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Threads that a run may use; 0: its time came first.
int ThreadsOfRun(RunAdmission& admission,
                 const std::optional<RunAdmission::Time>& until = std::nullopt) {
  int threads = 0;
  const bool ran = admission.Run([&](int n) { threads = n; }, until);
  EXPECT_EQ(ran, threads > 0);
  return threads;
}

// The calling thread, to one processor.
void Bind(int processor) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  EXPECT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
}

// A run that lasts until it is told to end.
class Holder {
 public:
  // `processor`: that its thread is bound to; -1: none.
  explicit Holder(RunAdmission& admission, int processor = -1)
      : thread_([this, &admission, processor] {
          if (processor >= 0) Bind(processor);
          admission.Run([this](int n) {
            threads_ = n;
            threads_.notify_one();
            end_.wait(false);
          });
        }) {
    threads_.wait(0);
  }
  ~Holder() { End(); }
  void End() {
    end_ = true;
    end_.notify_one();
    if (thread_.joinable()) thread_.join();
  }
  int threads() const { return threads_; }

 private:
  std::atomic<int> threads_{0};
  std::atomic<bool> end_{false};
  std::thread thread_;
};

// Many callers at once; the most threads that runs had together. `threads`: what each may be told.
int MostInside(RunAdmission& admission, int callers, int runs, std::set<int>* threads) {
  std::atomic<int> inside{0}, most{0}, made{0};
  std::mutex mutex;
  std::vector<std::thread> all;
  for (int t = 0; t < callers; ++t)
    all.emplace_back([&] {
      for (int k = 0; k < runs; ++k)
        admission.Run([&](int n) {
          const int now = inside += n;
          for (int m = most; now > m && !most.compare_exchange_weak(m, now);) {
          }
          {
            std::lock_guard lock(mutex);
            threads->insert(n);
          }
          ++made;
          if (k % 16 == 0) std::this_thread::yield();
          inside -= n;
        });
    });
  for (auto& t : all) t.join();
  EXPECT_EQ(made.load(), callers * runs);
  return most;
}

const auto Soon = [] { return steady_clock::now() + milliseconds(5); };

TEST(RunAdmission, AloneARunGetsAllThreads) {
  RunAdmission admission(4);
  EXPECT_EQ(ThreadsOfRun(admission), 4);
  EXPECT_EQ(ThreadsOfRun(admission), 4);
}

TEST(RunAdmission, WhoMeetsOthersGetsOneAndWhoComesTooManyWaits) {
  RunAdmission admission(2);
  {
    Holder alone(admission);
    EXPECT_EQ(alone.threads(), 2);
    EXPECT_EQ(ThreadsOfRun(admission, Soon()), 0);
  }
  std::set<int> threads;
  EXPECT_LE(MostInside(admission, 12, 200, &threads), 2);
  EXPECT_EQ(threads.count(1), 1u);
  EXPECT_EQ(ThreadsOfRun(admission), 2) << "everybody has left";
}

TEST(RunAdmission, FewerRunsAtOnceThanThreads) {
  RunAdmission admission(4, 2);
  std::set<int> threads;
  MostInside(admission, 8, 200, &threads);
  EXPECT_TRUE(threads == (std::set{1, 4}) || threads == (std::set{1}));
  Holder alone(admission);
  EXPECT_EQ(ThreadsOfRun(admission, Soon()), 0);
}

TEST(RunAdmission, OneRunAtOnceHasAllThreads) {
  RunAdmission admission(4, 1);
  std::set<int> threads;
  EXPECT_EQ(MostInside(admission, 8, 200, &threads), 4);
  EXPECT_EQ(threads, std::set{4});
}

TEST(RunAdmission, FirstComeFirstServed) {
  RunAdmission admission(2);
  auto holder = std::make_unique<Holder>(admission);
  std::mutex mutex;
  std::vector<int> order;
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      admission.Run([&](int) {
        {
          std::lock_guard lock(mutex);
          order.push_back(t);
        }
        std::this_thread::sleep_for(milliseconds(20));
      });
    });
    std::this_thread::sleep_for(milliseconds(20));
  }
  holder.reset();
  for (auto& t : threads) t.join();
  // Two at a time: each pair may be noted in either order.
  for (size_t k = 0; k < 6; k += 2) {
    EXPECT_EQ(std::min(order[k], order[k + 1]), static_cast<int>(k));
    EXPECT_EQ(std::max(order[k], order[k + 1]), static_cast<int>(k) + 1);
  }
}

// Runs of callers that wait, and the threads that made them.
std::vector<bool> MadeByCallers(RunAdmission& admission, int callers) {
  auto holder = std::make_unique<Holder>(admission);
  std::vector<char> own(static_cast<size_t>(callers));
  std::vector<std::thread> threads;
  for (int t = 0; t < callers; ++t) {
    threads.emplace_back([&, t] {
      const auto me = std::this_thread::get_id();
      admission.Run([&](int) { own[static_cast<size_t>(t)] = std::this_thread::get_id() == me; });
    });
    std::this_thread::sleep_for(milliseconds(20));
  }
  holder.reset();
  for (auto& t : threads) t.join();
  return {own.begin(), own.end()};
}

TEST(RunAdmission, WhereManyWaitTheGatesThreadsMakeTheRuns) {
  RunAdmission admission(2);
  for (int round = 0; round < 3; ++round)
    EXPECT_EQ(MadeByCallers(admission, 6), std::vector<bool>(6, false));
  EXPECT_EQ(MadeByCallers(admission, 1), std::vector{true}) << "nobody else waits";
}

TEST(RunAdmission, TheGatesThreadsAreNotBoundAsCallersAre) {
  RunAdmission admission(2);
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  int first = 0;
  while (!CPU_ISSET(first, &all)) ++first;
  auto holder = std::make_unique<Holder>(admission, first);
  std::vector<int> processors(4);
  std::vector<std::thread> callers;
  for (int& count : processors) {
    callers.emplace_back([&admission, &count, first] {
      Bind(first);
      admission.Run([&](int) {
        cpu_set_t mine;
        if (sched_getaffinity(0, sizeof mine, &mine) == 0) count = CPU_COUNT(&mine);
      });
    });
    std::this_thread::sleep_for(milliseconds(20));
  }
  holder.reset();
  for (auto& t : callers) t.join();
  EXPECT_EQ(processors, std::vector<int>(4, CPU_COUNT(&all)));
}

TEST(RunAdmission, WithOneThreadCallersMakeTheirOwnRuns) {
  RunAdmission admission(1, 1);
  EXPECT_EQ(MadeByCallers(admission, 5), std::vector<bool>(5, true));
}

TEST(RunAdmission, DeadlinesAmongTheAdmittedLoseNoPlace) {
  RunAdmission admission(2);
  std::atomic<int> entered{0}, late{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int k = 0; k < 300; ++k) {
        const auto until =
            steady_clock::now() + std::chrono::microseconds(t % 2 == 0 ? 1 + k : 1000000);
        const auto run = [&](int) {
          if (k % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
        };
        ++(admission.Run(run, until) ? entered : late);
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(entered + late, 8 * 300);
  EXPECT_GE(entered.load(), 4 * 300 / 2);
  EXPECT_EQ(ThreadsOfRun(admission), 2) << "everybody has left";
}

TEST(RunAdmission, AStopTakesOutWhoWaits) {
  RunAdmission admission(2);
  auto inside = std::make_unique<Holder>(admission);
  std::stop_source stop;
  std::atomic<bool> ran{false}, let_in{true};
  std::thread waiting(
      [&] { let_in = admission.Run([&](int) { ran = true; }, std::nullopt, stop.get_token()); });
  std::this_thread::sleep_for(milliseconds(20));  // it waits, or comes with the stop made
  stop.request_stop();
  waiting.join();  // while the other one is inside
  EXPECT_FALSE(ran);
  EXPECT_FALSE(let_in);
  inside.reset();
  EXPECT_EQ(ThreadsOfRun(admission), 2) << "everybody has left";
}

TEST(RunAdmission, WithOneThreadSomeMayBeInside) {
  RunAdmission admission(1, 2);
  auto first = std::make_unique<Holder>(admission);
  Holder second(admission);
  EXPECT_EQ(ThreadsOfRun(admission, Soon()), 0);
  std::atomic<int> got{0};
  std::thread third([&] { got = ThreadsOfRun(admission); });
  first.reset();
  third.join();
  EXPECT_EQ(got, 1);
  Holder again(admission);
  EXPECT_EQ(ThreadsOfRun(admission, steady_clock::now()), 0);
}

TEST(RunAdmission, WithOneThreadNobodyWaits) {
  RunAdmission admission(1);
  Holder first(admission), second(admission);
  EXPECT_EQ(ThreadsOfRun(admission), 1);
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
    const uint64_t id =
        watcher.At(steady_clock::now() + std::chrono::microseconds(k), [&] { ++*alive; });
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
