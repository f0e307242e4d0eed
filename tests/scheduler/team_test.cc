// Threads that are lent: they help with the jobs of whoever called them, and go back.
#include "scheduler/team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace heddle {
namespace {

// Makes a thread for each call.
class Lender {
 public:
  explicit Lender(int helpers) : team_(helpers, [this] { Send(); }) {}
  ~Lender() { TakeBack(); }
  Team& team() { return team_; }
  // All that were sent have come back.
  void TakeBack() {
    team_.Dismiss();
    for (std::thread& t : threads_) t.join();
    threads_.clear();
  }
  int sent() const { return sent_; }

 private:
  void Send() {
    ++sent_;
    threads_.emplace_back([this] { team_.Serve(); });
  }
  Team team_;
  int sent_ = 0;
  std::vector<std::thread> threads_;
};

// A job that ends when somebody else takes part, too.
void RunWithHelp(Team& team) {
  std::atomic<int> inside{0};
  ASSERT_TRUE(team.Run(
      [&](int) {
        for (++inside; inside.load() < 2;) std::this_thread::yield();
      },
      2));
}

TEST(Team, ThoseWhoServeTakePartOnce) {
  Lender lender(3);
  for (int round = 0; round < 300; ++round) {
    std::mutex mutex;
    std::set<int> participants;
    const std::thread::id owner = std::this_thread::get_id();
    ASSERT_TRUE(lender.team().Run(
        [&](int participant) {
          std::lock_guard lock(mutex);
          EXPECT_TRUE(participants.insert(participant).second);
          EXPECT_EQ(participant == 0, std::this_thread::get_id() == owner);
        },
        4));
    EXPECT_LT(*participants.rbegin(), 4);
    if (round % 50 == 49) lender.TakeBack();
  }
}

TEST(Team, WhatAHelperWroteIsSeenAfterwards) {
  Lender lender(1);
  for (int round = 0; round < 500; ++round) {
    std::vector<int> wrote(2, 0);  // no atomics: TSan watches
    ASSERT_TRUE(lender.team().Run(
        [&](int participant) { wrote[static_cast<size_t>(participant)] = round + 1; }, 2));
    EXPECT_EQ(wrote[0], round + 1);
    EXPECT_TRUE(wrote[1] == 0 || wrote[1] == round + 1);
    if (round % 100 == 99) lender.TakeBack();
  }
}

// The second run calls for help once more.
TEST(Team, AHelperThatWasSentAwayIsCalledAgain) {
  Lender lender(1);
  RunWithHelp(lender.team());
  lender.TakeBack();  // who is dismissed is called again
  const int sent = lender.sent();
  RunWithHelp(lender.team());
  EXPECT_EQ(lender.sent(), sent + 1);
}

TEST(Team, NobodyIsCalledTwiceAtATime) {
  int calls = 0;
  Team team(2, [&] { ++calls; });
  int done = 0;
  for (int round = 0; round < 10; ++round)
    ASSERT_TRUE(team.Run([&](int participant) { done += participant == 0; }, 3));
  EXPECT_EQ(done, 10);
  EXPECT_EQ(calls, 2);
  team.Decline();
  ASSERT_TRUE(team.Run([](int) {}, 3));
  EXPECT_EQ(calls, 3);
  ASSERT_TRUE(team.Run([](int) {}, 1));
  EXPECT_EQ(calls, 3);
}

TEST(Team, OneJobAtATime) {
  Lender lender(1);
  bool inner = true;
  ASSERT_TRUE(lender.team().Run(
      [&](int participant) {
        if (participant == 0) inner = lender.team().Run([](int) { FAIL(); }, 2);
      },
      2));
  EXPECT_FALSE(inner);
  ASSERT_TRUE(lender.team().Run([](int) {}, 2));
}

TEST(Team, OwnersComeFromSeveralThreads) {
  std::atomic<int> ran{0};
  int sum = 0;  // no atomic: jobs follow each other
  Team team(2, [] {});
  std::vector<std::thread> owners;
  for (int k = 0; k < 3; ++k) {
    owners.emplace_back([&] {
      for (int round = 0; round < 2000; ++round)
        if (team.Run([&](int) { ++sum; }, 3)) ++ran;
    });
  }
  for (std::thread& t : owners) t.join();
  EXPECT_EQ(sum, ran.load());
}

}  // namespace
}  // namespace heddle
