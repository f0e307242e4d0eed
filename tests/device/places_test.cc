// What a device has no kernel for runs on the host.
#include <gtest/gtest.h>

#include "tests/support/forwarding_device.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

// An emulated device that covers some calls only.
class PartialDevice final : public ForwardingDevice {
 public:
  explicit PartialDevice(std::function<bool(const CallView&)> covers)
      : covers_(std::move(covers)) {}
  bool HasKernel(const CallView& call) const override {
    return ForwardingDevice::HasKernel(call) && covers_(call);
  }

 private:
  const std::function<bool(const CallView&)> covers_;
};

// The operators that run on a device of which `covers` tells what it has kernels for.
int OnDevice(const Program& program, const std::vector<heddle::Feed>& feeds,
             std::function<bool(const CallView&)> covers) {
  Executor host({.threads = 1});
  Executor executor({.threads = 1, .device = std::make_shared<PartialDevice>(std::move(covers))});
  const CompiledProgram there = MustCompile(executor, program, nullptr, {.opt_level = 0});
  const CompiledProgram here = MustCompile(host, program, nullptr, {.opt_level = 0});
  EXPECT_EQ(Floats(MustRun(executor, there, feeds)[0]), Floats(MustRun(host, here, feeds)[0]));
  auto stats = executor.Prepare(there, feeds);
  EXPECT_TRUE(stats.ok());
  return stats.ok() ? stats->device_instructions : -1;
}

// Two scales of a matrix, one of them by a tensor, and their sum.
Program Mixed() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, 2}).Feed("factor", DType::kF32, {1});
  b.Scale("x", "a", 2);
  b.Op("scale", {{"X", {"a"}}, {"ScaleTensor", {"factor"}}}, {{"Out", {"b"}}});
  b.Binary("elementwise_add", "a", "b", "c");
  b.Fetch("c");
  return b.Build();
}
const std::vector<heddle::Feed> kFeeds = {{"x", F32({2, 2}, {1, 2, 3, 4})},
                                          {"factor", F32({1}, {0.5f})}};

TEST(DeviceCoverage, AllAreAsked) {
  EXPECT_EQ(OnDevice(Mixed(), kFeeds, [](const CallView&) { return true; }), 3);
  EXPECT_EQ(OnDevice(Mixed(), kFeeds, [](const CallView&) { return false; }), 0);
}

TEST(DeviceCoverage, OptionalOperandsAreSeen) {
  const auto covers = [](const CallView& call) {
    return call.def().name() != "scale" || !call.HasIn("ScaleTensor");
  };
  EXPECT_EQ(OnDevice(Mixed(), kFeeds, covers), 2);
}

TEST(DeviceCoverage, DTypesAndShapesAreSeen) {
  int calls = 0;
  const auto covers = [&](const CallView& call) {
    ++calls;
    EXPECT_TRUE(call.known());
    EXPECT_EQ(call.key(), DType::kF32);
    EXPECT_EQ(call.InDType("X"), DType::kF32);
    EXPECT_EQ(call.InShape("X"), Shape({2, 2}));
    EXPECT_EQ(call.OutDType("Out"), DType::kF32);
    return call.OutShape("Out").rank() != 2;
  };
  EXPECT_EQ(OnDevice(Mixed(), kFeeds, covers), 0);
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace heddle::testing
