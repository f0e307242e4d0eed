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

TEST(MeasuredWithEngines, ProgramsAreThoseThatRun) {
  for (const char* command : {"bench ", "profile "}) {
    const std::string with =
        command + kDigits + " --seconds 0.05" + kDsp + kReference + " --engine-policy always";
    const Json engines = Answer(with)["engines"];
    ASSERT_GT(engines["groups"].size(), 0u);
    for (const Json& group : engines["groups"]) {
      EXPECT_EQ(group["taken"], true) << group;
      EXPECT_GT(group["runs"], 1);
    }
    EXPECT_THAT(Heddle(with).out, HasSubstr("groups are taken, with"));
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

// An engine that misbehaves as the option "mode" says, here and in a process of its own.
const std::string kFaulty = " --engine own=" HEDDLE_BUILD_DIR "/heddle_engine_faulty.so";
const std::string kFaultyAside =
    " --engine own=" HEDDLE_BUILD_DIR
    "/heddle_engine_process.so --engine-option own:library=" HEDDLE_BUILD_DIR
    "/heddle_engine_faulty.so";

TEST(RunWithEngines, SaysWhyHeddleComputes) {
  const auto command = [](const std::string& engine, const std::string& mode) {
    return "run " + kDigits + engine + " --engine-policy always --engine-option 'own:mode=" + mode +
           "'";
  };
  const std::pair<const char*, const char*> kModes[] = {
      {"takes: fails", " stay: engine faulty failed in takes: the card is hot"},
      {"takes: answers 17", " stay: engine faulty answered takes with status 17"},
      {"compile: throws", "; stays: engine faulty threw in compile: a bolt"},
      {"run: refuses", "; taken; refused 1 of 1 runs: engine faulty refuses the run: not today"},
  };
  for (const auto& [mode, text] : kModes) {
    SCOPED_TRACE(mode);
    const Outcome done = Heddle(command(kFaulty, mode));
    EXPECT_EQ(done.status, 0) << done.err;
    EXPECT_THAT(done.out, HasSubstr(text));
  }
  const Json stays = Answer(command(kFaulty, "takes: fails"))["engines"];
  EXPECT_EQ(stays["groups"].size(), 0u);
  ASSERT_EQ(stays["refusals"].size(), 1u);
  EXPECT_EQ(stays["refusals"][0]["reason"], "engine faulty failed in takes: the card is hot");
  EXPECT_EQ(stays["refusals"][0]["operators"][0], "relu");
  const Json group = Answer(command(kFaulty, "run: refuses"))["engines"]["groups"][0];
  EXPECT_EQ(group["runs"], 1);
  EXPECT_EQ(group["refused_runs"], 1);
  EXPECT_EQ(group["refusal"], "engine faulty refuses the run: not today");
  const Outcome crash = Heddle(command(kFaultyAside, "takes: crashes"));
  EXPECT_EQ(crash.status, 0) << crash.err;
  EXPECT_THAT(crash.out, HasSubstr("engine faulty (process) failed in takes: the engine's process "
                                   "was ended by signal 6"));
  const Outcome hang = Heddle(command(kFaultyAside, "compile: hangs") + " --engine-limit-ms 1000");
  EXPECT_EQ(hang.status, 0) << hang.err;
  EXPECT_THAT(hang.out, HasSubstr("has not answered compile within 1000 ms"));
  const Outcome stop = Heddle(command(kFaulty, "run: stops"));
  EXPECT_EQ(stop.status, 1);
  EXPECT_THAT(stop.err, HasSubstr("engine faulty stopped in run, though nothing asked it to"));
}

TEST(RunWithEngines, EndsTrialRunsAtTheDeadline) {
  for (const std::string& engine : {kFaulty, kFaultyAside}) {
    const Outcome done = Heddle("run " + kDigits + engine +
                                " --deadline-ms 400 --engine-option 'own:mode=run: hangs'");
    EXPECT_EQ(done.status, 1) << done.out << done.err;
    EXPECT_THAT(done.err, HasSubstr("was not finished at its deadline"));
  }
}

TEST(Targets, WhoseNamesThereAreNotAreWarnedOf) {
  const TempDirectory dir;
  WriteFile(dir / "t.json", R"({"name": "t", "units": [{"name": "u", "ops": [{"type": "tanhh"}]}],
                                "links": [], "start": ["u"]})");
  for (const std::string& command :
       {"run " + kDigits, "plan " + kExamples + "digits", "partition " + kExamples + "digits"}) {
    const Outcome done = Heddle(command + " --target " + (dir / "t.json"));
    EXPECT_EQ(done.status, 0) << done.err;
    EXPECT_THAT(done.err, HasSubstr("t.json: no operator is called 'tanhh'; did you mean 'tanh'?"));
    const bool says_it_itself = command.starts_with("partition");
    EXPECT_THAT(done.out, HasSubstr(says_it_itself ? "rest\n"
                                                   : "no operator can be grouped; heddle partition "
                                                     "MODEL --target FILE says why"));
  }
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
  EXPECT_THAT(error(kReference),
              HasSubstr("no --target is called 'dsp', and engine reference does not say what it "
                        "takes"));
  const Outcome zero = Heddle("run " + kDigits + kDsp + kReference + " --engine-limit-ms 0");
  EXPECT_EQ(zero.status, 2);
  EXPECT_THAT(zero.err, HasSubstr("--engine-limit-ms: 0 is no positive number"));
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
