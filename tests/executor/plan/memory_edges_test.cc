// Lanes that wait for each other's memory.
#include <gtest/gtest.h>

#include "tests/support/program_builder.h"
#include "tests/support/test_ops.h"

namespace heddle::testing {
namespace {

[[maybe_unused]] const bool kInstalled = InstallTestOps();

constexpr int64_t kFloats = 64 << 10;
constexpr size_t kBytes = kFloats * sizeof(float);

// A chain of work, and beside it `tails` chains with little to do: each makes a large temporary
// from a small one and a small one of that.
ProgramBuilder Program(int tails, int long_chain) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {1});
  b.Op("tile", {{"X", {"x"}}}, {{"Out", {"t"}}}, {{"repeat_times", Ints{kFloats / 8}}});
  std::string at = "t";
  for (int k = 0; k < long_chain; ++k) {
    const std::string next = "w" + std::to_string(k);
    b.Op("cumsum", {{"X", {at}}}, {{"Out", {next}}}, {{"axis", int64_t{0}}});
    at = next;
  }
  b.Op("reduce_mean", {{"X", {at}}}, {{"Out", {"end"}}}, {{"dim", Ints{0}}, {"keep_dim", true}});
  for (int k = 0; k < tails; ++k) {
    const std::string s = std::to_string(k);
    b.Scale("x", "s" + s, k + 1);
    b.Op("tile", {{"X", {"s" + s}}}, {{"Out", {"big" + s}}}, {{"repeat_times", Ints{kFloats}}});
    b.Op("reduce_max", {{"X", {"big" + s}}}, {{"Out", {"m" + s}}},
         {{"dim", Ints{0}}, {"keep_dim", true}});
    b.Fetch("m" + s);
  }
  b.Fetch("end");
  return b;
}

std::vector<heddle::Feed> OneFeed() { return {{"x", F32({1}, {1})}}; }

TEST(MemoryEdges, SaveMemoryBesideALongerPath) {
  Executor executor({.threads = 3, .poison = true});
  const ProgramBuilder b = Program(6, 160);
  std::vector<size_t> planned;
  for (const Reuse reuse : {Reuse::kOrdered, Reuse::kEdges}) {
    auto compiled = MustCompile(executor, b.Build(), nullptr,
                                {.opt_level = 0, .schedule = Schedule::kLanes, .reuse = reuse});
    auto stats = executor.Prepare(compiled, OneFeed());
    ASSERT_TRUE(stats.ok());
    planned.push_back(stats->arena_bytes);
    EXPECT_EQ(stats->memory_edges > 0, reuse == Reuse::kEdges);
    for (int run = 0; run < 20; ++run) {
      const auto out = MustRun(executor, compiled, OneFeed());
      for (size_t k = 0; k < 6; ++k)
        EXPECT_EQ(Floats(out[k]), std::vector<float>{static_cast<float>(k + 1)});
    }
  }
  EXPECT_LE(planned[1] + kBytes, planned[0]);
}

TEST(MemoryEdges, AreReportedBesideTheOtherWays) {
  Executor executor({.threads = 3});
  auto compiled = MustCompile(executor, Program(6, 160).Build(), nullptr,
                              {.opt_level = 0, .schedule = Schedule::kLanes});
  auto report = executor.PlanMemory(compiled, OneFeed());
  ASSERT_TRUE(report.ok());
  ASSERT_EQ(report->ways.size(), 3u);
  const auto& [serial, lanes, edges] = std::tie(report->ways[0], report->ways[1], report->ways[2]);
  EXPECT_EQ(serial.name, "serial");
  EXPECT_EQ(lanes.name, "lanes");
  EXPECT_EQ(edges.name, "edges");
  EXPECT_EQ(lanes.planned_bytes, report->planned_bytes);
  EXPECT_LE(serial.planned_bytes, edges.planned_bytes);
  EXPECT_LT(edges.planned_bytes, lanes.planned_bytes);
  EXPECT_GT(edges.edges, 0);
  EXPECT_EQ(lanes.edges, 0);
  EXPECT_LT(edges.makespan_us, serial.makespan_us);
  for (const auto& way : report->ways)
    EXPECT_DOUBLE_EQ(way.ratio, static_cast<double>(way.planned_bytes) /
                                    static_cast<double>(report->bound_bytes));
}

// Two branches of the same length, each of which would have to wait for the other.
TEST(MemoryEdges, DoNotMakeTheLongestPathLonger) {
  Executor executor({.threads = 2});
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {kFloats});
  for (const std::string branch : {"a", "b"}) {
    std::string at = "x";
    for (int k = 0; k < 8; ++k) {
      const std::string next = branch + std::to_string(k);
      b.Op("cumsum", {{"X", {at}}}, {{"Out", {next}}}, {{"axis", int64_t{0}}});
      at = next;
    }
  }
  b.Binary("elementwise_add", "a7", "b7", "sum").Fetch("sum");
  const std::vector<heddle::Feed> feeds = {{"x", RandomF32({kFloats}, 1)}};
  auto compiled =
      MustCompile(executor, b.Build(), nullptr, {.opt_level = 0, .schedule = Schedule::kLanes});
  auto report = executor.PlanMemory(compiled, feeds);
  ASSERT_TRUE(report.ok());
  ASSERT_EQ(report->ways.size(), 3u);
  EXPECT_LT(report->ways[2].makespan_us, 0.7 * report->ways[0].makespan_us);
}

}  // namespace
}  // namespace heddle::testing
