// Passes that take partitions, where the whole program is the host's.
#include "heddle/passes/partitions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heddle/device.h"
#include "heddle/executor.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Model SmallModel() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, 3});
  b.Unary("relu", "x", "a").Unary("tanh", "a", "y").Fetch("y");
  return {b.Build(), std::make_shared<Scope>()};
}

CustomPass PassOf(std::function<Result<bool>(Partitions&)> run) {
  return {.name = "mine",
          .grouping = PassGrouping::kPostPartitioning,
          .run_partitions = std::move(run)};
}

CompileOptions With(const CustomPass& pass) {
  CompileOptions options{.opt_level = 1};
  options.passes.custom = {pass};
  return options;
}

std::string ErrorOf(const CustomPass& pass) {
  Executor executor({.threads = 1});
  const Model model = SmallModel();
  const auto compiled = executor.Compile(model, With(pass));
  EXPECT_FALSE(compiled.ok());
  // The program is as it was.
  EXPECT_TRUE(executor.Compile(model).ok());
  return compiled.ok() ? "" : std::string(compiled.status().message());
}

TEST(Partitions, OfCompileAreTheHostAlone) {
  int calls = 0;
  const CustomPass look = PassOf([&](Partitions& all) -> Result<bool> {
    ++calls;
    EXPECT_EQ(all.programs().size(), 1u);
    PartitionProgram& host = all.host();
    EXPECT_EQ(host.target(), PartitionProgram::kHost);
    EXPECT_EQ(host.symbol(), "");
    EXPECT_THAT(host.feeds(), ElementsAre("x"));
    EXPECT_THAT(host.fetches(), ElementsAre("y"));
    EXPECT_EQ(host.editor().op_type(0, 0), "relu");
    EXPECT_EQ(host.TargetCost().status().code(), StatusCode::kUnimplemented);
    EXPECT_GT(host.editor().cost_ns(0, 0), 0);
    const auto places = all.places();
    EXPECT_EQ(places.size(), 2u);
    EXPECT_EQ(places[0].name, "cpu");
    EXPECT_EQ(places[1].name, "emulated:0");
    EXPECT_FALSE(places[1].target);
    EXPECT_EQ(all.opt_level(), 1);
    if (all.compile_options() == nullptr || all.executor_options() == nullptr)
      return Status(StatusCode::kInternal, "no options");
    EXPECT_TRUE(all.compile_options()->lean);
    EXPECT_EQ(all.executor_options()->memory_limit, 1u << 20);
    const auto functions = all.functions();
    EXPECT_TRUE(functions.ok() && (*functions)->names().empty());
    return false;
  });
  ExecutorOptions options{.threads = 1, .memory_limit = 1 << 20};
  options.SetDevices(*OpenDevices("emulated"));
  Executor executor(options);
  CompileOptions compile = With(look);
  compile.lean = true;
  const auto compiled = executor.Compile(SmallModel(), compile);
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  EXPECT_EQ(calls, 1);
}

TEST(Partitions, OfOptimizeModelHaveNoSession) {
  int calls = 0;
  OptimizeOptions options;
  options.passes.custom = {PassOf([&](Partitions& all) -> Result<bool> {
    ++calls;
    EXPECT_EQ(all.compile_options(), nullptr);
    EXPECT_EQ(all.executor_options(), nullptr);
    return false;
  })};
  EXPECT_TRUE(OptimizeModel(SmallModel(), options).ok());
  EXPECT_EQ(calls, 1);
}

TEST(Partitions, CanBeRewritten) {
  const CustomPass rewrite = PassOf([](Partitions& all) -> Result<bool> {
    ProgramEditor& editor = all.host().editor();
    HEDDLE_RETURN_IF_ERROR(editor.Replace(0, 0, {"relu6", {{"X", {"x"}}}, {{"Out", {"a"}}}, {}}));
    return true;
  });
  Executor executor({.threads = 1});
  const auto compiled = executor.Compile(SmallModel(), With(rewrite));
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  const auto out = executor.Run(*compiled, {{"x", F32({2, 3}, {7, 8, 9, 6, -1, 0})}});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_FLOAT_EQ((*out)[0].data<float>()[0], std::tanh(6.0f));
  EXPECT_FLOAT_EQ((*out)[0].data<float>()[4], 0);
}

TEST(Partitions, MistakesAreOneErrorThatNamesThePass) {
  EXPECT_EQ(ErrorOf(PassOf([](Partitions&) -> Result<bool> { throw std::runtime_error("lost"); })),
            "POST_PARTITIONING/mine: lost");
  EXPECT_EQ(ErrorOf(PassOf([](Partitions&) -> Result<bool> { throw 7; })),
            "POST_PARTITIONING/mine: threw something that is no std::exception");
  EXPECT_EQ(ErrorOf(PassOf([](Partitions& all) -> Result<bool> {
              all.host().editor().Erase(0, 1);
              return Status(StatusCode::kInternal, "no way on");
            })),
            "POST_PARTITIONING/mine: no way on");
  EXPECT_THAT(ErrorOf(PassOf([](Partitions& all) -> Result<bool> {
                all.host().editor().Erase(0, 1);
                return true;
              })),
              HasSubstr("POST_PARTITIONING/mine: "));
  EXPECT_EQ(ErrorOf(PassOf([](Partitions& all) -> Result<bool> {
              all.host().editor().Erase(0, 1);
              return false;
            })),
            "POST_PARTITIONING/mine: changed the program, and said that it did not");
}

TEST(Partitions, AreOfOneGroupingAndOneFunction) {
  CustomPass early = PassOf([](Partitions&) -> Result<bool> { return false; });
  early.grouping = PassGrouping::kPostPlacement;
  EXPECT_EQ(ErrorOf(early),
            "pass 'mine' takes partitions, and runs in POST_PLACEMENT: only POST_PARTITIONING has "
            "them");
  CustomPass both = PassOf([](Partitions&) -> Result<bool> { return false; });
  both.run = [](ProgramEditor&) -> Result<bool> { return false; };
  EXPECT_EQ(ErrorOf(both), "pass 'mine' has both `run` and `run_partitions`");
}

}  // namespace
}  // namespace heddle::testing
