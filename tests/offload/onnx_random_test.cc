// Random operators and random programs as ONNX: the same numbers.
#include <gtest/gtest.h>

#include <iostream>
#include <map>

#include "heddle/engine.h"
#include "tests/models/compare.h"
#include "tests/offload/onnx_round_trip.h"
#include "tests/offload/random_operator.h"
#include "tests/offload/random_targets.h"
#include "tests/support/net_program.h"

namespace heddle::testing {
namespace {

TEST(RandomOnnx, OfOperatorsGivesTheSameNumbers) {
  Executor executor({.threads = 1, .poison = true});
  std::map<std::string, int> written, refused;
  int ran = 0;
  for (uint32_t seed = 0; seed < 8000; ++seed) {
    const RandomOperator random(seed);
    const auto program = random.Build();
    if (!program.ok()) continue;
    for (int open = 0; open < (random.HasElements() ? 3 : 1); ++open) {
      const Program declared = open == 0 ? *program : Opened(*program, open == 1);
      const RoundTrip trip = TryRoundTrip(executor, declared, random.NewScope(), random.feeds());
      ran += trip.ran ? 1 : 0;
      if (!trip.ran) continue;
      if (!trip.refused.empty()) {
        ++refused[trip.refused.substr(0, 80)];
        continue;
      }
      ++written[random.type()];
      EXPECT_EQ(trip.wrong, "") << "seed " << seed << ", " << random.type() << ", open " << open;
    }
  }
  int all = 0;
  for (const auto& [type, count] : written) all += count;
  std::cout << all << " of " << ran << " that run are written, of " << written.size()
            << " operators\n";
  for (const auto& [why, count] : refused)
    if (count > 40) std::cout << count << ": " << why << "\n";
  EXPECT_GT(all, ran / 2);
  EXPECT_GT(written.size(), 120u);
}

// Groups of networks, on an engine that reads nothing but ONNX.
TEST(RandomOnnx, OfGroupsGivesTheSameNumbers) {
  const auto engine = Engine::Load(HEDDLE_WORDS_ENGINE);
  ASSERT_TRUE(engine.ok()) << engine.status().ToString();
  Executor executor({.threads = 1, .poison = true});
  int taken = 0, operators = 0;
  std::map<std::string, int> reasons;
  for (uint32_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const NetProgram net(seed, 25);
    const Program program = net.Build();
    RandomTargets random(seed);
    const auto target = HardwareTarget::Parse(random.For(program, "a"), "target");
    ASSERT_TRUE(target.ok()) << target.status().ToString();
    std::shared_ptr<Scope> scope = net.NewScope();
    const auto offloaded =
        Offload({program, scope}, {{*target, *engine}}, {.compile = {.opt_level = 0}});
    ASSERT_TRUE(offloaded.ok()) << offloaded.status().ToString();
    const auto alone = executor.Compile(program, net.NewScope(), {.opt_level = 0});
    const auto with = executor.Compile(offloaded->model, {.opt_level = 0});
    ASSERT_TRUE(alone.ok() && with.ok()) << with.status().ToString();
    const auto want = executor.RunValues(*alone, net.feeds());
    const auto got = executor.RunValues(*with, net.feeds());
    SCOPED_TRACE(offloaded->report.ToString());
    ASSERT_EQ(want.ok(), got.ok()) << got.status().ToString();
    if (!want.ok()) continue;
    for (size_t k = 0; k < want->size(); ++k)
      if ((*want)[k].is_tensor()) {
        ASSERT_TRUE(Close((*got)[k].tensor(), (*want)[k].tensor(), 1e-3, 1e-3)) << "output " << k;
      }
    for (const OffloadedGroup& group : offloaded->report.groups) {
      taken += group.taken ? 1 : 0;
      if (group.taken) operators += static_cast<int>(group.operators.size());
      if (!group.taken) ++reasons[group.reason];
    }
  }
  std::cout << taken << " groups with " << operators << " operators\n";
  for (const auto& [why, count] : reasons) std::cout << count << " stay: " << why << "\n";
  EXPECT_GT(taken, 200);
  EXPECT_GT(operators, 600);
}

}  // namespace
}  // namespace heddle::testing
