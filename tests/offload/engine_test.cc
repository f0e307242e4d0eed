// Engines that refuse, fail, throw, hang or write what they should not: one clear error, or heddle
// computes it, and the executor goes on.
#include "heddle/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using ::testing::HasSubstr;

Result<Engine> FaultyEngine(const std::string& mode, int limit_ms = 0) {
  return Engine::Load(HEDDLE_FAULTY_ENGINE,
                      {.limit = std::chrono::milliseconds(limit_ms), .options = {{"mode", mode}}});
}

HardwareTarget TargetOf(const std::string& type, const std::string& limits = "") {
  return *HardwareTarget::Parse(R"({"name": "t", "units": [{"name": "u", "ops": [{"type": ")" +
                                    type + R"("}]}], "links": [["u", "u"]], "start": ["u"])" +
                                    limits + "}",
                                "t");
}

// x -> relu -> tanh -> relu, of positive numbers.
Model SmallModel(bool open = false) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {open ? -1 : 2, 3});
  b.Unary("relu", "x", "a").Unary("tanh", "a", "b").Unary("relu", "b", "y").Fetch("y");
  return {b.Build(), std::make_shared<Scope>()};
}
const std::vector<heddle::Feed>& Feeds() {
  static const auto* const feeds =
      new std::vector<heddle::Feed>{{"x", F32({2, 3}, {1, 2, 3, 4, 5, 6})}};
  return *feeds;
}

Result<OffloadedModel> OffloadTo(const std::string& mode, int limit_ms = 0) {
  HEDDLE_ASSIGN_OR_RETURN(const Engine engine, FaultyEngine(mode, limit_ms));
  return Offload(SmallModel(), {{TargetOf("relu"), engine}});
}

// The error of a run whose groups are on an engine of this mode, without its place.
Status ErrorOf(Executor& executor, const std::string& mode, const RunOptions& options = {},
               int limit_ms = 0) {
  const auto offloaded = OffloadTo(mode, limit_ms);
  EXPECT_TRUE(offloaded.ok()) << offloaded.status().ToString();
  EXPECT_TRUE(offloaded->report.groups[0].taken) << offloaded->report.ToString();
  const auto compiled = executor.Compile(offloaded->model);
  EXPECT_TRUE(compiled.ok()) << compiled.status().ToString();
  return executor.Run(*compiled, Feeds(), options).status();
}

// Heddle alone still computes with this executor.
void ExpectUsable(Executor& executor) {
  const auto compiled = executor.Compile(SmallModel());
  ASSERT_TRUE(compiled.ok());
  const auto out = executor.Run(*compiled, Feeds());
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ((*out)[0].shape(), Shape({2, 3}));
}

TEST(FaultyEngines, FailRunsWithOneErrorThatSaysWhy) {
  const std::pair<const char*, const char*> kModes[] = {
      {"run fails", "engine faulty failed in run: the card is hot"},
      {"says nothing of it", "engine faulty failed in run: the engine does not say why"},
      {"unknown status", "answered run with status 17, which is none"},
      {"fills the message", "engine faulty failed in run: xxx"},
      {"throws", "engine faulty threw in run: a bolt"},
      {"throws a number", "threw something that is no std::exception in run"},
      {"has no memory", "engine faulty has no memory left in run"},
      {"writes nothing", "engine faulty does not write output 0"},
      {"another shape", "writes float32 [3, 3] to output 0 (a), which is float32 [2, 3]"},
      {"a negative shape", "writes output 0 with a dimension of -4"},
      {"a huge shape", "writes output 0 with a dimension of 4611686018427387903"},
      {"another rank", "writes output 0 with 11 dimensions"},
      {"another dtype", "writes int64 [2, 3] to output 0 (a), which is float32 [2, 3]"},
      {"no dtype", "writes output 0 with element type 99, which is none"},
      {"another output", "writes output 1000 of 1"},
      {"twice", "writes output 0 twice"},
  };
  for (const int limit_ms : {0, 60000}) {
    Executor executor({.threads = 2});
    for (const auto& [mode, text] : kModes) {
      SCOPED_TRACE(mode);
      const Status status = ErrorOf(executor, mode, {}, limit_ms);
      EXPECT_THAT(status.message(), HasSubstr(text));
      ASSERT_TRUE(status.location()) << status.ToString();
      EXPECT_EQ(status.location()->op_type, "offload_group");
      ExpectUsable(executor);
    }
  }
}

TEST(FaultyEngines, ThatHangAreLeftBehindAndNotCalledAgain) {
  Executor executor({.threads = 2});
  const auto offloaded = OffloadTo("hangs", 50);
  ASSERT_TRUE(offloaded.ok()) << offloaded.status().ToString();
  const auto compiled = executor.Compile(offloaded->model);
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  for (int run = 0; run < 3; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    const Status status = executor.Run(*compiled, Feeds()).status();
    EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status.ToString();
    EXPECT_THAT(status.message(), HasSubstr("engine faulty has not answered within 50 ms"));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(1500));
    ExpectUsable(executor);
  }
}

TEST(FaultyEngines, HearOfTheRunsDeadline) {
  Executor executor({.threads = 2});
  for (const int limit_ms : {0, 60000}) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
    const Status status =
        ErrorOf(executor, "waits to be stopped", {.deadline = deadline}, limit_ms);
    EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status.ToString();
    ExpectUsable(executor);
  }
}

// A run leaves a call behind at its own deadline: the time of that call counts for the next run.
TEST(FaultyEngines, ThatARunHasLeftHoldUpNoFurtherOne) {
  Executor executor({.threads = 2});
  const auto offloaded = OffloadTo("hangs", 200);
  ASSERT_TRUE(offloaded.ok()) << offloaded.status().ToString();
  const auto compiled = executor.Compile(offloaded->model);
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  const auto begin = std::chrono::steady_clock::now();
  const Status left =
      executor.Run(*compiled, Feeds(), {.deadline = begin + std::chrono::milliseconds(20)})
          .status();
  EXPECT_EQ(left.code(), StatusCode::kDeadlineExceeded) << left.ToString();
  EXPECT_THAT(executor.Run(*compiled, Feeds()).status().message(),
              HasSubstr("has not answered within 200 ms"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(1500));
}

// Groups that heddle's kernels compute, for a target without an engine and as an engine: some
// seconds of work.
TEST(Groups, EndAtTheRunsDeadline) {
  constexpr int kSide = 2048, kSteps = 400;
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {kSide, kSide}).Unary("tanh", "x", "a0");
  for (int k = 0; k < kSteps; ++k)
    b.Unary("tanh", "a" + std::to_string(k), "a" + std::to_string(k + 1));
  b.Fetch("a" + std::to_string(kSteps));
  const Model model{b.Build(), std::make_shared<Scope>()};
  const auto reference = Engine::Load(HEDDLE_REFERENCE_ENGINE);
  ASSERT_TRUE(reference.ok()) << reference.status().ToString();
  const std::vector<Offloader> kWays[] = {{{TargetOf("tanh"), std::nullopt}},
                                          {{TargetOf("tanh"), *reference}}};
  for (const std::vector<Offloader>& way : kWays) {
    Executor executor({.threads = 2});
    const auto offloaded = Offload(model, way);
    ASSERT_TRUE(offloaded.ok()) << offloaded.status().ToString();
    const auto compiled = executor.Compile(offloaded->model);
    ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
    const std::vector<heddle::Feed> feeds = {{"x", RandomF32({kSide, kSide}, 1)}};
    const Status status = executor.Run(*compiled, feeds, {.deadline = deadline}).status();
    EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status.ToString();
  }
}

TEST(FaultyEngines, ThatCompileNothingLeaveItToHeddle) {
  const std::pair<const char*, const char*> kModes[] = {
      {"refuses", "engine faulty refuses the group: too many operators"},
      {"compile fails", "engine faulty failed in compile: the compiler is out of order"},
      {"compile throws", "engine faulty threw in compile: lost"},
      {"compile forgets", "engine faulty refuses the group: the engine does not say why"},
  };
  for (const auto& [mode, text] : kModes) {
    SCOPED_TRACE(mode);
    const auto offloaded = OffloadTo(mode);
    ASSERT_TRUE(offloaded.ok()) << offloaded.status().ToString();
    ASSERT_EQ(offloaded->report.groups.size(), 2u);
    for (const OffloadedGroup& group : offloaded->report.groups) {
      EXPECT_FALSE(group.taken);
      EXPECT_THAT(group.reason, HasSubstr(text));
    }
    Executor executor({.threads = 1});
    const auto compiled = executor.Compile(offloaded->model);
    ASSERT_TRUE(compiled.ok());
    EXPECT_TRUE(executor.Run(*compiled, Feeds()).ok());
  }
}

// This engine copies where heddle computes, so it can be seen who did.
TEST(FaultyEngines, ThatRefuseARunLeaveItToHeddle) {
  for (const int limit_ms : {0, 60000}) {
    const auto engine = FaultyEngine("refuses three", limit_ms);
    const auto offloaded = Offload(SmallModel(), {{TargetOf("tanh"), *engine}});
    ASSERT_TRUE(offloaded.ok()) << offloaded.status().ToString();
    Executor executor({.threads = 1});
    const auto compiled = MustCompile(executor, offloaded->model.program, offloaded->model.scope);
    for (const float first : {1.0f, 3.0f, 2.0f, 3.0f}) {
      const auto out = MustRun(executor, compiled, {{"x", F32({2, 3}, {first, 2, 3, 4, 5, 6})}});
      EXPECT_FLOAT_EQ(out[0].data<float>()[0], first == 3 ? std::tanh(first) : first);
    }
    // Trial runs that it refuses are none of its own.
    OffloadOptions options;
    options.policy = OffloadOptions::Policy::kMeasured;
    options.feeds = {{"x", F32({2, 3}, {3, 2, 3, 4, 5, 6})}};
    options.executor.threads = 1;
    const auto measured = Offload(SmallModel(), {{TargetOf("tanh"), *engine}}, options);
    ASSERT_TRUE(measured.ok()) << measured.status().ToString();
    EXPECT_FALSE(measured->report.groups.at(0).taken);
    EXPECT_THAT(measured->report.groups.at(0).reason, HasSubstr("three is too many"));
  }
}

TEST(FaultyEngines, AreAskedForEachOperator) {
  const auto engine = FaultyEngine("takes no tanh");
  ASSERT_TRUE(engine.ok());
  const auto target = HardwareTarget::Parse(
      R"({"name": "t", "units": [{"name": "u", "ops": [{"type": "relu"}, {"type": "tanh"}]}],
          "links": [["u", "u"]], "start": ["u"]})",
      "t");
  const auto offloaded = Offload(SmallModel(), {{*target, *engine}});
  ASSERT_TRUE(offloaded.ok()) << offloaded.status().ToString();
  // The two relus are groups of their own then.
  ASSERT_EQ(offloaded->report.groups.size(), 2u) << offloaded->report.ToString();
  for (const OffloadedGroup& group : offloaded->report.groups) {
    EXPECT_TRUE(group.taken) << group.reason;
    EXPECT_EQ(group.operators, std::vector<std::string>{"relu"});
  }
  ASSERT_EQ(offloaded->report.refusals.size(), 1u);
  EXPECT_THAT(offloaded->report.ToString(),
              HasSubstr("1 operator stays: engine faulty refuses an operator: there is no table"));
}

TEST(FaultyEngines, AreNotTakenWhereThePolicyMeasures) {
  for (const char* mode : {"run fails", "throws", "another shape", "writes nothing"}) {
    SCOPED_TRACE(mode);
    const auto engine = FaultyEngine(mode);
    OffloadOptions options;
    options.policy = OffloadOptions::Policy::kMeasured;
    options.feeds = Feeds();
    options.executor.threads = 1;
    const auto offloaded = Offload(SmallModel(), {{TargetOf("relu"), *engine}}, options);
    ASSERT_TRUE(offloaded.ok()) << offloaded.status().ToString();
    for (const OffloadedGroup& group : offloaded->report.groups) {
      EXPECT_FALSE(group.taken);
      EXPECT_THAT(group.reason, HasSubstr("engine faulty"));
    }
  }
}

// The first 200 calls, which are those of the trial by group, succeed.
TEST(FaultyEngines, ThatFailLateAreNotTakenEither) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {1 << 12});
  std::string last = "x";
  for (int k = 0; k < 30; ++k) {
    const std::string next = "t" + std::to_string(k);
    b.Unary("tanh", last, next);
    last = next;
  }
  b.Fetch(last);
  const auto engine = FaultyEngine("fails late");
  OffloadOptions options;
  options.policy = OffloadOptions::Policy::kMeasured;
  options.feeds = {{"x", RandomF32({1 << 12}, 1)}};
  options.executor.threads = 1;
  const auto offloaded =
      Offload({b.Build(), std::make_shared<Scope>()}, {{TargetOf("tanh"), *engine}}, options);
  ASSERT_TRUE(offloaded.ok()) << offloaded.status().ToString();
  ASSERT_EQ(offloaded->report.groups.size(), 1u);
  EXPECT_FALSE(offloaded->report.groups[0].taken) << offloaded->report.ToString();
  EXPECT_THAT(offloaded->report.groups[0].reason, HasSubstr("the card is old"));
  EXPECT_THAT(offloaded->report.decision, HasSubstr("failed while the whole was measured"));
}

// This engine only copies, which is faster than what heddle computes, and wrong; where it sleeps
// first, it is slower.
TEST(MeasuredEngines, AreTakenWhereTheyAreFaster) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {1 << 20});
  std::string last = "x";
  for (int k = 0; k < 30; ++k) {
    const std::string next = "t" + std::to_string(k);
    b.Unary("tanh", last, next);
    last = next;
  }
  b.Fetch(last);
  const Model model{b.Build(), std::make_shared<Scope>()};
  OffloadOptions options;
  options.policy = OffloadOptions::Policy::kMeasured;
  options.feeds = {{"x", RandomF32({1 << 20}, 1)}};
  options.executor.threads = 1;
  for (const bool slow : {false, true}) {
    const auto engine = FaultyEngine(slow ? "sleeps" : "");
    const auto offloaded = Offload(model, {{TargetOf("tanh"), *engine}}, options);
    ASSERT_TRUE(offloaded.ok()) << offloaded.status().ToString();
    const OffloadReport& report = offloaded->report;
    SCOPED_TRACE(report.ToString());
    ASSERT_EQ(report.groups.size(), 1u);
    const OffloadedGroup& group = report.groups[0];
    EXPECT_EQ(group.taken, !slow);
    EXPECT_EQ(group.engine_ms < group.host_ms, !slow);
    EXPECT_EQ(report.offloaded_ms > 0, !slow);
    EXPECT_LE(report.offloaded_ms, report.alone_ms);
    EXPECT_THAT(report.decision,
                HasSubstr(slow ? "none is faster" : "the engines' groups are taken"));
    EXPECT_EQ(group.reason, slow ? "heddle is faster" : "");
  }
}

// ---- what is loaded ----------------------------------------------------------------------------

TEST(Engines, ThatAreNoneAreRefusedByName) {
  EXPECT_THAT(Engine::Load("libengine.so").status().message(),
              HasSubstr("name the engine's library with its folder, as in ./libengine.so"));
  EXPECT_THAT(Engine::Load("/nowhere/libengine.so").status().ToString(),
              HasSubstr("NOT_FOUND: /nowhere/libengine.so: there is no such engine"));
  EXPECT_THAT(Engine::Load(__FILE__[0] == '/' ? __FILE__ : HEDDLE_SOURCE_DIR "/README.md")
                  .status()
                  .message(),
              HasSubstr("cannot be loaded as an engine"));
  EXPECT_THAT(Engine::Load(HEDDLE_NO_ENGINE).status().message(),
              HasSubstr("is no engine: it exports no function heddle_engine_get"));
  EXPECT_THAT(FaultyEngine("open fails").status().message(),
              HasSubstr("engine faulty failed in open: there is no such card"));
  EXPECT_THAT(
      Engine::Load(HEDDLE_REFERENCE_ENGINE, {.options = {{"speed", "high"}}}).status().message(),
      HasSubstr("there is one option, level, from 0 to 2, and not speed=high"));
}

int NoOpen(const heddle_engine_settings*, void**, char*, size_t) { return HEDDLE_ENGINE_OK; }
int NoCompile(void*, const heddle_engine_group* const*, heddle_engine_compiled* const*, size_t,
              char*, size_t) {
  return HEDDLE_ENGINE_OK;
}
int NoRun(void*, const heddle_engine_run*, char*, size_t) { return HEDDLE_ENGINE_OK; }
void Nothing(void*) {}

TEST(Engines, OfAnotherVersionAreRefused) {
  heddle_engine_table good = {};
  good.size = sizeof good;
  good.version = HEDDLE_ENGINE_VERSION;
  good.name = "empty";
  good.open = NoOpen;
  good.compile = NoCompile;
  good.run = NoRun;
  good.free_module = good.close = Nothing;
  ASSERT_TRUE(Engine::FromTable(&good).ok());
  heddle_engine_table table = good;
  table.version = 7;
  EXPECT_THAT(Engine::FromTable(&table).status().message(),
              HasSubstr("the engine is made for version 7 of the interface"));
  EXPECT_THAT(Engine::FromTable(nullptr).status().message(),
              HasSubstr("has no engine for version 1"));
  // A table that ends early lacks what lies behind its end, whatever is there.
  table = good;
  table.size = offsetof(heddle_engine_table, run);
  EXPECT_THAT(Engine::FromTable(&table).status().message(), HasSubstr("lacks 'run'"));
  table = good;
  table.compile = nullptr;
  EXPECT_THAT(Engine::FromTable(&table).status().message(), HasSubstr("lacks 'compile'"));
  table = good;
  table.fingerprint = [](void*) { return "lone"; };
  EXPECT_THAT(Engine::FromTable(&table).status().message(),
              HasSubstr("has not all of 'fingerprint', 'save' and 'restore', nor none"));
  table = good;
  table.flags = HEDDLE_ENGINE_REENTRANT | 4096;
  EXPECT_THAT(Engine::FromTable(&table).status().message(),
              HasSubstr("flags that this heddle does not know: 4096"));
  // One of an older header, which has fewer members.
  table = good;
  table.size = offsetof(heddle_engine_table, fingerprint);
  EXPECT_TRUE(Engine::FromTable(&table).ok());
  EXPECT_THAT(Engine::FromTable(&good, {.threads = 0}).status().message(),
              HasSubstr("an engine needs a thread, and is given 0"));
}

TEST(Engines, SayWhatTheyTake) {
  const auto target = FaultyEngine("")->target();
  ASSERT_TRUE(target.ok()) << target.status().ToString();
  EXPECT_EQ(target->name(), "own");
  EXPECT_THAT(FaultyEngine("says nothing")->target().status().message(),
              HasSubstr("engine faulty does not say what it takes"));
  EXPECT_THAT(FaultyEngine("says nonsense")->target().status().message(),
              HasSubstr("engine faulty"));
}

// ---- what is handed over -----------------------------------------------------------------------

// What batch_norm names as outputs and does not write in inference is a parameter like any other.
TEST(Engines, AreGivenTheStatisticsThatInferenceKeeps) {
  const auto engine = Engine::Load(HEDDLE_REFERENCE_ENGINE);
  ASSERT_TRUE(engine.ok()) << engine.status().ToString();
  for (int bits = 0; bits < 8; ++bits) {
    const bool is_test = (bits & 1) != 0, global = (bits & 2) != 0, trainable = (bits & 4) != 0;
    SCOPED_TRACE(bits);
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {2, 3, 4});
    const auto scope = std::make_shared<Scope>();
    uint32_t seed = 0;
    for (const char* name : {"scale", "bias", "mean", "variance"}) {
      b.Param(name, DType::kF32, {3});
      Tensor t = RandomF32({3}, ++seed);
      for (int i = 0; i < 3; ++i) t.mutable_data<float>()[i] = 1.5f + t.data<float>()[i];
      scope->Set(name, t);
    }
    for (const auto& [x, y] : {std::pair("x", "a"), std::pair("a", "y")})
      b.Op("batch_norm",
           {{"X", {x}},
            {"Scale", {"scale"}},
            {"Bias", {"bias"}},
            {"Mean", {"mean"}},
            {"Variance", {"variance"}}},
           {{"Y", {y}},
            {"MeanOut", {"mean"}},
            {"VarianceOut", {"variance"}},
            {"SavedMean", {std::string(y) + "_mean"}},
            {"SavedVariance", {std::string(y) + "_variance"}}},
           {{"is_test", is_test},
            {"use_global_stats", global},
            {"trainable_statistics", trainable}});
    b.Fetch("y").Fetch("mean").Fetch("variance");
    const Model model{b.Build(), scope};
    const std::vector<heddle::Feed> feeds = {{"x", RandomF32({2, 3, 4}, 9)}};
    Executor executor({.threads = 1});
    const auto offloaded = Offload(model, {{TargetOf("batch_norm"), *engine}});
    ASSERT_TRUE(offloaded.ok()) << offloaded.status().ToString();
    const OffloadReport& report = offloaded->report;
    const bool keeps = (is_test && !trainable) || global;
    ASSERT_EQ(report.groups.size(), keeps ? 1u : 0u) << report.ToString();
    if (keeps) {
      EXPECT_TRUE(report.groups[0].taken) << report.ToString();
      EXPECT_EQ(report.groups[0].inputs, 1u);
      EXPECT_EQ(report.groups[0].outputs, 1u);
    }
    if (!keeps) continue;  // it is the same program
    const auto with = MustCompile(executor, offloaded->model.program, offloaded->model.scope);
    const auto got = MustRun(executor, with, feeds);
    const auto alone = MustCompile(executor, model.program, scope, {.opt_level = 0});
    const auto want = MustRun(executor, alone, feeds);
    for (size_t k = 0; k < want.size(); ++k) EXPECT_TRUE(SameBits(got[k], want[k])) << k;
  }
}

// ---- what runs ---------------------------------------------------------------------------------

TEST(Engines, ServeManyRunsAtOnce) {
  for (const int limit_ms : {0, 60000}) {
    const auto engine = Engine::Load(HEDDLE_REFERENCE_ENGINE,
                                     {.threads = 2, .limit = std::chrono::milliseconds(limit_ms)});
    ASSERT_TRUE(engine.ok()) << engine.status().ToString();
    const auto offloaded = Offload(SmallModel(true), {{TargetOf("relu"), *engine}});
    ASSERT_TRUE(offloaded.ok());
    Executor executor({.threads = 2});
    const auto compiled = executor.Compile(offloaded->model);
    ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
    std::atomic<int> wrong{0};
    std::vector<std::thread> callers;
    for (int t = 0; t < 4; ++t)
      callers.emplace_back([&, t] {
        for (int run = 0; run < 50; ++run) {
          const int64_t rows = (t + run) % 3;  // none among them
          const auto out = executor.Run(*compiled, {{"x", RandomF32({rows, 3}, 1)}});
          if (!out.ok() || (*out)[0].shape() != Shape({rows, 3})) ++wrong;
        }
      });
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(wrong, 0);
  }
}

// What a model was offloaded to lives as long as the plan that calls it.
TEST(Engines, OutliveTheirHandles) {
  Executor executor({.threads = 1});
  std::optional<CompiledProgram> compiled;
  {
    const auto engine = Engine::Load(HEDDLE_REFERENCE_ENGINE);
    auto offloaded = Offload(SmallModel(), {{TargetOf("relu"), *engine}});
    compiled = *executor.Compile(offloaded->model);
  }
  EXPECT_TRUE(executor.Run(*compiled, Feeds()).ok());
}

TEST(Engines, AreShownInPlans) {
  const auto engine = Engine::Load(HEDDLE_REFERENCE_ENGINE);
  const auto offloaded = Offload(SmallModel(), {{TargetOf("relu"), *engine}});
  Executor executor({.threads = 1});
  const auto compiled = executor.Compile(offloaded->model);
  const auto text = executor.PlanText(*compiled, Feeds());
  ASSERT_TRUE(text.ok()) << text.status().ToString();
  EXPECT_THAT(*text, HasSubstr("group_0 on reference, 1 operator"));
}

}  // namespace
}  // namespace heddle::testing
