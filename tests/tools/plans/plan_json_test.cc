// heddle plan --json and back, --why, and TVM's graph.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <vector>

#include "tests/tools/cli.h"

namespace heddle::tools {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

const std::string kDigits = std::string(HEDDLE_SOURCE_DIR) + "/examples/digits";
const std::string kFeed = " --feed x=" + kDigits + "/input.npy ";
const std::string kShape = " --shape x=4,1,8,8 ";

Json PlanOf(const std::string& options) {
  const Outcome said = Heddle("plan " + kDigits + kShape + options + " --json");
  EXPECT_EQ(said.status, 0) << said.err;
  return Json::parse(said.out, nullptr, false);
}

TEST(PlanJson, ComesBackAsTheSamePlan) {
  const TempDirectory directory;
  for (const std::string options :
       {"--serial --threads 1", "--threads 2 --lanes", "--threads 2 --parallel",
        "--threads 2 --lanes --reuse edges --opt 0", "--place emulated", "--force conv=im2col",
        "--place emulated:0,emulated:1 --random-places 3 --opt 0", "--lean",
        "--only-pass fold_constants"}) {
    const Json plan = PlanOf(options);
    WriteFile(directory / "p.json", plan.dump());
    const std::string follow = " --plan '" + (directory / "p.json") + "'";
    const Outcome again = Heddle("plan " + kDigits + kShape + follow + " --json");
    ASSERT_EQ(again.status, 0) << options << ": " << again.err << again.out;
    const Json made = Json::parse(again.out);
    for (const char* key : {"schema", "dispatch", "lanes", "slots", "edges", "order", "places",
                            "streams", "arena_bytes", "events", "copies"})
      EXPECT_EQ(made[key], plan[key]) << options << ": " << key;
    ASSERT_EQ(made["steps"].size(), plan["steps"].size());
    for (size_t i = 0; i < plan["steps"].size(); ++i)
      for (const char* key : {"op", "implementation", "inputs", "outputs", "attributes", "place",
                              "stream", "mode", "position"})
        EXPECT_EQ(made["steps"][i][key], plan["steps"][i][key]) << options << ": " << key;
    const Outcome ran =
        Heddle("run " + kDigits + kFeed + follow + " --out '" + (directory / "out") + "'");
    ASSERT_EQ(ran.status, 0) << options << ": " << ran.err;
    EXPECT_TRUE(std::filesystem::exists(directory / "out/out_0.npy"));
  }
}

TEST(PlanJson, IsRefusedInOneLineWhereItDoesNotFit) {
  const TempDirectory directory;
  const Json plan = PlanOf("--threads 1");
  const auto refused = [&](const std::string& text, const std::string& words,
                           const std::string& model = kDigits + kFeed) {
    WriteFile(directory / "p.json", text);
    const Outcome outcome = Heddle("run " + model + " --plan '" + (directory / "p.json") + "'");
    EXPECT_EQ(outcome.status, 1) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(words));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  };
  refused("", "not what `heddle plan --json` prints");
  refused("[1]", "not what `heddle plan --json` prints");
  refused("{}", "schema");
  const auto with = [&](const char* key, const Json& value) {
    Json other = plan;
    other[key] = value;
    return other.dump();
  };
  refused(with("schema", "heddle.plan/2"), "'heddle.plan/2', not 'heddle.plan/3'");
  refused(with("version", "0.0.1"), "heddle 0.0.1 made it");
  refused(with("machine", "abacus"), "another machine (abacus");
  refused(with("program_hash", 7), "of another program");
  refused(with("slots", 3), "slots is no list");
  refused(with("steps", Json::array({1})), "steps[0] is no object");
  Json wrong = plan;
  wrong["steps"][0]["inputs"][0] = 9999;
  refused(wrong.dump(), "names slot 9999");
  wrong = plan;
  wrong["steps"][0]["op"] = "sqrt";
  refused(wrong.dump(), "has operator sqrt there");
  wrong = plan;
  wrong["options"]["precision"] = 12;
  refused(wrong.dump(), "precision");
  wrong = plan;
  wrong["options"]["place"] = "moon";
  refused(wrong.dump(), "there is no device 'moon'");
  refused(plan.dump(), "has shape", kDigits + " --random-feed --shape x=3,1,8,8");
  refused(plan.dump().substr(0, plan.dump().size() / 2), "not what `heddle plan --json` prints");
  // Numbers that the plan's fields cannot hold are not cut down to others that they can.
  const Json two_to_32 = int64_t{1} << 32;
  wrong = plan;
  wrong["steps"][0]["position"] = wrong["steps"][0]["position"].get<int64_t>() + (int64_t{1} << 32);
  refused(wrong.dump(), "steps[0].position is of another type, or out of range");
  wrong = plan;
  wrong["slots"][0]["storage_id"] = 0.5;
  refused(wrong.dump(), "slots[0].storage_id is of another type, or out of range");
  wrong = plan;
  wrong["slots"][0]["bytes"] = -1;
  refused(wrong.dump(), "slots[0].bytes is of another type, or out of range");
  refused(with("lanes", 1e30), "lanes is of another type");
  refused(with("edges", Json::array({Json::array({0, 1, 2})})), "edges is of another type");
  refused(with("threads", 1000000), "threads is not from 0 to 1024");
  refused(with("threads", two_to_32), "threads is of another type");
  wrong = plan;
  wrong["options"]["opt"] = 3;
  refused(wrong.dump(), "opt is none that there is");
  wrong = plan;
  wrong["slots"][0]["block"] = 7;
  refused(wrong.dump(), "has block 7 there");
  // Lists in lists are not followed down on the stack.
  constexpr size_t kDeep = 1'000'000;
  const std::string deep = std::string(kDeep, '[') + std::string(kDeep, ']');
  refused(deep, "not what `heddle plan --json` prints");
  std::string text = plan.dump();
  const std::string options = "\"options\":";
  const size_t at = text.find(options) + options.size();
  refused(text.insert(at, "{\"opt\":" + deep + "},\"was\":"),
          "not what `heddle plan --json` prints");
  const Outcome directory_given = Heddle("run " + kDigits + kFeed + " --plan '" + kDigits + "'");
  EXPECT_EQ(directory_given.status, 1);
  EXPECT_THAT(directory_given.err, HasSubstr("not what `heddle plan --json` prints"));
}

// Calls fn with every value inside, as a way to it.
void EachValue(const Json& json, const Json::json_pointer& at,
               const std::function<void(const Json::json_pointer&)>& fn) {
  if (!at.empty()) fn(at);
  if (json.is_object())
    for (const auto& [key, value] : json.items()) EachValue(value, at / key, fn);
  if (json.is_array())
    for (size_t k = 0; k < json.size(); ++k) EachValue(json[k], at / k, fn);
}

TEST(PlanJson, ChangedAtRandomItIsFollowedOrRefused) {
  const TempDirectory directory;
  const Json values = {-1,
                       0,
                       7,
                       int64_t{1} << 31,
                       int64_t{1} << 32,
                       INT64_MIN,
                       UINT64_MAX,
                       1e30,
                       0.5,
                       true,
                       nullptr,
                       "",
                       "lanes",
                       "cpu",
                       "\0",
                       {},
                       {1},
                       {{1, 2}},
                       Json::object(),
                       {{"slot", 1}}};
  std::mt19937 random(5);
  int followed = 0, refused = 0;
  for (const std::string options :
       {"--threads 2 --lanes", "--place emulated:0,emulated:1 --random-places 3 --opt 0"}) {
    const Json plan = PlanOf(options);
    std::vector<Json::json_pointer> ways;
    EachValue(plan, Json::json_pointer(), [&](const auto& way) { ways.push_back(way); });
    for (int k = 0; k < 50; ++k) {
      Json other = plan;
      const Json::json_pointer& way = ways[random() % ways.size()];
      if (k % 4 == 0)
        other[way.parent_pointer()].erase(other[way.parent_pointer()].is_array()
                                              ? other[way.parent_pointer()].begin()
                                              : other[way.parent_pointer()].find(way.back()));
      else
        other[way] = values[random() % values.size()];
      WriteFile(directory / "p.json", other.dump());
      const Outcome outcome =
          Heddle("run " + kDigits + kFeed + " --plan '" + (directory / "p.json") + "'");
      ASSERT_TRUE(outcome.status == 0 || outcome.status == 1)
          << way.to_string() << ": " << outcome.err;
      followed += outcome.status == 0;
      if (outcome.status == 0) continue;
      ++refused;
      EXPECT_TRUE(outcome.err.starts_with("heddle: INVALID_ARGUMENT: ")) << outcome.err;
      EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    }
  }
  EXPECT_GE(followed, 5) << "texts that only people read decide nothing";
  EXPECT_GE(refused, 20);
}

TEST(PlanJson, WhyNamesCandidatesWithTheirCosts) {
  const Outcome why = Heddle("plan " + kDigits + kShape + " --threads 1 --why");
  ASSERT_EQ(why.status, 0) << why.err;
  EXPECT_THAT(why.out, HasSubstr("cheapest of"));
  EXPECT_THAT(why.out, HasSubstr(" ns"));
  const Json plan = PlanOf("--threads 1");
  size_t choices = 0;
  for (const Json& step : plan["steps"]) {
    EXPECT_FALSE(step["why"].get<std::string>().empty());
    for (const Json& choice : step.value("choices", Json::array())) {
      ++choices;
      EXPECT_TRUE(std::any_of(choice["candidates"].begin(), choice["candidates"].end(),
                              [&](const Json& c) { return c["name"] == choice["chosen"]; }));
    }
  }
  EXPECT_GE(choices, 2u);
}

TEST(PlanJson, TellsPlacesStreamsEventsAndCopies) {
  const Json plan = PlanOf("--place emulated --opt 0");
  EXPECT_EQ(plan["places"], (Json{"cpu", "emulated:0"}));
  EXPECT_GT(plan["copies"], 0);
  std::set<std::string> streams;
  std::set<int> recorded;
  int copies = 0;
  for (const Json& step : plan["steps"]) {
    if (step["stream"] != "") streams.insert(step["stream"].get<std::string>());
    if (step.contains("event")) {
      EXPECT_TRUE(recorded.insert(step["event"].get<int>()).second);
    }
    for (const Json& event : step.value("waits", Json::array()))
      EXPECT_TRUE(recorded.count(event.get<int>())) << "recorded before it is waited for";
    copies += step["op"] == "copy";
    for (const Json& slot : step["outputs"]) {
      if (slot < 0 || step["op"] == "await") continue;
      EXPECT_EQ(plan["slots"][slot.get<size_t>()]["place"], step["place"]);
    }
  }
  EXPECT_EQ(recorded.size(), plan["events"].get<size_t>());
  EXPECT_EQ(copies, plan["copies"]);
  for (const std::string& stream : streams)
    EXPECT_NE(std::find(plan["streams"].begin(), plan["streams"].end(), stream),
              plan["streams"].end());
}

// As TVM's graph executor reads it.
TEST(TvmGraph, HasTheShapeThatTvmReads) {
  const Outcome said = Heddle("plan " + kDigits + kShape + " --threads 1 --serial --format tvm");
  ASSERT_EQ(said.status, 0) << said.err;
  const Json graph = Json::parse(said.out);
  const auto& nodes = graph["nodes"];
  const auto& rows = graph["node_row_ptr"];
  ASSERT_EQ(rows.size(), nodes.size() + 1);
  const size_t entries = rows.back();
  for (const auto& [name, type] : {std::pair("dltype", "list_str"),
                                   {"shape", "list_shape"},
                                   {"storage_id", "list_int"},
                                   {"device_index", "list_int"}}) {
    ASSERT_EQ(graph["attrs"][name][0], type);
    EXPECT_EQ(graph["attrs"][name][1].size(), entries) << name;
  }
  size_t operators = 0;
  for (size_t n = 0; n < nodes.size(); ++n) {
    EXPECT_GE(rows[n + 1].get<size_t>(), rows[n].get<size_t>());
    for (const Json& input : nodes[n]["inputs"]) {
      ASSERT_EQ(input.size(), 3u);
      EXPECT_LT(input[0].get<size_t>(), n) << "nodes come after their inputs";
      const size_t source = input[0];
      EXPECT_LT(rows[source].get<size_t>() + input[1].get<size_t>(),
                rows[source + 1].get<size_t>());
    }
    if (nodes[n]["op"] == "null") {
      EXPECT_TRUE(std::find(graph["arg_nodes"].begin(), graph["arg_nodes"].end(), n) !=
                  graph["arg_nodes"].end());
      continue;
    }
    EXPECT_EQ(nodes[n]["op"], "tvm_op");
    EXPECT_EQ(nodes[n]["attrs"]["num_inputs"], std::to_string(nodes[n]["inputs"].size()));
    ++operators;
  }
  EXPECT_GT(operators, 3u);
  EXPECT_EQ(graph["heads"].size(), 1u);
  // One value at a time in a storage: whoever writes it comes after all readers of the one before.
  std::map<int, std::set<size_t>> writers;
  for (size_t n = 0; n < nodes.size(); ++n)
    for (size_t e = rows[n]; e < rows[n + 1].get<size_t>(); ++e)
      writers[graph["attrs"]["storage_id"][1][e]].insert(n);
  for (size_t n = 0; n < nodes.size(); ++n)
    for (const Json& input : nodes[n]["inputs"]) {
      const size_t source = input[0];
      const int storage =
          graph["attrs"]["storage_id"][1][rows[source].get<size_t>() + input[1].get<size_t>()];
      for (size_t writer : writers[storage])
        EXPECT_TRUE(writer <= source || writer >= n)
            << "node " << writer << " overwrites what node " << n << " reads of " << source;
    }
}

}  // namespace
}  // namespace heddle::tools
