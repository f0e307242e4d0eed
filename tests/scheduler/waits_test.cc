// Threads that wait for others, meanwhile: the host's calls are made on the one that they are for.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <random>
#include <thread>

#include "core/interrupts.h"
#include "scheduler/host_pool.h"
#include "scheduler/lane_run.h"
#include "scheduler/lane_schedule.h"
#include "scheduler/team.h"
#include "tests/scheduler/graphs.h"

namespace heddle::testing {
namespace {

// A host that wants to be called all the time, on the thread that made it.
class Asking final : public Interrupts {
 public:
  Asking() { Raise(kAsk); }
  // Returns when the host has been called once more, or gives up: then nobody looks.
  bool AwaitCall() {
    const int before = calls_.load();
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (calls_.load() == before) {
      if (std::chrono::steady_clock::now() > patience) return false;
      std::this_thread::yield();
    }
    return true;
  }

 private:
  Status Ask() const override {
    if (std::this_thread::get_id() == owner_) calls_.fetch_add(1);
    return Status::Ok();
  }
  const std::thread::id owner_ = std::this_thread::get_id();
  mutable std::atomic<int> calls_{0};
};

TEST(Waits, ForEventsServeTheHost) {
  for (int round = 0; round < 20; ++round) {
    Asking host;
    const Interrupts::Scope scope(&host);
    EventCount events;
    std::atomic<bool> done{false};
    bool called = true;
    std::thread other([&] {
      for (int k = 0; k < 3 && called; ++k) called = host.AwaitCall();
      done.store(true);
      events.Notify();
    });
    while (!done.load()) {
      const uint32_t key = events.PrepareWait();
      if (done.load())
        events.CancelWait();
      else
        events.Wait(key);
    }
    other.join();
    EXPECT_TRUE(called);
  }
}

TEST(Waits, ForHelpersServeTheHost) {
  HostPool pool(3);
  for (int round = 0; round < 20; ++round) {
    Asking host;
    const Interrupts::Scope scope(&host);
    std::atomic<int> helpers{0};
    std::atomic<bool> called{true};
    pool.Run([&](int participant) {
      if (participant == 0) {
        while (helpers.load() == 0) std::this_thread::yield();
        return;
      }
      ++helpers;
      for (int k = 0; k < 3; ++k)
        if (!host.AwaitCall()) called = false;
    });
    EXPECT_TRUE(called);
  }
}

TEST(Waits, OfLanesServeTheHost) {
  std::mt19937_64 random(47);
  HostPool pool(2);
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const StaticGraph g = RandomGraph(20 + seed, 3, 6, seed);
    const std::vector<float> costs(g.size, 500);
    LaneOptions options{.lanes = 2};
    const LaneSchedule schedule = ScheduleLanes(FormUnits(g, costs, 0), options);
    Asking host;
    const Interrupts::Scope scope(&host);
    const std::thread::id owner = std::this_thread::get_id();
    LaneRun run(schedule);
    run.Begin();
    // The other thread takes part first, and holds on in one of its segments.
    std::atomic<bool> there{false}, called{true};
    const auto segment = static_cast<uint32_t>(random() % 3);
    pool.Run([&](int participant) {
      uint32_t seen = 0;
      if (participant == 0)
        while (!there.load()) std::this_thread::yield();
      run.Participate(participant, [&](uint32_t, uint32_t, uint32_t) {
        if (std::this_thread::get_id() == owner) return true;
        there = true;
        if (seen++ == segment && !host.AwaitCall()) called = false;
        return true;
      });
      there = true;
    });
    EXPECT_TRUE(run.finished());
    EXPECT_TRUE(called);
  }
}

}  // namespace
}  // namespace heddle::testing
