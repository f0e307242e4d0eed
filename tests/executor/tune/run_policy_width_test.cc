// One thread or all: what is faster is found, and found anew when that changes.
#include <gtest/gtest.h>

#include <functional>

#include "executor/tune/run_policy.h"

namespace heddle {
namespace {

// A plan whose instructions go one after another.
class WidthChoice : public RunPolicy {
 public:
  WidthChoice() : RunPolicy({.steps = 1, .widths = true}) {}
};

struct Seen {
  int narrow = 0, tried = 0;
  bool last = false;  // the last run was narrow
};

// `time`: of the k-th run, in ns.
Seen Runs(WidthChoice& choice, int runs, const std::function<double(int k, bool narrow)>& time) {
  Seen seen;
  for (int k = 0; k < runs; ++k) {
    const RunPolicy::Turn turn = choice.Next(true);
    EXPECT_TRUE(turn.judged);
    EXPECT_EQ(turn.variant, 0);
    seen.narrow += turn.narrow;
    seen.tried += turn.what == RunPolicy::Turn::What::kTryWidth;
    seen.last = turn.narrow;
    choice.Report(turn, time(k, turn.narrow));
  }
  return seen;
}

TEST(RunPolicyWidth, TheFasterWayStays) {
  WidthChoice slow, fast;
  const Seen wide = Runs(slow, 250, [](int, bool narrow) { return narrow ? 2000. : 1000.; });
  EXPECT_EQ(wide.narrow, 4);
  EXPECT_EQ(wide.tried, 8);
  EXPECT_FALSE(wide.last);
  const Seen narrow = Runs(fast, 250, [](int, bool narrow) { return narrow ? 1000. : 2000.; });
  EXPECT_EQ(narrow.narrow, 250 - WidthChoice::kFirstRuns - 4);
  EXPECT_TRUE(narrow.last);
}

TEST(RunPolicyWidth, AllThreadsUnlessOneIsClearlyFaster) {
  WidthChoice level, faster;
  EXPECT_FALSE(Runs(level, 100, [](int, bool narrow) { return narrow ? 970. : 1000.; }).last);
  EXPECT_TRUE(Runs(faster, 100, [](int, bool narrow) { return narrow ? 930. : 1000.; }).last);
}

TEST(RunPolicyWidth, FirstRunsOfABurstAndSingleOnesDoNotDecide) {
  WidthChoice bursts, single;
  bool before = false;
  EXPECT_FALSE(Runs(bursts, 100, [&](int, bool narrow) {
                 const bool first = narrow != before;
                 before = narrow;
                 return first ? (narrow ? 1. : 9000.) : narrow ? 1200. : 1000.;
               }).last);
  int runs = 0;
  EXPECT_FALSE(Runs(single, 100, [&](int, bool narrow) {
                 ++runs;
                 if (runs == WidthChoice::kFirstRuns + 2) return 1.;      // narrow, and counted
                 if (runs == WidthChoice::kFirstRuns + 6) return 90000.;  // wide
                 return narrow ? 1200. : 1000.;
               }).last);
}

TEST(RunPolicyWidth, ItIsTriedAgain) {
  WidthChoice choice;
  const auto far = [](int, bool narrow) { return narrow ? 1000. : 1500.; };
  const auto near = [](int, bool narrow) { return narrow ? 1000. : 600.; };
  EXPECT_TRUE(Runs(choice, 100, far).last);
  EXPECT_FALSE(Runs(choice, 1000, near).last);
  EXPECT_TRUE(Runs(choice, 600, far).last) << "runs have become slower";
}

// A few slow runs, or none, are no reason for other trials.
TEST(RunPolicyWidth, TrialsAreSeldomWhereNothingChanges) {
  WidthChoice choice;
  Runs(choice, 100, [](int, bool narrow) { return narrow ? 2000. : 1000.; });
  EXPECT_EQ(Runs(choice, 1900, [](int k, bool) { return k % 8 == 0 ? 1000. : 9000.; }).tried, 0);
  EXPECT_GT(Runs(choice, 200, [](int, bool narrow) { return narrow ? 2000. : 1000.; }).tried, 0);
}

TEST(RunPolicyWidth, TrialsTakeAHundredthOfTheTime) {
  for (const double slow : {1100., 2000., 20000.}) {
    WidthChoice choice;
    double all = 0, least = 0;
    for (int k = 0; k < 50000; ++k) {
      const RunPolicy::Turn turn = choice.Next(true);
      const double ns = turn.narrow ? slow : 1000;
      choice.Report(turn, ns);
      all += ns, least += 1000;
    }
    EXPECT_LE(all, 1.013 * least) << slow;
  }
}

TEST(RunPolicyWidth, RunsThatAreTracedAreNotCounted) {
  WidthChoice choice;
  for (int k = 0; k < 100; ++k) {
    const RunPolicy::Turn turn = choice.Next(true, true);
    EXPECT_FALSE(turn.judged || turn.narrow);
    choice.Report(turn, 9000);
  }
  EXPECT_EQ(Runs(choice, 8, [](int, bool) { return 1000.; }).tried, 0);
}

TEST(RunPolicyWidth, LongRunsAreLeftAlone) {
  WidthChoice choice;
  const Seen seen = Runs(
      choice, 10000, [](int, bool narrow) { return WidthChoice::kLongNs * (narrow ? 2 : 1.1); });
  EXPECT_EQ(seen.tried, 0);
  EXPECT_FALSE(seen.last);
}

// They were long while other work was there.
TEST(RunPolicyWidth, RunsThatWereLongForAWhileAreLookedAtAgain) {
  WidthChoice choice;
  EXPECT_EQ(Runs(choice, 500, [](int, bool) { return 2 * WidthChoice::kLongNs; }).tried, 0);
  EXPECT_TRUE(Runs(choice, 3000, [](int, bool narrow) { return narrow ? 1e6 : 1.5e6; }).last);
}

TEST(RunPolicyWidth, OneThreadThatTakesAnotherTimeIsLookedAtAgain) {
  for (const double factor : {0.5, 2.}) {
    WidthChoice choice;
    const auto before = [](int, bool narrow) { return narrow ? 1000. : 1500.; };
    EXPECT_TRUE(Runs(choice, 100, before).last);
    const auto after = [factor](int, bool narrow) { return factor * (narrow ? 1000. : 600.); };
    EXPECT_FALSE(Runs(choice, 400, after).last) << factor;
  }
}

TEST(RunPolicyWidth, TrialsWhoseTimesLieFarApartAreRepeatedSoon) {
  WidthChoice choice;
  int k = 0;
  const auto before = [&k](int, bool narrow) {
    return narrow ? 1000. : (++k % 2 == 0 ? 1100. : 1900.);
  };
  EXPECT_TRUE(Runs(choice, 100, before).last);
  EXPECT_FALSE(Runs(choice, 300, [](int, bool narrow) { return narrow ? 1000. : 600.; }).last);
}

}  // namespace
}  // namespace heddle
