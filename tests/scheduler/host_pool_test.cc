#include "scheduler/host_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <set>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "core/threads/library_place.h"
#include "scheduler/kernel_arena.h"
#include "scheduler/work_queue.h"

namespace heddle {
namespace {

class HostPoolTest : public ::testing::TestWithParam<int> {
 protected:
  HostPoolTest() : pool_(GetParam()) {}
  HostPool pool_;
};
INSTANTIATE_TEST_SUITE_P(Threads, HostPoolTest, ::testing::Values(1, 2, 3, 8));

// In a process that has room for the stacks of some threads. 0: those that were made end, and
// others can be made.
[[noreturn]] void MakeTooMany() {
  const rlimit room{512 << 20, 512 << 20};
  if (::setrlimit(RLIMIT_AS, &room) != 0) std::_Exit(3);
  try {
    const HostPool pool(1000);
  } catch (const std::system_error&) {
    HostPool few(2);
    std::atomic<int> called{0};
    few.Run([&](int) { ++called; });
    std::_Exit(called > 0 ? 0 : 1);
  }
  std::_Exit(2);
}

TEST(HostPool, ThreadsThatTheSystemLacksAreAnError) {
  EXPECT_EXIT(MakeTooMany(), ::testing::ExitedWithCode(0), "");
}

TEST_P(HostPoolTest, RunCallsTheJobHereAndWaitsForEverybody) {
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> inside{0}, left{0};
    std::mutex mutex;
    std::set<int> participants;
    std::thread::id zero;
    pool_.Run([&](int participant) {
      ++inside;
      {
        std::lock_guard lock(mutex);
        EXPECT_TRUE(participants.insert(participant).second);
        if (participant == 0) zero = std::this_thread::get_id();
      }
      ++left;
    });
    EXPECT_EQ(inside.load(), left.load());
    EXPECT_EQ(zero, std::this_thread::get_id());
    EXPECT_LT(*participants.rbegin(), GetParam());
  }
}

TEST_P(HostPoolTest, WhatAWorkerWroteIsSeenAfterwards) {
  for (int round = 0; round < 300; ++round) {
    std::vector<int> wrote(static_cast<size_t>(GetParam()), 0);  // no atomics: TSan watches
    pool_.Run([&](int participant) { wrote[static_cast<size_t>(participant)] = participant + 1; });
    EXPECT_EQ(wrote[0], 1);
    for (size_t i = 0; i < wrote.size(); ++i) EXPECT_TRUE(wrote[i] == 0 || wrote[i] == int(i) + 1);
  }
}

TEST_P(HostPoolTest, ParallelForVisitsEverythingOnce) {
  for (int64_t n : {0, 1, 2, 7, 100, 1000}) {
    for (int64_t grain : {1, 3, 50, 2000}) {
      if (n == 0) continue;  // callers do not call with nothing to do
      std::vector<int> count(static_cast<size_t>(n), 0);
      std::atomic<int> pieces{0};
      pool_.ParallelFor(n, grain, [&](int64_t begin, int64_t end) {
        ++pieces;
        for (int64_t i = begin; i < end; ++i) ++count[static_cast<size_t>(i)];
      });
      EXPECT_EQ(count, std::vector<int>(static_cast<size_t>(n), 1));
      EXPECT_LE(pieces.load(), GetParam());
      EXPECT_TRUE(pieces.load() == 1 || n / pieces.load() >= grain) << n << " " << grain;
    }
  }
}

TEST_P(HostPoolTest, ParallelForFromManyThreads) {
  std::atomic<int64_t> wrong{0};
  std::vector<std::thread> clients;
  for (int c = 0; c < 6; ++c)
    clients.emplace_back([&, c] {
      std::vector<int64_t> values(500);
      for (int k = 0; k < 100; ++k) {
        pool_.ParallelFor(500, 10, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) values[static_cast<size_t>(i)] = i * (c + 1) + k;
        });
        for (int64_t i = 0; i < 500; ++i)
          wrong += values[static_cast<size_t>(i)] != i * (c + 1) + k;
      }
    });
  for (auto& t : clients) t.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST_P(HostPoolTest, ParallelForInsideParallelFor) {
  std::atomic<int64_t> sum{0};
  for (int round = 0; round < 20; ++round)
    pool_.ParallelFor(8, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        pool_.ParallelFor(100, 10, [&](int64_t b, int64_t e) { sum += e - b; });
    });
  EXPECT_EQ(sum.load(), 20 * 800);
}

TEST_P(HostPoolTest, AnExceptionComesOutAndThePoolGoesOn) {
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> visited{0};
    EXPECT_THROW(pool_.ParallelFor(100, 1,
                                   [&](int64_t begin, int64_t) {
                                     ++visited;
                                     if (begin == 0) throw std::runtime_error("piece");
                                   }),
                 std::runtime_error);
    EXPECT_GE(visited.load(), 1);
    std::atomic<int64_t> sum{0};
    pool_.ParallelFor(100, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
    EXPECT_EQ(sum.load(), 100);
  }
}

TEST_P(HostPoolTest, EveryPieceThrows) {
  EXPECT_THROW(pool_.ParallelFor(64, 1, [](int64_t, int64_t) { throw 3; }), int);
}

std::atomic<int> first_calls{0};
std::thread::id first_thread;
void CountFirst() {
  first_thread = std::this_thread::get_id();
  ++first_calls;
}

TEST_P(HostPoolTest, AWorkerCallsWhatIsFirst) {
  first_calls = 0;
  { const HostPool pool(GetParam(), CountFirst); }
  ASSERT_EQ(first_calls, GetParam() > 1 ? 1 : 0);
  EXPECT_TRUE(GetParam() == 1 || first_thread != std::this_thread::get_id());
}

TEST(HostPool, WorkersComeToHelp) {
  HostPool pool(2);
  std::atomic<int> inside{0};
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  pool.Run([&](int) {
    ++inside;
    while (inside.load() < 2 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  });
  EXPECT_EQ(inside.load(), 2);
}

TEST(HostPool, BuiltAndDroppedOften) {
  for (int k = 0; k < 50; ++k) {
    HostPool pool(4);
    if (k % 2 == 0) pool.ParallelFor(10, 1, [](int64_t, int64_t) {});
  }
}

TEST(Partition, CoversEverythingWithoutOverlap) {
  for (int64_t n : {1, 5, 64, 1001}) {
    for (int64_t grain : {0, 1, 7, 5000}) {
      for (int threads : {1, 2, 3, 8}) {
        const Partition cut(n, grain, threads);
        EXPECT_GE(cut.pieces, 1);
        EXPECT_LE(cut.pieces, threads);
        EXPECT_EQ(cut.Begin(0), 0);
        EXPECT_EQ(cut.Begin(cut.pieces), n);
        for (int64_t i = 0; i < cut.pieces; ++i) EXPECT_LT(cut.Begin(i), cut.Begin(i + 1));
      }
    }
  }
}

// Kernels that follow each other, with the library's work between them, within pieces, and beside
// another caller: every index once, and what a piece wrote is seen afterwards.
TEST(KernelArena, EveryIndexOnceBesideAnotherCaller) {
  HostPool pool(3);
  KernelArena arena(3, true, pool);
  const auto caller = [&] {
    arena.Execute([&] {
      IntraOp& intra = arena.intra();
      for (int round = 0; round < 300; ++round) {
        std::vector<int> count(60, 0);  // no atomics: TSan watches
        intra.ParallelFor(6, 1, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            if (round % 3 != 0) {
              for (int64_t k = 0; k < 10; ++k) ++count[static_cast<size_t>(i * 10 + k)];
              continue;
            }
            intra.ParallelFor(10, 1, [&](int64_t from, int64_t to) {
              for (int64_t k = from; k < to; ++k) ++count[static_cast<size_t>(i * 10 + k)];
            });
          }
        });
        for (int c : count) ASSERT_EQ(c, 1);
        if (round % 5 == 0) intra.LendToLibrary();
        if (round % 7 == 0) {
          EXPECT_THROW(
              intra.ParallelFor(3, 1, [](int64_t, int64_t) { throw std::runtime_error("piece"); }),
              std::runtime_error);
        }
      }
    });
  };
  caller();
  std::thread other(caller);
  caller();
  other.join();
}

// One thread a run: the library's calls, and nothing else, are made where it may use one thread,
// by several callers at once, within each other, and after an exception.
TEST(KernelArena, OneThreadsLibraryCallsHaveAPlace) {
  if (!KernelArena::BoundsLibrary()) GTEST_SKIP() << "built without oneDNN";
  HostPool pool(1);
  KernelArena arena(1, true, pool);
  const int outside = tbb::this_task_arena::max_concurrency();
  const auto threads_of_library = [] {
    int threads = 0;
    LibraryPlace::Enter([&] { threads = tbb::this_task_arena::max_concurrency(); });
    return threads;
  };
  EXPECT_EQ(threads_of_library(), outside);
  const auto caller = [&] {
    for (int round = 0; round < 100; ++round)
      arena.Execute([&] {
        EXPECT_EQ(threads_of_library(), 1);
        LibraryPlace::Enter([&] { EXPECT_EQ(threads_of_library(), 1); });
        EXPECT_THROW(LibraryPlace::Enter([] { throw std::runtime_error("library"); }),
                     std::runtime_error);
        arena.Execute([&] { EXPECT_EQ(threads_of_library(), 1); });
        EXPECT_EQ(threads_of_library(), 1);
      });
  };
  std::thread other(caller);
  caller();
  other.join();
  EXPECT_EQ(threads_of_library(), outside);
}

// ParallelFor gives kernels the same ranges with either kind of arena.
TEST(KernelArena, SerialAndParallelArenasCutTheSamePieces) {
  HostPool pool(4);
  KernelArena serial(4, true, pool), parallel(4, false, pool);
  for (KernelArena* arena : {&serial, &parallel}) {
    EXPECT_EQ(arena->intra().threads(), 4);
    std::mutex mutex;
    std::set<std::pair<int64_t, int64_t>> pieces;
    arena->Execute([&] {
      arena->intra().ParallelFor(1000, 10, [&](int64_t begin, int64_t end) {
        std::lock_guard lock(mutex);
        pieces.emplace(begin, end);
      });
    });
    EXPECT_EQ(pieces, (std::set<std::pair<int64_t, int64_t>>{
                          {0, 250}, {250, 500}, {500, 750}, {750, 1000}}));
    EXPECT_THROW(arena->Execute([] { throw std::runtime_error("out"); }), std::runtime_error);
  }
}

TEST(AvailableThreads, IsAtLeastOne) { EXPECT_GE(AvailableThreads(), 1); }

// --- the work queue ---
TEST(WorkQueue, TheOwnerTakesTheNewestOthersTheOldest) {
  WorkQueue queue(2);
  uint32_t task = 0;
  EXPECT_FALSE(queue.Pop(0, &task));
  for (uint32_t k = 1; k <= 3; ++k) queue.Push(0, k);
  ASSERT_TRUE(queue.Pop(0, &task));
  EXPECT_EQ(task, 3u);
  ASSERT_TRUE(queue.Pop(1, &task));
  EXPECT_EQ(task, 1u);
  queue.Clear();
  EXPECT_FALSE(queue.Pop(1, &task));
}

TEST(WorkQueue, EveryTaskIsTakenOnceAndWhatWasWrittenBeforeIsSeen) {
  constexpr uint32_t kTasks = 4000;
  for (int participants : {2, 4}) {
    WorkQueue queue(participants);
    std::vector<int> payload(kTasks, 0), taken(kTasks, 0);  // no atomics: TSan watches
    std::atomic<uint32_t> done{0};
    std::vector<std::thread> threads;
    for (int p = 0; p < participants; ++p)
      threads.emplace_back([&, p] {
        for (auto t = static_cast<uint32_t>(p); t < kTasks;
             t += static_cast<uint32_t>(participants)) {
          payload[t] = static_cast<int>(t) + 1;
          queue.Push(p, t);
          uint32_t got = 0;
          if (t % 3 == 0 && queue.Pop(p, &got)) {
            if (payload[got] == static_cast<int>(got) + 1) ++taken[got];
            ++done;
          }
        }
        uint32_t got = 0;
        while (done.load() < kTasks) {
          if (!queue.Pop(p, &got)) {
            std::this_thread::yield();
            continue;
          }
          if (payload[got] == static_cast<int>(got) + 1) ++taken[got];
          ++done;
        }
      });
    for (auto& t : threads) t.join();
    EXPECT_EQ(taken, std::vector<int>(kTasks, 1));
  }
}

}  // namespace
}  // namespace heddle
