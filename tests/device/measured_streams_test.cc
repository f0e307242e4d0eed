// Streams that are chosen by what kernels take on their device.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <set>
#include <thread>

#include "heddle/device.h"
#include "tests/support/program_builder.h"
#include "tests/support/test_ops.h"

namespace heddle::testing {
namespace {

[[maybe_unused]] const bool kInstalled = InstallTestOps();

constexpr int64_t kSlow = 1;
constexpr double kSlowNs = 5e6;
const std::vector<heddle::Feed> kFeeds = {{"x", F32({2}, {1, 2})}};

// One kernel that takes long, which its operands do not tell, and five that do not.
ProgramBuilder OneSlow() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2});
  std::vector<std::string> ends;
  for (int64_t k = 1; k <= 6; ++k) {
    ends.push_back("y" + std::to_string(k));
    b.Op("test_call", {{"X", {"x"}}}, {{"Out", {ends.back()}}}, {{"id", k}});
  }
  b.Op("sum", {{"X", ends}}, {{"Out", {"z"}}});
  return std::move(b.Fetch("z"));
}

struct Found {
  std::set<std::string> beside;  // variables computed on the slow kernel's stream
  double slow_ns = 0, fast_ns = 0;
  std::string why;
  int measured = 0;
};

Found Plan(const CompileOptions& options) {
  const ScopedHook hook([](int64_t id) {
    if (id == kSlow)
      std::this_thread::sleep_for(std::chrono::nanoseconds(static_cast<int64_t>(kSlowNs)));
    return Status::Ok();
  });
  Executor executor({.threads = 1, .device = NewEmulatedDevice(), .device_streams = 2});
  const CompiledProgram compiled = MustCompile(executor, OneSlow().Build(), nullptr, options);
  const auto plan = executor.DescribePlan(compiled, kFeeds);
  EXPECT_TRUE(plan.ok()) << plan.status().ToString();
  Found found;
  std::string stream;
  const auto output = [&](const PlanDescription::Instruction& in) {
    return plan->slots[static_cast<size_t>(in.outputs[0])].variable;
  };
  for (const auto& in : plan->instructions) {
    if (in.op != "test_call") continue;
    found.measured += in.measured;
    (output(in) == "y1" ? found.slow_ns : found.fast_ns) = in.cost_ns;
    if (output(in) != "y1") continue;
    stream = in.stream;
    found.why = in.why;
  }
  for (const auto& in : plan->instructions)
    if (in.op == "test_call" && in.stream == stream && output(in) != "y1")
      found.beside.insert(output(in));
  EXPECT_EQ(Floats(MustRun(executor, compiled, kFeeds)[0]), (std::vector<float>{6, 12}));
  return found;
}

TEST(MeasuredStreams, NothingIsPutBehindWhatTakesLong) {
  const Found estimated = Plan({.opt_level = 0});
  EXPECT_EQ(estimated.measured, 0);
  EXPECT_FALSE(estimated.beside.empty()) << "the estimates tell, too";
  EXPECT_EQ(estimated.why.find("took"), std::string::npos);

  const std::string file = ::testing::TempDir() + "/device_times_" + std::to_string(getpid());
  const Found measured = Plan({.opt_level = 0, .tune = true, .tuning_file = file});
  EXPECT_EQ(measured.measured, 6);
  EXPECT_TRUE(measured.beside.empty());
  EXPECT_GE(measured.slow_ns, kSlowNs);
  EXPECT_LT(measured.fast_ns, kSlowNs / 2);
  EXPECT_NE(measured.why.find("ns that it took"), std::string::npos) << measured.why;

  // Another executor, which measures nothing, has the times of the file.
  const Found kept = Plan({.opt_level = 0, .tuning_file = file});
  EXPECT_EQ(kept.measured, 6);
  EXPECT_TRUE(kept.beside.empty());
  EXPECT_NEAR(kept.slow_ns, measured.slow_ns, 2);
  std::filesystem::remove(file);
}

// A kernel that fails on zeros keeps its estimate, the others are measured; nothing is left behind.
TEST(MeasuredStreams, AKernelThatFailsIsEstimated) {
  const ScopedHook hook([](int64_t id) {
    return id == kSlow ? Status(StatusCode::kInternal, "not now") : Status::Ok();
  });
  const auto device = NewEmulatedDevice();
  {
    Executor executor({.threads = 1, .device = device});
    const CompiledProgram compiled =
        MustCompile(executor, OneSlow().Build(), nullptr, {.opt_level = 0, .tune = true});
    const auto plan = executor.DescribePlan(compiled, kFeeds);
    ASSERT_TRUE(plan.ok());
    int measured = 0;
    for (const auto& in : plan->instructions) measured += in.op == "test_call" && in.measured;
    EXPECT_EQ(measured, 5);
  }
  EXPECT_EQ(CountsOf(*device).allocations, 0);
  EXPECT_EQ(CountsOf(*device).events, 0);
}

}  // namespace
}  // namespace heddle::testing
