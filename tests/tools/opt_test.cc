// heddle opt, heddle passes, and plans as JSON and graphs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/tools/cli.h"

namespace heddle::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

const std::string kDigits = std::string(HEDDLE_SOURCE_DIR) + "/examples/digits";

// The bytes of the first output for random inputs.
std::string OutputOf(const std::string& model) {
  const TempDirectory dir;
  const Outcome run = Heddle("run " + model + " --random-feed --opt 0 --out " + (dir / "out"));
  EXPECT_EQ(run.status, 0) << run.err;
  return ReadFile(dir / "out/out_0.npy");
}

const std::string kPass = " --pass " HEDDLE_BUILD_DIR "/relu_once_pass.so";

TEST(Opt, RunsPassesOfLibraries) {
  const TempDirectory dir;
  const Outcome opt =
      Heddle("opt " + kDigits + " -o " + (dir / "one") + kPass + " --verify-passes --pass-stats");
  ASSERT_EQ(opt.status, 0) << opt.err;
  EXPECT_THAT(opt.out, HasSubstr("relu_once"));
  for (const std::string& command : {"run " + kDigits + " --random-feed", "plan " + kDigits}) {
    const Outcome done = Heddle(command + kPass);
    EXPECT_EQ(done.status, 0) << done.err;
    EXPECT_THAT(Heddle(command + kPass + kPass).err, HasSubstr("there are two passes 'relu_once'"));
    EXPECT_THAT(Heddle(command + " --pass relu_once.so").err,
                HasSubstr("name the library of passes with its folder, as in ./relu_once.so"));
    EXPECT_THAT(Heddle(command + " --pass " HEDDLE_BUILD_DIR "/heddle_engine_reference.so").err,
                HasSubstr("holds no passes: it exports no function heddle_pass_get"));
  }
}

TEST(Opt, WritesAModelThatGivesTheSame) {
  const TempDirectory dir;
  const Outcome opt =
      Heddle("opt " + kDigits + " -o " + (dir / "one") + " --verify-passes --pass-stats");
  ASSERT_EQ(opt.status, 0) << opt.err;
  EXPECT_THAT(opt.out, HasSubstr("one.pdmodel: "));
  EXPECT_THAT(opt.out, HasSubstr("dead_ops"));
  EXPECT_THAT(opt.out, Not(HasSubstr("for heddle only")));
  EXPECT_TRUE(std::filesystem::exists(dir / "one.pdiparams"));
  const std::string output = OutputOf(kDigits);
  EXPECT_FALSE(output.empty());
  EXPECT_EQ(output, OutputOf(dir / "one.pdmodel"));
  EXPECT_EQ(Heddle("opt " + kDigits + " --out " + (dir / "same")).status, 0);
  EXPECT_EQ(output, OutputOf(dir / "same.pdmodel"));
}

TEST(Opt, SaysWhenPaddleCannotReadIt) {
  const TempDirectory dir;
  const Outcome opt = Heddle("opt " + kDigits + " -o " + (dir / "two") + " --opt 2");
  ASSERT_EQ(opt.status, 0) << opt.err;
  EXPECT_THAT(opt.out, HasSubstr("for heddle only; Paddle does not have"));
  EXPECT_EQ(Heddle("run " + (dir / "two.pdmodel") + " --random-feed").status, 0);
}

TEST(Opt, MistakesAreErrors) {
  const TempDirectory dir;
  const Outcome pass = Heddle("opt " + kDigits + " -o " + (dir / "x") + " --disable-pass no_such");
  EXPECT_EQ(pass.status, 1);
  EXPECT_THAT(pass.err, HasSubstr("there is no pass 'no_such'"));
  const Outcome fetch = Heddle("opt " + kDigits + " -o " + (dir / "x") + " --fetch nobody");
  EXPECT_EQ(fetch.status, 1);
  EXPECT_THAT(fetch.err, HasSubstr("cannot fetch 'nobody'"));
  EXPECT_FALSE(std::filesystem::exists(dir / "x.pdmodel"));
  EXPECT_EQ(Heddle("opt " + kDigits).status, 2);
}

TEST(Opt, ListsItsPasses) {
  const Outcome passes = Heddle("passes --json");
  ASSERT_EQ(passes.status, 0) << passes.err;
  const Json json = Json::parse(passes.out)["passes"];
  ASSERT_GE(json.size(), 10u);
  for (const Json& p : json) {
    const std::string name = p["name"];
    EXPECT_FALSE(p["doc"].get<std::string>().empty()) << name;
    // What level 1 makes, Paddle reads.
    EXPECT_TRUE(p["level"].get<int>() == 2 || p["own_ops"].empty()) << name;
  }
}

TEST(Plan, JsonHoldsWhatADotGraphShows) {
  const Outcome said = Heddle("plan " + kDigits + " --json");
  ASSERT_EQ(said.status, 0) << said.err;
  const Json plan = Json::parse(said.out);
  EXPECT_EQ(Json::parse(plan.dump()), plan);
  const auto slots = static_cast<int>(plan["slots"].size());
  ASSERT_EQ(plan["steps"].size(), plan["instructions"].get<size_t>());
  for (const Json& step : plan["steps"])
    for (const char* side : {"inputs", "outputs"})
      for (const Json& slot : step[side]) EXPECT_LT(slot.get<int>(), slots);
  for (const Json& edge : plan["edges"]) {
    EXPECT_LT(edge[0].get<int>(), edge[1].get<int>());
    EXPECT_LT(edge[1].get<size_t>(), plan["steps"].size());
  }
  ASSERT_EQ(plan["fetches"].size(), 1u);
  EXPECT_EQ(plan["slots"][plan["fetches"][0]["slot"].get<size_t>()]["storage"], "output");
  const Outcome dot = Heddle("plan " + kDigits + " --dot");
  ASSERT_EQ(dot.status, 0) << dot.err;
  EXPECT_THAT(dot.out, HasSubstr("digraph plan {"));
  EXPECT_THAT(dot.out, HasSubstr("0 " + plan["steps"][0]["op"].get<std::string>()));
}

}  // namespace
}  // namespace heddle::tools
