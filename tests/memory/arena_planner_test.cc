#include "memory/arena_planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <random>

namespace heddle {
namespace {

// Places are aligned, inside the block, disjoint where lives meet; the bound is the peak.
void Check(const std::vector<LiveRange>& buffers, const ArenaLayout& layout, size_t alignment) {
  ASSERT_EQ(layout.offsets.size(), buffers.size());
  auto round = [&](size_t n) { return (n + alignment - 1) / alignment * alignment; };
  size_t peak = 0;
  int32_t last = 0;
  for (const LiveRange& b : buffers) last = std::max(last, b.last);
  for (int32_t step = 0; step <= last; ++step) {
    size_t live = 0;
    for (const LiveRange& b : buffers)
      if (b.first <= step && step <= b.last) live += round(b.bytes);
    peak = std::max(peak, live);
  }
  EXPECT_EQ(layout.bound, peak);
  EXPECT_GE(layout.bytes, layout.bound);
  for (size_t i = 0; i < buffers.size(); ++i) {
    ASSERT_EQ(layout.offsets[i] % alignment, 0u);
    ASSERT_LE(layout.offsets[i] + buffers[i].bytes, layout.bytes);
    for (size_t j = 0; j < i; ++j) {
      const bool together =
          buffers[i].first <= buffers[j].last && buffers[j].first <= buffers[i].last;
      if (!together || buffers[i].bytes == 0 || buffers[j].bytes == 0) continue;
      ASSERT_TRUE(layout.offsets[i] + buffers[i].bytes <= layout.offsets[j] ||
                  layout.offsets[j] + buffers[j].bytes <= layout.offsets[i])
          << i << " and " << j;
    }
  }
}

TEST(ArenaPlanner, NothingAndEmptyBuffers) {
  EXPECT_EQ(PlanArena({}).bytes, 0u);
  const std::vector<LiveRange> empty = {{0, 0, 3}, {0, 1, 2}};
  const ArenaLayout layout = PlanArena(empty);
  EXPECT_EQ(layout.bytes, 0u);
  Check(empty, layout, 64);
}

TEST(ArenaPlanner, SimpleChainsAreExact) {
  for (int length : {1, 2, 3, 17, 100, 1000}) {
    std::vector<LiveRange> chain;
    for (int32_t i = 0; i < length; ++i) chain.push_back({1000, i, i + 1});
    const ArenaLayout layout = PlanArena(chain);
    Check(chain, layout, 64);
    EXPECT_EQ(layout.bytes, layout.bound) << length;
  }
}

TEST(ArenaPlanner, OneBufferOverAChainIsExact) {
  std::vector<LiveRange> chain = {{5000, 0, 50}};  // a residual connection
  for (int32_t i = 0; i < 50; ++i) chain.push_back({640, i, i + 1});
  const ArenaLayout layout = PlanArena(chain);
  Check(chain, layout, 64);
  EXPECT_EQ(layout.bytes, layout.bound);
}

TEST(ArenaPlanner, BuffersAtTheSameStepMeet) {
  const std::vector<LiveRange> both = {{64, 0, 5}, {64, 5, 9}};  // inclusive at both ends
  EXPECT_EQ(PlanArena(both).bytes, 128u);
  const std::vector<LiveRange> apart = {{64, 0, 4}, {64, 5, 9}};
  EXPECT_EQ(PlanArena(apart).bytes, 64u);
}

TEST(ArenaPlanner, RandomLives) {
  std::mt19937 rng(1);
  size_t used = 0, bound = 0;
  for (int round = 0; round < 300; ++round) {
    const unsigned count = 1 + rng() % 120, steps = 1 + rng() % 80, longest = 1 + rng() % 40;
    const size_t alignment = size_t{1} << rng() % 8;
    std::vector<LiveRange> buffers;
    for (unsigned i = 0; i < count; ++i) {
      LiveRange b;
      b.bytes = rng() % 10 == 0 ? 0 : rng() % 5000;
      b.first = static_cast<int32_t>(rng() % steps);
      b.last = b.first + static_cast<int32_t>(rng() % longest);
      buffers.push_back(b);
    }
    const ArenaLayout layout = PlanArena(buffers, alignment);
    Check(buffers, layout, alignment);
    if (HasFatalFailure()) FAIL() << "round " << round;
    used += layout.bytes;
    bound += layout.bound;
  }
  EXPECT_LT(static_cast<double>(used), 1.06 * static_cast<double>(bound));
}

// Of a step of training with convolutions and batch norm: no order by size or time fits.
TEST(ArenaPlanner, MovesOfSingleBuffersReachTheBound) {
  const std::vector<LiveRange> lives = {
      {301056, 0, 30},  {301056, 2, 29},  {24, 2, 30},      {24, 2, 30},      {0, 2, 30},
      {75264, 4, 28},   {102400, 5, 25},  {102400, 7, 24},  {64, 7, 25},      {64, 7, 25},
      {0, 7, 25},       {25600, 9, 23},   {7680, 10, 20},   {640, 13, 46},    {640, 15, 19},
      {64, 15, 16},     {40, 18, 43},     {7680, 19, 22},   {4800, 19, 44},   {480, 21, 41},
      {25600, 22, 23},  {192000, 22, 42}, {102400, 23, 25}, {102400, 25, 27}, {64, 25, 36},
      {64, 25, 35},     {64, 26, 39},     {75264, 27, 28},  {9600, 27, 40},   {301056, 28, 30},
      {301056, 30, 32}, {24, 30, 34},     {24, 30, 33},     {24, 31, 37},     {600, 32, 38},
      {64, 46, 46},     {128, 46, 47},    {4, 47, 47}};
  const ArenaLayout layout = PlanArena(lives);
  EXPECT_EQ(layout.bytes, layout.bound);
  Check(lives, layout, 64);
}

TEST(ArenaPlanner, IsDeterministic) {
  std::mt19937 rng(2);
  std::vector<LiveRange> buffers;
  for (int i = 0; i < 200; ++i) {
    const auto first = static_cast<int32_t>(rng() % 100);
    buffers.push_back({rng() % 10000, first, first + static_cast<int32_t>(rng() % 20)});
  }
  EXPECT_EQ(PlanArena(buffers).offsets, PlanArena(buffers).offsets);
}

// Check() for very many buffers: one sweep over the steps, with those alive in order of place.
void CheckMany(const std::vector<LiveRange>& buffers, const ArenaLayout& layout) {
  std::vector<size_t> starts(buffers.size()), ends(buffers.size());
  std::iota(starts.begin(), starts.end(), size_t{0});
  ends = starts;
  std::sort(starts.begin(), starts.end(),
            [&](size_t a, size_t b) { return buffers[a].first < buffers[b].first; });
  std::sort(ends.begin(), ends.end(),
            [&](size_t a, size_t b) { return buffers[a].last < buffers[b].last; });
  std::map<size_t, size_t> live;  // place -> end
  size_t bytes = 0, peak = 0, ended = 0;
  for (size_t i : starts) {
    for (; buffers[ends[ended]].last < buffers[i].first; ++ended) {
      live.erase(layout.offsets[ends[ended]]);
      bytes -= (buffers[ends[ended]].bytes + 63) / 64 * 64;
    }
    const size_t begin = layout.offsets[i], end = begin + buffers[i].bytes;
    const auto after = live.lower_bound(begin);
    ASSERT_TRUE(after == live.end() || after->first >= end) << i;
    ASSERT_TRUE(after == live.begin() || std::prev(after)->second <= begin) << i;
    ASSERT_LE(end, layout.bytes);
    live.emplace(begin, end);
    bytes += (buffers[i].bytes + 63) / 64 * 64;
    peak = std::max(peak, bytes);
  }
  EXPECT_EQ(layout.bound, peak);
}

// So many alive at the same time that not every order can be tried.
TEST(ArenaPlanner, ManyLongLives) {
  std::mt19937 rng(3);
  std::vector<LiveRange> buffers;
  for (int32_t i = 0; i < 60000; ++i) {
    const auto life = static_cast<int32_t>(rng() % (rng() % 8 == 0 ? 30000 : 10));
    buffers.push_back({1 + rng() % 4000, i, i + life});
  }
  const ArenaLayout layout = PlanArena(buffers);
  CheckMany(buffers, layout);
  EXPECT_LE(static_cast<double>(layout.bytes), 1.25 * static_cast<double>(layout.bound));
}

TEST(ArenaPlanner, AMillionBuffers) {
  std::mt19937 rng(4);
  std::vector<LiveRange> buffers;
  for (int32_t i = 0; i < 1000000; ++i)
    buffers.push_back({1 + rng() % 4000, i, i + 1 + static_cast<int32_t>(rng() % 20)});
  const ArenaLayout layout = PlanArena(buffers);
  CheckMany(buffers, layout);
  EXPECT_LE(static_cast<double>(layout.bytes), 2.0 * static_cast<double>(layout.bound));
}

TEST(ArenaPlanner, TenThousandBuffers) {
  std::vector<LiveRange> buffers;
  for (int32_t i = 0; i < 10000; ++i) buffers.push_back({size_t(100 + i % 700), i, i + 1 + i % 3});
  const ArenaLayout layout = PlanArena(buffers);
  EXPECT_GE(layout.bytes, layout.bound);
  EXPECT_LE(layout.bytes, 2 * layout.bound);
}

// Random conflicts: places are disjoint where two meet, and none is larger than needed.
TEST(ArenaPlanner, Conflicts) {
  std::mt19937 rng(5);
  for (int round = 0; round < 100; ++round) {
    const auto n = static_cast<int32_t>(1 + rng() % 60);
    std::vector<size_t> bytes;
    std::vector<std::vector<bool>> meets(n, std::vector<bool>(n));
    const unsigned share = 1 + rng() % 8;
    for (int32_t i = 0; i < n; ++i) bytes.push_back(rng() % 10 == 0 ? 0 : rng() % 5000);
    for (int32_t j = 0; j < n; ++j)
      for (int32_t i = 0; i < j; ++i) meets[i][j] = rng() % share == 0;
    const ArenaLayout layout =
        PlanArenaByConflicts(bytes, [&](int32_t i, int32_t j) -> bool { return meets[i][j]; });
    ASSERT_EQ(layout.offsets.size(), bytes.size());
    size_t largest = 0;
    for (int32_t j = 0; j < n; ++j) {
      largest = std::max(largest, bytes[j]);
      ASSERT_EQ(layout.offsets[j] % 64, 0u);
      ASSERT_LE(layout.offsets[j] + bytes[j], layout.bytes);
      for (int32_t i = 0; i < j; ++i) {
        if (!meets[i][j] || bytes[i] == 0 || bytes[j] == 0) continue;
        ASSERT_TRUE(layout.offsets[i] + bytes[i] <= layout.offsets[j] ||
                    layout.offsets[j] + bytes[j] <= layout.offsets[i])
            << i << " and " << j;
      }
    }
    EXPECT_GE(layout.bytes, largest);
  }
}

TEST(ArenaPlanner, ConflictsOfIntervalsAreMostlyExact) {
  std::mt19937 rng(6);
  size_t used = 0, bound = 0;
  for (int round = 0; round < 40; ++round) {
    std::vector<LiveRange> buffers;
    std::vector<size_t> bytes;
    for (int32_t i = 0; i < 150; ++i) {
      const auto life = static_cast<int32_t>(rng() % (rng() % 8 == 0 ? 60 : 8));
      buffers.push_back({1 + rng() % 4000, i, i + life});
      bytes.push_back(buffers.back().bytes);
    }
    used += PlanArenaByConflicts(bytes, [&](int32_t i, int32_t j) {
              return buffers[i].first <= buffers[j].last && buffers[j].first <= buffers[i].last;
            }).bytes;
    bound += PeakOf(buffers);
    EXPECT_EQ(PeakOf(buffers), PlanArena(buffers).bound);
  }
  EXPECT_GE(used, bound);
  EXPECT_LE(static_cast<double>(used), 1.06 * static_cast<double>(bound));
}

TEST(ArenaPlanner, TooManyConflictsHaveNoLayout) {
  const std::vector<size_t> bytes(kMostConflicting + 1, 64);
  EXPECT_TRUE(PlanArenaByConflicts(bytes, [](int32_t, int32_t) { return true; }).offsets.empty());
}

}  // namespace
}  // namespace heddle
