// Random programs with blocks, aliases, in-place chains, places and traits: every schedule, number
// of threads, order and place gives the bits of the serial run of the same level, and levels agree
// within what passes may change. HEDDLE_MIXED_PROGRAMS=<n> tries n programs instead of 40,
// HEDDLE_TEST_SEED=<n> others than usual.
#include "tests/support/mixed_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "heddle/device.h"
#include "heddle/pass.h"
#include "passes/ir_text.h"
#include "passes/storage_aliases.h"

namespace heddle::testing {
namespace {

struct Outcome {
  Status status;
  std::vector<Tensor> values;  // fetches and parameters, of two runs
};

struct Way {
  int threads;
  Schedule schedule;
  uint64_t shuffle_seed = 0;
  Reuse reuse = Reuse::kOrdered;
};
constexpr Way kWays[] = {
    {1, Schedule::kParallel}, {2, Schedule::kParallel},    {8, Schedule::kParallel},
    {2, Schedule::kLanes},    {8, Schedule::kLanes},       {2, Schedule::kAuto},
    {8, Schedule::kAuto},     {3, Schedule::kParallel, 7}, {2, Schedule::kLanes, 0, Reuse::kEdges}};

Outcome RunTwice(Executor& executor, const MixedProgram& mixed, const CompileOptions& options) {
  Outcome o;
  auto program = Program::Parse(mixed.bytes(), "mixed");
  o.status = program.status();
  if (!program.ok()) return o;
  const auto scope = mixed.NewScope();
  auto compiled = executor.Compile(*program, scope, options);
  o.status = compiled.status();
  if (!compiled.ok()) return o;
  Generator generator(11);
  for (int run = 0; run < 2; ++run) {
    auto out = executor.Run(*compiled, mixed.Feeds(), {.generator = &generator});
    o.status = out.status();
    if (!out.ok()) return o;
    o.values.insert(o.values.end(), out->begin(), out->end());
    for (const std::string& name : mixed.parameters())
      o.values.push_back(scope->Find(name)->tensor().Clone());
  }
  return o;
}

std::string TextOf(const MixedProgram& mixed) {
  auto program = Program::Parse(mixed.bytes(), "mixed");
  return program.ok() ? ir::ToText(program->ir()) : program.status().ToString();
}

// The first value whose bits differ; nothing when none does.
std::optional<size_t> Differs(const Outcome& a, const Outcome& b) {
  if (a.values.size() != b.values.size()) return std::min(a.values.size(), b.values.size());
  for (size_t i = 0; i < a.values.size(); ++i)
    if (!SameBits(Value(a.values[i]), Value(b.values[i]))) return i;
  return std::nullopt;
}

bool HasLanesInBlocks(Executor& executor, const MixedProgram& mixed,
                      const CompileOptions& options) {
  const auto compiled =
      MustCompile(executor, *Program::Parse(mixed.bytes(), "mixed"), mixed.NewScope(), options);
  const auto plan = executor.DescribePlan(compiled, mixed.Feeds());
  return plan.ok() && std::any_of(plan->instructions.begin(), plan->instructions.end(),
                                  [](const auto& in) { return in.block != 0 && in.lane >= 0; });
}

// What the passes of all levels may change a result by, relative to its largest element.
double Tolerance() {
  double all = 0;
  for (const PassInfo& pass : Passes()) all += pass.tolerance;
  return all;
}

bool IsClose(const Tensor& a, const Tensor& b, double tolerance) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  const std::vector<float> x = Floats(a), y = Floats(b);
  double largest = 1;
  for (float v : x) largest = std::max(largest, std::fabs(static_cast<double>(v)));
  for (size_t i = 0; i < x.size(); ++i)
    if (!(std::fabs(static_cast<double>(x[i]) - static_cast<double>(y[i])) <= tolerance * largest))
      return false;
  return true;
}

class MixedPrograms : public ::testing::Test {
 protected:
  static uint32_t Count() {
    const char* count = std::getenv("HEDDLE_MIXED_PROGRAMS");
    return count != nullptr ? static_cast<uint32_t>(std::atoi(count)) : 40;
  }
  static uint32_t First() {
    const char* seed = std::getenv("HEDDLE_TEST_SEED");
    return seed != nullptr ? static_cast<uint32_t>(std::atoi(seed)) * 10000 : 1;
  }
  // What the serial run of a level gives.
  static Outcome Serial(const MixedProgram& mixed, int level) {
    Executor executor({.threads = 1});
    return RunTwice(executor, mixed, {.opt_level = level, .schedule = Schedule::kSerial});
  }
};

TEST_F(MixedPrograms, GiveTheSameBitsInEverySchedule) {
  for (const Way& way : kWays) {
    Executor executor({.threads = way.threads, .plan_cache_capacity = 4, .poison = true});
    for (uint32_t seed = First(); seed < First() + Count(); ++seed) {
      const MixedProgram mixed(seed);
      for (const int level : {0, 2}) {
        SCOPED_TRACE("seed " + std::to_string(seed) + ", threads " + std::to_string(way.threads) +
                     ", schedule " + ScheduleName(way.schedule) + ", level " +
                     std::to_string(level));
        const Outcome want = Serial(mixed, level);
        ASSERT_TRUE(want.status.ok()) << want.status.ToString() << "\n" << TextOf(mixed);
        const Outcome got = RunTwice(executor, mixed,
                                     {.opt_level = level,
                                      .schedule = way.schedule,
                                      .reuse = way.reuse,
                                      .shuffle_seed = way.shuffle_seed});
        ASSERT_TRUE(got.status.ok()) << got.status.ToString();
        const std::optional<size_t> at = Differs(got, want);
        ASSERT_FALSE(at) << "value " << *at << " differs\n" << TextOf(mixed);
      }
    }
  }
}

// Programs with most of their work in one loop, whose body has lanes.
TEST_F(MixedPrograms, GiveTheSameBitsWhereLoopsHaveLanes) {
  constexpr int kScale = 12;
  for (const Way& way : {Way{2, Schedule::kLanes}, Way{8, Schedule::kLanes},
                         Way{2, Schedule::kLanes, 0, Reuse::kEdges}, Way{2, Schedule::kAuto}}) {
    Executor executor({.threads = way.threads, .plan_cache_capacity = 4, .poison = true});
    uint32_t with_lanes = 0;
    for (uint32_t seed = First(); seed < First() + Count(); ++seed) {
      const MixedProgram mixed(seed, 0, kScale);
      const int level = seed % 2 * 2;
      SCOPED_TRACE("seed " + std::to_string(seed) + ", threads " + std::to_string(way.threads) +
                   ", schedule " + ScheduleName(way.schedule) + ", level " + std::to_string(level));
      const CompileOptions options{
          .opt_level = level, .schedule = way.schedule, .reuse = way.reuse};
      const Outcome want = Serial(mixed, level);
      ASSERT_TRUE(want.status.ok()) << want.status.ToString() << "\n" << TextOf(mixed);
      const Outcome got = RunTwice(executor, mixed, options);
      ASSERT_TRUE(got.status.ok()) << got.status.ToString();
      const std::optional<size_t> at = Differs(got, want);
      ASSERT_FALSE(at) << "value " << *at << " differs\n" << TextOf(mixed);
      with_lanes += HasLanesInBlocks(executor, mixed, options);
    }
    EXPECT_TRUE(way.schedule != Schedule::kLanes || 3 * with_lanes > Count()) << with_lanes;
  }
}

TEST_F(MixedPrograms, GiveTheHostsBitsOnDevices) {
  const EmulatedOptions plain, lazy{.lazy = true},
      late{.kernel_delay_ns = 500, .jitter_ns = 20000, .seed = 3};
  for (const auto& [kind, threads] :
       {std::pair(plain, 1), std::pair(lazy, 8), std::pair(late, 2)}) {
    Executor executor({.threads = threads, .device = NewEmulatedDevice(kind), .poison = true});
    for (uint32_t seed = First(); seed < First() + Count(); ++seed) {
      const MixedProgram mixed(seed);
      const int level = seed % 2 * 2;
      SCOPED_TRACE("seed " + std::to_string(seed) + ", level " + std::to_string(level) +
                   ", threads " + std::to_string(threads));
      const Outcome want = Serial(mixed, level);
      ASSERT_TRUE(want.status.ok()) << want.status.ToString() << "\n" << TextOf(mixed);
      const Outcome got =
          RunTwice(executor, mixed,
                   {.opt_level = level,
                    .placement = seed % 3 == 0 ? Placement::kDevice : Placement::kRandom,
                    .placement_seed = seed});
      ASSERT_TRUE(got.status.ok()) << got.status.ToString() << "\n" << TextOf(mixed);
      const std::optional<size_t> at = Differs(got, want);
      ASSERT_FALSE(at) << "value " << *at << " differs\n" << TextOf(mixed);
    }
  }
}

TEST_F(MixedPrograms, AgreeAtEveryLevel) {
  for (uint32_t seed = First(); seed < First() + Count(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const MixedProgram mixed(seed);
    const Outcome plain = Serial(mixed, 0);
    ASSERT_TRUE(plain.status.ok()) << plain.status.ToString() << "\n" << TextOf(mixed);
    for (const int level : {1, 2}) {
      const Outcome got = Serial(mixed, level);
      ASSERT_TRUE(got.status.ok()) << got.status.ToString() << "\n" << TextOf(mixed);
      ASSERT_EQ(got.values.size(), plain.values.size());
      for (size_t i = 0; i < got.values.size(); ++i)
        ASSERT_TRUE(IsClose(plain.values[i], got.values[i], Tolerance()))
            << "value " << i << " of level " << level << "\n"
            << TextOf(mixed);
    }
  }
}

// The programs hold what they are meant to try.
TEST_F(MixedPrograms, HoldOperatorsOfEveryKind) {
  std::map<std::string, int> counts;
  int aliased = 0;  // programs that write to one name of a storage and read another one later
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    const MixedProgram mixed(seed);
    for (const auto& [type, count] : mixed.OpCounts()) counts[type] += count;
    const auto program = Program::Parse(mixed.bytes(), "mixed");
    ASSERT_TRUE(program.ok()) << program.status().ToString();
    const auto made = passes::MakeAliasesExplicit(program->impl(), {});
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    aliased += *made != program->impl();
  }
  EXPECT_GE(aliased, 12);
  for (const char* type : {"while",
                           "conditional_block",
                           "share_data",
                           "share_buffer",
                           "coalesce_tensor",
                           "reshape2",
                           "write_to_array",
                           "read_from_array",
                           "sgd",
                           "uniform_random",
                           "dropout",
                           "assert",
                           "split",
                           "matmul_v2",
                           "masked_select",
                           "conv2d",
                           "lookup_table_v2_grad",
                           "elementwise_add_grad",
                           "shape",
                           "memcpy",
                           "memcpy_h2d",
                           "memcpy_d2h"})
    EXPECT_GE(counts[type], 5) << type;
}

}  // namespace
}  // namespace heddle::testing
