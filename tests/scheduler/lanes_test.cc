// Lane schedules, and their execution by more or fewer threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <tuple>

#include "scheduler/host_pool.h"
#include "scheduler/lane_run.h"
#include "scheduler/lane_schedule.h"
#include "scheduler/propose_lanes.h"
#include "scheduler/simulate_lanes.h"
#include "tests/scheduler/graphs.h"

namespace heddle::testing {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kRuns = 20;
#else
constexpr int kRuns = 100;
#endif

constexpr LaneRule kRules[] = {LaneRule::kByPath, LaneRule::kByHome, LaneRule::kInOrder};

std::vector<float> Costs(uint32_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> cost(size);
  for (float& c : cost) c = static_cast<float>(10 + random() % 2000);
  return cost;
}

LaneSchedule Make(const StaticGraph& g, std::span<const float> cost, int lanes, LaneRule rule,
                  float group_ns = 0) {
  LaneOptions options{.lanes = lanes};
  options.rule = rule;
  return ScheduleLanes(FormUnits(g, cost, group_ns), options);
}

// Which positions happen before which, from the lanes' own order and their waits alone.
class HappensBefore {
 public:
  explicit HappensBefore(const LaneSchedule& s)
      : n_(s.order.size()), before_(n_, std::vector<bool>(n_)) {
    std::vector<std::vector<uint32_t>> end_of_signal(static_cast<size_t>(s.lanes));
    for (int l = 0; l < s.lanes; ++l)
      for (uint32_t k = s.segment_begin[l]; k < s.segment_begin[l + 1]; ++k)
        if (s.segments[k].signal != 0) {
          auto& ends = end_of_signal[static_cast<size_t>(l)];
          EXPECT_EQ(s.segments[k].signal, ends.size() + 1);
          ends.push_back(s.segments[k].end);
        }
    std::vector<uint32_t> position(n_);
    for (uint32_t k = 0; k < n_; ++k) position[s.order[k]] = k;
    std::vector<std::vector<uint32_t>> direct(n_);
    for (int l = 0; l < s.lanes; ++l)
      for (uint32_t k = s.segment_begin[l]; k < s.segment_begin[l + 1]; ++k) {
        const LaneSegment& seg = s.segments[k];
        for (uint32_t p = seg.begin; p < seg.end; ++p)
          if (p > s.lane_begin[l]) direct[p].push_back(p - 1);
        for (uint32_t w = seg.wait_begin; w < seg.wait_end; ++w)
          direct[seg.begin].push_back(end_of_signal[s.waits[w].lane].at(s.waits[w].signal - 1) - 1);
      }
    for (uint32_t v : s.walk) {  // a topological order, or this finds less than there is
      const uint32_t p = position[v];
      for (uint32_t q : direct[p]) {
        before_[p][q] = true;
        for (size_t r = 0; r < n_; ++r)
          if (before_[q][r]) before_[p][r] = true;
      }
    }
  }
  bool operator()(uint32_t earlier, uint32_t later) const { return before_[later][earlier]; }

 private:
  size_t n_;
  std::vector<std::vector<bool>> before_;
};

using Case = std::tuple<int, LaneRule>;
class LaneScheduleTest : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Lanes, LaneScheduleTest,
                         ::testing::Combine(::testing::Values(1, 2, 3, 8),
                                            ::testing::ValuesIn(kRules)));

TEST_P(LaneScheduleTest, EveryDependencyIsOrdered) {
  const auto [lanes, rule] = GetParam();
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const StaticGraph g = RandomGraph(40 + seed * 9, 3, seed % 2 ? 30 : 6, seed);
    const LaneSchedule s = Make(g, Costs(g.size, seed), lanes, rule, seed % 3 ? 0 : 1500);
    ASSERT_EQ(s.order.size(), g.size);
    std::vector<uint32_t> position(g.size, ~0u);
    for (uint32_t k = 0; k < g.size; ++k) position[s.order[k]] = k;
    ASSERT_EQ(std::count(position.begin(), position.end(), ~0u), 0);
    const HappensBefore before(s);
    for (uint32_t v = 0; v < g.size; ++v)
      for (uint32_t e = g.pred_begin[v]; e < g.pred_begin[v + 1]; ++e)
        EXPECT_TRUE(before(position[g.pred[e]], position[v]))
            << seed << ": " << g.pred[e] << " " << v;
  }
}

TEST_P(LaneScheduleTest, NoWaitIsImpliedByTheOthers) {
  const auto [lanes, rule] = GetParam();
  for (uint64_t seed = 20; seed < 26; ++seed) {
    const StaticGraph g = RandomGraph(120, 3, 40, seed);
    const LaneSchedule s = Make(g, Costs(g.size, seed), lanes, rule);
    // Taking away any one wait must lose an order between two positions.
    for (size_t w = 0; w < s.waits.size(); w += 3) {
      LaneSchedule less = s;
      less.waits[w].signal = 0;
      for (LaneSegment& seg : less.segments) {  // a wait for signal 0 is none: cut it out
        if (w < seg.wait_begin || w >= seg.wait_end) continue;
        std::swap(less.waits[w], less.waits[seg.wait_end - 1]);
        --seg.wait_end;
      }
      const HappensBefore all(s), without(less);
      bool lost = false;
      for (uint32_t a = 0; a < g.size && !lost; ++a)
        for (uint32_t b = 0; b < g.size && !lost; ++b) lost = all(a, b) && !without(a, b);
      EXPECT_TRUE(lost) << "wait " << w << " of seed " << seed;
    }
  }
}

TEST_P(LaneScheduleTest, ClocksTellWhatIsFinished) {
  const auto [lanes, rule] = GetParam();
  const StaticGraph g = RandomGraph(150, 3, 40, 7);
  const LaneSchedule s = Make(g, Costs(g.size, 7), lanes, rule);
  const HappensBefore before(s);
  const auto k = static_cast<uint32_t>(lanes);
  for (uint32_t l = 0; l < k; ++l) {
    std::vector<uint32_t> known(k, 0);
    uint32_t row = s.clock_begin[l];
    for (uint32_t p = s.lane_begin[l]; p < s.lane_begin[l + 1]; ++p) {
      if (row < s.clock_begin[l + 1] && s.clock_positions[row] == p) {
        known.assign(s.clocks.begin() + row * k, s.clocks.begin() + (row + 1) * k);
        ++row;
      }
      for (uint32_t o = 0; o < k; ++o) {
        if (o == l) continue;
        for (uint32_t q = s.lane_begin[o]; q < s.lane_begin[o + 1]; ++q)
          EXPECT_EQ(before(q, p), q - s.lane_begin[o] < known[o]) << q << " before " << p;
      }
    }
    EXPECT_EQ(row, s.clock_begin[l + 1]);
  }
}

TEST(Simulation, AgreesWithThePrediction) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const StaticGraph g = RandomGraph(400, 3, 60, seed);
    const std::vector<float> cost = Costs(g.size, seed);
    const UnitGraph units = FormUnits(g, cost, 0);
    for (LaneRule rule : kRules) {
      LaneOptions options{.lanes = 3, .hand_over_ns = 100, .start_ns = 0};
      options.rule = rule;
      const LaneSchedule s = ScheduleLanes(units, options);
      const double simulated = SimulateLanes(s, cost, 100);
      // A wait may come earlier in a lane than the last input was needed, never later; the clock of
      // the list scheduler may have idled a little more.
      EXPECT_NEAR(simulated, s.predicted_ns, 0.03 * s.predicted_ns) << seed;
      EXPECT_GE(simulated, std::max(s.path_ns, s.serial_ns / 3) * 0.999);
    }
  }
}

TEST(Simulation, LonelyNodesHaveNobodyBesideThem) {
  // 0 -> {1, 2} -> 3: the ends are lonely, the branches are not.
  const StaticGraph g = FromPredecessors({{}, {0}, {0}, {1, 2}});
  const std::vector<float> cost(4, 10000);
  const LaneSchedule s = Make(g, cost, 2, LaneRule::kByHome);
  LaneTimes times;
  SimulateLanes(s, cost, 100, &times);
  const std::vector<bool> lonely = FindLonely(s, times, 0.05);
  for (uint32_t p = 0; p < 4; ++p) {
    EXPECT_EQ(lonely[p], s.order[p] == 0 || s.order[p] == 3) << s.order[p];
    EXPECT_DOUBLE_EQ(times.end[p] - times.start[p], 10000);
  }
}

TEST(Propose, NothingForAChainAndLanesForBranches) {
  std::vector<std::vector<uint32_t>> chain(100);
  for (uint32_t v = 1; v < 100; ++v) chain[v] = {v - 1};
  EXPECT_TRUE(
      ProposeLanes(FromPredecessors(chain), std::vector<float>(100, 1000), 2, 100, 4).empty());
  const auto found = ProposeLanes(Wavefront(20), std::vector<float>(400, 1000), 2, 100, 4);
  ASSERT_FALSE(found.empty());
  for (size_t k = 1; k < found.size(); ++k)
    EXPECT_LE(found[k - 1].predicted_ns, found[k].predicted_ns);
}

// What many tasks side by side write lies together for each lane.
TEST(LaneSchedule, AFanIsCutIntoRunsOfNeighbours) {
  constexpr uint32_t kTasks = 402;
  std::vector<std::vector<uint32_t>> preds(kTasks);
  for (uint32_t v = 1; v + 1 < kTasks; ++v) {
    preds[v] = {0};
    preds.back().push_back(v);
  }
  const StaticGraph g = FromPredecessors(preds);
  for (const LaneRule rule : {LaneRule::kByHome, LaneRule::kInOrder}) {
    for (const int lanes : {2, 4}) {
      const LaneSchedule s = Make(g, std::vector<float>(kTasks, 100), lanes, rule);
      std::vector<int> lane(kTasks);
      for (int l = 0; l < lanes; ++l)
        for (uint32_t p = s.lane_begin[l]; p < s.lane_begin[l + 1]; ++p) lane[s.order[p]] = l;
      int changes = 0;
      for (uint32_t v = 2; v + 1 < kTasks; ++v) changes += lane[v] != lane[v - 1];
      EXPECT_GE(changes, lanes - 1);
      EXPECT_LE(changes, 3 * lanes) << static_cast<int>(rule);  // some are exchanged at the end
    }
  }
}

TEST(LaneSchedule, OneLaneIsThePlainOrderWithoutWaits) {
  const StaticGraph g = RandomGraph(200, 3, 50, 3);
  const LaneSchedule s = Make(g, Costs(g.size, 3), 1, LaneRule::kByHome);
  EXPECT_TRUE(s.waits.empty());
  EXPECT_EQ(s.segments.size(), 1u);
  EXPECT_EQ(s.order, s.walk);
  EXPECT_DOUBLE_EQ(s.predicted_ns, s.serial_ns);
}

TEST(Units, ChainsAreOneUnitAndGroupsStayAcyclic) {
  std::vector<std::vector<uint32_t>> chain(50);
  for (uint32_t v = 1; v < 50; ++v) chain[v] = {v - 1};
  EXPECT_EQ(FormUnits(FromPredecessors(chain), std::vector<float>(50, 10), 0).size(), 1u);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const StaticGraph g = RandomGraph(300, 3, 60, seed);
    const UnitGraph u = FormUnits(g, Costs(g.size, seed), 3000);
    EXPECT_LT(u.size(), g.size);
    ASSERT_EQ(u.nodes.size(), g.size);
    for (uint32_t v = 0; v < u.size(); ++v) {
      for (uint32_t e = u.graph.pred_begin[v]; e < u.graph.pred_begin[v + 1]; ++e)
        EXPECT_LT(u.graph.pred[e], v);
      EXPECT_TRUE(
          std::is_sorted(u.nodes.begin() + u.node_begin[v], u.nodes.begin() + u.node_begin[v + 1]));
    }
  }
}

// Lanes, threads.
class LaneRunTest : public ::testing::TestWithParam<std::tuple<int, int>> {};
INSTANTIATE_TEST_SUITE_P(LanesThreads, LaneRunTest,
                         ::testing::Combine(::testing::Values(1, 2, 3, 8),
                                            ::testing::Values(1, 2, 3, 8)));

TEST_P(LaneRunTest, EveryNodeOnceAfterItsPredecessors) {
  const auto [lanes, threads] = GetParam();
  HostPool pool(threads);
  for (const StaticGraph& g :
       {RandomGraph(500, 3, 60, 1), Wavefront(20), RandomGraph(300, 1, 5, 2)}) {
    const LaneSchedule s = Make(g, Costs(g.size, 5), lanes, LaneRule::kByHome);
    LaneRun run(s);
    Ledger ledger(g);
    for (int k = 0; k < kRuns; ++k) {
      ledger.NewRun();
      run.Begin();
      pool.Run(
          [&](int participant) {
            run.Participate(participant, [&](uint32_t, uint32_t begin, uint32_t end) {
              for (uint32_t p = begin; p < end; ++p) ledger.Execute(s.order[p]);
              return true;
            });
          },
          lanes);
      ASSERT_TRUE(run.finished());
      ASSERT_TRUE(ledger.Right()) << k;
    }
  }
}

TEST_P(LaneRunTest, GivenUpInTheMiddleItEndsAndRunsAgain) {
  const auto [lanes, threads] = GetParam();
  HostPool pool(threads);
  const StaticGraph g = RandomGraph(300, 3, 40, 9);
  const LaneSchedule s = Make(g, Costs(g.size, 9), lanes, LaneRule::kByPath);
  LaneRun run(s);
  for (uint32_t stop_at = 0; stop_at < g.size; stop_at += 37) {
    std::atomic<uint32_t> executed{0};
    std::atomic<bool> late{false};
    run.Begin();
    pool.Run(
        [&](int participant) {
          run.Participate(participant, [&](uint32_t, uint32_t begin, uint32_t end) {
            for (uint32_t p = begin; p < end; ++p) {
              for (uint32_t e = g.pred_begin[s.order[p]]; e < g.pred_begin[s.order[p] + 1]; ++e)
                if (g.pred[e] == stop_at) late = true;
              if (s.order[p] == stop_at) return false;
              ++executed;
            }
            return true;
          });
        },
        lanes);
    EXPECT_FALSE(late.load()) << "a successor of the node that gave up was executed";
    EXPECT_LT(executed.load(), g.size);
    EXPECT_FALSE(run.finished());
  }
}

TEST(LaneRun, AThreadThatComesLateFindsWorkOrTheEnd) {
  const StaticGraph g = Wavefront(16);
  const LaneSchedule s = Make(g, Costs(g.size, 2), 4, LaneRule::kByHome);
  for (int delay_us : {0, 5, 50, 500}) {
    LaneRun run(s);
    Ledger ledger(g);
    ledger.NewRun();
    run.Begin();
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        std::this_thread::sleep_for(std::chrono::microseconds(delay_us * ((t + 2) % 4)));
        run.Participate(t, [&](uint32_t, uint32_t begin, uint32_t end) {
          for (uint32_t p = begin; p < end; ++p) ledger.Execute(s.order[p]);
          return true;
        });
      });
    for (auto& t : threads) t.join();
    EXPECT_TRUE(run.finished());
    EXPECT_TRUE(ledger.Right());
  }
}

TEST(LaneRun, WithOneThreadNobodySleeps) {
  const StaticGraph g = Wavefront(12);
  const LaneSchedule s = Make(g, Costs(g.size, 4), 3, LaneRule::kByHome);
  LaneRun run(s);
  run.Begin();
  run.Participate(0, [](uint32_t, uint32_t, uint32_t) { return true; });
  EXPECT_TRUE(run.finished());
  EXPECT_EQ(run.stats().parks, 0u);
  EXPECT_GT(run.stats().switches, 0u);
}

// A schedule told by its parts is the same schedule again: order, waits, signals, and what lanes
// know.
TEST(RestoreLanes, GivesTheSchedule) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const StaticGraph g = RandomGraph(static_cast<uint32_t>(20 + seed * 3), 3, 12, seed);
    const auto cost = Costs(g.size, seed);
    for (LaneRule rule : kRules)
      for (const int lanes : {1, 2, 3, 5})
        for (const float group : {0.f, 3000.f}) {
          const LaneSchedule want = Make(g, cost, lanes, rule, group);
          GivenLanes given;
          given.lanes = static_cast<uint32_t>(lanes);
          given.order = want.order;
          given.walk = want.walk;
          given.lane.resize(g.size);
          given.segment.resize(g.size);
          for (uint32_t l = 0; l < given.lanes; ++l)
            for (uint32_t k = want.segment_begin[l]; k < want.segment_begin[l + 1]; ++k)
              for (uint32_t p = want.segments[k].begin; p < want.segments[k].end; ++p) {
                given.lane[p] = l;
                given.segment[p] = k;
              }
          const auto got = RestoreLanes(g, given);
          ASSERT_TRUE(got.has_value());
          EXPECT_EQ(got->order, want.order);
          EXPECT_EQ(got->walk, want.walk);
          EXPECT_EQ(got->lane_begin, want.lane_begin);
          EXPECT_EQ(got->segment_begin, want.segment_begin);
          EXPECT_EQ(got->clock_positions, want.clock_positions);
          EXPECT_EQ(got->clocks, want.clocks);
          ASSERT_EQ(got->segments.size(), want.segments.size());
          for (size_t k = 0; k < want.segments.size(); ++k) {
            const LaneSegment &a = got->segments[k], &b = want.segments[k];
            EXPECT_EQ(std::tuple(a.begin, a.end, a.wait_begin, a.wait_end, a.signal),
                      std::tuple(b.begin, b.end, b.wait_begin, b.wait_end, b.signal));
          }
          ASSERT_EQ(got->waits.size(), want.waits.size());
          for (size_t k = 0; k < want.waits.size(); ++k)
            EXPECT_EQ(std::pair(got->waits[k].lane, got->waits[k].signal),
                      std::pair(want.waits[k].lane, want.waits[k].signal));
          // What is no order of the graph is refused.
          GivenLanes wrong = given;
          std::reverse(wrong.walk.begin(), wrong.walk.end());
          if (!g.pred.empty()) {
            EXPECT_FALSE(RestoreLanes(g, wrong).has_value());
          }
          wrong = given;
          wrong.order[0] = wrong.order[1];
          EXPECT_FALSE(RestoreLanes(g, wrong).has_value());
          wrong = given;
          wrong.lane[0] = given.lanes;
          EXPECT_FALSE(RestoreLanes(g, wrong).has_value());
        }
  }
}

}  // namespace
}  // namespace heddle::testing
