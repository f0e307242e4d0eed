// Pruned random graphs against the exact transitive reduction.
#include "scheduler/prune.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <utility>

namespace heddle {
namespace {

using EdgeSet = std::set<std::pair<uint32_t, uint32_t>>;

StaticGraph GraphOf(uint32_t size, const EdgeSet& edges) {
  StaticGraph g;
  g.size = size;
  g.pred_begin.push_back(0);
  for (uint32_t v = 0; v < size; ++v) {
    for (uint32_t u = 0; u < v; ++u)
      if (edges.count({u, v})) g.pred.push_back(u);
    g.pred_begin.push_back(static_cast<uint32_t>(g.pred.size()));
  }
  return g;
}

EdgeSet RandomEdges(std::mt19937& rng, uint32_t size, unsigned percent) {
  EdgeSet edges;
  for (uint32_t v = 0; v < size; ++v)
    for (uint32_t u = 0; u < v; ++u)
      if (rng() % 100 < percent) edges.emplace(u, v);
  return edges;
}

// The edges by the predecessor rows; rows must ascend.
EdgeSet PredecessorEdges(const StaticGraph& g) {
  EdgeSet edges;
  for (uint32_t v = 0; v < g.size; ++v) {
    for (uint32_t e = g.pred_begin[v]; e < g.pred_begin[v + 1]; ++e) {
      if (e > g.pred_begin[v]) {
        EXPECT_GT(g.pred[e], g.pred[e - 1]);
      }
      edges.emplace(g.pred[e], v);
    }
  }
  EXPECT_EQ(g.pred_begin.back(), g.pred.size());
  return edges;
}

EdgeSet SuccessorEdges(const StaticGraph& g) {
  EdgeSet edges;
  EXPECT_EQ(g.succ_begin.size(), g.size + 1u);
  for (uint32_t u = 0; u < g.size; ++u) {
    for (uint32_t e = g.succ_begin[u]; e < g.succ_begin[u + 1]; ++e) {
      if (e > g.succ_begin[u]) {
        EXPECT_GT(g.succ[e], g.succ[e - 1]);
      }
      edges.emplace(u, g.succ[e]);
    }
  }
  EXPECT_EQ(g.succ_begin.back(), g.succ.size());
  return edges;
}

// Pairs with a path between them, of any length.
EdgeSet Closure(uint32_t size, const EdgeSet& edges) {
  EdgeSet paths = edges;
  for (uint32_t via = 0; via < size; ++via)
    for (uint32_t u = 0; u < via; ++u)
      for (uint32_t v = via + 1; paths.count({u, via}) && v < size; ++v)
        if (paths.count({via, v})) paths.emplace(u, v);
  return paths;
}

// The one smallest set of edges with the same closure.
EdgeSet Reduction(uint32_t size, const EdgeSet& edges) {
  const EdgeSet paths = Closure(size, edges);
  EdgeSet kept;
  for (const auto& [u, v] : edges) {
    bool implied = false;
    for (uint32_t via = u + 1; via < v; ++via)
      implied = implied || (paths.count({u, via}) && paths.count({via, v}));
    if (!implied) kept.emplace(u, v);
  }
  return kept;
}

TEST(Prune, NothingToPrune) {
  StaticGraph empty = GraphOf(0, {});
  EXPECT_EQ(PruneImpliedEdges(&empty), 0u);
  EXPECT_EQ(SuccessorEdges(empty), EdgeSet{});
  const EdgeSet diamond = {{0, 1}, {0, 2}, {1, 3}, {2, 3}};
  StaticGraph g = GraphOf(5, diamond);
  EXPECT_EQ(PruneImpliedEdges(&g), 0u);
  EXPECT_EQ(PredecessorEdges(g), diamond);
  EXPECT_EQ(SuccessorEdges(g), diamond);
}

TEST(Prune, DropsWhatAPathImplies) {
  StaticGraph g = GraphOf(4, {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}});
  EXPECT_EQ(PruneImpliedEdges(&g), 3u);
  EXPECT_EQ(PredecessorEdges(g), (EdgeSet{{0, 1}, {1, 2}, {2, 3}}));
}

TEST(Prune, SmallGraphsAreFullyReduced) {
  std::mt19937 rng(1);
  for (int round = 0; round < 2000; ++round) {
    const uint32_t size = 1 + rng() % 14;
    const EdgeSet edges = RandomEdges(rng, size, 5 + rng() % 90);
    StaticGraph g = GraphOf(size, edges);
    const size_t dropped = PruneImpliedEdges(&g);
    const EdgeSet expected = Reduction(size, edges);
    ASSERT_EQ(PredecessorEdges(g), expected) << "round " << round;
    ASSERT_EQ(SuccessorEdges(g), expected) << "round " << round;
    ASSERT_EQ(dropped, edges.size() - expected.size());
  }
}

// However soon the search gives up, everything that was reachable is.
TEST(Prune, AShortSearchDropsLessAndBreaksNothing) {
  std::mt19937 rng(2);
  for (int round = 0; round < 60; ++round) {
    const uint32_t size = 20 + rng() % 40;
    const EdgeSet edges = RandomEdges(rng, size, 2 + rng() % 30);
    const EdgeSet paths = Closure(size, edges), least = Reduction(size, edges);
    for (size_t steps : {size_t{0}, size_t{3}, size_t{20}, size_t{100000}}) {
      StaticGraph g = GraphOf(size, edges);
      PruneImpliedEdges(&g, steps);
      const EdgeSet kept = PredecessorEdges(g);
      ASSERT_EQ(Closure(size, kept), paths) << "round " << round << ", steps " << steps;
      if (steps == 100000) {
        ASSERT_EQ(kept, least) << "round " << round;
      }
    }
  }
}

// 0 -> 1 -> 2 -> … -> n, and edges from every node to n: all but the last are implied.
TEST(Prune, AChainWithEdgesFromAllToItsEnd) {
  constexpr uint32_t kSize = 3000;
  StaticGraph g;
  g.size = kSize;
  g.pred_begin = {0};
  for (uint32_t v = 0; v < kSize; ++v) {
    if (v > 0 && v + 1 < kSize) g.pred.push_back(v - 1);
    for (uint32_t u = 0; v + 1 == kSize && u < v; ++u) g.pred.push_back(u);
    g.pred_begin.push_back(static_cast<uint32_t>(g.pred.size()));
  }
  EXPECT_EQ(PruneImpliedEdges(&g), kSize - 2);
  EXPECT_EQ(g.pred_begin[kSize] - g.pred_begin[kSize - 1], 1u);
}

}  // namespace
}  // namespace heddle
