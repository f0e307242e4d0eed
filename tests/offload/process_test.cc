// Engines in a process of their own: what ends that process is an error of the run, and the next
// run starts it again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "heddle/engine.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using ::testing::HasSubstr;

Result<Engine> EngineOf(const std::string& mode, const std::string& library = HEDDLE_FAULTY_ENGINE,
                        int limit_ms = 0, const std::string& marker = "") {
  EngineOptions options;
  options.limit = std::chrono::milliseconds(limit_ms);
  options.options.emplace_back("library", library);
  if (!mode.empty()) options.options.emplace_back("mode", mode);
  if (!marker.empty()) options.options.emplace_back("marker", marker);
  return Engine::Load(HEDDLE_PROCESS_ENGINE, options);
}

Model SmallModel() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, 3});
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
    return executor_.Compile(offloaded.model);
  }
  Status Run(const CompiledProgram& compiled, float first, const RunOptions& options = {}) {
    return executor_.Run(compiled, FeedsOf(first), options).status();
  }

  Executor executor_{{.threads = 2}};
};

TEST_F(EngineProcess, MayCrash) {
  const auto compiled = Compile(EngineOf("crashes at three"));
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(Run(*compiled, 1).ok()) << Run(*compiled, 1).ToString();
    const Status status = Run(*compiled, 3);
    EXPECT_THAT(
        status.message(),
        HasSubstr("engine process failed in run: the engine's process was ended by signal 6"));
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
  const auto compiled = Compile(EngineOf("hangs", HEDDLE_FAULTY_ENGINE, 50));
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  const Status status = Run(*compiled, 1);
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status.ToString();
  EXPECT_THAT(status.message(), HasSubstr("engine process has not answered within 50 ms"));
}

TEST_F(EngineProcess, PassesOnWhatTheEngineSays) {
  const std::pair<const char*, const char*> kModes[] = {
      {"run fails", "engine process failed in run: the card is hot"},
      {"throws", "engine process failed in run: it threw a bolt"},
      {"fills the message", "engine process failed in run: xxx"},
      {"writes nothing", "engine process does not write output 0"},
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

TEST(EngineProcesses, ThatCannotBeginAreAnError) {
  EXPECT_THAT(Engine::Load(HEDDLE_PROCESS_ENGINE).status().message(),
              HasSubstr("option library: expected the path of an engine"));
  EXPECT_THAT(EngineOf("", "/nowhere/engine.so").status().message(),
              HasSubstr("/nowhere/engine.so"));
  EXPECT_THAT(EngineOf("", HEDDLE_NO_ENGINE).status().message(), HasSubstr("is no engine"));
  EXPECT_THAT(EngineOf("open fails").status().message(), HasSubstr("there is no such card"));
}

}  // namespace
}  // namespace heddle::testing
