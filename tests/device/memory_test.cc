// Memory of the device and of the host in runs with a device.
#include <gtest/gtest.h>

#include "heddle/device.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

// Chains side by side, each value read once, then a sum of their ends.
Program Chains(int chains, int length) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {1024});
  std::vector<std::string> ends;
  for (int c = 0; c < chains; ++c) {
    std::string at = "x";
    for (int k = 0; k < length; ++k) {
      const std::string out = "v" + std::to_string(c) + "_" + std::to_string(k);
      // Which is not done in place.
      b.Op("concat", {{"X", {at}}}, {{"Out", {out}}}, {{"axis", int64_t{0}}});
      at = out;
    }
    ends.push_back(at);
  }
  b.Op("sum", {{"X", ends}}, {{"Out", {"y"}}});
  b.Fetch("y");
  return b.Build();
}
const std::vector<heddle::Feed> kFeeds = {{"x", F32({1024}, std::vector<float>(1024, 1))}};

PlanStats StatsOf(int chains, int streams, size_t* peak) {
  const Program program = Chains(chains, 6);
  auto device = NewEmulatedDevice({.lazy = true});
  Executor executor({.threads = 1, .device = device, .device_streams = streams});
  const CompiledProgram compiled = MustCompile(executor, program, nullptr, {.opt_level = 0});
  const std::vector<float> want(1024, static_cast<float>(chains));
  for (int run = 0; run < 3; ++run) EXPECT_EQ(Floats(MustRun(executor, compiled, kFeeds)[0]), want);
  *peak = CountsOf(*device).peak_bytes;
  return *executor.Prepare(compiled, kFeeds);
}

TEST(DeviceMemory, StreamsShareOneBlock) {
  for (int chains : {1, 2, 3, 8}) {
    size_t one_peak = 0, more_peak = 0;
    const PlanStats one = StatsOf(chains, 1, &one_peak);
    EXPECT_LE(one.device_arena_bytes, size_t{4096} * static_cast<size_t>(chains + 3));
    for (int streams : {2, 3, 4}) {
      const PlanStats more = StatsOf(chains, streams, &more_peak);
      EXPECT_LE(more.device_arena_bytes * 10, one.device_arena_bytes * 11)
          << chains << " chains on " << streams << " streams";
      EXPECT_LE(more_peak * 10, one_peak * 11);
    }
  }
}

// A value that nobody needs any more lends its memory to the next one.
TEST(DeviceMemory, OperatorsWorkInPlaceWhereTheyMay) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {1024});
  b.Unary("relu", "x", "a").Scale("a", "b", 2).Scale("b", "c", 3).Unary("relu", "c", "y");
  b.Fetch("y");
  size_t peak = 0;
  auto device = NewEmulatedDevice();
  Executor executor({.threads = 1, .device = device});
  const CompiledProgram compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = 0});
  EXPECT_EQ(Floats(MustRun(executor, compiled, kFeeds)[0]), std::vector<float>(1024, 6));
  EXPECT_EQ(executor.Prepare(compiled, kFeeds)->device_arena_bytes, 4096u);
  peak = CountsOf(*device).peak_bytes;
  EXPECT_EQ(peak, 4096u);
  executor.Trim();
  EXPECT_EQ(CountsOf(*device).bytes, 0u);
  EXPECT_EQ(Floats(MustRun(executor, compiled, kFeeds)[0]), std::vector<float>(1024, 6));
}

// But not what is read later, on whichever stream.
TEST(DeviceMemory, WhatIsReadLaterIsLeftAlone) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {1024});
  b.Scale("x", "a", 2).Scale("a", "b", 3).Binary("elementwise_add", "a", "b", "y");
  b.Fetch("y");
  for (int streams : {1, 2}) {
    Executor executor(
        {.threads = 1, .device = NewEmulatedDevice({.lazy = true}), .device_streams = streams});
    const CompiledProgram compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = 0});
    for (int run = 0; run < 3; ++run)
      EXPECT_EQ(Floats(MustRun(executor, compiled, kFeeds)[0]), std::vector<float>(1024, 8));
  }
}

// After the parameters have been copied, everything that crosses is in memory that was pinned for
// it.
TEST(DeviceMemory, FeedsAndFetchesArePinned) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {1024}).Param("w", DType::kF32, {1024});
  b.Binary("elementwise_mul", "x", "w", "a");
  b.Op("relu", {{"X", {"a"}}}, {{"Out", {"b"}}}, {{"op_device", std::string("cpu")}});
  b.Scale("b", "y", 2).Fetch("y").Fetch("a");
  auto scope = std::make_shared<Scope>();
  scope->Set("w", F32({1024}, std::vector<float>(1024, 3)));
  auto device = NewEmulatedDevice();
  {
    Executor executor({.threads = 1, .device = device});
    const CompiledProgram compiled = MustCompile(executor, b.Build(), scope, {.opt_level = 0});
    std::vector<Tensor> kept = MustRun(executor, compiled, kFeeds);
    const EmulatedCounts first = CountsOf(*device);
    for (int run = 0; run < 3; ++run)
      EXPECT_EQ(Floats(MustRun(executor, compiled, kFeeds)[0]), std::vector<float>(1024, 6));
    const EmulatedCounts then = CountsOf(*device);
    EXPECT_EQ(then.copies - first.copies, 3 * 4);
    EXPECT_EQ(then.pageable_copies, first.pageable_copies);
    EXPECT_EQ(Floats(kept[1]), std::vector<float>(1024, 3));  // nobody wrote to it since
  }
  EXPECT_EQ(CountsOf(*device).allocations, 0);
}

}  // namespace
}  // namespace heddle::testing
