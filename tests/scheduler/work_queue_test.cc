// Tasks of one participant beside a model of them; the memory that a queue keeps.
#include "scheduler/work_queue.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <span>
#include <vector>

#include "tools/alloc_count.cc"  // NOLINT(bugprone-suspicious-include): the tool is no library

namespace heddle {
namespace {

TEST(WorkQueue, ActsAsADequeHoweverManyThereAre) {
  WorkQueue queue(2);
  std::deque<uint32_t> model;
  std::mt19937 random(3);
  uint32_t next = 0;
  for (int step = 0; step < 20000; ++step) {
    const bool fills = step / 500 % 2 == 0;  // it grows beyond its room, and wraps around
    if (random() % 10 < (fills ? 7U : 3U)) {
      queue.Push(0, next);
      model.push_back(next++);
      continue;
    }
    const bool owner = random() % 2 == 0;
    uint32_t task = 0;
    ASSERT_EQ(queue.Pop(owner ? 0 : 1, &task), !model.empty()) << step;
    if (model.empty()) continue;
    ASSERT_EQ(task, owner ? model.back() : model.front()) << step;
    owner ? model.pop_back() : model.pop_front();
  }
}

TEST(WorkQueue, RunAfterRunTakesNoMemory) {
  if (!tools::CanCountAllocations()) GTEST_SKIP() << "the heap cannot be watched in this build";
  constexpr uint32_t kTasks = 100;
  const std::vector<int64_t> priority(kTasks, 1);
  for (const bool priorities : {false, true}) {
    WorkQueue queue(2, 0, priorities ? std::span<const int64_t>(priority) : std::span<int64_t>());
    const auto run = [&] {
      queue.Clear();
      for (uint32_t t = 0; t < kTasks; ++t) queue.Push(0, t);
      uint32_t task = 0;
      for (uint32_t t = 0; t < kTasks; ++t) queue.Pop(t % 3 == 0 ? 0 : 1, &task);
    };
    run();
    tools::StartCountingAllocations();
    for (int k = 0; k < 100; ++k) run();
    EXPECT_EQ(tools::StopCountingAllocations(), 0) << priorities;
  }
}

}  // namespace
}  // namespace heddle
