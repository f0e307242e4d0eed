// Functions that are planned once and called: the same bits as the operators in the place of the
// calls, in every schedule and at every level.
#include "executor/plan/calls/plan_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "tests/support/layered_program.h"

namespace heddle::testing {
namespace {

using Kind = LayeredProgram::Kind;
using Options = LayeredProgram::Options;

// What three runs fetch, then the parameters.
std::vector<std::string> Outcome(const LayeredProgram& net, Executor& executor,
                                 const CompileOptions& options,
                                 const std::vector<Feed>& feeds = {}) {
  const auto scope = net.NewScope();
  const CompiledProgram compiled = MustCompile(executor, net.program(), scope, options);
  std::vector<std::string> bits;
  for (int k = 0; k < 3; ++k)
    for (const Tensor& t : MustRun(executor, compiled, feeds.empty() ? net.feeds() : feeds))
      bits.push_back(Bits(t));
  for (const std::string& name : net.parameters())
    bits.push_back(Bits(scope->Find(name)->tensor()));
  return bits;
}

// The instructions of block 0 that call a function, and those of the functions.
std::pair<int, int> CallsOf(const LayeredProgram& net, Executor& executor,
                            const CompileOptions& options) {
  const CompiledProgram compiled = MustCompile(executor, net.program(), net.NewScope(), options);
  auto plan = executor.DescribePlan(compiled, net.feeds());
  EXPECT_TRUE(plan.ok()) << plan.status().ToString();
  std::pair<int, int> count{0, 0};
  if (!plan.ok()) return count;
  for (const auto& in : plan->instructions) {
    count.first += in.block == 0 && in.op == "call" && in.mode == "static";
    count.second += in.block != 0;
  }
  return count;
}

class Calls : public ::testing::TestWithParam<Kind> {};

TEST_P(Calls, HaveTheBitsOfTheOperators) {
  for (const int level : {0, 1, 2}) {
    for (const uint32_t seed : {1u, 2u, 3u}) {
      const LayeredProgram net({.kind = GetParam(),
                                .layers = 9,
                                .width = GetParam() == Kind::kConv ? 32 : 96,
                                .rows = GetParam() == Kind::kConv ? 16 : 64,
                                .seed = seed});
      for (const Schedule schedule :
           {Schedule::kSerial, Schedule::kLanes, Schedule::kParallel, Schedule::kAuto}) {
        SCOPED_TRACE(StrCat("level ", level, ", seed ", seed, ", ", ScheduleName(schedule)));
        Executor executor({.threads = schedule == Schedule::kSerial ? 1 : 2});
        CompileOptions options{.opt_level = level, .schedule = schedule};
        const auto expected = Outcome(net, executor, options);
        options.outline = true;
        EXPECT_EQ(Outcome(net, executor, options), expected);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Calls,
                         ::testing::Values(Kind::kTransformer, Kind::kMlp, Kind::kConv,
                                           Kind::kRandom, Kind::kTraining));

TEST(PlanCalls, LayersAreCalls) {
  Executor executor({.threads = 1});
  for (const Kind kind : {Kind::kTransformer, Kind::kMlp}) {
    const LayeredProgram net({.kind = kind, .layers = 12, .width = 128, .rows = 64});
    const auto [none, nothing] = CallsOf(net, executor, {});
    EXPECT_EQ(none + nothing, 0);
    const auto [calls, inside] = CallsOf(net, executor, {.outline = true});
    EXPECT_GE(calls, 10) << static_cast<int>(kind);
    EXPECT_GE(inside, 2);
    EXPECT_LE(inside, 20);
  }
}

TEST(PlanCalls, GradientsAreCalls) {
  Executor executor({.threads = 1});
  int calls = 0;
  for (uint32_t seed = 1; seed <= 6; ++seed) {
    const LayeredProgram net(
        {.kind = Kind::kTraining, .layers = 8, .width = 128, .rows = 96, .seed = seed});
    calls += CallsOf(net, executor, {.outline = true}).first;
  }
  EXPECT_GE(calls, 48);
}

// Programs of random layers, of which one may be odd, with several shapes one after another.
TEST(PlanCalls, RandomPrograms) {
  int called = 0;
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    const Kind kind = seed % 3 == 0 ? Kind::kTraining : Kind::kRandom;
    const int layers = 3 + static_cast<int>(seed * 7 % 11);
    const LayeredProgram net({.kind = kind,
                              .layers = layers,
                              .width = 96,
                              .rows = 64,
                              .odd = seed % 4 == 1 ? layers / 2 : -1,
                              .open = seed % 2 == 0,
                              .seed = seed});
    Executor executor({.threads = 1 + static_cast<int>(seed % 2)});
    CompileOptions options{.opt_level = static_cast<int>(seed % 3)};
    for (const int64_t rows : {64, 80}) {
      if (rows != 64 && seed % 2 != 0) continue;
      const std::vector<Feed> feeds = {{"x", RandomF32({rows, 96}, seed)}};
      options.outline = false;
      const auto expected = Outcome(net, executor, options, feeds);
      options.outline = true;
      EXPECT_EQ(Outcome(net, executor, options, feeds), expected);
    }
    called += CallsOf(net, executor, options).first > 0;
  }
  EXPECT_GE(called, 20);
}

// Blocks that do little are put back: a call would cost more than it saves.
TEST(PlanCalls, SmallLayersAreNoCalls) {
  const LayeredProgram net({.kind = Kind::kMlp, .layers = 12, .width = 4, .rows = 2});
  Executor executor({.threads = 1});
  EXPECT_EQ(CallsOf(net, executor, {.outline = true}), std::pair(0, 0));
  EXPECT_EQ(Outcome(net, executor, {.outline = true}), Outcome(net, executor, {}));
}

TEST(PlanCalls, RunsMayShareAPlan) {
  const LayeredProgram net({.kind = Kind::kTransformer, .layers = 8});
  Executor executor({.threads = 2});
  const CompiledProgram compiled =
      MustCompile(executor, net.program(), net.NewScope(), {.outline = true});
  const std::string expected = Bits(MustRun(executor, compiled, net.feeds())[0]);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int k = 0; k < 20; ++k)
        wrong += Bits(MustRun(executor, compiled, net.feeds())[0]) != expected;
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(PlanCalls, ParametersMayBeReplaced) {
  const LayeredProgram net({.kind = Kind::kMlp, .layers = 8, .width = 128, .rows = 64});
  Executor executor({.threads = 1});
  std::string bits[2][2];
  for (const bool outline : {false, true}) {
    const auto scope = net.NewScope();
    const CompiledProgram compiled =
        MustCompile(executor, net.program(), scope, {.outline = outline});
    bits[outline][0] = Bits(MustRun(executor, compiled, net.feeds())[0]);
    const std::string& name = "layer5.a.w";
    scope->Set(name, RandomF32(scope->Find(name)->tensor().shape(), 99));
    bits[outline][1] = Bits(MustRun(executor, compiled, net.feeds())[0]);
  }
  EXPECT_EQ(bits[1][0], bits[0][0]);
  EXPECT_EQ(bits[1][1], bits[0][1]);
  EXPECT_NE(bits[0][0], bits[0][1]);
}

// Fetched and kept values of a layer stay values of the program.
TEST(PlanCalls, ValuesOfLayersMayBeFetched) {
  const LayeredProgram net({.kind = Kind::kMlp, .layers = 30, .width = 128, .rows = 64});
  Executor executor({.threads = 1});
  for (const char* inner : {"v3", "v100", "v150", "v205"}) {
    CompileOptions options;
    for (const ir::Port& f : net.program().ir().fetches)
      options.fetches = {net.program().ir().vars[f.var].name, inner};
    const auto expected = Outcome(net, executor, options);
    options.outline = true;
    EXPECT_EQ(Outcome(net, executor, options), expected) << inner;
  }
}

// The operands of a call and what its block makes do not share memory: a few values more are there.
TEST(PlanCalls, TemporariesTakeLittleMoreMemory) {
  Executor executor({.threads = 1});
  for (const Kind kind : {Kind::kTransformer, Kind::kMlp, Kind::kConv}) {
    const LayeredProgram net({.kind = kind, .layers = 12, .rows = 16});
    size_t bytes[2];
    for (const bool outline : {false, true}) {
      auto plan = executor.Prepare(
          MustCompile(executor, net.program(), net.NewScope(), {.outline = outline}), net.feeds());
      ASSERT_TRUE(plan.ok());
      bytes[outline] = plan->arena_bytes;
    }
    EXPECT_LE(bytes[1], 2 * bytes[0]) << static_cast<int>(kind);
  }
}

}  // namespace
}  // namespace heddle::testing
