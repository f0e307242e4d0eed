// One block of memory for runs of all shapes up to the declared ones.
#include <gtest/gtest.h>

#include <thread>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

constexpr int64_t kColumns = 4096;

// Three temporaries of the feed's size, computed in one place.
ProgramBuilder Net() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1, kColumns});
  const Attrs axis = {{"axis", int64_t{1}}};
  b.Op("cumsum", {{"X", {"x"}}}, {{"Out", {"a"}}}, axis);
  b.Op("cumsum", {{"X", {"a"}}}, {{"Out", {"b"}}}, axis);
  b.Op("cumsum", {{"X", {"b"}}}, {{"Out", {"c"}}}, axis);
  b.Op("reduce_max", {{"X", {"c"}}}, {{"Out", {"m"}}}, {{"dim", Ints{1}}, {"keep_dim", false}});
  b.Fetch("m");
  return b;
}
std::vector<heddle::Feed> Batch(int64_t n) {
  return {{"x", RandomF32({n, kColumns}, static_cast<uint32_t>(n))}};
}
CompileOptions Bounded(int64_t n, Schedule schedule = Schedule::kSerial) {
  return {.opt_level = 0, .schedule = schedule, .max_shapes = {{"x", {n, kColumns}}}};
}

TEST(MaxShapes, BatchesUpToTheLargestShareOneBlock) {
  constexpr size_t kRow = kColumns * sizeof(float);
  // The temporary of the largest batch, and what is left for outputs: not for other arenas.
  Executor executor({.threads = 1, .memory_limit = 32 * kRow + kRow, .poison = true});
  Executor free_executor({.threads = 1});
  auto compiled = MustCompile(executor, Net().Build(), nullptr, Bounded(32));
  auto unbounded = MustCompile(free_executor, Net().Build(), nullptr,
                               {.opt_level = 0, .schedule = Schedule::kSerial});
  for (int round = 0; round < 2; ++round) {
    for (int64_t n = 1; n <= 32; ++n) {
      auto report = executor.PlanMemory(compiled, Batch(n));
      ASSERT_TRUE(report.ok()) << report.status().ToString();
      EXPECT_EQ(report->block_bytes, 32 * kRow);
      EXPECT_LE(report->planned_bytes, report->block_bytes);
      auto out = executor.Run(compiled, Batch(n));
      ASSERT_TRUE(out.ok()) << n << ": " << out.status().ToString();
      EXPECT_EQ(Floats((*out)[0]), Floats(MustRun(free_executor, unbounded, Batch(n))[0]));
    }
  }
  EXPECT_EQ(executor.plans_built(), 32);
}

TEST(MaxShapes, LargerRunsHaveMemoryOfTheirOwn) {
  Executor executor({.threads = 2, .poison = true});
  for (const Schedule schedule : {Schedule::kSerial, Schedule::kLanes, Schedule::kParallel}) {
    auto compiled = MustCompile(executor, Net().Build(), nullptr, Bounded(4, schedule));
    auto plain =
        MustCompile(executor, Net().Build(), nullptr, {.opt_level = 0, .schedule = schedule});
    for (const int64_t n : {2, 6, 4, 2}) {
      auto report = executor.PlanMemory(compiled, Batch(n));
      ASSERT_TRUE(report.ok());
      EXPECT_EQ(report->block_bytes > 0, n <= 4 && schedule != Schedule::kParallel) << n;
      EXPECT_EQ(Floats(MustRun(executor, compiled, Batch(n))[0]),
                Floats(MustRun(executor, plain, Batch(n))[0]));
    }
  }
}

TEST(MaxShapes, RunsAtTheSameTimeHaveABlockEach) {
  Executor executor({.threads = 4, .poison = true});
  auto compiled = MustCompile(executor, Net().Build(), nullptr, Bounded(8));
  std::vector<std::vector<float>> expected;
  for (int64_t n = 1; n <= 8; ++n)
    expected.push_back(Floats(MustRun(executor, compiled, Batch(n))[0]));
  std::vector<std::thread> clients;
  for (int client = 0; client < 4; ++client) {
    clients.emplace_back([&, client] {
      for (int k = 0; k < 40; ++k) {
        const int64_t n = 1 + (k * 3 + client) % 8;
        const auto out = executor.Run(compiled, Batch(n));
        ASSERT_TRUE(out.ok());
        EXPECT_EQ(Floats((*out)[0]), expected[static_cast<size_t>(n - 1)]);
        if (k == 20) executor.Trim();
      }
    });
  }
  for (std::thread& t : clients) t.join();
}

TEST(MaxShapes, ShapesThatDoNotFitAreRefused) {
  Executor executor({.threads = 1});
  const auto why = [&](std::pair<std::string, Shape> bound) {
    auto c = executor.Compile(Net().Build(), nullptr, {.max_shapes = {std::move(bound)}});
    return c.ok() ? std::string("accepted") : c.status().message();
  };
  EXPECT_NE(why({"y", {4}}).find("no input 'y'"), std::string::npos);
  EXPECT_NE(why({"x", {4}}).find("does not fit"), std::string::npos);
  EXPECT_NE(why({"x", {4, 5}}).find("does not fit"), std::string::npos);
  EXPECT_NE(why({"x", {-1, kColumns}}).find("does not fit"), std::string::npos);
  EXPECT_EQ(why({"x", {4, kColumns}}), "accepted");
}

}  // namespace
}  // namespace heddle::testing
