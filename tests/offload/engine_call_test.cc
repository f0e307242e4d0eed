// Every call of an engine × every misbehaviour × in this process and in one of its own × both
// policies: one clear error, or heddle computes it and the report says why.
#include "offload/engine_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "heddle/engine.h"
#include "heddle/limits.h"
#include "tests/support/files.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using ::testing::HasSubstr;
using Policy = OffloadOptions::Policy;
using Clock = std::chrono::steady_clock;

// What messages say of a misbehaviour, in this process and in one of its own. Null: it is not
// tried, since it would end this process, or since nothing ends it.
struct Misbehaviour {
  const char* name;
  const char *here, *there;
};
constexpr const char* kCalls[] = {"open", "takes", "compile", "a group", "run", "save", "restore"};
constexpr Misbehaviour kMisbehaviours[] = {
    {"refuses", "not today", "not today"},
    {"fails", "the card is", "the card is"},
    {"fails silently", "the engine does not say why", "the engine does not say why"},
    {"fills the message", "xxx", "xxx"},
    {"answers 17", "status 17, which is none", "status 17, which is none"},
    {"stops", "though nothing asked it to", "though nothing asked it to"},
    {"throws", "threw in", "it threw a bolt"},
    {"throws a number", "threw something that is no std::exception",
     "threw something that is no std::exception"},
    {"has no memory", "has no memory left in", "it threw std::bad_alloc"},
    {"crashes", nullptr, "was ended by signal 6"},
    {"exits", nullptr, "has ended with status 5"},
    {"hangs", "has not answered", "has not answered"},
};

struct Case {
  std::string call;
  Misbehaviour how;
  bool process;
  Policy policy;

  std::string mode() const { return call + ": " + how.name; }
  const char* text() const { return process ? how.there : how.here; }
  bool hangs() const { return std::string(how.name) == "hangs"; }
  bool refuses() const { return std::string(how.name) == "refuses"; }
};

// Whether the case can be tried: an exception or crash in the middle of compile is one of the call,
// and only a run can be left behind in this process.
bool IsPossible(const Case& c) {
  if (c.call == "a group") {
    const std::string how = c.how.name;
    return how == "refuses" || how.starts_with("f") || how == "answers 17" || how == "stops";
  }
  if (c.hangs() && !c.process) return c.call == "run";
  return c.text() != nullptr;
}

// x -> relu -> tanh, of positive numbers, which relu leaves as they are: so does the engine.
Model SmallModel() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, 3});
  b.Unary("relu", "x", "a").Unary("tanh", "a", "y").Fetch("y");
  return {b.Build(), std::make_shared<Scope>()};
}
std::vector<heddle::Feed> Feeds() { return {{"x", F32({2, 3}, {1, 2, 3, 4, 5, 6})}}; }

HardwareTarget Target() {
  return *HardwareTarget::Parse(
      R"({"name": "t", "units": [{"name": "u", "ops": [{"type": "relu"}]}], "links": [],
          "start": ["u"]})",
      "t");
}

constexpr int kLimitMs = 300;  // a worker starts in some 20 ms

Result<Engine> Open(const Case& c, const std::string& mode) {
  EngineOptions options;
  if (c.hangs()) options.limit = std::chrono::milliseconds(kLimitMs);
  options.options = {{"mode", mode}};
  if (c.process) options.options.emplace_back("library", HEDDLE_FAULTY_ENGINE);
  return Engine::Load(c.process ? HEDDLE_PROCESS_ENGINE : HEDDLE_FAULTY_ENGINE, options);
}

std::string NameOf(const Case& c) {
  return std::string("engine faulty") + (c.process ? " (process)" : "");
}

void ExpectRight(const std::vector<Tensor>& out) {
  const Model model = SmallModel();
  Executor executor({.threads = 1});
  const auto want = MustRun(executor, MustCompile(executor, model.program, model.scope), Feeds());
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(Floats(out[0]), Floats(want[0]));
}

class EngineCalls : public ::testing::Test {
 protected:
  Result<OffloadedModel> OffloadTo(const Engine& engine, const Case& c, const std::string& cache) {
    OffloadOptions options;
    options.policy = c.policy;
    options.feeds = Feeds();
    options.executor.threads = 1;
    if (!cache.empty()) options.cache = EngineCache::OnDisk(cache);
    return Offload(SmallModel(), {{Target(), engine}}, options);
  }

  // Of a program that was offloaded: the run's result, and the report behind it.
  Result<std::vector<Tensor>> Run(const OffloadedModel& offloaded) {
    HEDDLE_ASSIGN_OR_RETURN(const auto compiled, executor_.Compile(offloaded.model));
    return executor_.Run(compiled, Feeds());
  }

  void Try(const Case& c) {
    const auto begin = Clock::now();
    if (c.call == "restore") return TryRestore(c);
    const auto engine = Open(c, c.mode());
    if (c.call == "open") return ExpectNoEngine(c, engine.status());
    ASSERT_TRUE(engine.ok()) << engine.status().ToString();
    const TempDir dir;
    const auto offloaded = OffloadTo(*engine, c, c.call == "save" ? dir / "c" : "");
    ASSERT_TRUE(offloaded.ok()) << offloaded.status().ToString();
    const auto out = Run(*offloaded);
    if (c.call == "run" && c.policy == Policy::kAlways && !c.refuses()) {
      ExpectOneError(c, out.status());
    } else {
      ASSERT_TRUE(out.ok()) << out.status().ToString();
      ExpectRight(*out);
    }
    ExpectReport(c, offloaded->report);
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5));
  }

  void ExpectNoEngine(const Case& c, const Status& status) {
    EXPECT_THAT(status.message(), HasSubstr(c.hangs() ? "engine process" : "faulty"));
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
    if (c.hangs()) {
      EXPECT_THAT(status.message(), HasSubstr("has not answered open within 300 ms"));
      EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
    } else {
      EXPECT_THAT(status.message(), HasSubstr(c.text()));
      EXPECT_EQ(status.code() == StatusCode::kInvalidArgument, c.refuses()) << status.ToString();
    }
  }

  void ExpectOneError(const Case& c, const Status& status) {
    EXPECT_THAT(status.message(), HasSubstr(c.text()));
    EXPECT_THAT(status.message(), HasSubstr(NameOf(c)));
    EXPECT_THAT(status.message(), HasSubstr("group_0 on faulty"));
    ASSERT_TRUE(status.location()) << status.ToString();
    EXPECT_EQ(status.location()->op_type, "offload_group");
    EXPECT_NE(status.code(), StatusCode::kCancelled);
    EXPECT_NE(status.code(), StatusCode::kOk);
  }

  // Why heddle computes it, in the place for that.
  void ExpectReport(const Case& c, const OffloadReport& report) {
    const std::string all = report.ToString();
    SCOPED_TRACE(all);
    std::string reason;
    if (c.call == "takes") {
      EXPECT_TRUE(report.groups.empty());
      ASSERT_EQ(report.refusals.size(), 1u);
      EXPECT_EQ(report.refusals[0].operators, std::vector<std::string>{"relu"});
      reason = report.refusals[0].reason;
      EXPECT_THAT(all, HasSubstr("1 operator stays: " + reason));
    } else {
      ASSERT_EQ(report.groups.size(), 1u);
      const OffloadedGroup& group = report.groups[0];
      const bool compiles = c.call == "compile" || c.call == "a group";
      if (c.call == "save") {
        reason = report.cache_warning;
        if (c.refuses()) {
          EXPECT_EQ(reason, "");  // a module that cannot be saved is no fault
          return;
        }
      } else if (c.call == "run" && c.policy == Policy::kAlways) {
        EXPECT_TRUE(group.taken);
        reason = group.runs().reason;
        EXPECT_EQ(group.runs().runs, 1);
        EXPECT_EQ(group.runs().refused, c.refuses() ? 1 : 0);
        if (!c.refuses()) return;
        EXPECT_THAT(all, HasSubstr("; taken; refused 1 of 1 runs: " + reason));
      } else {
        EXPECT_FALSE(group.taken);
        EXPECT_TRUE(compiles || c.call == "run");
        reason = group.reason;
        EXPECT_THAT(all, HasSubstr("; stays: " + reason));
      }
    }
    EXPECT_THAT(reason, HasSubstr(NameOf(c)));
    EXPECT_THAT(reason, HasSubstr(c.text()));
    if (c.refuses() || (c.hangs() && c.call == "run")) return;
    EXPECT_THAT(reason, HasSubstr(c.call == "a group" ? "compile" : c.call));
  }

  // Saved by an engine that behaves but for that; then it is compiled.
  void TryRestore(const Case& c) {
    const TempDir dir;
    for (int round = 0; round < 2; ++round) {
      const auto engine = Open(c, c.mode());
      ASSERT_TRUE(engine.ok()) << engine.status().ToString();
      const auto offloaded = OffloadTo(*engine, c, dir / "c");
      ASSERT_TRUE(offloaded.ok()) << offloaded.status().ToString();
      const OffloadReport& report = offloaded->report;
      SCOPED_TRACE(report.ToString());
      // One that does not answer is not asked to compile either.
      EXPECT_EQ(report.groups.at(0).cache, c.hangs() && round == 1 ? "" : "compiled");
      EXPECT_THAT(report.cache_warning, HasSubstr(round == 0 || c.refuses() ? "" : c.text()));
      EXPECT_EQ(report.cache_warning.empty(), round == 0 || c.refuses());
      const auto out = Run(*offloaded);
      ASSERT_TRUE(out.ok()) << out.status().ToString();
      ExpectRight(*out);
    }
  }

  Executor executor_{ExecutorOptions{.threads = 2}};
};

// Measuring takes most of a second where the engine goes on: two misbehaviours do then.
bool IsWorthIt(const Case& c) {
  const bool goes_on = c.call == "save" || c.call == "restore";
  return c.policy == Policy::kAlways || !goes_on;
}

TEST_F(EngineCalls, ThatMisbehaveAreOneErrorOrLeaveItToHeddle) {
  int tried = 0;
  for (const char* call : kCalls)
    for (const Misbehaviour& how : kMisbehaviours)
      for (const bool process : {false, true})
        for (const Policy policy : {Policy::kAlways, Policy::kMeasured}) {
          const Case c{call, how, process, policy};
          if (!IsPossible(c) || !IsWorthIt(c)) continue;
          SCOPED_TRACE(c.mode() + (process ? ", process" : "") +
                       (policy == Policy::kAlways ? ", always" : ", measured"));
          Try(c);
          ++tried;
          if (HasFatalFailure()) return;
        }
  EXPECT_GT(tried, 150);
}

// The deadline of what the engine is called for ends its call, in a process of its own any.
TEST_F(EngineCalls, EndAtADeadline) {
  for (const char* call : {"open", "takes", "compile", "run", "save"})
    for (const bool process : {false, true})
      for (const Policy policy : {Policy::kAlways, Policy::kMeasured}) {
        const std::string mode = std::string(call) + ": hangs";
        const bool is_run = std::string(call) == "run";
        if (!process && !is_run) continue;
        SCOPED_TRACE(mode + (process ? ", process" : "") +
                     (policy == Policy::kAlways ? ", always" : ", measured"));
        const Case c{call, {"behaves until its deadline", "", ""}, process, policy};
        const TempDir dir;
        const auto begin = Clock::now();
        const auto deadline = begin + std::chrono::milliseconds(kLimitMs);
        const Status status = [&]() -> Status {
          std::optional<LimitScope> limits(std::in_place, Limits{.deadline = deadline});
          HEDDLE_ASSIGN_OR_RETURN(const Engine engine, Open(c, mode));
          HEDDLE_ASSIGN_OR_RETURN(
              const OffloadedModel offloaded,
              OffloadTo(engine, c, std::string(call) == "save" ? dir / "c" : ""));
          limits.reset();
          HEDDLE_ASSIGN_OR_RETURN(const auto compiled, executor_.Compile(offloaded.model));
          return executor_.Run(compiled, Feeds(), {.deadline = deadline}).status();
        }();
        EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status.ToString();
        EXPECT_THAT(status.message(), HasSubstr("was not finished at its deadline"));
        EXPECT_LT(Clock::now() - begin, std::chrono::seconds(3));
      }
}

// An engine that does not end a run that was to end is not waited for by later ones.
TEST_F(EngineCalls, ThatDoNotEndWithTheirRunAreNotMadeAgain) {
  const Case c{"run", {"hangs", "", ""}, false, Policy::kAlways};
  const auto engine = Engine::Load(HEDDLE_FAULTY_ENGINE, {.options = {{"mode", c.mode()}}});
  ASSERT_TRUE(engine.ok()) << engine.status().ToString();
  const auto offloaded = OffloadTo(*engine, c, "");
  ASSERT_TRUE(offloaded.ok()) << offloaded.status().ToString();
  const auto compiled = executor_.Compile(offloaded->model);
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  const auto begin = Clock::now();
  const RunOptions soon = {.deadline = begin + std::chrono::milliseconds(50)};
  EXPECT_EQ(executor_.Run(*compiled, Feeds(), soon).status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(executor_.Run(*compiled, Feeds()).status().message(),
              HasSubstr("engine faulty has not ended a run that was to end"));
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(4));
}

}  // namespace
}  // namespace heddle::testing
