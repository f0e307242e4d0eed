// Which way a plan settles on, by times that are made up.
#include "executor/tune/plan_tuner.h"

#include <gtest/gtest.h>

#include <functional>

namespace heddle {
namespace {

struct Counts {
  int first = 0, second = 0, tries = 0;  // runs of each way; those that were trials
};

// Runs with one way besides the plain one; `cost(run, variant)` is what each takes, in ns.
class Runs {
 public:
  explicit Runs(std::function<double(int, int)> cost) : cost_(std::move(cost)) {
    plan_.blocks.resize(1);
    plan_.worth_measuring = true;
    tuner_ = std::make_unique<PlanTuner>(plan_, true);
  }
  Counts Go(int runs) {
    Counts counts;
    for (int i = 0; i < runs; ++i, ++run_) {
      PlanTuner::Costs costs;
      if (tuner_->WantsCandidates(&costs)) tuner_->Candidates(1);
      const PlanTuner::Turn turn = tuner_->Next(true);
      ++(turn.variant == 0 ? counts.first : counts.second);
      counts.tries += turn.what == PlanTuner::Turn::What::kTry;
      tuner_->Report(turn, cost_(run_, turn.variant));
    }
    return counts;
  }
  int settled() const { return tuner_->settled_variant(); }

 private:
  std::function<double(int, int)> cost_;
  Plan plan_;
  std::unique_ptr<PlanTuner> tuner_;
  int run_ = 0;
};

constexpr double kMs = 1e6;

TEST(PlanTuner, TheFastestWayStays) {
  Runs plain([](int, int variant) { return variant == 0 ? 4 * kMs : 5 * kMs; });
  plain.Go(60);
  EXPECT_EQ(plain.settled(), 0);
  Runs other([](int, int variant) { return variant == 0 ? 5 * kMs : 4 * kMs; });
  other.Go(60);
  EXPECT_EQ(other.settled(), 1);
}

// While the first trials are made, other work slows the plain way down.
TEST(PlanTuner, WhatSeemedFasterForAMomentIsFoundOutSoon) {
  Runs runs([](int run, int variant) { return variant == 1 ? 5 * kMs : (run < 60 ? 6 : 4) * kMs; });
  runs.Go(60);
  ASSERT_EQ(runs.settled(), 1);
  const Counts after = runs.Go(2000);
  EXPECT_EQ(runs.settled(), 0);
  EXPECT_LT(after.second, 300);
}

TEST(PlanTuner, TrialsOfOneResultBecomeRare) {
  for (const double other : {3.5 * kMs, 4.5 * kMs}) {
    Runs runs([other](int, int variant) { return variant == 0 ? 4 * kMs : other; });
    runs.Go(1000);
    EXPECT_LT(runs.Go(20000).tries, 100);
  }
}

}  // namespace
}  // namespace heddle
