// The memory report: its figures against ones counted step by step, its map against overlaps.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/support/random_program.h"
#include "tests/support/test_ops.h"

namespace heddle::testing {
namespace {

[[maybe_unused]] const bool kInstalled = InstallTestOps();

using Values = std::vector<MemoryReport::Value>;

// The values of each buffer as one: its size, and from its first use to its last.
std::map<uint32_t, MemoryReport::Value> Buffers(const Values& values) {
  std::map<uint32_t, MemoryReport::Value> buffers;
  for (const MemoryReport::Value& v : values) {
    MemoryReport::Value& b = buffers.try_emplace(v.buffer, v).first->second;
    b.bytes = std::max(b.bytes, v.bytes);
    b.offset = std::min(b.offset, v.offset);
    b.first = std::min(b.first, v.first);
    b.last = std::max(b.last, v.last);
  }
  return buffers;
}

size_t Rounded(size_t bytes) { return (bytes + 63) / 64 * 64; }

void Check(const MemoryReport& report) {
  const auto buffers = Buffers(report.values);
  EXPECT_EQ(report.buffers, buffers.size());
  size_t naive = 0, bound = 0;
  uint32_t steps = 0;
  for (const auto& [id, b] : buffers) {
    naive += Rounded(b.bytes);
    steps = std::max(steps, b.last + 1);
  }
  for (uint32_t step = 0; step < steps; ++step) {
    size_t live = 0;
    for (const auto& [id, b] : buffers)
      if (b.first <= step && step <= b.last) live += Rounded(b.bytes);
    bound = std::max(bound, live);
  }
  EXPECT_EQ(report.naive_bytes, naive);
  EXPECT_EQ(report.bound_bytes, bound);
  if (!report.decided) return;
  EXPECT_GE(report.planned_bytes, bound);
  for (const auto& [id, a] : buffers) {
    EXPECT_LE(a.offset + a.bytes, report.planned_bytes);
    for (const auto& [other, b] : buffers) {
      const bool meet = a.first <= b.last && b.first <= a.last;
      const bool overlap = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
      EXPECT_FALSE(id < other && meet && overlap) << a.name << " and " << b.name;
    }
  }
}

TEST(MemoryReport, RandomPrograms) {
  Executor executor({.threads = 2});
  size_t planned = 0, bound = 0;
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    const RandomProgram random(seed, {.ops = 60, .control_flow = seed % 2 == 0});
    auto program = Program::Parse(random.bytes(), "random");
    ASSERT_TRUE(program.ok());
    for (Schedule schedule : {Schedule::kSerial, Schedule::kLanes, Schedule::kParallel}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", schedule " +
                   std::to_string(static_cast<int>(schedule)));
      auto compiled =
          executor.Compile(*program, random.NewScope(), {.opt_level = 0, .schedule = schedule});
      ASSERT_TRUE(compiled.ok());
      auto report = executor.PlanMemory(*compiled, random.Feeds());
      ASSERT_TRUE(report.ok()) << report.status().ToString();
      Check(*report);
      if (schedule != Schedule::kSerial) continue;
      auto stats = executor.Prepare(*compiled, random.Feeds());
      ASSERT_TRUE(stats.ok());
      EXPECT_EQ(report->planned_bytes, stats->arena_bytes);
      EXPECT_EQ(report->bound_bytes, stats->arena_bound_bytes);
      planned += report->planned_bytes;
      bound += report->bound_bytes;
    }
  }
  EXPECT_LE(static_cast<double>(planned), 1.06 * static_cast<double>(bound));
}

TEST(MemoryReport, AChain) {
  constexpr size_t kBytes = 4096;
  const std::vector<heddle::Feed> feeds = {{"x", F32({1024}, std::vector<float>(1024, 1.f))}};
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1});
  for (int k = 0; k < 10; ++k)
    b.Op("test_call", {{"X", {k == 0 ? "x" : "t" + std::to_string(k - 1)}}},
         {{"Out", {"t" + std::to_string(k)}}});
  b.Fetch("t9");
  Executor executor({.threads = 1});
  auto compiled = MustCompile(executor, b.Build(), nullptr, {.schedule = Schedule::kSerial});
  auto report = executor.PlanMemory(compiled, feeds);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->schedule, "serial");
  EXPECT_EQ(report->buffers, 9u);  // the last one is the caller's
  EXPECT_EQ(report->naive_bytes, 9 * kBytes);
  EXPECT_EQ(report->bound_bytes, 2 * kBytes);
  EXPECT_EQ(report->planned_bytes, 2 * kBytes);
  EXPECT_EQ(report->ratio(), 1.0);
  ASSERT_EQ(report->values.size(), 9u);
  EXPECT_EQ(report->values[3].name, "t3");
  EXPECT_EQ(report->values[3].first, 3u);
  EXPECT_EQ(report->values[3].last, 4u);
  EXPECT_NE(report->ToString().find("1.000 times the bound"), std::string::npos);
}

}  // namespace
}  // namespace heddle::testing
