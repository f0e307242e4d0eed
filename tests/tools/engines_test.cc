// heddle run and plan with --target and --engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/tools/cli.h"

namespace heddle::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;

const std::string kExamples = std::string(HEDDLE_SOURCE_DIR) + "/examples/";
const std::string kDigits = kExamples + "digits --feed x=" + kExamples + "digits/input.npy";
const std::string kDsp = " --target " + kExamples + "targets/dsp.json";
const std::string kReference = " --engine dsp=" HEDDLE_BUILD_DIR "/heddle_engine_reference.so";

Json Answer(const std::string& command) {
  const Outcome done = Heddle(command + " --json");
  EXPECT_EQ(done.status, 0) << done.err;
  return done.status == 0 ? Json::parse(done.out) : Json();
}

TEST(RunWithEngines, GivesWhatHeddleAloneGives) {
  const Json alone = Answer("run " + kDigits + " --opt 0")["outputs"];
  for (const std::string& options :
       {kDsp, kDsp + kReference + " --engine-policy always",
        kDsp + kReference + " --engine-policy always --engine-limit-ms 60000",
        kDsp + kReference + " --engine-option dsp:level=0"}) {
    SCOPED_TRACE(options);
    const Json with = Answer("run " + kDigits + " --opt 0" + options);
    EXPECT_EQ(with["outputs"], alone);
    EXPECT_GT(with["engines"]["groups"].size(), 0u);
  }
}

TEST(RunWithEngines, SaysWhatWasDecided) {
  const Json always =
      Answer("run " + kDigits + kDsp + kReference + " --engine-policy always")["engines"];
  for (const Json& group : always["groups"]) {
    EXPECT_EQ(group["taken"], true) << group;
    EXPECT_EQ(group["engine"], "reference");
    EXPECT_EQ(group["target"], "dsp");
  }
  const Json measured = Answer("run " + kDigits + kDsp + kReference)["engines"];
  EXPECT_NE(measured["decision"], "");
  for (const Json& group : measured["groups"]) {
    EXPECT_GT(group["engine_ms"], 0) << group;
    EXPECT_GT(group["host_ms"], 0) << group;
  }
}

TEST(PlanWithEngines, ShowsGroups) {
  const Outcome plan =
      Heddle("plan " + kExamples + "digits" + kDsp + kReference + " --engine-policy always");
  EXPECT_EQ(plan.status, 0) << plan.err;
  EXPECT_THAT(plan.out, AllOf(HasSubstr("offload_group"), HasSubstr("on reference"),
                              HasSubstr("groups are taken"), HasSubstr("group_0 of target dsp")));
}

TEST(RunWithEngines, RefusesWhatIsNone) {
  const auto error = [](const std::string& options) {
    const Outcome done = Heddle("run " + kDigits + options);
    EXPECT_EQ(done.status, 1);
    return done.err;
  };
  EXPECT_THAT(error(kDsp + " --engine dsp=engine.so"), HasSubstr("as in ./engine.so"));
  EXPECT_THAT(error(kDsp + " --engine dsp"), HasSubstr("expected TARGET=LIBRARY"));
  EXPECT_THAT(error(kDsp + kReference + kReference), HasSubstr("has an engine already"));
  EXPECT_THAT(error(kReference), HasSubstr("engine reference does not say what it takes"));
  EXPECT_THAT(error(kDsp + kReference + " --engine-option level=0"),
              HasSubstr("expected TARGET:KEY=VALUE"));
  EXPECT_THAT(error(kDsp + kReference + " --engine-option dsp:level=9"),
              HasSubstr("there is one option, level"));
}

}  // namespace
}  // namespace heddle::tools
