// heddle partition: what it prints and writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/tools/cli.h"

namespace heddle::tools {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

const std::string kExamples = std::string(HEDDLE_SOURCE_DIR) + "/examples/";
const std::string kDigits = kExamples + "digits";

std::string TargetOption(const std::string& name) {
  return " --target " + kExamples + "targets/" + name + ".json";
}

Json AnswerOf(const std::string& model, const std::string& options) {
  const Outcome done = Heddle("partition " + model + options + " --json");
  EXPECT_EQ(done.status, 0) << done.err;
  return Json::parse(done.out);
}

// Types of the operators that an answer speaks of as the rest of a target that takes nothing.
std::vector<std::string> TypesIn(const std::string& model) {
  const TempDirectory dir;
  WriteFile(
      dir / "none.json",
      R"({"name": "none", "units": [{"name": "u", "ops": []}], "links": [], "start": ["u"]})");
  std::vector<std::string> types;
  const Json answer = AnswerOf(model, " --target " + (dir / "none.json"));
  for (const Json& rest : answer["rest"])
    if (rest["type"] != "feed" && rest["type"] != "fetch") types.push_back(rest["type"]);
  return types;
}

TEST(Partition, PutsEachOperatorSomewhere) {
  for (const char* target : {"opu", "npu", "dsp"}) {
    const Json answer = AnswerOf(kDigits, TargetOption(target));
    EXPECT_EQ(answer["schema"], "heddle.partition/1");
    EXPECT_EQ(answer["target"], Json::array({target}));
    std::vector<int> operators;
    for (const Json& group : answer["groups"]) {
      EXPECT_EQ(group["operators"].size(), group["units"].size());
      for (const char* key : {"operators", "helpers"})
        for (const int i : group[key]) operators.push_back(i);
    }
    for (const Json& rest : answer["rest"]) {
      operators.push_back(rest["operator"]);
      EXPECT_NE(rest["reason"], "");
    }
    std::sort(operators.begin(), operators.end());
    ASSERT_EQ(operators.size(), answer["operators"]);
    for (size_t i = 0; i < operators.size(); ++i) EXPECT_EQ(operators[i], static_cast<int>(i));
  }
}

TEST(Partition, SaysTheSameTwice) {
  Json one = AnswerOf(kDigits, TargetOption("dsp")), two = AnswerOf(kDigits, TargetOption("dsp"));
  one.erase("ms");
  two.erase("ms");
  EXPECT_EQ(one, two);
}

TEST(Partition, TargetsClaimInTheirOrder) {
  const Json answer = AnswerOf(kDigits, TargetOption("opu") + TargetOption("dsp"));
  EXPECT_EQ(answer["target"], Json::array({"opu", "dsp"}));
  const Json alone = AnswerOf(kDigits, TargetOption("opu"));
  ASSERT_GT(alone["groups"].size(), 0u);
  ASSERT_GT(answer["groups"].size(), alone["groups"].size());
  for (size_t k = 0; k < alone["groups"].size(); ++k)
    EXPECT_EQ(answer["groups"][k], alone["groups"][k]);
  EXPECT_EQ(answer["groups"].back()["target"], "dsp");
}

// Operators are those of the file; of other formats, those that `heddle opt --opt 0` writes.
TEST(Partition, TakesProgramsOfAllFormats) {
  const TempDirectory dir;
  ASSERT_EQ(Heddle("convert " + kDigits + " --to pir -o " + (dir / "pir")).status, 0);
  for (const std::string& model :
       {kDigits, kDigits + "/onnx", kDigits + "/tensorflow", dir / "pir"}) {
    ASSERT_EQ(Heddle("opt " + model + " --opt 0 -o " + (dir / "written")).status, 0);
    const std::vector<std::string> types = TypesIn(model);
    EXPECT_GT(types.size(), 3u) << model;
    EXPECT_EQ(types, TypesIn(dir / "written.pdmodel")) << model;
  }
}

TEST(Partition, FaultsOfATargetAreOneLine) {
  const TempDirectory dir;
  WriteFile(dir / "t.json", R"({"name": "t", "units": [], "links": [["a", "b"]], "start": ["a"]})");
  const Outcome unit = Heddle("partition " + kDigits + " --target " + (dir / "t.json"));
  EXPECT_EQ(unit.status, 1);
  EXPECT_THAT(unit.err, AllOf(HasSubstr("t.json"), HasSubstr("links[0]"), HasSubstr("'a'")));
  EXPECT_EQ(std::count(unit.err.begin(), unit.err.end(), '\n'), 1);
  const Outcome none = Heddle("partition " + kDigits + " --target " + (dir / "none.json"));
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.err, HasSubstr("none.json"));
  const Outcome twice =
      Heddle("partition " + kDigits + TargetOption("npu") + TargetOption("npu") + " --json");
  EXPECT_EQ(twice.status, 1);
  EXPECT_THAT(twice.err, HasSubstr("two targets are called 'npu'"));
  EXPECT_EQ(Json::parse(twice.out)["schema"], "heddle.error/1");
  EXPECT_EQ(Heddle("partition " + kDigits).status, 2);
}

TEST(Partition, DrawsGroupsAsClusters) {
  const Outcome dot = Heddle("partition " + kDigits + TargetOption("dsp") + " --dot");
  ASSERT_EQ(dot.status, 0) << dot.err;
  EXPECT_THAT(dot.out, AllOf(HasSubstr("digraph"), HasSubstr("subgraph cluster_0_0"),
                             HasSubstr("group 0 on dsp"), HasSubstr(" -> ")));
  const Outcome text = Heddle("partition " + kDigits + TargetOption("dsp"));
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("group 0 on dsp"), HasSubstr("feed"), Not(HasSubstr("->"))));
}

// Runs the parts one after another, each fed what those before it gave; returns the files by name.
std::map<std::string, std::string> RunParts(const TempDirectory& dir, const std::string& parts,
                                            std::map<std::string, std::string> values) {
  size_t part_number = 0;
  const Json order = Json::parse(ReadFile(parts + "/parts.json"));
  for (const Json& part : order["parts"]) {
    const std::string out = dir / ("out_" + std::to_string(part_number++));
    std::string command = "run " + parts + "/" + part["part"].get<std::string>() + ".pdmodel" +
                          " --opt 0 --out " + out;
    for (const std::string name : part["inputs"]) command += " --feed " + name + "=" + values[name];
    const Outcome run = Heddle(command);
    EXPECT_EQ(run.status, 0) << command << "\n" << run.err;
    size_t k = 0;
    for (const std::string name : part["outputs"])
      values[name] = out + "/out_" + std::to_string(k++) + ".npy";
  }
  return values;
}

TEST(Partition, PartsGiveTogetherWhatTheWholeGives) {
  const TempDirectory dir;
  ASSERT_EQ(Heddle("run " + kDigits + " --opt 0 --feed x=" + kDigits + "/input.npy --out " +
                   (dir / "whole"))
                .status,
            0);
  const std::string output =
      Json::parse(Heddle("inspect " + kDigits + " --json").out)["outputs"][0]["name"];
  for (const char* target : {"opu", "npu", "dsp"}) {
    const std::string parts = dir / target;
    const Outcome done = Heddle("partition " + kDigits + TargetOption(target) + " -o " + parts);
    ASSERT_EQ(done.status, 0) << done.err;
    const auto values = RunParts(dir, parts, {{"x", kDigits + "/input.npy"}});
    ASSERT_TRUE(values.contains(output));
    EXPECT_EQ(ReadFile(values.at(output)), ReadFile(dir / "whole/out_0.npy")) << target;
    const Json answer = Json::parse(ReadFile(parts + "/partition.json"));
    EXPECT_EQ(answer["target"], Json::array({target}));
    for (size_t k = 0; k < answer["groups"].size(); ++k)
      EXPECT_TRUE(std::filesystem::exists(parts + "/group_" + std::to_string(k) + ".pdmodel"));
  }
}

}  // namespace
}  // namespace heddle::tools
