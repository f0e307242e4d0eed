#include "core/threads/near_list.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <thread>
#include <vector>

namespace heddle {
namespace {

TEST(CountProcessors, GoesByTheProcessorsThatTheThreadMayUse) {
  EXPECT_EQ(CountProcessors(1), 1u);
  std::thread([] {
    const int only = ThisProcessor();
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(only, &set);
    ASSERT_EQ(::sched_setaffinity(0, sizeof(set), &set), 0);
    const auto most = static_cast<unsigned>(only) + 8;
    EXPECT_EQ(CountProcessors(most), most - 7);
    EXPECT_EQ(CountProcessors(1), 1u);
  }).join();
}

TEST(NearList, AThingComesBackToTheProcessorThatUsedIt) {
  NearList<int> list;
  list.Put(10, 0);
  list.Put(20, 1);
  list.Put(30, 2);
  EXPECT_EQ(list.Take(1), 20);
  EXPECT_EQ(list.Take(0), 10);
  EXPECT_EQ(list.Take(2), 30);
  EXPECT_TRUE(list.empty());
}

TEST(NearList, OfSeveralTheLastOneAndElseAnothersLastOne) {
  NearList<int> list;
  for (int k = 0; k < 4; ++k) list.Put(k, k % 2);
  EXPECT_EQ(list.Take(0), 2);
  EXPECT_EQ(list.Take(7), 3);
  EXPECT_EQ(list.Take(0), 0);
  EXPECT_EQ(list.Take(0), 1);
}

// Counts those that are alive.
struct Counted {
  explicit Counted(std::atomic<int>& alive) : alive(alive) { ++alive; }
  ~Counted() { --alive; }
  std::atomic<int>& alive;
  int users = 0;
};

TEST(NearSpares, OneCallerHasOneThingWhereverItGoes) {
  std::atomic<int> alive{0};
  {
    NearSpares<Counted> spares;
    EXPECT_EQ(spares.Take(0), nullptr);
    spares.Put(std::make_unique<Counted>(alive), 0);
    for (int processor = 0; processor < 40; ++processor) {
      auto thing = spares.Take(processor);
      ASSERT_NE(thing, nullptr) << processor;
      EXPECT_EQ(spares.Take(processor), nullptr);
      spares.Put(std::move(thing), processor);
    }
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0);
}

TEST(NearSpares, EachProcessorHasItsOwn) {
  if (CountProcessors(2) < 2) GTEST_SKIP() << "this process may use the first processor only";
  std::atomic<int> alive{0};
  NearSpares<Counted> spares;
  auto a = std::make_unique<Counted>(alive), b = std::make_unique<Counted>(alive);
  Counted *const first = a.get(), *const second = b.get();
  spares.Put(std::move(a), 0);
  spares.Put(std::move(b), 1);
  for (int k = 0; k < 3; ++k) {
    b = spares.Take(1);
    EXPECT_EQ(b.get(), second);
    a = spares.Take(0);
    EXPECT_EQ(a.get(), first);
    spares.Put(std::move(a), 0);
    spares.Put(std::move(b), 1);
  }
}

TEST(NearSpares, WhatFindsNoPlaceGoes) {
  std::atomic<int> alive{0};
  NearSpares<Counted> spares;
  for (int k = 0; k < 100; ++k) spares.Put(std::make_unique<Counted>(alive), 0);
  EXPECT_GE(alive, 1);
  EXPECT_LE(alive, static_cast<int>(CountProcessors(16)));
}

TEST(NearSpares, NobodySharesAThing) {
  std::atomic<int> alive{0}, shared{0};
  {
    NearSpares<Counted> spares;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int k = 0; k < 20000; ++k) {
          auto thing = spares.Take();
          if (!thing) thing = std::make_unique<Counted>(alive);
          if (thing->users++ != 0) ++shared;
          --thing->users;
          spares.Put(std::move(thing));
        }
      });
    for (auto& t : threads) t.join();
  }
  EXPECT_EQ(shared, 0);
  EXPECT_EQ(alive, 0);
}

}  // namespace
}  // namespace heddle
