#include "scheduler/stream_arena.h"

#include <gtest/gtest.h>

#include <random>

#include "scheduler/prune.h"

namespace heddle {
namespace {

constexpr uint32_t kNone = StreamBuffer::kNoUser;

StaticGraph GraphOf(std::vector<std::vector<uint32_t>> preds) {
  StaticGraph g;
  g.size = static_cast<uint32_t>(preds.size());
  g.pred_begin.push_back(0);
  for (auto& row : preds) {
    std::sort(row.begin(), row.end());
    row.erase(std::unique(row.begin(), row.end()), row.end());
    g.pred.insert(g.pred.end(), row.begin(), row.end());
    g.pred_begin.push_back(static_cast<uint32_t>(g.pred.size()));
  }
  CompleteSuccessors(&g);
  return g;
}

// Nodes on streams, and a buffer that each of some nodes writes and later ones read.
struct Case {
  std::vector<std::vector<uint32_t>> preds;
  std::vector<uint32_t> stream_of;
  uint32_t streams = 1;
  std::vector<StreamBuffer> buffers;

  Case(uint32_t seed, uint32_t nodes, uint32_t device_streams)
      : preds(nodes), streams(device_streams + 1) {
    std::mt19937 rng(seed);
    for (uint32_t v = 0; v < nodes; ++v) {
      stream_of.push_back(rng() % 12 == 0 ? 0 : 1 + rng() % device_streams);
      StreamBuffer b;
      b.bytes = 1 + rng() % 5000;
      b.first = v;
      b.users.assign(streams, kNone);
      b.users[stream_of[v]] = v;
      buffers.push_back(b);
      for (int k = 0; k < 2 && v > 0; ++k) {
        const uint32_t from = v - 1 - rng() % std::min(v, 9u);
        preds[v].push_back(from);
        buffers[from].users[stream_of[v]] = v;
      }
    }
  }

  // One behind the other by a simple rule: first fit in order.
  std::vector<size_t> Serial(size_t* bytes) const {
    std::vector<size_t> offsets;
    *bytes = 0;
    for (uint32_t a = 0; a < buffers.size(); ++a) {
      size_t at = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t b = 0; b < a; ++b) {
          if (buffers[b].last() < buffers[a].first) continue;
          const size_t end = offsets[b] + Size(b);
          if (offsets[b] < at + Size(a) && at < end) {
            at = end;
            moved = true;
          }
        }
      }
      offsets.push_back(at);
      *bytes = std::max(*bytes, at + Size(a));
    }
    return offsets;
  }
  size_t Size(uint32_t b) const { return (buffers[b].bytes + 255) / 256 * 256; }
};

// Whoever shares memory is kept apart by the streams' order and the events, the added ones
// included.
void Check(const Case& c, const StreamArena& arena) {
  auto preds = c.preds;
  for (const auto& [u, v] : arena.waits) {
    ASSERT_LT(u, v);
    preds[v].push_back(u);
  }
  const StreamSync sync = PlanStreamSync(GraphOf(preds), c.stream_of, c.streams);
  for (uint32_t a = 0; a < c.buffers.size(); ++a) {
    ASSERT_EQ(arena.offsets[a] % 256, 0u);
    ASSERT_LE(arena.offsets[a] + c.Size(a), arena.bytes);
    for (uint32_t b = 0; b < a; ++b) {
      if (arena.offsets[b] >= arena.offsets[a] + c.Size(a) ||
          arena.offsets[a] >= arena.offsets[b] + c.Size(b))
        continue;
      for (uint32_t u : c.buffers[b].users) {
        if (u == kNone) continue;
        ASSERT_LT(u, c.buffers[a].first) << b << " and " << a;
        ASSERT_TRUE(sync.Knows(c.buffers[a].first, u, c.stream_of)) << b << " and " << a;
      }
    }
  }
}

TEST(StreamArena, BuffersInOnePlaceAreKeptApart) {
  int waited = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const Case c(seed, 20 + seed * 3, 1 + seed % 4);
    const StreamSync sync = PlanStreamSync(GraphOf(c.preds), c.stream_of, c.streams);
    size_t serial_bytes = 0;
    const auto serial = c.Serial(&serial_bytes);
    const StreamArena roomy =
        PlanStreamArena(c.buffers, sync, c.stream_of, serial, serial_bytes, size_t{1} << 40);
    EXPECT_TRUE(roomy.waits.empty());
    Check(c, roomy);
    for (double most : {1.0, 1.1, 1.5}) {
      const auto limit = static_cast<size_t>(most * static_cast<double>(serial_bytes));
      const StreamArena arena =
          PlanStreamArena(c.buffers, sync, c.stream_of, serial, serial_bytes, limit);
      EXPECT_LE(arena.bytes, limit);
      Check(c, arena);
      waited += !arena.waits.empty();
      const bool enough = roomy.bytes <= limit;
      if (enough) {
        EXPECT_TRUE(arena.waits.empty());
      }
    }
  }
  EXPECT_GT(waited, 10);
}

TEST(StreamArena, OneStreamSharesAsOneThreadDoes) {
  const Case c(5, 200, 1);
  const StreamSync sync = PlanStreamSync(GraphOf(c.preds), c.stream_of, c.streams);
  size_t serial_bytes = 0;
  const auto serial = c.Serial(&serial_bytes);
  const StreamArena arena =
      PlanStreamArena(c.buffers, sync, c.stream_of, serial, serial_bytes, serial_bytes);
  Check(c, arena);
  size_t all = 0;
  for (uint32_t b = 0; b < c.buffers.size(); ++b) all += c.Size(b);
  EXPECT_LT(arena.bytes, all / 4);
}

// Two branches that know nothing of each other: side by side they need both their buffers.
TEST(StreamArena, BranchesWaitOnlyWhereTheRoomIsScarce) {
  Case c(0, 0, 2);
  c.preds = {{}, {}};
  c.stream_of = {1, 2};
  c.buffers = {{1000, 0, {kNone, 0, kNone}}, {1000, 1, {kNone, kNone, 1}}};
  const StreamSync sync = PlanStreamSync(GraphOf(c.preds), c.stream_of, c.streams);
  const std::vector<size_t> serial = {0, 0};
  const StreamArena roomy = PlanStreamArena(c.buffers, sync, c.stream_of, serial, 1024, 2048);
  EXPECT_EQ(roomy.bytes, 2048u);
  EXPECT_TRUE(roomy.waits.empty());
  const StreamArena tight = PlanStreamArena(c.buffers, sync, c.stream_of, serial, 1024, 1126);
  EXPECT_EQ(tight.bytes, 1024u);
  EXPECT_EQ(tight.waits, (std::vector<std::pair<uint32_t, uint32_t>>{{0, 1}}));
  Check(c, tight);
}

}  // namespace
}  // namespace heddle
