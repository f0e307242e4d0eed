// Which operators run on a device: those that it has kernels for, and that do not say otherwise.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "executor/compiled.h"
#include "executor/plan/device/insert_copies.h"
#include "executor/plan/device_plan.h"
#include "tests/support/forwarding_device.h"
#include "tests/support/net_program.h"
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

// --- places that operators name ---

Attrs At(const std::string& place) { return {{"op_device", place}}; }

// Of the operators, how many run on the device at each level; -1 where that is refused.
std::vector<int> AtLevels(const ProgramBuilder& b, const std::vector<heddle::Feed>& feeds,
                          std::string* error = nullptr) {
  std::vector<int> counts;
  for (int level : {0, 1, 2}) {
    Executor executor({.threads = 1, .device = NewEmulatedDevice()});
    const CompiledProgram compiled =
        MustCompile(executor, b.Build(), nullptr, {.opt_level = level});
    auto stats = executor.Prepare(compiled, feeds);
    if (!stats.ok() && error != nullptr) *error = stats.status().ToString();
    counts.push_back(stats.ok() ? stats->device_instructions : -1);
  }
  return counts;
}

const std::vector<heddle::Feed> kX = {{"x", F32({2, 2}, {1, 2, 3, 4})}};

TEST(NamedPlaces, SurviveFusions) {
  ProgramBuilder elements;
  elements.Feed("x", DType::kF32, {2, 2});
  elements.Op("tanh", {{"X", {"x"}}}, {{"Out", {"a"}}}, At("cpu"));
  elements.Op("exp", {{"X", {"a"}}}, {{"Out", {"b"}}}, At("cpu")).Fetch("b");
  EXPECT_EQ(AtLevels(elements, kX), (std::vector<int>{0, 0, 0}));
  ProgramBuilder product;
  product.Feed("x", DType::kF32, {2, 2});
  product.Op("matmul_v2", {{"X", {"x"}}, {"Y", {"x"}}}, {{"Out", {"a"}}}, At("cpu"));
  product.Op("relu", {{"X", {"a"}}}, {{"Out", {"b"}}}, At("cpu")).Fetch("b");
  EXPECT_EQ(AtLevels(product, kX), (std::vector<int>{0, 0, 0}));
}

TEST(NamedPlaces, AreNotMerged) {
  for (const char* second : {"gpu:0", ""}) {
    ProgramBuilder equal;
    equal.Feed("x", DType::kF32, {2, 2});
    equal.Op("exp", {{"X", {"x"}}}, {{"Out", {"a"}}}, At("cpu"));
    equal.Op("exp", {{"X", {"x"}}}, {{"Out", {"b"}}}, At(second));
    equal.Binary("matmul_v2", "a", "b", "c").Fetch("c");
    EXPECT_EQ(AtLevels(equal, kX), (std::vector<int>{2, 2, 2})) << second;
    ProgramBuilder chain;
    chain.Feed("x", DType::kF32, {2, 2});
    chain.Op("tanh", {{"X", {"x"}}}, {{"Out", {"a"}}}, At("cpu"));
    chain.Op("exp", {{"X", {"a"}}}, {{"Out", {"b"}}}, At(second)).Fetch("b");
    EXPECT_EQ(AtLevels(chain, kX), (std::vector<int>{1, 1, 1})) << second;
  }
}

TEST(NamedPlaces, OneDeviceAtATime) {
  const auto build = [](const std::vector<std::string>& places) {
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {2, 2});
    std::string last = "x";
    for (size_t k = 0; k < places.size(); ++k) {
      b.Op("tanh", {{"X", {last}}}, {{"Out", {"t" + std::to_string(k)}}}, At(places[k]));
      last = "t" + std::to_string(k);
    }
    return b.Fetch(last);
  };
  std::string error;
  EXPECT_EQ(AtLevels(build({"gpu:0", "cpu", "", "gpu:3"}), kX, &error),
            (std::vector<int>{-1, -1, -1}));
  for (const char* part : {"tanh -> t3", "'gpu:3'", "'gpu:0'", "one device"})
    EXPECT_NE(error.find(part), std::string::npos) << part << " in " << error;
  EXPECT_EQ(AtLevels(build({"gpu:0", "xpu:0"}), kX, &error), (std::vector<int>{-1, -1, -1}));
  EXPECT_EQ(AtLevels(build({"gpu:3", "gpu", "cpu:0", "gpu:all"}), kX)[0], 3);
}

// All operators have a place once there is a plan, though a program may name some only.
TEST(NamedPlaces, APlanHasAll) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, 2}).Unary("tanh", "x", "a");
  b.Op("exp", {{"X", {"a"}}}, {{"Out", {"b"}}}, At("cpu")).Unary("tanh", "b", "c").Fetch("c");
  Executor executor({.threads = 1, .device = NewEmulatedDevice()});
  const CompiledProgram compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = 0});
  int checked = 0;
  compiled.impl()->spoil = [&](Plan& plan) {
    using Kind = DeviceStep::Kind;
    Places places(1);
    std::vector<uint8_t>& place = places[0];
    for (const DeviceStep& step : plan.device->steps)
      place.push_back(step.kind == Kind::kCopyIn || step.kind == Kind::kLaunch ? kOnDevice
                                                                               : kOnHost);
    EXPECT_TRUE(CheckPlaces(plan, places).ok());
    for (size_t i = 0; i < place.size(); ++i) {
      place[i] ^= 1;
      const Status status = CheckPlaces(plan, places);
      EXPECT_EQ(status.code(), StatusCode::kInternal) << i;
      EXPECT_NE(status.ToString().find("all or none"), std::string::npos);
      place[i] ^= 1;
    }
    checked = static_cast<int>(place.size());
  };
  ASSERT_TRUE(executor.Prepare(compiled, kX).ok());
  EXPECT_EQ(checked, 3 + 4);
}

// As TVM's CollectDeviceInfo: what a copy reads comes from the other place, and what is behind the
// last one is where that goes to.
TEST(NamedPlaces, FollowTheProgramsCopies) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, 2}).Unary("tanh", "x", "a").Unary("exp", "a", "b");
  b.Op("memcpy_h2d", {{"X", {"b"}}}, {{"Out", {"c"}}}, {{"dst_place_type", int64_t{1}}});
  b.Unary("tanh", "c", "d").Unary("exp", "d", "e");
  b.Op("memcpy", {{"X", {"e"}}}, {{"Out", {"f"}}}, {{"dst_place_type", int64_t{0}}});
  b.Unary("tanh", "f", "g");
  b.Op("exp", {{"X", {"g"}}}, {{"Out", {"h"}}}, At("gpu:0")).Fetch("h");
  EXPECT_EQ(AtLevels(b, kX)[0], 3);  // d, e and h
  Executor host({.threads = 1}), executor({.threads = 1, .device = NewEmulatedDevice()});
  EXPECT_EQ(Floats(MustRun(host, MustCompile(host, b.Build()), kX)[0]),
            Floats(MustRun(executor, MustCompile(executor, b.Build()), kX)[0]));
}

// `place` says where the k-th operator of block 0 runs.
Program Placed(const NetProgram& net, const std::function<std::string(size_t)>& place) {
  auto program = std::make_shared<ir::Program>(net.Build().ir());
  auto& ops = program->blocks[0].ops;
  for (size_t k = 0; k < ops.size(); ++k) ops[k].device = place(k);
  return Program(std::move(program));
}

TEST(NamedPlaces, EveryPassKeepsThem) {
  std::set<std::string> own;
  for (const PassInfo& pass : Passes()) own.insert(pass.own_ops.begin(), pass.own_ops.end());
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const NetProgram net(seed, 10 + static_cast<int>(seed));
    std::set<std::string> fused = own;  // which the program does not have from the beginning
    bool calls = false;  // whose operators become neighbours at the place of the call
    for (const Program::OpCount& given : net.Build().op_counts()) {
      fused.erase(given.type);
      if (given.type == "onnx_ms_q_linear_add") fused.erase("quantized_sum");  // one becomes one
      calls = calls || given.type == "call";
    }
    for (int level : {1, 2}) {
      const auto everywhere = OptimizeModel(
          {Placed(net, [](size_t) { return "cpu"; }), net.NewScope()}, {.level = level});
      ASSERT_TRUE(everywhere.ok()) << everywhere.status().ToString();
      for (const ir::Op& op : everywhere->model.program.ir().blocks[0].ops)
        EXPECT_EQ(op.device, "cpu") << op.type() << ", seed " << seed << ", level " << level;
      // Where each has a place of its own, there is nothing to fuse.
      const auto apart = OptimizeModel(
          {Placed(net, [](size_t k) { return "place:" + std::to_string(k); }), net.NewScope()},
          {.level = level});
      ASSERT_TRUE(apart.ok()) << apart.status().ToString();
      for (const ir::Op& op : apart->model.program.ir().blocks[0].ops) {
        EXPECT_FALSE(op.device.empty()) << op.type() << ", seed " << seed << ", level " << level;
        EXPECT_TRUE(calls || fused.count(op.type()) == 0) << op.type() << ", seed " << seed;
      }
    }
  }
}

TEST(NamedPlaces, GiveTheHostsBits) {
  Executor host({.threads = 2});
  for (uint32_t seed = 0; seed < 30; ++seed) {
    const NetProgram net(seed, 10 + static_cast<int>(seed));
    std::mt19937 random(seed);
    const char* const places[] = {"cpu", "gpu:0", ""};
    const Program program = Placed(net, [&](size_t) { return places[random() % 3]; });
    for (int level : {0, 1, 2}) {
      Executor executor({.threads = 2, .device = NewEmulatedDevice({.lazy = true})});
      const auto run = [&](Executor& e) {
        return MustRun(e, MustCompile(e, program, net.NewScope(), {.opt_level = level}),
                       net.feeds());
      };
      const std::vector<Tensor> here = run(host), there = run(executor);
      ASSERT_EQ(here.size(), there.size());
      for (size_t k = 0; k < here.size(); ++k)
        EXPECT_EQ(Bits(here[k]), Bits(there[k])) << "seed " << seed << ", level " << level;
    }
  }
}

}  // namespace
}  // namespace heddle::testing
