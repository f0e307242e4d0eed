// Which way a graph of steps settles on, by times that are made up, and by those of real runs.
#include "executor/tune/run_policy.h"

#include <gtest/gtest.h>

#include <functional>

#include "benchmarks/scheduling/task_graph.h"
#include "core/interrupts.h"
#include "tests/scheduler/graphs.h"

namespace heddle::testing {
namespace {

using What = RunPolicy::Turn::What;

// Two steps side by side.
StaticGraph TwoSteps() { return FromPredecessors({{}, {}}); }

// Steps that take about the same.
void TimeTwoSteps(CostMeter* meter) {
  meter->Begin();
  for (size_t step = 0; step < 2; ++step) {
    for (const uint64_t start = NowNs(); NowNs() - start < 5000;) {
    }
    meter->Lap(step);
  }
  meter->End();
}

struct Counts {
  int first = 0, second = 0, tries = 0;  // runs of each way; those that were trials
};

// Runs with one way besides the plain one; `cost(run, variant)` is what each takes, in ns.
class Runs {
 public:
  explicit Runs(std::function<double(int, int)> cost) : cost_(std::move(cost)) {}
  Counts Go(int runs) {
    Counts counts;
    for (int i = 0; i < runs; ++i, ++run_) {
      RunPolicy::Costs costs;
      if (policy_.WantsCandidates(&costs)) policy_.Candidates(1);
      const RunPolicy::Turn turn = policy_.Next(true);
      ++(turn.variant == 0 ? counts.first : counts.second);
      counts.tries += turn.what == What::kTryVariant;
      if (turn.meter != nullptr) TimeTwoSteps(turn.meter);
      policy_.Report(turn, cost_(run_, turn.variant));
    }
    return counts;
  }
  const RunPolicy& policy() const { return policy_; }
  int settled() const { return policy_.settled_variant(); }

 private:
  std::function<double(int, int)> cost_;
  RunPolicy policy_{{.steps = 2, .graph = TwoSteps, .variants = true, .widths = true}};
  int run_ = 0;
};

constexpr double kMs = 1e6;

TEST(RunPolicy, TheFastestWayStays) {
  Runs plain([](int, int variant) { return variant == 0 ? 4 * kMs : 5 * kMs; });
  plain.Go(60);
  EXPECT_EQ(plain.settled(), 0);
  Runs other([](int, int variant) { return variant == 0 ? 5 * kMs : 4 * kMs; });
  other.Go(60);
  EXPECT_EQ(other.settled(), 1);
}

// While the first trials are made, other work slows the plain way down.
TEST(RunPolicy, WhatSeemedFasterForAMomentIsFoundOutSoon) {
  Runs runs([](int run, int variant) { return variant == 1 ? 5 * kMs : (run < 60 ? 6 : 4) * kMs; });
  runs.Go(60);
  ASSERT_EQ(runs.settled(), 1);
  EXPECT_FALSE(runs.policy().confirmed());
  const Counts after = runs.Go(2000);
  EXPECT_EQ(runs.settled(), 0);
  EXPECT_LT(after.second, 300);
}

TEST(RunPolicy, TrialsOfOneResultBecomeRare) {
  for (const double other : {3.5 * kMs, 4.5 * kMs}) {
    Runs runs([other](int, int variant) { return variant == 0 ? 4 * kMs : other; });
    runs.Go(1000);
    EXPECT_TRUE(runs.policy().confirmed());
    EXPECT_LT(runs.Go(20000).tries, 100);
  }
}

// Trials have agreed several times that the second way is the faster one, since other work was
// there each time; its own runs take the same with and without.
TEST(RunPolicy, ALongSpellOfOtherWorkIsFoundOutWithinHalfAMinuteOfRuns) {
  bool busy = true;
  Runs runs([&busy](int, int variant) { return variant == 1 ? 5 * kMs : (busy ? 6 : 4) * kMs; });
  runs.Go(12000);
  while (!runs.policy().settled()) runs.Go(1);  // a trial was on its way
  ASSERT_EQ(runs.settled(), 1);
  ASSERT_TRUE(runs.policy().confirmed());
  busy = false;
  runs.Go(static_cast<int>(30000 / 5) + 100);
  while (!runs.policy().settled()) runs.Go(1);
  EXPECT_EQ(runs.settled(), 0);
}

TEST(RunPolicy, RunsThatTakeAnotherTimeThanInTheTrialsCallForOthers) {
  constexpr int kBusy = 6000;
  for (const bool busy_first : {true, false}) {
    Runs runs([busy_first](int run, int variant) {
      const bool busy = (run < kBusy) == busy_first;
      return (variant == 1 ? (busy ? 8 : 5) : (busy ? 10 : 4)) * kMs;
    });
    runs.Go(kBusy);
    ASSERT_EQ(runs.settled(), busy_first ? 1 : 0);
    runs.Go(600);
    EXPECT_EQ(runs.settled(), busy_first ? 0 : 1);
  }
}

// Every other run of the plain way meets other work while the trials go on: what they say is not
// relied on for long.
TEST(RunPolicy, TrialsWhoseTimesLieFarApartAreRepeatedSoon) {
  bool busy = true;
  Runs runs([&busy](int run, int variant) {
    return variant == 1 ? 5 * kMs : busy ? (run % 2 == 0 ? 5.5 : 9) * kMs : 4 * kMs;
  });
  runs.Go(1200);
  while (!runs.policy().settled()) runs.Go(1);  // a trial was on its way
  ASSERT_EQ(runs.settled(), 1);
  busy = false;
  runs.Go(700);
  EXPECT_EQ(runs.settled(), 0);
}

TEST(RunPolicy, RunsThatSomethingSlowsDownCountInNoStage) {
  const auto settled = [](bool with_slowed) {
    RunPolicy policy({.steps = 2, .graph = TwoSteps, .variants = true, .widths = true});
    std::vector<What> stages;
    for (int k = 0; k < 400; ++k) {
      RunPolicy::Costs costs;
      if (policy.WantsCandidates(&costs)) policy.Candidates(1);
      if (with_slowed) {
        const bool was_settled = policy.settled();
        const RunPolicy::Turn slowed = policy.Next(true, true);
        EXPECT_EQ(slowed.what, What::kRun);
        EXPECT_EQ(slowed.meter, nullptr);
        EXPECT_EQ(slowed.variant, policy.settled_variant());
        EXPECT_FALSE(policy.Report(slowed, (slowed.variant == 0 ? 1 : 90) * kMs));
        EXPECT_EQ(policy.settled(), was_settled);
      }
      const RunPolicy::Turn turn = policy.Next(true);
      stages.push_back(turn.what);
      if (turn.meter != nullptr) TimeTwoSteps(turn.meter);
      policy.Report(turn, (turn.variant == 0 ? 5 : 4) * kMs);
    }
    EXPECT_EQ(policy.settled_variant(), 1);
    return stages;
  };
  EXPECT_EQ(settled(true), settled(false));
}

TEST(RunPolicy, StepsAreTimedMoreOftenWhereRunsDoNotAgree) {
  RunPolicy policy({.steps = 2, .graph = TwoSteps, .variants = true, .widths = true});
  int timed = 0;
  for (int k = 0; k < 30; ++k) {
    const RunPolicy::Turn turn = policy.Next(true);
    if (turn.meter != nullptr) TimeTwoSteps(turn.meter);
    timed += turn.what == What::kTime;
    policy.Report(turn, (k % 2 == 0 ? 3 : 1) * kMs);
  }
  EXPECT_EQ(timed, 12) << "six with all threads, six with one";
}

// The order of the stages, and what a run is told in each.
TEST(RunPolicy, StepsAreTimedWideThenNarrow) {
  RunPolicy policy({.steps = 2, .graph = TwoSteps, .variants = true, .widths = true});
  const auto run = [&] {
    const RunPolicy::Turn turn = policy.Next(true);
    if (turn.meter != nullptr) TimeTwoSteps(turn.meter);
    policy.Report(turn, kMs);
    return turn;
  };
  RunPolicy::Costs costs;
  EXPECT_EQ(run().what, What::kWarmUp);
  for (const bool narrow : {false, false, true, true}) {
    EXPECT_FALSE(policy.WantsCandidates(&costs));
    const RunPolicy::Turn turn = run();
    EXPECT_EQ(turn.what, What::kTime);
    EXPECT_EQ(turn.narrow, narrow);
    EXPECT_NE(turn.meter, nullptr);
  }
  EXPECT_EQ(run().what, What::kRun) << "nobody has made candidates yet";
  EXPECT_FALSE(policy.settled());
  EXPECT_TRUE(policy.WantsCandidates(&costs));
  EXPECT_EQ(costs.wide_ns.size(), 2u);
  EXPECT_EQ(costs.narrow_ns.size(), 2u);
  EXPECT_EQ(costs.plain_ns, kMs);
  EXPECT_FALSE(policy.WantsCandidates(&costs)) << "once, to one caller";
  EXPECT_EQ(run().what, What::kRun);
  policy.Candidates(1);
  EXPECT_EQ(run().what, What::kTryVariant);
}

TEST(RunPolicy, OfTwoStepsInAChainNothingIsTried) {
  RunPolicy policy({.steps = 2,
                    .graph =
                        [] {
                          return FromPredecessors({{}, {0}});
                        },
                    .variants = true,
                    .widths = true});
  for (int k = 0; k < 3; ++k) policy.Report(policy.Next(true), kMs);
  EXPECT_TRUE(policy.settled());
  EXPECT_TRUE(policy.confirmed());
  RunPolicy::Costs costs;
  EXPECT_FALSE(policy.WantsCandidates(&costs));
}

TEST(RunPolicy, RunsThatMeetOthersAreNotLookedAt) {
  RunPolicy policy({.steps = 2, .graph = TwoSteps, .variants = true, .widths = true});
  for (int k = 0; k < 10; ++k) {
    const RunPolicy::Turn turn = policy.Next(false);
    EXPECT_EQ(turn.what, What::kRun);
    EXPECT_FALSE(turn.judged);
    EXPECT_FALSE(policy.Report(turn, kMs));
  }
  EXPECT_FALSE(policy.settled());
}

TEST(RunPolicy, AVariantThatFailsIsGivenUp) {
  Runs runs([](int, int variant) { return variant == 0 ? 5 * kMs : 4 * kMs; });
  runs.Go(6);
  auto& policy = const_cast<RunPolicy&>(runs.policy());
  const RunPolicy::Turn turn = policy.Next(true);
  ASSERT_EQ(turn.what, What::kTryVariant);
  policy.Drop(turn);
  EXPECT_TRUE(policy.settled());
  EXPECT_EQ(policy.settled_variant(), 0);
  EXPECT_FALSE(policy.confirmed());
}

struct Counted {
  Ledger* ledger;
  uint32_t node;
  static void Execute(void* p) {
    auto* c = static_cast<Counted*>(p);
    c->ledger->Execute(c->node);
    volatile uint64_t x = 0;
    for (int i = 0; i < 50; ++i) x = x + 1;
  }
};

// A deadline may end whoever makes the graph: a later run's time is as good.
TEST(RunPolicy, AGraphThatIsNotMadeIsAskedForAgain) {
  for (const bool widths : {true, false})
    for (int fails = 1; fails < 4; ++fails) {
      int asked = 0;
      const auto graph = [&] {
        if (++asked <= fails) throw Interrupted{Status(StatusCode::kCancelled, "enough")};
        return TwoSteps();
      };
      RunPolicy policy({.steps = 2, .graph = graph, .variants = true, .widths = widths});
      RunPolicy::Costs costs;
      int thrown = 0, run = 0;
      for (; run < 40 && !policy.WantsCandidates(&costs); ++run) {
        const RunPolicy::Turn turn = policy.Next(true);
        if (turn.meter != nullptr) TimeTwoSteps(turn.meter);
        try {
          policy.Report(turn, kMs);
        } catch (const Interrupted&) {
          ++thrown;
        }
      }
      EXPECT_LT(run, 40);
      EXPECT_EQ(thrown, fails);
      EXPECT_EQ(asked, fails + 1);
      EXPECT_EQ(costs.narrow_ns.size(), 2u);
    }
}

TEST(RunPolicy, AGraphOfTasksStaysRightWhileItFindsItsWay) {
  for (int threads : {1, 2, 4}) {
    HostPool pool(threads);
    const StaticGraph g = RandomGraph(400, 3, 100, 11);
    Ledger ledger(g);
    std::vector<Counted> args;
    std::vector<bench::Task> tasks;
    for (uint32_t v = 0; v < g.size; ++v) args.push_back({&ledger, v});
    for (Counted& c : args) tasks.push_back({&Counted::Execute, &c});
    bench::TaskGraph graph(g, tasks, pool);
    // How many runs are trials depends on how long they take.
    for (int k = 0; k < 160 || (k < 2000 && !graph.settled()); ++k) {
      ledger.NewRun();
      graph.Run();
      ASSERT_TRUE(ledger.Right()) << k;
    }
    EXPECT_TRUE(graph.settled());
  }
}

}  // namespace
}  // namespace heddle::testing
