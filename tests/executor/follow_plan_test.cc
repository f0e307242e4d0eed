// A plan that is described, and followed by another executor.
#include "executor/follow_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "heddle/device.h"
#include "tests/support/random_program.h"

namespace heddle::testing {
namespace {

using ::testing::HasSubstr;

// Convolutions and products, for which there are several implementations.
ProgramBuilder Network() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, 8, 16, 16});
  b.Param("w", DType::kF32, {16, 8, 3, 3}).Param("v", DType::kF32, {8, 8, 1, 1});
  b.Var("c", DType::kF32, {2, 16, 16, 16}).Var("d", DType::kF32, {2, 8, 16, 16});
  const Attrs same = {{"strides", Ints{1, 1}}, {"paddings", Ints{1, 1}}, {"dilations", Ints{1, 1}}};
  const Attrs point = {
      {"strides", Ints{1, 1}}, {"paddings", Ints{0, 0}}, {"dilations", Ints{1, 1}}};
  b.Op("conv2d", {{"Input", {"x"}}, {"Filter", {"w"}}}, {{"Output", {"c"}}}, same);
  b.Op("conv2d", {{"Input", {"x"}}, {"Filter", {"v"}}}, {{"Output", {"d"}}}, point);
  b.Unary("tanh", "d", "e");
  b.Op("concat", {{"X", {"c", "e"}}}, {{"Out", {"y"}}}, {{"axis", 1}});
  return std::move(b.Fetch("y"));
}

std::shared_ptr<Scope> Weights() {
  auto scope = std::make_shared<Scope>();
  scope->Set("w", RandomF32({16, 8, 3, 3}, 1));
  scope->Set("v", RandomF32({8, 8, 1, 1}, 2));
  return scope;
}

const std::vector<heddle::Feed> kFeeds = {{"x", RandomF32({2, 8, 16, 16}, 3)}};

std::shared_ptr<const PlanDescription> Described(Executor& executor,
                                                 const CompiledProgram& compiled,
                                                 const std::vector<heddle::Feed>& feeds) {
  auto plan = executor.DescribePlan(compiled, feeds);
  EXPECT_TRUE(plan.ok()) << plan.status().ToString();
  return std::make_shared<const PlanDescription>(*std::move(plan));
}

std::string Refusal(const std::function<void(PlanDescription&)>& change,
                    const ProgramBuilder& program, int threads = 2) {
  Executor first({.threads = 2});
  const auto compiled =
      MustCompile(first, Network().Build(), Weights(), {.schedule = Schedule::kLanes});
  PlanDescription wanted = *Described(first, compiled, kFeeds);
  change(wanted);
  Executor second({.threads = threads});
  const auto follows =
      MustCompile(second, program.Build(), Weights(),
                  {.follow = std::make_shared<const PlanDescription>(std::move(wanted))});
  const auto out = second.Run(follows, kFeeds);
  EXPECT_FALSE(out.ok());
  return out.status().ToString();
}

TEST(FollowPlan, IsTheSamePlanInEveryWay) {
  struct Way {
    const char* name;
    ExecutorOptions executor;
    CompileOptions compile;
  };
  std::vector<Way> ways;
  for (int level : {0, 2})
    for (Schedule schedule : {Schedule::kSerial, Schedule::kParallel, Schedule::kLanes})
      for (Reuse reuse : {Reuse::kOrdered, Reuse::kEdges})
        ways.push_back(
            {"host", {.threads = 2}, {.opt_level = level, .schedule = schedule, .reuse = reuse}});
  ways.push_back({"device", {.threads = 2, .device = NewEmulatedDevice()}, {}});
  ways.push_back({"forced", {.threads = 1}, {.force = "conv=im2col"}});
  for (Way& way : ways) {
    Executor first(way.executor), second(way.executor);
    const auto compiled = MustCompile(first, Network().Build(), Weights(), way.compile);
    const auto want = MustRun(first, compiled, kFeeds);
    const auto plan = Described(first, compiled, kFeeds);
    CompileOptions options = way.compile;
    options.schedule = Schedule::kAuto;
    options.force = "";
    options.follow = plan;
    const auto follows = MustCompile(second, Network().Build(), Weights(), options);
    const auto again = second.Run(follows, kFeeds);
    ASSERT_TRUE(again.ok()) << way.name << ": " << again.status().ToString();
    EXPECT_EQ(Bits((*again)[0]), Bits(want[0])) << way.name;
    const auto made = Described(second, follows, kFeeds);
    EXPECT_EQ(made->dispatch, plan->dispatch);
    EXPECT_EQ(made->dependencies, plan->dependencies);
    EXPECT_EQ(made->order, plan->order);
    ASSERT_EQ(made->instructions.size(), plan->instructions.size());
    for (size_t i = 0; i < plan->instructions.size(); ++i) {
      EXPECT_EQ(made->instructions[i].implementation, plan->instructions[i].implementation);
      EXPECT_EQ(made->instructions[i].lane, plan->instructions[i].lane);
      EXPECT_EQ(made->instructions[i].stream, plan->instructions[i].stream);
    }
  }
}

// Lanes as they are, not as they would be made: with the lanes of two threads exchanged.
TEST(FollowPlan, OtherLanesAreFollowed) {
  Executor first({.threads = 2}), second({.threads = 2});
  const auto compiled = MustCompile(first, Network().Build(), Weights(),
                                    {.opt_level = 0, .schedule = Schedule::kLanes});
  const auto want = MustRun(first, compiled, kFeeds);
  PlanDescription all = *Described(first, compiled, kFeeds);
  ASSERT_EQ(all.dispatch, "lanes");
  // Everything on the first lane, in the order of one thread.
  std::vector<PlanDescription::Instruction> ins;
  for (int position : all.order) ins.push_back(all.instructions[static_cast<size_t>(position)]);
  all.instructions = ins;
  all.order.clear();
  all.dependencies.clear();
  for (size_t i = 0; i < all.instructions.size(); ++i) {
    all.instructions[i].lane = 0;
    all.instructions[i].task = 0;
    all.order.push_back(static_cast<int>(i));
    if (i > 0) all.dependencies.emplace_back(static_cast<int>(i) - 1, static_cast<int>(i));
  }
  const auto follows =
      MustCompile(second, Network().Build(), Weights(),
                  {.opt_level = 0, .follow = std::make_shared<const PlanDescription>(all)});
  const auto out = second.Run(follows, kFeeds);
  // The arena is smaller without lanes side by side, which the description does not know: one
  // error, which names what differs, or the same bits.
  if (out.ok())
    EXPECT_EQ(Bits((*out)[0]), Bits(want[0]));
  else
    EXPECT_THAT(out.status().ToString(), HasSubstr("offset"));
}

TEST(FollowPlan, RandomProgramsAreFollowed) {
  for (uint32_t seed = 1; seed <= 30; ++seed) {
    const RandomProgram random(seed, {.ops = 25, .control_flow = seed % 3 == 0});
    auto program = Program::Parse(random.bytes(), "random");
    ASSERT_TRUE(program.ok());
    const CompileOptions options = {
        .opt_level = static_cast<int>(seed % 2) * 2,
        .schedule = seed % 5 == 0 ? Schedule::kParallel : Schedule::kLanes};
    Executor first({.threads = 2}), second({.threads = 2});
    auto compiled = first.Compile(*program, random.NewScope(), options);
    ASSERT_TRUE(compiled.ok());
    CompileOptions follow = {.opt_level = options.opt_level};
    follow.follow = Described(first, *compiled, random.Feeds());
    auto follows = second.Compile(*program, random.NewScope(), follow);
    ASSERT_TRUE(follows.ok());
    const auto want = first.Run(*compiled, random.Feeds());
    const auto got = second.Run(*follows, random.Feeds());
    ASSERT_EQ(want.ok(), got.ok()) << "seed " << seed << ": " << got.status().ToString();
    for (size_t i = 0; want.ok() && i < want->size(); ++i)
      EXPECT_EQ(Bits((*got)[i]), Bits((*want)[i])) << "seed " << seed;
  }
}

TEST(FollowPlan, WhatDiffersIsSaid) {
  EXPECT_THAT(Refusal([](auto& p) { p.version = "0.0.1"; }, Network()),
              HasSubstr("heddle 0.0.1 made it"));
  EXPECT_THAT(Refusal([](auto& p) { p.machine = "a toaster"; }, Network()),
              HasSubstr("another machine (a toaster"));
  EXPECT_THAT(Refusal([](auto& p) { p.program_hash ^= 1; }, Network()),
              HasSubstr("of another program"));
  EXPECT_THAT(Refusal([](auto&) {}, Network(), 1),
              HasSubstr("for 2 threads, and the executor has 1"));
  EXPECT_THAT(Refusal([](auto& p) { p.dispatch = "sideways"; }, Network()),
              HasSubstr("no dispatch 'sideways'"));
  EXPECT_THAT(Refusal([](auto& p) { p.dispatch = "device"; }, Network()),
              HasSubstr("the executor has none"));
  EXPECT_THAT(Refusal([](auto& p) { p.instructions[0].lane = 7; }, Network()),
              HasSubstr("has no lane"));
  EXPECT_THAT(Refusal([](auto& p) { std::reverse(p.order.begin(), p.order.end()); }, Network()),
              HasSubstr("no order of this program's instructions"));
  EXPECT_THAT(Refusal([](auto& p) { p.order[0] = 99; }, Network()), HasSubstr("its order names"));
  EXPECT_THAT(Refusal([](auto& p) { p.dependencies[0].second = 99; }, Network()),
              HasSubstr("its edges name"));
  EXPECT_THAT(Refusal([](auto& p) { p.slots[0].variable = "z"; }, Network()),
              HasSubstr("has variable z there"));
  EXPECT_THAT(Refusal(
                  [](auto& p) {
                    for (auto& in : p.instructions)
                      for (auto& c : in.choices) c.chosen = "abacus";
                  },
                  Network()),
              HasSubstr("abacus"));
}

TEST(FollowPlan, OtherShapesAreRefused) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1, 4});
  b.Unary("tanh", "x", "y").Fetch("y");
  Executor first({.threads = 1}), second({.threads = 1});
  const std::vector<heddle::Feed> two = {{"x", RandomF32({2, 4}, 1)}},
                                  three = {{"x", RandomF32({3, 4}, 1)}};
  const auto plan = Described(first, MustCompile(first, b.Build()), two);
  const auto follows = MustCompile(second, b.Build(), nullptr, {.follow = plan});
  EXPECT_TRUE(second.Run(follows, two).ok());
  const auto out = second.Run(follows, three);
  ASSERT_FALSE(out.ok());
  EXPECT_THAT(out.status().ToString(), HasSubstr("('x') has shape [2, 4] there, and [3, 4] here"));
}

TEST(PlanDescription, SaysWhyKernelsComputeAsTheyDo) {
  Executor executor({.threads = 1});
  const auto compiled = MustCompile(executor, Network().Build(), Weights(), {.opt_level = 0});
  const auto plan = Described(executor, compiled, kFeeds);
  int chosen = 0;
  for (const auto& in : plan->instructions) {
    EXPECT_FALSE(in.why.empty()) << in.op;
    if (in.op != "conv2d") continue;
    ASSERT_EQ(in.choices.size(), 1u);
    const ImplementationChoice& c = in.choices[0];
    EXPECT_EQ(c.family, "conv");
    EXPECT_EQ(c.reason, "cost");
    EXPECT_TRUE(in.implementation.starts_with(c.chosen)) << in.implementation;
    ASSERT_GE(c.candidates.size(), 2u);
    for (size_t k = 1; k < c.candidates.size(); ++k)
      EXPECT_GE(c.candidates[k].cost_ns, c.candidates[k - 1].cost_ns);
    EXPECT_THAT(in.why, HasSubstr("cheapest of"));
    bool strides = false;
    for (const auto& [name, value] : in.attributes)
      strides = strides || (name == "strides" && value == AttributeValue(Ints{1, 1}));
    EXPECT_TRUE(strides);
    ++chosen;
  }
  EXPECT_EQ(chosen, 2);
  // Measured: every candidate that was tried has a time, and the fastest, about, is taken.
  Executor tuner({.threads = 1});
  const auto digits = LoadModel(std::string(HEDDLE_SOURCE_DIR) + "/examples/digits");
  ASSERT_TRUE(digits.ok());
  const auto tuned = tuner.Compile(*digits, {.tune = true});
  ASSERT_TRUE(tuned.ok());
  const auto by_time = Described(tuner, *tuned, {{"x", RandomF32({4, 1, 8, 8}, 1)}});
  int measured = 0;
  for (const auto& in : by_time->instructions)
    for (const auto& c : in.choices) {
      if (c.reason != "measured") continue;
      ++measured;
      double taken = 0, least = 1e30;
      for (const auto& candidate : c.candidates) {
        if (candidate.measured_ns > 0) least = std::min(least, candidate.measured_ns);
        if (candidate.name == c.chosen) taken = candidate.measured_ns;
      }
      EXPECT_GT(taken, 0);
      EXPECT_LE(taken, least * 1.04) << "within the margin of the usual one";
    }
  EXPECT_GE(measured, 1);
  // Forced, and kept from a file, say so.
  const auto forced =
      MustCompile(executor, Network().Build(), Weights(), {.opt_level = 0, .force = "conv=im2col"});
  const auto insisted = Described(executor, forced, kFeeds);
  for (const auto& in : insisted->instructions)
    for (const auto& c : in.choices) {
      EXPECT_EQ(c.reason, "forced");
      EXPECT_EQ(c.chosen, "im2col");
    }
}

TEST(PlanDescription, StorageIdsAreShared) {
  // A chain: with memory reused, two places serve all values between the ends.
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {1024});
  std::string at = "x";
  for (int i = 0; i < 8; ++i) {
    const std::string next = "v" + std::to_string(i);
    b.Op("cumsum", {{"X", {at}}}, {{"Out", {next}}}, {{"axis", 0}});
    at = next;
  }
  b.Fetch(at);
  Executor executor({.threads = 1});
  const auto plan = Described(executor, MustCompile(executor, b.Build(), nullptr, {.opt_level = 0}),
                              {{"x", RandomF32({1024}, 1)}});
  std::map<int, std::set<std::string>> held;
  for (const auto& slot : plan->slots)
    if (slot.storage == "arena") held[slot.storage_id].insert(slot.variable);
  size_t values = 0;
  for (const auto& [id, names] : held) values += names.size();
  EXPECT_EQ(values, 7u);
  EXPECT_LE(held.size(), 2u);
}

}  // namespace
}  // namespace heddle::testing
