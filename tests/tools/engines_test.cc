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

const std::string kAlways = kDsp + kReference + " --engine-policy always --engine-cache ";

TEST(RunWithACache, SaysWhereModulesComeFrom) {
  const TempDirectory dir;
  const std::string folder = dir / "cache";
  const Json alone = Answer("run " + kDigits + " --opt 0")["outputs"];
  for (const char* from : {"compiled", "hit on disk"}) {
    const Json with = Answer("run " + kDigits + " --opt 0" + kAlways + folder);
    EXPECT_EQ(with["outputs"], alone);
    EXPECT_FALSE(with["engines"].contains("cache_warning"));
    for (const Json& group : with["engines"]["groups"]) EXPECT_EQ(group["cache"], from);
  }
  const Outcome plan = Heddle("plan " + kExamples + "digits" + kAlways + folder);
  EXPECT_EQ(plan.status, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("; cache: hit on disk; taken"));
}

TEST(RunWithACache, GoesOnWithoutAFolder) {
  const TempDirectory dir;
  WriteFile(dir / "file", "");
  for (const std::string& folder : {std::string("/proc/nowhere"), dir / "file", dir / "file/x"}) {
    const Json with = Answer("run " + kDigits + kAlways + folder)["engines"];
    EXPECT_THAT(with["cache_warning"].get<std::string>(), HasSubstr("cannot be opened"));
    for (const Json& group : with["groups"]) EXPECT_EQ(group["cache"], "compiled");
    const Outcome text = Heddle("run " + kDigits + kAlways + folder);
    EXPECT_EQ(text.status, 0);
    EXPECT_THAT(text.out, HasSubstr("the cache is not used as it should be: " + folder));
  }
  EXPECT_EQ(Heddle("run " + kDigits + kDsp + " --engine-cache x").status, 2);
  EXPECT_EQ(Heddle("run " + kDigits + kDsp + kReference + " --engine-cache-mb 5").status, 2);
}

TEST(Cache, ListsAndCleans) {
  const TempDirectory dir;
  const std::string folder = dir / "cache";
  const auto answer = [&](const std::string& options) {
    return Answer("cache " + folder + options);
  };
  const size_t groups = Answer("run " + kDigits + kAlways + folder)["engines"]["groups"].size();
  const Json full = answer("");
  EXPECT_EQ(full["schema"], "heddle.cache/1");
  ASSERT_EQ(full["entries"].size(), groups);
  EXPECT_EQ(full["entries"][0]["engine"], "reference");
  EXPECT_EQ(full["entries"][0]["target"], "dsp");
  EXPECT_THAT(
      Heddle("cache " + folder).out,
      AllOf(HasSubstr("of target dsp for engine reference (heddle "), HasSubstr(" KB, used ")));
  WriteFile(folder + "/mine", "kept");
  WriteFile(folder + "/" + full["entries"][0]["file"].get<std::string>(), "damaged");
  EXPECT_THAT(Heddle("cache " + folder).out,
              AllOf(HasSubstr("damaged, or of another version"), HasSubstr("1 name besides")));
  Json cleaned = answer(" --max-mb 100");
  EXPECT_EQ(cleaned["removed"]["files"], 1);
  EXPECT_EQ(cleaned["entries"].size(), groups - 1);
  cleaned = answer(" --clean");
  EXPECT_EQ(cleaned["removed"]["files"], groups - 1);
  EXPECT_EQ(cleaned["entries"].size(), 0u);
  EXPECT_EQ(ReadFile(folder + "/mine"), "kept");
  const Outcome none = Heddle("cache " + (dir / "nowhere"));
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.err, HasSubstr("NOT_FOUND: " + (dir / "nowhere")));
  EXPECT_EQ(Heddle("cache").status, 2);
  EXPECT_EQ(Heddle("cache " + folder + " --clean --max-mb 5").status, 2);
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

// What is said of an engine that is not there would be said to nobody.
TEST(RunWithEngines, RefusesOptionsOfNoEngine) {
  const auto error = [](const std::string& command) {
    const Outcome done = Heddle(command);
    EXPECT_EQ(done.status, 1) << done.out;
    return done.err;
  };
  for (const std::string& command : {"run " + kDigits, "plan " + kExamples + "digits"}) {
    EXPECT_THAT(error(command + " --engine-option dsp:level=0"),
                HasSubstr("--engine-option dsp:level=0: no --engine is for 'dsp'"));
    EXPECT_THAT(error(command + kDsp + " --engine-option dsp:level=0"),
                HasSubstr("no --engine is for 'dsp'"));
    EXPECT_THAT(error(command + kDsp + kReference + " --engine-option dps:level=0"),
                HasSubstr("no --engine is for 'dps'; did you mean 'dsp'?"));
    EXPECT_THAT(error(command + kDsp + " --engine-limit-ms 5"),
                HasSubstr("--engine-limit-ms 5: no --engine is named"));
    EXPECT_THAT(error(command + " --engine-limit-ms 5"), HasSubstr("no --engine is named"));
  }
}

}  // namespace
}  // namespace heddle::tools
