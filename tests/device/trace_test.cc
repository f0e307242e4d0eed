// What runs with a device tell about themselves.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "heddle/device.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

TEST(DeviceTrace, TellsWhatEachStreamDidAndWhen) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {4});
  b.Scale("x", "a", 2).Scale("x", "b", 3).Binary("elementwise_add", "a", "b", "c");
  b.Op("relu", {{"X", {"c"}}}, {{"Out", {"y"}}}, {{"op_device", std::string("cpu")}});
  b.Fetch("y");
  constexpr int64_t kKernelNs = 2000000;
  Executor executor({.threads = 1,
                     .device = NewEmulatedDevice({.kernel_delay_ns = kKernelNs}),
                     .device_streams = 2});
  const CompiledProgram compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = 0});
  for (int run = 0; run < 3; ++run) {
    RunReport report;
    auto out = executor.Run(compiled, {{"x", F32({4}, {1, 2, 3, -4})}},
                            {.report = &report, .trace = true});
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    EXPECT_EQ(report.dispatch, "device");
    std::multiset<std::string> seen;
    const TraceEvent* last = nullptr;
    for (const TraceEvent& e : report.events) {
      seen.insert((e.stream.starts_with("compute ") ? "compute" : e.stream) + ": " + e.op);
      EXPECT_LE(e.begin_us, e.end_us);
      EXPECT_GE(e.begin_us, 0);
      if (e.stream.starts_with("compute")) {
        EXPECT_GE(e.end_us - e.begin_us, kKernelNs * 1e-3);
      }
      if (e.op == "elementwise_add") last = &e;
    }
    EXPECT_EQ(seen, (std::multiset<std::string>{": relu", "compute: elementwise_add",
                                                "compute: scale", "compute: scale",
                                                "copies in: copy", "copies out: copy"}));
    ASSERT_NE(last, nullptr);
    for (const TraceEvent& e : report.events) {
      if (e.op == "scale" || e.stream == "copies in") {
        EXPECT_LE(e.end_us, last->begin_us);
      }
    }
    const auto json = nlohmann::json::parse(report.ToChromeTrace());
    EXPECT_EQ(json["traceEvents"].size(),
              report.events.size() + report.spans.size() + report.memory.size());
  }
}

}  // namespace
}  // namespace heddle::testing
