// Events between streams: enough of them, and not one too many.
#include "scheduler/stream_sync.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace heddle {
namespace {

struct Sample {
  StaticGraph graph;
  std::vector<uint32_t> stream_of;
  uint32_t streams = 0;
};

Sample RandomSample(uint32_t seed, uint32_t size, uint32_t streams, double density) {
  std::mt19937 rng(seed);
  Sample s;
  s.streams = streams;
  s.graph.size = size;
  s.graph.pred_begin.push_back(0);
  for (uint32_t v = 0; v < size; ++v) {
    for (uint32_t u = 0; u < v; ++u)
      if (static_cast<double>(rng() % 1000) < density * 1000) s.graph.pred.push_back(u);
    s.graph.pred_begin.push_back(static_cast<uint32_t>(s.graph.pred.size()));
    s.stream_of.push_back(rng() % streams);
  }
  CompleteSuccessors(&s.graph);
  return s;
}

using Matrix = std::vector<std::vector<bool>>;  // [u][v]: u is finished when v starts

// What is certain with these waits (pairs of nodes), taken from the definitions alone.
Matrix Closure(const Sample& s, const std::vector<std::pair<uint32_t, uint32_t>>& waits) {
  const uint32_t n = s.graph.size;
  Matrix before(n, std::vector<bool>(n, false));
  for (uint32_t u = 0; u < n; ++u)
    for (uint32_t v = u + 1; v < n; ++v)
      before[u][v] = s.stream_of[u] == s.stream_of[v] || s.stream_of[u] == 0;
  for (const auto& [u, v] : waits) before[u][v] = true;
  for (uint32_t k = 0; k < n; ++k)
    for (uint32_t u = 0; u < k; ++u)
      if (before[u][k])
        for (uint32_t v = k + 1; v < n; ++v)
          if (before[k][v]) before[u][v] = true;
  return before;
}

std::vector<std::pair<uint32_t, uint32_t>> WaitsOf(const StreamSync& sync) {
  std::vector<std::pair<uint32_t, uint32_t>> waits;
  for (uint32_t v = 0; v + 1 < sync.wait_begin.size(); ++v)
    for (uint32_t k = sync.wait_begin[v]; k < sync.wait_begin[v + 1]; ++k)
      waits.emplace_back(sync.waits[k], v);
  return waits;
}

bool Ordered(const Sample& s, const Matrix& before) {
  for (uint32_t v = 0; v < s.graph.size; ++v)
    for (uint32_t k = s.graph.pred_begin[v]; k < s.graph.pred_begin[v + 1]; ++k)
      if (!before[s.graph.pred[k]][v]) return false;
  return true;
}

TEST(StreamSync, KeepsTheOrderAndEveryWaitIsNeeded) {
  int waits_seen = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const Sample s = RandomSample(seed, 4 + seed % 25, 1 + seed % 5, 0.05 + 0.01 * (seed % 30));
    const StreamSync sync = PlanStreamSync(s.graph, s.stream_of, s.streams);
    auto waits = WaitsOf(sync);
    waits_seen += static_cast<int>(waits.size());
    const Matrix before = Closure(s, waits);
    ASSERT_TRUE(Ordered(s, before)) << "seed " << seed;
    // The clocks say what is certain, no more and no less.
    for (uint32_t v = 0; v < s.graph.size; ++v)
      for (uint32_t u = 0; u < v; ++u)
        ASSERT_EQ(sync.Knows(v, u, s.stream_of), before[u][v]) << "seed " << seed;
    for (size_t k = 0; k < waits.size(); ++k) {
      auto fewer = waits;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(k));
      EXPECT_FALSE(Ordered(s, Closure(s, fewer))) << "seed " << seed << ", wait " << k;
    }
  }
  EXPECT_GT(waits_seen, 1000);
}

// Of all sets of waits that order no more than the graph and the streams do anyway, none is smaller
// and none has fewer records.
TEST(StreamSync, NoSetOfWaitsIsSmaller) {
  int searched = 0;
  for (uint32_t seed = 0; searched < 200; ++seed) {
    const Sample s = RandomSample(seed, 4 + seed % 4, 2 + seed % 3, 0.35);
    const StreamSync sync = PlanStreamSync(s.graph, s.stream_of, s.streams);
    const auto planned = WaitsOf(sync);
    // Candidates: all pairs that the dependencies order.
    std::vector<std::pair<uint32_t, uint32_t>> all;
    for (uint32_t v = 0; v < s.graph.size; ++v)
      for (uint32_t k = s.graph.pred_begin[v]; k < s.graph.pred_begin[v + 1]; ++k)
        all.emplace_back(s.graph.pred[k], v);
    const Matrix certain = Closure(s, all);
    all.clear();
    for (uint32_t u = 0; u < s.graph.size; ++u)
      for (uint32_t v = u + 1; v < s.graph.size; ++v)
        if (certain[u][v] && s.stream_of[u] != s.stream_of[v] && s.stream_of[u] != 0)
          all.emplace_back(u, v);
    if (all.empty() || all.size() > 12) continue;
    ++searched;
    size_t least_waits = all.size(), least_records = all.size();
    for (uint32_t set = 0; set < 1u << all.size(); ++set) {
      std::vector<std::pair<uint32_t, uint32_t>> waits;
      std::vector<bool> recorded(s.graph.size, false);
      for (size_t k = 0; k < all.size(); ++k) {
        if (!(set >> k & 1)) continue;
        waits.push_back(all[k]);
        recorded[all[k].first] = true;
      }
      if (!Ordered(s, Closure(s, waits))) continue;
      least_waits = std::min(least_waits, waits.size());
      least_records = std::min(
          least_records, static_cast<size_t>(std::count(recorded.begin(), recorded.end(), true)));
    }
    EXPECT_EQ(planned.size(), least_waits) << "seed " << seed;
    EXPECT_EQ(static_cast<size_t>(std::count(sync.recorded.begin(), sync.recorded.end(), true)),
              least_records)
        << "seed " << seed;
  }
}

TEST(StreamSync, IndependentChainsGetAStreamEach) {
  // 0 -> 2 -> 4 and 1 -> 3 -> 5, all of 10 us.
  StaticGraph g;
  g.size = 6;
  g.pred_begin = {0, 0, 0, 1, 2, 3, 4};
  g.pred = {0, 1, 2, 3};
  CompleteSuccessors(&g);
  const std::vector<uint32_t> group(6, 1);
  const auto stream = ChooseStreams(g, group, {1, 2}, std::vector<float>(6, 10000));
  EXPECT_EQ(stream[0], stream[2]);
  EXPECT_EQ(stream[2], stream[4]);
  EXPECT_EQ(stream[1], stream[3]);
  EXPECT_EQ(stream[3], stream[5]);
  EXPECT_NE(stream[0], stream[1]);
  EXPECT_TRUE(PlanStreamSync(g, stream, 3).waits.empty());
}

TEST(StreamSync, HostComesLast) {
  // The host's node 0 is ready at once; so are 1 and 2, of streams, and 3 after the host's.
  StaticGraph g;
  g.size = 4;
  g.pred_begin = {0, 0, 0, 0, 1};
  g.pred = {0};
  CompleteSuccessors(&g);
  EXPECT_EQ(StreamsFirst(g, {0, 1, 1, 1}), (std::vector<uint32_t>{1, 2, 0, 3}));
}

TEST(StreamSync, WhatOtherThreadsDoIsHandedOverFirstAndWaitedForLast) {
  // 1 and 2, of other threads, take 50 and 20 us; 3 and 4 on streams need one each, 5 needs both,
  // and 0 nothing; 6, on a stream, needs what 4 does.
  StaticGraph g;
  g.size = 7;
  g.pred_begin = {0, 0, 0, 0, 1, 2, 4, 5};
  g.pred = {1, 2, 1, 2, 4};
  CompleteSuccessors(&g);
  EXPECT_EQ(StreamsFirst(g, {1, 2, 2, 1, 1, 1, 1}, {}, 2, {1, 50000, 20000, 1, 1, 1, 1}),
            (std::vector<uint32_t>{1, 2, 0, 4, 6, 3, 5}));
}

// An order of the graph, whatever the groups; without other threads, the one without them.
TEST(StreamSync, OrdersWithOtherThreadsKeepTheGraphs) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const Sample s = RandomSample(seed, 4 + seed % 40, 4, 0.05 + 0.01 * (seed % 20));
    std::vector<float> cost;
    for (uint32_t v = 0; v < s.graph.size; ++v) cost.push_back(static_cast<float>((v * 37) % 101));
    const auto order = StreamsFirst(s.graph, s.stream_of, {}, 3, cost);
    std::vector<uint32_t> position(s.graph.size, ~0u);
    for (uint32_t k = 0; k < order.size(); ++k) position[order[k]] = k;
    ASSERT_EQ(order.size(), s.graph.size) << "seed " << seed;
    for (uint32_t v = 0; v < s.graph.size; ++v)
      for (uint32_t k = s.graph.pred_begin[v]; k < s.graph.pred_begin[v + 1]; ++k)
        EXPECT_LT(position[s.graph.pred[k]], position[v]) << "seed " << seed;
    // Handed over as soon as what they need has its place.
    for (uint32_t v = 0; v < s.graph.size; ++v) {
      if (s.stream_of[v] != 3) continue;
      uint32_t after = 0;
      for (uint32_t k = s.graph.pred_begin[v]; k < s.graph.pred_begin[v + 1]; ++k)
        after = std::max(after, position[s.graph.pred[k]] + 1);
      for (uint32_t k = after; k < position[v]; ++k)
        EXPECT_EQ(s.stream_of[order[k]], 3u) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace heddle
