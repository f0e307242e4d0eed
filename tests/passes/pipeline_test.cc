// The order of the passes: what is wrong with it is an error, and users' passes find their places.
#include "passes/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/pass_manager.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using passes::AllPasses;
using passes::CheckPipeline;
using passes::HeddlePipeline;
using passes::Pipeline;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(PassOrder, NamesEveryPass) {
  const Status s = CheckPipeline(HeddlePipeline(), AllPasses());
  EXPECT_TRUE(s.ok()) << s.ToString();
  // What users see is the same list.
  const Pipeline pipeline = HeddlePipeline();
  for (const PassStage& stage : PassOrder())
    EXPECT_EQ(stage.passes, pipeline[static_cast<int>(stage.grouping)]);
  EXPECT_EQ(Passes().size(), AllPasses().size());
}

TEST(PassOrder, MistakesAreErrors) {
  const auto error = [](auto mistake) {
    Pipeline pipeline = HeddlePipeline();
    mistake(&pipeline);
    return CheckPipeline(pipeline, AllPasses()).message();
  };
  EXPECT_EQ(
      error([](Pipeline* p) { (*p)[1].push_back("no_such_pass"); }),
      "the order of passes names 'no_such_pass' in POST_PLACEMENT, but there is no such pass");
  EXPECT_EQ(error([](Pipeline* p) { (*p)[0].push_back("cse"); }),
            "the order of passes names 'cse' twice in PRE_PLACEMENT");
  EXPECT_EQ(error([](Pipeline* p) { std::erase((*p)[1], "fuse_conv"); }),
            "pass 'fuse_conv' stands nowhere in the order of passes");
  EXPECT_EQ(error([](Pipeline* p) { std::erase((*p)[2], "cse"); }), "") << "it is in another one";
  std::vector<passes::PassDef> twice = AllPasses();
  twice.push_back(twice.front());
  EXPECT_THAT(CheckPipeline(HeddlePipeline(), twice).message(), HasSubstr("there are two passes"));
}

std::vector<std::string> Placed(const std::vector<CustomPass>& custom, std::string* error) {
  Pipeline pipeline;
  pipeline[0] = {"one", "two", "three"};
  *error = passes::AddCustom(custom, &pipeline).message();
  return pipeline[0];
}

TEST(PassOrder, CustomPassesFindTheirPlaces) {
  std::string error;
  EXPECT_THAT(Placed({{.name = "a"}, {.name = "b"}}, &error),
              ElementsAre("a", "b", "one", "two", "three"));
  EXPECT_THAT(Placed({{.name = "a", .before = "three"}, {.name = "b", .after = "one"}}, &error),
              ElementsAre("one", "b", "two", "a", "three"));
  EXPECT_THAT(Placed({{.name = "a", .after = "three"}, {.name = "b", .before = "a"}}, &error),
              ElementsAre("one", "two", "three", "b", "a"));
  EXPECT_THAT(Placed({{.name = "a", .before = "b"}, {.name = "b"}}, &error),
              ElementsAre("a", "b", "one", "two", "three"));
  EXPECT_EQ(error, "");
  Placed({{.name = "a", .before = "four"}}, &error);
  EXPECT_EQ(error, "pass 'a' is to run before 'four', which is no pass of PRE_PLACEMENT");
  Placed({{.name = "a", .before = "one", .after = "two"}}, &error);
  EXPECT_EQ(error, "pass 'a' is to run before 'one' and after 'two': name one of them");
  // A cycle: there is no 'b' to stand next to when 'a' looks for it.
  Placed({{.name = "a", .after = "b"}, {.name = "b", .after = "a"}}, &error);
  EXPECT_EQ(error, "pass 'a' is to run after 'b', which is no pass of PRE_PLACEMENT");
}

TEST(PassOrder, CustomPassesRunWhereTheyStand) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2}).Var("y", DType::kF32, {2});
  const Program program = b.Unary("relu", "x", "y").Fetch("y").Build();
  const auto nothing = [](ProgramEditor&) -> Result<bool> { return false; };
  const auto runs = [&](const CustomPass& custom) {
    OptimizeOptions options{2};
    options.passes.custom = {custom};
    const auto optimized = passes::Optimize(program.impl(), std::make_shared<Scope>(), options);
    EXPECT_TRUE(optimized.ok()) << optimized.status().ToString();
    std::vector<std::string> names;
    for (const PassReport::Run& run : optimized->report.runs)
      if (run.grouping == PassGrouping::kPostPlacement) names.push_back(run.name);
    return names;
  };
  const auto at = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), "own") - names.begin();
  };
  CustomPass own{.name = "own", .grouping = PassGrouping::kPostPlacement, .run = nothing};
  EXPECT_EQ(at(runs(own)), 0);
  own.after = "channels_last";
  const std::vector<std::string> names = runs(own);
  ASSERT_GT(at(names), 0);
  EXPECT_EQ(names[static_cast<size_t>(at(names)) - 1], "channels_last");
}

// A pass that needs what the place does not have does not run there.
TEST(PassOrder, NeedsOfAPass) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2}).Var("y", DType::kF32, {2});
  const Program program = b.Unary("relu", "x", "y").Fetch("y").Build();
  using passes::PassNeeds;
  for (const auto& [needs, host_caches] : {std::pair(PassNeeds::kHostCaches, true),
                                           {PassNeeds::kHostCaches, false},
                                           {PassNeeds::kDeviceKernels, true},
                                           {PassNeeds::kDeviceKernels, false}}) {
    bool ran = false;
    passes::PassDef pass;
    pass.name = "needs";
    pass.needs = needs;
    pass.run = [&](ir::Program&, passes::PassContext&) -> Result<bool> {
      ran = true;
      return false;
    };
    Pipeline order;
    order[0] = {"needs"};
    ASSERT_TRUE(passes::OptimizeWith({pass}, order, program.impl(), std::make_shared<Scope>(), {},
                                     {.host_caches = host_caches})
                    .ok());
    EXPECT_EQ(ran, host_caches == (needs == PassNeeds::kHostCaches));
  }
}

}  // namespace
}  // namespace heddle::testing
