// Partitioning: what passes see of places, devices and costs, and may do about them.
#include "passes/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heddle/device.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// relu, tanh (on the host by its own wish), sigmoid.
ProgramBuilder Chain() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {64});
  b.Var("a", DType::kF32, {64}).Var("b", DType::kF32, {64}).Var("y", DType::kF32, {64});
  b.Unary("relu", "x", "a");
  b.Op("tanh", {{"X", {"a"}}}, {{"Out", {"b"}}}, {{"op_device", std::string("cpu")}});
  b.Unary("sigmoid", "b", "y");
  return std::move(b.Fetch("y"));
}

class Partitioned : public ::testing::Test {
 protected:
  Partitioned()
      : executor_({.threads = 1,
                   .device = NewEmulatedDevice({.memory_bytes = 1 << 20}),
                   .more_devices = {NewEmulatedDevice({.number = 1})}}) {}
  CompileOptions With(PassGrouping grouping, std::function<Result<bool>(ProgramEditor&)> run) {
    CompileOptions options = {.opt_level = 1};
    options.passes.custom.push_back({.name = "mine", .grouping = grouping, .run = std::move(run)});
    return options;
  }
  std::vector<std::string> PlacesOf(const CompiledProgram& compiled) {
    const auto plan = executor_.DescribePlan(compiled, feeds_);
    EXPECT_TRUE(plan.ok()) << plan.status().ToString();
    std::vector<std::string> places;
    for (const auto& in : plan->instructions)
      if (in.op != "copy") places.push_back(in.op + " " + in.place);
    return places;
  }
  Executor executor_;
  const std::vector<heddle::Feed> feeds_ = {{"x", RandomF32({64}, 1)}};
};

TEST_F(Partitioned, PassesSeePlacesDevicesAndCosts) {
  std::vector<std::string> before, after;
  double cost = 0;
  CompileOptions options = With(PassGrouping::kPrePlacement, [&](ProgramEditor& p) {
    EXPECT_THAT(p.places(), ElementsAre("cpu", "emulated:0", "emulated:1"));
    EXPECT_EQ(p.memory_bytes("emulated:0"), size_t{1} << 20);
    EXPECT_EQ(p.memory_bytes("cpu"), 0u);
    EXPECT_EQ(p.options().max_rounds, 10);
    for (int i = 0; i < p.num_ops(0); ++i) before.push_back(p.place(0, i));
    cost = p.cost_ns(0, 0);
    return false;
  });
  options.passes.custom.push_back({.name = "later",
                                   .grouping = PassGrouping::kPostPartitioning,
                                   .run = [&](ProgramEditor& p) -> Result<bool> {
                                     for (int i = 0; i < p.num_ops(0); ++i)
                                       after.push_back(p.op_type(0, i) + " " + p.place(0, i));
                                     return false;
                                   }});
  const auto compiled = MustCompile(executor_, Chain().Build(), nullptr, options);
  EXPECT_THAT(before, ElementsAre("", "cpu", ""));
  EXPECT_THAT(after, ElementsAre("relu emulated:0", "tanh cpu", "sigmoid emulated:0"));
  EXPECT_GT(cost, 0);
  EXPECT_THAT(PlacesOf(compiled), ElementsAre("relu emulated:0", "tanh cpu", "sigmoid emulated:0"));
}

TEST_F(Partitioned, PassesBeforeItMayPlaceOperators) {
  const auto compiled =
      MustCompile(executor_, Chain().Build(), nullptr,
                  With(PassGrouping::kPrePlacement, [](ProgramEditor& p) -> Result<bool> {
                    EXPECT_FALSE(p.SetPlace(0, 0, "emulated:7").ok());
                    for (int i = 0; i < p.num_ops(0); ++i)
                      if (p.op_type(0, i) == "relu") {
                        EXPECT_TRUE(p.SetPlace(0, i, "emulated:1").ok());
                      }
                    return true;
                  }));
  EXPECT_THAT(PlacesOf(compiled), ElementsAre("relu emulated:1", "tanh cpu", "sigmoid emulated:0"));
  Executor host({.threads = 1});
  EXPECT_EQ(Bits(MustRun(executor_, compiled, feeds_)[0]),
            Bits(MustRun(host, MustCompile(host, Chain().Build()), feeds_)[0]));
}

// An operator is replaced by two on the device that it was given to; nothing can be moved.
TEST_F(Partitioned, PassesAfterItEditWhatADeviceWasGiven) {
  Status moved;
  const auto compiled =
      MustCompile(executor_, Chain().Build(), nullptr,
                  With(PassGrouping::kPostPartitioning, [&](ProgramEditor& p) -> Result<bool> {
                    moved = p.SetPlace(0, 0, "cpu");
                    for (int i = 0; i < p.num_ops(0); ++i) {
                      if (p.op_type(0, i) != "sigmoid" || p.place(0, i) != "emulated:0") continue;
                      OpSpec op = p.op(0, i);
                      const std::string between = p.AddVar("between", DType::kF32, {64});
                      OpSpec twice = {.type = "relu",
                                      .inputs = op.inputs,
                                      .outputs = {{"Out", {between}}},
                                      .attributes = {}};
                      op.inputs = {{"X", {between}}};
                      EXPECT_TRUE(p.Replace(0, i, op).ok());
                      EXPECT_TRUE(p.Insert(0, i, twice).ok());
                      return true;
                    }
                    return false;
                  }));
  EXPECT_THAT(moved.message(), HasSubstr("has been given to a place"));
  EXPECT_THAT(PlacesOf(compiled),
              ElementsAre("relu emulated:0", "tanh cpu", "relu emulated:0", "sigmoid emulated:0"));
}

TEST_F(Partitioned, WithoutDevicesEverythingIsTheHosts) {
  Executor host({.threads = 1});
  std::vector<std::string> places;
  MustCompile(host, Chain().Build(), nullptr,
              With(PassGrouping::kPostPartitioning, [&](ProgramEditor& p) -> Result<bool> {
                EXPECT_THAT(p.places(), ElementsAre("cpu"));
                for (int i = 0; i < p.num_ops(0); ++i) places.push_back(p.place(0, i));
                return false;
              }));
  EXPECT_THAT(places, ElementsAre("cpu", "cpu", "cpu"));
}

}  // namespace
}  // namespace heddle::testing
