#include "scheduler/trials.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace heddle {
namespace {

// Runs the trials; `time(way, in_a_row)` says what a run takes.
template <typename Time>
int Best(int ways, int rounds, double margin, Time&& time) {
  Trials trials({.margin = margin});
  trials.Open(ways, rounds);
  int last = -1, in_a_row = 0;
  std::vector<int> tried(static_cast<size_t>(ways), 0);
  while (!trials.settled()) {
    const int way = trials.next();
    in_a_row = way == last ? in_a_row + 1 : 0;
    last = way;
    ++tried[static_cast<size_t>(way)];
    trials.Report(time(way, in_a_row));
  }
  const int least = *std::min_element(tried.begin(), tried.end());
  EXPECT_GE(least, rounds);
  int more = 0;
  for (int t : tried) more += t > least;
  EXPECT_TRUE(more == 0 || (more == 2 && tried[0] > least))
      << "every way is tried as often as any other, but for way 0 and its rival";
  return trials.best();
}

TEST(Trials, TheFastestWins) {
  for (int fastest = 0; fastest < 4; ++fastest)
    EXPECT_EQ(Best(4, 3, 0.03, [&](int way, int) { return way == fastest ? 80.0 : 100.0; }),
              fastest);
}

TEST(Trials, WayZeroStaysUnlessBeatenByTheMargin) {
  EXPECT_EQ(Best(2, 3, 0.03, [](int way, int) { return way == 1 ? 98.0 : 100.0; }), 0);
  EXPECT_EQ(Best(2, 3, 0.03, [](int way, int) { return way == 1 ? 96.0 : 100.0; }), 1);
}

TEST(Trials, TheFirstRunAfterAnotherWayDoesNotCount) {
  EXPECT_EQ(Best(2, 2, 0.03,
                 [](int way, int in_a_row) {
                   if (in_a_row == 0) return way == 0 ? 10.0 : 500.0;
                   return way == 0 ? 100.0 : 80.0;
                 }),
            1);
}

TEST(Trials, OneLuckyAndOneSpoiltRunDoNotDecide) {
  int runs = 0;
  EXPECT_EQ(Best(2, 4, 0.03,
                 [&](int way, int) {
                   ++runs;
                   if (runs == 8) return way == 1 ? 1.0 : 1.0;
                   if (runs == 11) return 5000.0;
                   return way == 1 ? 120.0 : 100.0;
                 }),
            0);
}

// A way other than 0 takes 80 ns in the first runs, and 100 ns as all others afterwards.
TEST(Trials, AWayThatIsFasterOnlyAtFirstIsNotTaken) {
  for (const int lucky : {1, 2, 3}) {
    int runs = 0;
    EXPECT_EQ(
        Best(4, 2, 0.03,
             [&](int way, int) { return ++runs <= 4 * 2 * 3 && way == lucky ? 80.0 : 100.0; }),
        0);
  }
}

// Six ways that take the same time, with the machine's noise added.
TEST(Trials, WayZeroMostlyStaysIfAllTakeTheSame) {
  std::mt19937 random(1);
  std::exponential_distribution<double> noise(0.1);
  int stayed = 0;
  for (int k = 0; k < 1000; ++k)
    stayed += Best(6, 2, 0.03, [&](int, int) { return 100 + noise(random); }) == 0;
  EXPECT_GT(stayed, 900);
}

// The time lost in trials is at most a fiftieth of the runs that follow.
TEST(Trials, RunsToPayBackCoverTheTimeOfTheTrials) {
  const auto runs = [](double other_ns) {
    Trials trials;
    trials.Open(2, 2);
    while (!trials.settled()) trials.Report(trials.next() == 0 ? 100 : other_ns);
    return trials.RunsToPayBack();
  };
  // Six tries of each way: those of the slow one take 6 * 900 more, a fiftieth of 2,700 runs.
  EXPECT_NEAR(static_cast<double>(runs(1000)), 2700, 1);
  EXPECT_EQ(runs(100), 0);
  EXPECT_NEAR(static_cast<double>(runs(50)), 750, 1);  // way 0, which is tried nine times more
}

TEST(Trials, ShortRunsGetMoreRounds) {
  EXPECT_GT(Trials().RoundsFor(1000, 2), 4);
  EXPECT_EQ(Trials().RoundsFor(1e7, 2), 2);
  EXPECT_EQ(Trials().RoundsFor(0, 2), 2);
}

}  // namespace
}  // namespace heddle
