// Engines in a process of their own: what ends that process is an error of the run, and the next
// run starts it again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "heddle/engine.h"
#include "tests/offload/cache_subjects.h"
#include "tests/support/files.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using ::testing::HasSubstr;

Result<Engine> EngineOf(const std::string& mode, const std::string& library = HEDDLE_FAULTY_ENGINE,
                        int limit_ms = 0, const std::string& marker = "",
                        const std::string& diary = "") {
  EngineOptions options;
  options.limit = std::chrono::milliseconds(limit_ms);
  options.options.emplace_back("library", library);
  if (!mode.empty()) options.options.emplace_back("mode", mode);
  if (!marker.empty()) options.options.emplace_back("marker", marker);
  if (!diary.empty()) options.options.emplace_back("diary", diary);
  return Engine::Load(HEDDLE_PROCESS_ENGINE, options);
}

Model SmallModel() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, 3});
  for (const char* name : {"a", "b", "y"}) b.Var(name, DType::kF32, {2, 3});
  b.Unary("relu", "x", "a").Unary("tanh", "a", "b").Unary("relu", "b", "y").Fetch("y");
  return {b.Build(), std::make_shared<Scope>()};
}
std::vector<heddle::Feed> FeedsOf(float first) {
  return {{"x", F32({2, 3}, {first, 1, 2, 4, 5, 6})}};
}

class EngineProcess : public ::testing::Test {
 protected:
  Result<CompiledProgram> Compile(const Result<Engine>& engine) {
    if (!engine.ok()) return engine.status();
    HEDDLE_ASSIGN_OR_RETURN(const HardwareTarget target, engine->target());
    HEDDLE_ASSIGN_OR_RETURN(const OffloadedModel offloaded,
                            Offload(SmallModel(), {{target, *engine}}));
    EXPECT_TRUE(offloaded.report.groups[0].taken) << offloaded.report.ToString();
    return executor_->Compile(offloaded.model);
  }
  Status Run(const CompiledProgram& compiled, float first, const RunOptions& options = {}) {
    return executor_->Run(compiled, FeedsOf(first), options).status();
  }

  // Plans are kept, and with them what they call, until then.
  void Forget() { executor_.emplace(ExecutorOptions{.threads = 2}); }

  std::optional<Executor> executor_{std::in_place, ExecutorOptions{.threads = 2}};
};

TEST_F(EngineProcess, MayCrash) {
  const auto compiled = Compile(EngineOf("crashes at three"));
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(Run(*compiled, 1).ok()) << Run(*compiled, 1).ToString();
    const Status status = Run(*compiled, 3);
    EXPECT_THAT(
        status.message(),
        HasSubstr(
            "engine faulty (process) failed in run: the engine's process was ended by signal 6"));
    ASSERT_TRUE(status.location());
    EXPECT_EQ(status.location()->op_type, "offload_group");
  }
}

// Then the modules of a worker would not be those that the host has numbers for.
TEST_F(EngineProcess, BeginsAnewWhereItDoesNotCompileAgain) {
  const auto compiled = Compile(EngineOf("crashes at three", HEDDLE_FAULTY_ENGINE, 0,
                                         ::testing::TempDir() + "/heddle_compiled"));
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(Run(*compiled, 1).ok());
    EXPECT_THAT(Run(*compiled, 3).message(), HasSubstr("signal 6"));
    EXPECT_THAT(Run(*compiled, 1).message(), HasSubstr("the compiler is busy"));
  }
}

// A process that the engine has started holds the worker's socket.
TEST_F(EngineProcess, IsSeenToEndBeforeItsChildren) {
  const auto compiled = Compile(EngineOf("leaves a child"));
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(Run(*compiled, 1).message(), HasSubstr("ended by signal 6"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4));
}

TEST_F(EngineProcess, EndsWithARunThatIsToEnd) {
  const auto compiled = Compile(EngineOf("hangs"));
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  const auto begin = std::chrono::steady_clock::now();
  const Status status = Run(*compiled, 1, {.deadline = begin + std::chrono::milliseconds(50)});
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status.ToString();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(1500));
}

TEST_F(EngineProcess, EndsWithACallThatTakesTooLong) {
  const auto compiled = Compile(EngineOf("hangs", HEDDLE_FAULTY_ENGINE, 500));
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  const Status status = Run(*compiled, 1);
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status.ToString();
  EXPECT_THAT(status.message(),
              HasSubstr("engine faulty (process) has not answered within 500 ms"));
}

TEST_F(EngineProcess, PassesOnWhatTheEngineSays) {
  const std::pair<const char*, const char*> kModes[] = {
      {"run fails", "engine faulty (process) failed in run: the card is hot"},
      {"throws", "engine faulty (process) failed in run: it threw a bolt"},
      {"fills the message", "engine faulty (process) failed in run: xxx"},
      {"writes nothing", "engine faulty (process) does not write output 0"},
      {"another shape", "writes float32 [3, 3] to output 0 (a), which is float32 [2, 3]"},
      {"another rank", "writes output 0 with 11 dimensions"},
      {"no dtype", "writes output 0 with element type 99"},
  };
  for (const auto& [mode, text] : kModes) {
    SCOPED_TRACE(mode);
    const auto compiled = Compile(EngineOf(mode));
    ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
    EXPECT_THAT(Run(*compiled, 1).message(), HasSubstr(text));
  }
}

// ---- what is handed on -------------------------------------------------------------------------

// It takes its groups as ONNX alone.
TEST_F(EngineProcess, IsGivenOnnxWhereItWantsThat) {
  const auto words =
      Engine::Load(HEDDLE_PROCESS_ENGINE, {.options = {{"library", HEDDLE_WORDS_ENGINE}}});
  ASSERT_TRUE(words.ok()) << words.status().ToString();
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, 3}).Param("w", DType::kF32, {3});
  b.Binary("elementwise_add", "x", "w", "a").Unary("tanh", "a", "y").Fetch("y");
  const Model model{b.Build(), std::make_shared<Scope>()};
  model.scope->Set("w", F32({3}, {1, 2, 3}));
  const auto target = HardwareTarget::Parse(
      R"({"name": "t", "units": [{"name": "u", "ops": [{"type": "elementwise_add"},
          {"type": "tanh"}]}], "links": [["u", "u"]], "start": ["u"]})",
      "t");
  const auto offloaded = Offload(model, {{*target, *words}});
  ASSERT_TRUE(offloaded.ok()) << offloaded.status().ToString();
  ASSERT_EQ(offloaded->report.groups.size(), 1u);
  EXPECT_TRUE(offloaded->report.groups[0].taken) << offloaded->report.ToString();
  EXPECT_EQ(offloaded->report.groups[0].operators.size(), 2u);
  const auto got = MustRun(*executor_, *executor_->Compile(offloaded->model), FeedsOf(1));
  const auto want = MustRun(*executor_, *executor_->Compile(model), FeedsOf(1));
  EXPECT_EQ(Floats(got[0]), Floats(want[0]));
  // Others are not given it, and take what ONNX has no words for.
  const auto faulty = EngineOf("");
  ProgramBuilder c;
  c.Feed("x", DType::kF32, {2, 3}).Unary("log1p", "x", "y").Fetch("y");
  const auto other = HardwareTarget::Parse(
      R"({"name": "t", "units": [{"name": "u", "ops": [{"type": "log1p"}]}], "links": [],
          "start": ["u"]})",
      "t");
  const auto taken = Offload({c.Build(), std::make_shared<Scope>()}, {{*other, *faulty}});
  ASSERT_TRUE(taken.ok()) << taken.status().ToString();
  EXPECT_TRUE(taken->report.groups.at(0).taken) << taken->report.ToString();
  const auto refused = Offload({c.Build(), std::make_shared<Scope>()}, {{*other, *words}});
  ASSERT_TRUE(refused.ok()) << refused.status().ToString();
  for (const OffloadedGroup& group : refused->report.groups) EXPECT_FALSE(group.taken);
}

class CachedProcess : public EngineProcess {
 protected:
  // Where the groups come from, and the first warning. What was taken is run, with `first`.
  std::vector<std::string> Froms(const Result<Engine>& engine, const std::string& folder,
                                 std::vector<float> firsts = {1}) {
    OffloadOptions options;
    options.cache = EngineCache::OnDisk(folder);
    const auto offloaded = Offload(SmallModel(), {{*engine->target(), *engine}}, options);
    EXPECT_TRUE(offloaded.ok()) << offloaded.status().ToString();
    warning_ = offloaded->report.cache_warning;
    std::vector<std::string> froms;
    for (const OffloadedGroup& group : offloaded->report.groups) froms.push_back(group.cache);
    const auto compiled = executor_->Compile(offloaded->model);
    EXPECT_TRUE(compiled.ok()) << compiled.status().ToString();
    for (const float first : firsts) EXPECT_EQ(Run(*compiled, first).ok(), first != 3) << first;
    return froms;
  }

  std::string warning_;
};

TEST_F(CachedProcess, SavesAndRestores) {
  using ::testing::ElementsAre;
  for (const char* mode : {"", "saves nothing", "saves much"}) {
    SCOPED_TRACE(mode);
    const TempDir dir;
    EXPECT_THAT(Froms(EngineOf(mode), dir / "c"), ElementsAre("compiled", "hit in memory"));
    EXPECT_THAT(Froms(EngineOf(mode), dir / "c"), ElementsAre("hit on disk", "hit in memory"));
    EXPECT_EQ(warning_, "");
    const auto contents = ListEngineCache(dir / "c");
    ASSERT_TRUE(contents.ok());
    const auto modules = ModulesOf(*contents);
    ASSERT_EQ(modules.size(), 1u);
    EXPECT_EQ(modules[0].engine, "faulty (process)");
    EXPECT_EQ(modules[0].fingerprint, "faulty: faulty 1\\nof two lines");
  }
  for (const char* mode : {"no fingerprint", "fingerprint throws", "save refuses"}) {
    SCOPED_TRACE(mode);
    const TempDir dir;
    for (int round = 0; round < 2; ++round) {
      EXPECT_THAT(Froms(EngineOf(mode), dir / "c"), ElementsAre("compiled", "hit in memory"));
      EXPECT_EQ(warning_, "");
    }
  }
  const std::pair<const char*, const char*> kWarnings[] = {
      {"save throws", "engine faulty (process) failed in save: it threw a pen"},
      {"save fails half-way", "engine faulty (process) failed in save: the pen is empty"},
      {"saves nowhere", "engine faulty (process) failed in save: it saves bytes that are nowhere"},
  };
  for (const auto& [mode, text] : kWarnings) {
    SCOPED_TRACE(mode);
    const TempDir dir;
    for (int round = 0; round < 2; ++round) {
      EXPECT_THAT(Froms(EngineOf(mode), dir / "c"), ElementsAre("compiled", "hit in memory"));
      EXPECT_THAT(warning_, HasSubstr(text));
    }
  }
  for (const char* mode : {"restore fails", "restore refuses", "restore throws",
                           "restore throws a number", "restores nothing", "restore answers 17"}) {
    SCOPED_TRACE(mode);
    const TempDir dir;
    for (int round = 0; round < 2; ++round)
      EXPECT_THAT(Froms(EngineOf(mode), dir / "c"), ElementsAre("compiled", "hit in memory"));
  }
}

// A worker that is started again is given what the first one was: the saved bytes, or, if it does
// not take them any more, the groups.
TEST_F(CachedProcess, HasWhatWasRestoredWhereItBeginsAnew) {
  using ::testing::ElementsAre;
  const TempDir dir;
  EXPECT_THAT(Froms(EngineOf("crashes at three"), dir / "c", {1, 3, 2, 3, 1}),
              ElementsAre("compiled", "hit in memory"));
  EXPECT_THAT(Froms(EngineOf("crashes at three"), dir / "c", {1, 3, 2, 3, 1}),
              ElementsAre("hit on disk", "hit in memory"));
  const auto once = [&] {
    return EngineOf("restores once, crashes at three", HEDDLE_FAULTY_ENGINE, 0, dir / "marker");
  };
  EXPECT_THAT(Froms(once(), dir / "c"), ElementsAre("compiled", "hit in memory"));
  EXPECT_THAT(Froms(once(), dir / "c", {1, 3, 2, 3, 1}),
              ElementsAre("hit on disk", "hit in memory"));
  EXPECT_THAT(Froms(once(), dir / "c"), ElementsAre("compiled", "hit in memory"));
}

// An engine that needs the saved bytes alone is given no parameters with them, nor is the next
// worker; what it asks for later it is given.
TEST_F(CachedProcess, HandsOverLessToEnginesThatRestoreAlone) {
  const HardwareTarget target = *HardwareTarget::Parse(
      R"({"name": "t", "units": [{"name": "u", "ops": [{"type": "elementwise_mul"}]}],
          "links": [], "start": ["u"]})",
      "t");
  for (const std::string mode : {"restores alone, crashes at three", "crashes at three",
                                 "restores alone, asks for models, crashes at three"}) {
    SCOPED_TRACE(mode);
    const TempDir dir;
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {2, 3}).Param("w", DType::kF32, {3});
    b.Binary("elementwise_mul", "x", "w", "y").Fetch("y");
    const Model model{b.Build(), std::make_shared<Scope>()};
    model.scope->Set("w", F32({3}, {1, 2, 3}));
    for (const char* from : {"compiled", "hit on disk"}) {
      const auto engine = EngineOf(mode, HEDDLE_FAULTY_ENGINE, 0, "", dir / "diary");
      OffloadOptions options;
      options.cache = EngineCache::OnDisk(dir / "c");
      const auto offloaded = Offload(model, {{target, *engine}}, options);
      ASSERT_TRUE(offloaded.ok()) << offloaded.status().ToString();
      ASSERT_EQ(offloaded->report.groups.at(0).cache, from);
      const auto compiled = executor_->Compile(offloaded->model);
      ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
      for (const float first : {1, 3, 2}) EXPECT_EQ(Run(*compiled, first).ok(), first != 3);
    }
    std::string want = mode.starts_with("restores alone") ? "restored with 0" : "restored with 1";
    // By both runs of the first worker, and by that of the second.
    const bool asks = mode.find("asks for models") != std::string::npos;
    want = asks ? want + "\na model\na model\n" + want + "\na model\n" : want + "\n" + want + "\n";
    std::string lines;
    std::ifstream file(dir / "diary");
    for (std::string line; std::getline(file, line);)
      if (line != "free" && line != "close") lines += line + "\n";
    EXPECT_EQ(lines, want);
  }
}

// ---- what is given back ------------------------------------------------------------------------

namespace fs = std::filesystem;

int DescriptorsOf(const std::string& pid) {
  std::error_code error;
  int n = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator("/proc/" + pid + "/fd", error))
    ++n;
  return n;
}

// The workers among this process's children.
std::vector<std::string> Workers() {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "stat");
    std::string pid, name, state, parent;
    if (file >> pid >> name >> state >> parent && parent == std::to_string(getpid()) &&
        name.starts_with("(heddle_engine_w"))
      found.push_back(pid);
  }
  return found;
}

TEST_F(EngineProcess, GivesModulesBack) {
  const auto engine = EngineOf("");
  ASSERT_TRUE(Compile(engine).ok());
  const auto workers = Workers();
  ASSERT_EQ(workers.size(), 1u);
  const int here = DescriptorsOf("self"), there = DescriptorsOf(workers[0]);
  const auto kept = Compile(engine);
  ASSERT_TRUE(kept.ok());
  for (int k = 0; k < 50; ++k) {
    const auto compiled = Compile(engine);
    ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
    ASSERT_TRUE(Run(*compiled, 1).ok());
  }
  Forget();
  ASSERT_TRUE(Compile(engine).ok());  // tells the worker of the last ones
  EXPECT_LE(DescriptorsOf("self"), here + 8);
  EXPECT_LE(DescriptorsOf(workers[0]), there + 8);
}

// A worker that is started again has what is not freed yet, under the same numbers.
TEST_F(EngineProcess, KeepsWhatIsInUse) {
  const auto engine = EngineOf("crashes at three");
  auto gone = Compile(engine);
  auto compiled = Compile(engine);
  ASSERT_TRUE(gone.ok() && compiled.ok());
  ASSERT_TRUE(Run(*gone, 1).ok() && Run(*compiled, 1).ok());
  gone = Status(StatusCode::kNotFound, "");
  Forget();
  const auto fresh = Compile(engine);
  ASSERT_TRUE(fresh.ok());
  for (int round = 0; round < 2; ++round) {
    EXPECT_THAT(Run(*fresh, 3).message(), HasSubstr("ended by signal 6"));
    EXPECT_TRUE(Run(*fresh, 1).ok()) << Run(*fresh, 1).ToString();
  }
}

TEST(EngineProcesses, LetEnginesFreeAndClose) {
  const std::string diary = ::testing::TempDir() + "heddle_engine_diary";
  fs::remove(diary);
  {
    const auto engine = Engine::Load(
        HEDDLE_PROCESS_ENGINE, {.options = {{"library", HEDDLE_FAULTY_ENGINE}, {"diary", diary}}});
    ASSERT_TRUE(engine.ok()) << engine.status().ToString();
    const auto offloaded = Offload(SmallModel(), {{*engine->target(), *engine}});
    ASSERT_TRUE(offloaded.ok()) << offloaded.status().ToString();
  }
  std::ifstream file(diary);
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), "free\nfree\nclose\n");
  fs::remove(diary);
}

// Groups of one process take turns, and waiting for it is no hang of the engine's.
TEST(EngineProcesses, DoNotHangWhileOthersCompute) {
  const auto engine = EngineOf("sleeps", HEDDLE_FAULTY_ENGINE, 500);  // 200 ms a call
  ASSERT_TRUE(engine.ok()) << engine.status().ToString();
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, 3});
  for (const char* name : {"a", "b", "c", "d"}) {
    b.Unary("relu", "x", name).Unary("tanh", name, std::string(name) + "t");
    b.Fetch(std::string(name) + "t");
  }
  const auto target = HardwareTarget::Parse(
      R"({"name": "t", "units": [{"name": "u", "ops": [{"type": "relu"}]}], "links": [],
          "start": ["u"], "limits": {"max_group": 1}})",
      "t");
  ASSERT_TRUE(target.ok()) << target.status().ToString();
  const auto offloaded = Offload({b.Build(), std::make_shared<Scope>()}, {{*target, *engine}});
  ASSERT_TRUE(offloaded.ok()) << offloaded.status().ToString();
  ASSERT_EQ(offloaded->report.groups.size(), 4u) << offloaded->report.ToString();
  Executor executor({.threads = 4});
  const auto compiled =
      executor.Compile(offloaded->model, {.opt_level = 0, .schedule = Schedule::kParallel});
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  for (int run = 0; run < 2; ++run) {
    const Status status = executor.Run(*compiled, FeedsOf(1)).status();
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
}

// The folder that a path goes from may be another one when the worker is started again.
TEST(EngineProcesses, StayWhereTheyWereNamed) {
  const fs::path before = fs::current_path(),
                 folder = fs::path(HEDDLE_PROCESS_ENGINE).parent_path();
  fs::current_path(folder);
  const auto engine = Engine::Load(
      "./" + fs::path(HEDDLE_PROCESS_ENGINE).filename().string(),
      {.options = {{"library", "./" + fs::path(HEDDLE_FAULTY_ENGINE).filename().string()},
                   {"mode", "crashes at three"}}});
  fs::current_path("/");
  ASSERT_TRUE(engine.ok()) << engine.status().ToString();
  const auto offloaded = Offload(SmallModel(), {{*engine->target(), *engine}});
  Executor executor({.threads = 1});
  const auto compiled = executor.Compile(offloaded->model);
  EXPECT_FALSE(executor.Run(*compiled, FeedsOf(3)).ok());
  const Status again = executor.Run(*compiled, FeedsOf(1)).status();
  fs::current_path(before);
  EXPECT_TRUE(again.ok()) << again.ToString();
}

TEST(EngineProcesses, ThatCannotBeginAreAnError) {
  EXPECT_THAT(Engine::Load(HEDDLE_PROCESS_ENGINE).status().message(),
              HasSubstr("option library: expected the path of an engine"));
  EXPECT_THAT(EngineOf("", "/nowhere/engine.so").status().message(),
              HasSubstr("/nowhere/engine.so"));
  EXPECT_THAT(EngineOf("", HEDDLE_NO_ENGINE).status().message(), HasSubstr("is no engine"));
  EXPECT_THAT(EngineOf("open fails").status().message(),
              HasSubstr("engine process failed in open: faulty: there is no such card"));
}

// What is wrong with a library is said in the same words wherever it is opened.
TEST(EngineProcesses, RefuseTheTablesThatHeddleRefuses) {
  const std::pair<const char*, const char*> kTables[] = {
      {"null", "has no engine for version 1 of the interface"},
      {"version",
       "the engine is made for version 2 of the interface, and this heddle has version 1"},
      {"short", "the engine's table lacks 'run'"},
      {"no run", "the engine's table lacks 'run'"},
      {"flags", "the engine has flags that this heddle does not know: 256"},
      {"fingerprint", "the engine's table has not all of 'fingerprint', 'save' and 'restore'"},
      {"throws", "no table"},
  };
  for (const auto& [how, text] : kTables) {
    SCOPED_TRACE(how);
    setenv("HEDDLE_FAULTY_TABLE", how, 1);
    const Status here = Engine::Load(HEDDLE_FAULTY_ENGINE).status(), there = EngineOf("").status();
    unsetenv("HEDDLE_FAULTY_TABLE");
    EXPECT_THAT(here.message(), HasSubstr(text));
    EXPECT_THAT(there.message(), HasSubstr(text));
    EXPECT_THAT(there.message(), HasSubstr("process"));
    if (std::string(how) == "throws") continue;
    EXPECT_EQ(here.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(there.code(), StatusCode::kInvalidArgument);
  }
  for (const Status& status :
       {Engine::Load(HEDDLE_FAULTY_ENGINE, {.options = {{"mode", "unknown flag"}}}).status(),
        EngineOf("unknown flag").status()})
    EXPECT_THAT(status.ToString(), HasSubstr("flags that this heddle does not know: 1048576"));
}

}  // namespace
}  // namespace heddle::testing
