// Work ends at any look, whatever it does: reading a program, optimising it, planning, running, in
// every schedule and at every level. The error is the one that was asked for, everything is as it
// was before, and the same work afterwards gives what it gives where nothing ended it.
// HEDDLE_ENDS=<n> ends n pieces of work instead of 600, HEDDLE_TEST_SEED=<n> others than usual.
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "passes/ir_text.h"
#include "tests/support/ends_at_look.h"
#include "tests/support/files.h"
#include "tests/support/mixed_program.h"

namespace heddle::testing {
namespace {

enum Phase { kParse, kCompile, kPlan, kRun, kPhases };
constexpr const char* kPhaseNames[kPhases] = {"reading", "compiling", "planning", "running"};

// A random program and the way it is run.
class Subject {
 public:
  explicit Subject(uint32_t seed)
      : mixed_(seed, 4 + static_cast<int>(seed % 23)),
        executor_({.threads = 1 + static_cast<int>(seed / 3 % 2), .poison = true}) {
    constexpr Schedule kSchedules[] = {Schedule::kSerial, Schedule::kParallel, Schedule::kLanes,
                                       Schedule::kAuto};
    options_.opt_level = static_cast<int>(seed % 3);
    options_.schedule = kSchedules[seed / 6 % std::size(kSchedules)];
    Reset();
  }

  // Does one piece of the work; those before it are done. With `ends`, under its limits.
  Status Do(Phase phase, EndsAtLook* ends) {
    std::optional<LimitScope> limits;
    if (ends != nullptr && phase != kRun) limits.emplace(ends->limits());
    switch (phase) {
      case kParse: {
        auto program = Program::Parse(mixed_.bytes(), "mixed");
        if (program.ok()) program_ = *std::move(program);
        return program.status();
      }
      case kCompile: {
        auto compiled = executor_.Compile(*program_, scope_, options_);
        if (compiled.ok()) compiled_ = *std::move(compiled);
        return compiled.status();
      }
      case kPlan:
        return executor_.Prepare(*compiled_, mixed_.Feeds()).status();
      default:
        return Run(ends);
    }
  }
  // Parameters as they are at first: a run that has ended may have updated some.
  void Reset() {
    const auto fresh = mixed_.NewScope();
    for (const std::string& name : fresh->Names()) scope_->Set(name, *fresh->Find(name));
    generator_ = Generator(11);
  }
  // What the last run gave, and left in the scope.
  const std::vector<Value>& results() const { return results_; }
  std::string Text() const { return program_ ? ir::ToText(program_->ir()) : ""; }

 private:
  Status Run(EndsAtLook* ends) {
    RunOptions run{.generator = &generator_};
    if (ends != nullptr) {
      run.deadline = ends->deadline();
      run.stop = ends->stop();
      run.host = ends->host();
    }
    results_.clear();
    auto out = executor_.RunValues(*compiled_, mixed_.Feeds(), run);
    if (!out.ok()) return out.status();
    results_ = *std::move(out);
    for (const std::string& name : mixed_.parameters())
      results_.emplace_back(scope_->Find(name)->tensor().Clone());
    return Status::Ok();
  }

  const MixedProgram mixed_;
  Executor executor_;
  CompileOptions options_;
  std::shared_ptr<Scope> scope_ = std::make_shared<Scope>();
  Generator generator_{11};
  std::optional<Program> program_;
  std::optional<CompiledProgram> compiled_;
  std::vector<Value> results_;
};

bool SameResults(const std::vector<Value>& a, const std::vector<Value>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!SameBits(a[i], b[i])) return false;
  return true;
}

TEST(EndsAnywhere, WorkEndsAtAnyLookAndLeavesNoTrace) {
  const int count = Repeats("HEDDLE_ENDS", 600);
  const auto first = static_cast<uint32_t>(Repeats("HEDDLE_TEST_SEED", 1)) * 1000003u;
  std::array<int, kPhases> ended{};
  std::array<int, EndsAtLook::kWays> begun{}, left{};
  for (uint32_t k = 0; k < static_cast<uint32_t>(count) && !::testing::Test::HasFailure(); ++k) {
    const uint32_t seed = first + k;
    std::mt19937 random(seed);
    Subject plain(seed);
    std::array<int64_t, kPhases> looks{};
    for (int p = 0; p < kPhases; ++p) {
      EndsAtLook counts(0);
      const Status status = plain.Do(static_cast<Phase>(p), &counts);
      ASSERT_TRUE(status.ok()) << "seed " << seed << ": " << status.ToString();
      looks[static_cast<size_t>(p)] = counts.looks();
    }
    // Without passes there may be nothing to compile.
    auto phase = static_cast<Phase>(random() % kPhases);
    if (looks[phase] == 0) phase = kRun;
    const int64_t all = looks[phase];
    if (all == 0) continue;  // the passes have computed everything
    const int64_t at = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(all));
    // Deadlines are waited for.
    const auto way = random() % 6 == 0   ? EndsAtLook::kDeadline
                     : random() % 3 == 0 ? EndsAtLook::kStop
                                         : EndsAtLook::kHost;
    Subject subject(seed);
    for (int p = 0; p < kPhases; ++p) {
      if (p == phase) {
        EndsAtLook ends(at, way);
        const Status status = subject.Do(phase, &ends);
        EXPECT_TRUE(ends.EndsWell(status))
            << "seed " << seed << ", " << kPhaseNames[p] << " ended at look " << at << " of " << all
            << ", way " << way << ", after " << ends.looks() << " looks: " << status.ToString()
            << "\n"
            << subject.Text();
        ended[phase] += !status.ok();
        ++begun[way];
        left[way] += !status.ok();
        if (phase == kRun) subject.Reset();
      }
      const Status again = subject.Do(static_cast<Phase>(p), nullptr);
      EXPECT_TRUE(again.ok()) << "seed " << seed << ", " << kPhaseNames[p] << " after "
                              << kPhaseNames[phase] << " had ended: " << again.ToString();
      if (!again.ok()) break;
    }
    EXPECT_TRUE(SameResults(subject.results(), plain.results()))
        << "seed " << seed << ", after " << kPhaseNames[phase] << " had ended at look " << at
        << " of " << all << "\n"
        << subject.Text();
  }
  for (int p = 0; p < kPhases; ++p)
    EXPECT_GT(ended[static_cast<size_t>(p)], count / 8) << kPhaseNames[p];
  // A timer may be late, and the last look may be that of another thread.
  for (int way = 0; way < EndsAtLook::kWays; ++way)
    EXPECT_GT(2 * left[static_cast<size_t>(way)], begun[static_cast<size_t>(way)]) << "way " << way;
}

}  // namespace
}  // namespace heddle::testing
