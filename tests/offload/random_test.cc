// Random programs whose groups go to the reference engine, or to heddle's own kernels group by
// group: the same bits as heddle alone, run after run.
#include <gtest/gtest.h>

#include "heddle/engine.h"
#include "tests/models/compare.h"
#include "tests/offload/random_targets.h"
#include "tests/support/mixed_program.h"
#include "tests/support/net_program.h"
#include "tests/support/random_program.h"

namespace heddle::testing {
namespace {

struct Subject {
  Program program;
  std::vector<heddle::Feed> feeds;
  std::vector<std::string> parameters;  // that the program may write
  std::function<std::shared_ptr<Scope>()> scope;
};

// The outputs of some runs one after another, and the parameters behind them.
Result<std::vector<Value>> Outcome(const Subject& subject, const Program& program,
                                   std::shared_ptr<Scope> scope, int threads) {
  Executor executor({.threads = threads, .poison = true});
  HEDDLE_ASSIGN_OR_RETURN(const CompiledProgram compiled,
                          executor.Compile(program, scope, {.opt_level = 0}));
  std::vector<Value> all;
  for (int run = 0; run < 3; ++run) {
    HEDDLE_ASSIGN_OR_RETURN(const auto values, executor.RunValues(compiled, subject.feeds));
    for (const Value& value : values)
      all.push_back(value.is_tensor() && value.tensor().initialized()
                        ? Value(value.tensor().Clone())
                        : value);
  }
  for (const std::string& name : subject.parameters)
    if (const Value* value = scope->Find(name); value != nullptr) all.push_back(*value);
  return all;
}

class Comparison {
 public:
  explicit Comparison(const EngineOptions& options = {},
                      const std::string& path = HEDDLE_REFERENCE_ENGINE) {
    auto engine = Engine::Load(path, options);
    EXPECT_TRUE(engine.ok()) << engine.status().ToString();
    if (engine.ok()) engine_ = *engine;
  }

  void Run(const Subject& subject, uint32_t seed) {
    RandomTargets random(seed);
    const int threads = random.Below(2) + 1;
    const auto alone = Outcome(subject, subject.program, subject.scope(), threads);
    std::vector<Offloader> offloaders;
    for (const char* name : {"a", "b"}) {
      const std::string text = random.For(subject.program, name);
      auto target = HardwareTarget::Parse(text, "target");
      ASSERT_TRUE(target.ok()) << target.status().ToString();
      offloaders.push_back({*target, std::nullopt});
      if (random.Below(4) > 0) offloaders.back().engine = engine_;
      if (random.Below(2) == 0) break;
    }
    std::shared_ptr<Scope> scope = subject.scope();
    const auto offloaded =
        Offload({subject.program, scope}, offloaders, {.compile = {.opt_level = 0}});
    ASSERT_TRUE(offloaded.ok()) << offloaded.status().ToString();
    const auto with = Outcome(subject, offloaded->model.program, scope, threads);
    SCOPED_TRACE(offloaded->report.ToString());
    ASSERT_EQ(alone.ok(), with.ok()) << (alone.ok() ? with.status() : alone.status()).ToString();
    if (!alone.ok()) return;
    ASSERT_EQ(alone->size(), with->size());
    for (size_t k = 0; k < alone->size(); ++k)
      ASSERT_TRUE(SameBits((*alone)[k], (*with)[k])) << "value " << k;
    for (const OffloadedGroup& group : offloaded->report.groups)
      if (group.taken)
        ++(group.engine.empty() ? emulated_ : on_engine_);
      else
        ++reasons_[group.reason];
  }

  void ExpectMany(int on_engine, int emulated) const {
    EXPECT_GT(on_engine_, on_engine);
    EXPECT_GT(emulated_, emulated);
    for (const auto& [reason, count] : reasons_)
      std::cout << count << " groups stay: " << reason << "\n";
    std::cout << on_engine_ << " groups on the engine, " << emulated_ << " without one\n";
  }

 private:
  std::optional<Engine> engine_;
  int on_engine_ = 0, emulated_ = 0;
  std::map<std::string, int> reasons_;
};

constexpr uint32_t kSeeds = 150;

TEST(RandomOffload, OfNetworksGivesTheSameBits) {
  Comparison comparison;
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const NetProgram net(seed, 25);
    comparison.Run({net.Build(), net.feeds(), net.updated(), [&] { return net.NewScope(); }}, seed);
    if (::testing::Test::HasFatalFailure()) return;
  }
  comparison.ExpectMany(300, 100);
}

TEST(RandomOffload, OfVariablesThatAreWrittenAgainGivesTheSameBits) {
  Comparison comparison;
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const RandomProgram random(seed, {});
    auto program = Program::Parse(random.bytes());
    ASSERT_TRUE(program.ok()) << program.status().ToString();
    comparison.Run(
        {*program, random.Feeds(), random.parameters(), [&] { return random.NewScope(); }}, seed);
    if (::testing::Test::HasFatalFailure()) return;
  }
  comparison.ExpectMany(300, 100);
}

TEST(RandomOffload, OfMixedProgramsGivesTheSameBits) {
  Comparison comparison;
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const MixedProgram mixed(seed);
    auto program = Program::Parse(mixed.bytes());
    ASSERT_TRUE(program.ok()) << program.status().ToString();
    comparison.Run({*program, mixed.Feeds(), mixed.parameters(), [&] { return mixed.NewScope(); }},
                   seed);
    if (::testing::Test::HasFatalFailure()) return;
  }
  comparison.ExpectMany(20, 10);
}

// Passes see the operators of groups and leave them alone.
TEST(RandomOffload, OfOptimisedProgramsGivesNearlyTheSame) {
  const auto engine = Engine::Load(HEDDLE_REFERENCE_ENGINE);
  ASSERT_TRUE(engine.ok()) << engine.status().ToString();
  for (uint32_t seed = 0; seed < kSeeds / 3; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const NetProgram net(3000 + seed, 20);
    RandomTargets random(seed);
    const Program program = net.Build();
    const auto target = HardwareTarget::Parse(random.For(program, "a"), "target");
    ASSERT_TRUE(target.ok()) << target.status().ToString();
    std::shared_ptr<Scope> scope = net.NewScope();
    const auto offloaded = Offload({program, scope}, {{*target, *engine}});
    ASSERT_TRUE(offloaded.ok()) << offloaded.status().ToString();
    Executor executor({.threads = 2});
    const auto alone = executor.Compile(program, net.NewScope(), {.opt_level = 0});
    const auto with = executor.Compile(offloaded->model, {.passes = {.check_unchanged = true}});
    ASSERT_TRUE(alone.ok() && with.ok()) << with.status().ToString();
    const auto expected = executor.RunValues(*alone, net.feeds());
    const auto values = executor.RunValues(*with, net.feeds());
    ASSERT_EQ(expected.ok(), values.ok()) << values.status().ToString();
    if (!values.ok()) continue;
    for (size_t k = 0; k < values->size(); ++k) {
      if (!(*expected)[k].is_tensor()) continue;
      ASSERT_TRUE(Close((*values)[k].tensor(), (*expected)[k].tensor(), 1e-3, 1e-3));
    }
  }
}

// Calls with a limit are made by threads of their own, on copies.
TEST(RandomOffload, WithALimitGivesTheSameBits) {
  Comparison comparison({.limit = std::chrono::minutes(1)});
  for (uint32_t seed = 0; seed < kSeeds / 5; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const NetProgram net(1000 + seed, 15);
    comparison.Run({net.Build(), net.feeds(), net.updated(), [&] { return net.NewScope(); }}, seed);
    if (::testing::Test::HasFatalFailure()) return;
  }
  comparison.ExpectMany(20, 5);
}

// ... and those to an engine in another process cross a socket and shared memory.
TEST(RandomOffload, ToAnotherProcessGivesTheSameBits) {
  Comparison comparison({.options = {{"library", HEDDLE_REFERENCE_ENGINE}, {"level", "0"}}},
                        HEDDLE_PROCESS_ENGINE);
  for (uint32_t seed = 0; seed < kSeeds / 5; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const NetProgram net(2000 + seed, 15);
    comparison.Run({net.Build(), net.feeds(), net.updated(), [&] { return net.NewScope(); }}, seed);
    if (::testing::Test::HasFatalFailure()) return;
  }
  comparison.ExpectMany(20, 5);
}

}  // namespace
}  // namespace heddle::testing
