// Random programs: every schedule and thread count gives exactly what a plain interpreter gives.
// HEDDLE_TEST_SEED=<n> tries other programs than usual.
#include "tests/support/random_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "executor/compiled.h"
#include "passes/ir_text.h"

namespace heddle::testing {
namespace {

struct Way {
  int threads;
  Schedule schedule;
  int opt_level;
  uint64_t shuffle_seed = 0;
  Reuse reuse = Reuse::kOrdered;
  bool dynamic_bodies = false;
};
constexpr Way kWays[] = {
    {1, Schedule::kSerial, 0},
    {1, Schedule::kParallel, 0},
    {2, Schedule::kParallel, 0},
    {8, Schedule::kParallel, 0},
    {2, Schedule::kAuto, 2},
    {8, Schedule::kParallel, 2},
    {2, Schedule::kLanes, 0},
    {3, Schedule::kLanes, 2},
    {8, Schedule::kLanes, 0},
    {2, Schedule::kParallel, 0, 1},
    {3, Schedule::kParallel, 2, 2},
    {2, Schedule::kLanes, 0, 0, Reuse::kEdges},
    {3, Schedule::kAuto, 2, 0, Reuse::kEdges},
    {2, Schedule::kAuto, 2, 0, Reuse::kNone},
    {2, Schedule::kParallel, 2, 0, Reuse::kNone},
    {1, Schedule::kSerial, 2},
    {1, Schedule::kSerial, 0, 0, Reuse::kOrdered, true},
    {2, Schedule::kParallel, 2, 0, Reuse::kOrdered, true},
};

// Runs twice with each way and compares fetches and parameters with the interpreter's.
void Check(Executor& executor, const Way& way, const RandomProgram& random) {
  auto program = Program::Parse(random.bytes(), "random");
  ASSERT_TRUE(program.ok()) << program.status().ToString();
  auto scope = random.NewScope();
  auto compiled = executor.Compile(*program, scope,
                                   {.opt_level = way.opt_level,
                                    .schedule = way.schedule,
                                    .reuse = way.reuse,
                                    .dynamic_bodies = way.dynamic_bodies,
                                    .shuffle_seed = way.shuffle_seed});
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  const std::vector<heddle::Feed> feeds = random.Feeds();
  RandomProgram::State state = random.start();
  for (int round = 0; round < 2; ++round) {
    for (const char* name : {"a", "b", "c"}) state[name] = random.start().at(name);
    ASSERT_TRUE(random.Execute(&state));
    auto out = executor.Run(*compiled, feeds);
    ASSERT_TRUE(out.ok()) << out.status().ToString() << "\n" << ir::ToText(program->ir());
    ASSERT_EQ(out->size(), random.fetches().size());
    for (size_t i = 0; i < out->size(); ++i) {
      const RandomProgram::Var& want = state[random.fetches()[i]];
      ASSERT_EQ((*out)[i].shape().ToString(), want.shape.ToString()) << random.fetches()[i];
      ASSERT_EQ(Floats((*out)[i]), want.values) << random.fetches()[i] << " in run " << round;
    }
    for (const std::string& name : random.parameters())
      ASSERT_EQ(Floats(scope->Find(name)->tensor()), state[name].values) << name;
    for (const char* name : {"a", "b", "c"}) {
      const auto fed = std::find_if(feeds.begin(), feeds.end(),
                                    [&](const heddle::Feed& f) { return f.name == name; });
      ASSERT_EQ(Floats(fed->value.tensor()), random.start().at(name).values) << "feed " << name;
    }
  }
}

void CheckMany(uint32_t first, int count, const RandomProgram::Options& options) {
  if (const char* seed = std::getenv("HEDDLE_TEST_SEED"))
    first += static_cast<uint32_t>(std::atoi(seed)) * 10000;
  for (const Way& way : kWays) {
    Executor executor({.threads = way.threads, .plan_cache_capacity = 4});
    for (int k = 0; k < count; ++k) {
      const uint32_t seed = first + static_cast<uint32_t>(k);
      const RandomProgram random(seed, options);
      RandomProgram::State state = random.start();
      if (!random.Execute(&state) || !random.Execute(&state)) continue;  // numbers too large
      SCOPED_TRACE("seed " + std::to_string(seed) + ", threads " + std::to_string(way.threads) +
                   ", schedule " + std::to_string(static_cast<int>(way.schedule)) + ", opt " +
                   std::to_string(way.opt_level));
      Check(executor, way, random);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(RandomPrograms, Flat) {
  CheckMany(1, 120, {.ops = 30, .control_flow = false, .parameters = false});
}
TEST(RandomPrograms, FlatWithParameters) {
  CheckMany(1000, 120, {.ops = 25, .control_flow = false});
}
TEST(RandomPrograms, WithBlocks) { CheckMany(2000, 150, {.ops = 12}); }
// Memory of iterations before is full of NaN where a body might take it for its own.
TEST(RandomPrograms, BodiesWithPoisonedMemory) {
  for (const Schedule schedule : {Schedule::kSerial, Schedule::kParallel, Schedule::kLanes}) {
    Executor executor({.threads = 2, .plan_cache_capacity = 4, .poison = true});
    for (uint32_t seed = 8000; seed < 8060; ++seed) {
      const RandomProgram random(seed, {.ops = 14});
      RandomProgram::State state = random.start();
      if (!random.Execute(&state) || !random.Execute(&state)) continue;  // numbers too large
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " + ScheduleName(schedule));
      for (const int opt_level : {0, 2}) Check(executor, {2, schedule, opt_level}, random);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}
// Ready instructions in thousands of orders, memory filled with NaN as soon as it is given back: a
// plan that gave it back too early, or that let two values share it, would show.
// HEDDLE_TEST_SHUFFLES says how many orders, 300 when it is not set.
TEST(RandomPrograms, ShuffledWithPoisonedMemory) {
  const char* wanted = std::getenv("HEDDLE_TEST_SHUFFLES");
  const int shuffles = wanted == nullptr ? 300 : std::atoi(wanted);
  constexpr int kOrders = 10;  // of one program
  Executor executor({.threads = 3, .plan_cache_capacity = 4, .poison = true});
  int done = 0;
  for (uint32_t seed = 5000; done < shuffles; ++seed) {
    const bool blocks = seed % 3 == 0;
    const RandomProgram random(seed, {.ops = blocks ? 12 : 40, .control_flow = blocks});
    RandomProgram::State state = random.start();
    if (!random.Execute(&state) || !random.Execute(&state)) continue;  // numbers too large
    for (uint64_t order = 1; order <= kOrders; ++order, ++done) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", order " + std::to_string(order));
      Check(executor, {3, Schedule::kParallel, order % 2 ? 0 : 2, order}, random);
      if (::testing::Test::HasFatalFailure()) return;
    }
    for (const Schedule schedule : {Schedule::kSerial, Schedule::kLanes}) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      Check(executor, {3, schedule, 0}, random);
      Check(executor, {3, schedule, 0, 0, Reuse::kEdges}, random);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

// Lets a value be written where one lies that is still to be read, as a planner would that took the
// latter's life for shorter than it is. False where no two values live at the same time.
bool EndALifeEarly(Plan& plan) {
  const auto n = static_cast<uint32_t>(plan.slots.size());
  std::vector<size_t> first(n, SIZE_MAX), last(n, 0);
  const auto& ins = plan.blocks[0].instructions;
  for (size_t at = 0; at < ins.size(); ++at) {
    const Instruction& in = ins[plan.lanes ? plan.serial_order[at] : at];
    for (const auto* list : {&in.op.in, &in.op.out})
      for (const uint32_t s : *list) {
        if (s == kNoSlot) continue;
        first[s] = std::min(first[s], at);
        last[s] = std::max(last[s], at);
      }
  }
  const auto lies = [&](uint32_t s) {
    return plan.slots[s].storage == Storage::kArena && first[s] < last[s] &&
           plan.slots[s].bytes() > 0;
  };
  for (uint32_t x = 0; x < n; ++x) {
    for (uint32_t y = 0; y < n; ++y) {
      if (!lies(x) || !lies(y) || first[x] >= first[y] || first[y] >= last[x]) continue;
      const size_t from = plan.slots[y].offset, to = plan.slots[x].offset;
      if (from == to || to + plan.slots[y].bytes() > plan.arena_bytes) continue;
      for (uint32_t s = 0; s < n; ++s)  // with what shares y's memory
        if (plan.slots[s].storage == Storage::kArena && plan.slots[s].offset == from &&
            first[s] >= first[y] && first[s] <= last[y])
          plan.slots[s].offset = to;
      return true;
    }
  }
  return false;
}

// The comparison itself: an early end of a life in the plan shows in most programs (not where what
// was overwritten is of no consequence).
TEST(RandomPrograms, AnEarlyEndOfALifeIsNoticed) {
  for (const Schedule schedule : {Schedule::kSerial, Schedule::kLanes}) {
#ifdef __SANITIZE_THREAD__
    if (schedule == Schedule::kLanes) continue;  // what is planted is a data race
#endif
    Executor executor({.threads = 2, .poison = true});
    int planted = 0, noticed = 0;
    for (uint32_t seed = 7000; seed < 7060; ++seed) {
      const RandomProgram random(seed, {.ops = 40, .control_flow = false, .parameters = false});
      RandomProgram::State state = random.start();
      if (!random.Execute(&state)) continue;  // numbers too large
      auto program = Program::Parse(random.bytes(), "random");
      ASSERT_TRUE(program.ok());
      auto compiled =
          executor.Compile(*program, random.NewScope(), {.opt_level = 0, .schedule = schedule});
      ASSERT_TRUE(compiled.ok());
      bool spoilt = false;
      compiled->impl()->spoil = [&](Plan& plan) { spoilt = EndALifeEarly(plan); };
      auto out = executor.Run(*compiled, random.Feeds());
      ASSERT_TRUE(out.ok()) << out.status().ToString();
      bool same = true;
      for (size_t i = 0; i < out->size(); ++i)
        same = same && Floats((*out)[i]) == state[random.fetches()[i]].values;
      EXPECT_TRUE(same || spoilt) << "seed " << seed;
      planted += spoilt;
      noticed += !same;
    }
    EXPECT_GE(planted, 20) << ScheduleName(schedule);
    EXPECT_GE(noticed, planted / 2) << ScheduleName(schedule);
  }
}

// A few long programs, without blocks.
TEST(RandomPrograms, ProgramsOfThreeHundredOperators) {
  CheckMany(3000, 6, {.ops = 300, .control_flow = false});
}

}  // namespace
}  // namespace heddle::testing
