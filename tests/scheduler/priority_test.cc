// Priorities: orders, lanes and queues in which what has less of a number goes first.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "scheduler/list_scheduler.h"
#include "scheduler/propose_lanes.h"
#include "scheduler/work_queue.h"
#include "tests/scheduler/graphs.h"

namespace heddle::testing {
namespace {

StaticGraph WithPriorities(StaticGraph g, uint64_t seed, int64_t different = 5) {
  std::mt19937_64 random(seed);
  g.priority.resize(g.size);
  for (int64_t& p : g.priority) p = static_cast<int64_t>(random() % different) - different / 2;
  return g;
}

std::vector<float> Costs(uint32_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> cost(size);
  for (float& c : cost) c = static_cast<float>(10 + random() % 2000);
  return cost;
}

TEST(OrderByPriority, TakesTheFirstOfWhatIsReady) {
  for (uint64_t seed = 1; seed < 20; ++seed) {
    const StaticGraph g = WithPriorities(RandomGraph(60, 3, 20, seed), seed);
    std::vector<bool> done(g.size, false);
    const std::vector<uint32_t> order = OrderByPriority(g);
    ASSERT_EQ(order.size(), g.size);
    for (const uint32_t v : order) {
      const auto ready = [&](uint32_t u) {
        return !done[u] &&
               std::all_of(g.pred.begin() + g.pred_begin[u], g.pred.begin() + g.pred_begin[u + 1],
                           [&](uint32_t p) { return done[p]; });
      };
      ASSERT_TRUE(ready(v)) << seed;
      for (uint32_t u = 0; u < g.size; ++u) {
        if (u == v || !ready(u)) continue;
        EXPECT_LT(std::pair(g.priority[v], v), std::pair(g.priority[u], u)) << seed;
      }
      done[v] = true;
    }
  }
}

TEST(OrderByPriority, WithoutPrioritiesIsTheNodesOwn) {
  const StaticGraph g = RandomGraph(100, 3, 20, 7);
  const std::vector<uint32_t> order = OrderByPriority(g);
  for (uint32_t v = 0; v < g.size; ++v) EXPECT_EQ(order[v], v);
}

TEST(Units, HaveOnePriority) {
  const StaticGraph g = WithPriorities(RandomGraph(300, 2, 10, 3), 3);
  const UnitGraph units = FormUnits(g, Costs(g.size, 3), 100000);
  EXPECT_GT(units.size(), 1u);
  ASSERT_EQ(units.graph.priority.size(), units.size());
  for (uint32_t u = 0; u < units.size(); ++u)
    for (uint32_t k = units.node_begin[u]; k < units.node_begin[u + 1]; ++k)
      EXPECT_EQ(g.priority[units.nodes[k]], units.graph.priority[u]);
}

// Where a hand-over takes no time, a unit is ready when its predecessors have ended.
TEST(Lanes, StartFirstWhatHasPriority) {
  for (const LaneRule rule : {LaneRule::kByHome, LaneRule::kInOrder})
    for (int lanes = 1; lanes < 5; ++lanes)
      for (uint64_t seed = 1; seed < 8; ++seed) {
        const StaticGraph g = WithPriorities(RandomGraph(80, 3, 30, seed), seed);
        const UnitGraph units = FormUnits(g, Costs(g.size, seed), 0);
        const LaneAssignment a =
            AssignByHome(units, {.lanes = lanes, .hand_over_ns = 0, .rule = rule});
        ASSERT_EQ(a.walk.size(), units.size());
        const uint32_t n = units.size();
        std::vector<double> start(n), end(n), ready(n, 0), free_at(static_cast<size_t>(lanes), 0);
        for (const uint32_t u : a.walk) {
          for (uint32_t e = units.graph.pred_begin[u]; e < units.graph.pred_begin[u + 1]; ++e)
            ready[u] = std::max(ready[u], end[units.graph.pred[e]]);
          start[u] = std::max(ready[u], free_at[a.lane[u]]);
          free_at[a.lane[u]] = end[u] = start[u] + units.cost_ns[u];
        }
        for (uint32_t u = 0; u < n; ++u)
          for (uint32_t v = 0; v < n; ++v) {
            if (units.graph.priority[v] >= units.graph.priority[u] || ready[v] > start[u]) continue;
            EXPECT_LE(start[v], start[u] * (1 + 1e-12)) << u << " before " << v;
          }
      }
}

TEST(Lanes, WithPrioritiesRunEveryNodeInAValidOrder) {
  for (const LaneRule rule : {LaneRule::kByPath, LaneRule::kByHome, LaneRule::kInOrder})
    for (uint64_t seed = 1; seed < 8; ++seed) {
      const StaticGraph g = WithPriorities(RandomGraph(120, 3, 30, seed), seed);
      LaneOptions options{.lanes = 3};
      options.rule = rule;
      const LaneSchedule s = ScheduleLanes(FormUnits(g, Costs(g.size, seed), 1500), options);
      Ledger ledger(g);
      ledger.NewRun();
      for (const uint32_t v : s.walk) ledger.Execute(v);
      EXPECT_TRUE(ledger.Right());
    }
}

// One priority for all nodes gives the same lanes as no priorities.
TEST(Lanes, EqualPrioritiesChangeNoSchedule) {
  StaticGraph g = RandomGraph(120, 3, 30, 5);
  const std::vector<float> cost = Costs(g.size, 5);
  for (const LaneRule rule : {LaneRule::kByHome, LaneRule::kInOrder}) {
    LaneOptions options{.lanes = 2};
    options.rule = rule;
    g.priority.clear();
    const LaneSchedule without = ScheduleLanes(FormUnits(g, cost, 0), options);
    g.priority.assign(g.size, 4);
    const LaneSchedule with = ScheduleLanes(FormUnits(g, cost, 0), options);
    EXPECT_EQ(without.order, with.order);
    EXPECT_EQ(without.walk, with.walk);
    EXPECT_EQ(without.lane_begin, with.lane_begin);
  }
}

TEST(WorkQueue, PopsTheLeastPriority) {
  const std::vector<int64_t> priority = {3, -1, 0, 3, -1, 7};
  for (const uint64_t seed : {0, 5}) {
    WorkQueue queue(3, seed, priority);
    for (uint32_t t = 0; t < 4; ++t) queue.Push(static_cast<int>(t % 3), t);
    const uint32_t more[] = {4, 5};
    queue.PushAll(more);
    std::vector<int64_t> popped;
    uint32_t task = 0;
    for (int participant = 0; queue.Pop(participant % 3, &task); ++participant)
      popped.push_back(priority[task]);
    EXPECT_EQ(popped, (std::vector<int64_t>{-1, -1, 0, 3, 3, 7}));
    queue.Push(1, 2);
    queue.Clear();
    EXPECT_FALSE(queue.Pop(0, &task));
  }
}

}  // namespace
}  // namespace heddle::testing
