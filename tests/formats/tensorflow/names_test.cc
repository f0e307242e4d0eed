// What a signature calls its inputs and outputs, what variables are called and what nodes are
// called are names of their own: drawn from one small pool, each still means what it did.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/formats/tensorflow/graph_bytes.h"

namespace heddle::testing::tf {
namespace {

using ::testing::ElementsAre;

struct Case {
  std::string bytes;
  std::vector<Feed> feeds;
  std::vector<std::pair<std::string, float>> outputs;  // in the order of their keys
};

class CaseMaker {
 public:
  explicit CaseMaker(uint32_t seed) : random_(seed) {}

  Case Make() {
    std::vector<std::string> node_names = Pool();  // at most one node has each
    const auto node_name = [&](const std::string& otherwise) {
      if (node_names.empty() || Draw(2) == 0) return otherwise;
      std::string name = node_names.back();
      node_names.pop_back();
      return name;
    };
    Case made;
    const std::vector<std::string> keys = Pool();
    Message signature;
    const auto port = [&](int field, const std::string& key, const std::string& tensor) {
      const Message info = Message().Bytes(1, tensor).Int(2, kF);
      signature.Add(field, Message().Bytes(1, key).Add(2, info));
    };
    const size_t inputs = 1 + Draw(3);
    for (size_t i = 0; i < inputs; ++i) {
      const std::string node = node_name("node_in" + std::to_string(i));
      graph_.Add(PlaceholderNode(node));
      port(1, keys[i], node + ":0");
      const float value = static_cast<float>(1 + i) / 4;
      made.feeds.push_back({keys[i], F32({1}, {value})});
      values_.push_back({node, value});
    }
    const std::vector<std::string> kept = Pool();
    const size_t variables = Draw(3);
    for (size_t i = 0; i < variables; ++i) AddVariable(i, kept[i]);
    const std::string constant = node_name("node_c");
    graph_.Add(FloatsNode(constant, {1}, {1000}));
    values_.push_back({constant, 1000});
    if (Draw(2) == 0) AddWhile();
    for (size_t i = 0; i < 3; ++i) {
      const auto a = values_[Draw(values_.size())], b = values_[Draw(values_.size())];
      const std::string node = node_name("node_sum" + std::to_string(i));
      graph_.Add("AddV2", node, {a.first, b.first});
      values_.push_back({node, a.second + b.second});
    }
    const std::vector<std::string> out = Pool();
    for (size_t i = 0; i < 1 + Draw(out.size()); ++i) {
      const auto value = values_[Draw(values_.size())];
      port(2, out[i], value.first + ":0");
      made.outputs.emplace_back(out[i], value.second);
    }
    std::sort(made.outputs.begin(), made.outputs.end());
    const Message info = Message().Bytes(4, "serve");
    const Message entry = Message().Bytes(1, "serving_default").Add(2, signature);
    const Message meta = Message().Add(1, info).Add(2, graph_.message()).Add(5, entry);
    made.bytes = Message().Int(1, 1).Add(2, meta).bytes();
    return made;
  }

 private:
  size_t Draw(size_t count) { return random_() % count; }
  std::vector<std::string> Pool() {
    std::vector<std::string> names = {"a", "b", "c", "d"};
    for (size_t i = names.size(); i > 1; --i) std::swap(names[i - 1], names[Draw(i)]);
    return names;
  }
  // A variable that a node sets, and one that reads it; the graph or a function counts in it.
  void AddVariable(size_t i, const std::string& kept) {
    const std::string n = std::to_string(i);
    const auto value = static_cast<float>(10 * (i + 1));
    graph_.Add(
        "VarHandleOp", "node_v" + n, {},
        {{"dtype", TypeValue(kF)}, {"shape", ShapeValue({1})}, {"shared_name", TextValue(kept)}});
    graph_.Add(FloatsNode("node_first" + n, {1}, {value}));
    graph_.Add("AssignVariableOp", "node_set" + n, {"node_v" + n, "node_first" + n});
    graph_.Add("ReadVariableOp", "node_read" + n, {"node_v" + n, "^node_set" + n});
    values_.push_back({"node_read" + n, value});
    if (Draw(2) == 0) return;
    graph_.Add(FloatsNode("node_more" + n, {1}, {100}));
    graph_.Add("AssignAddVariableOp", "node_add" + n,
               {"node_v" + n, "node_more" + n, "^node_read" + n});
    graph_.Add("ReadVariableOp", "node_late" + n, {"node_v" + n, "^node_add" + n});
    values_.push_back({"node_late" + n, value + 100});
  }
  // Three times as much, by a loop.
  void AddWhile() {
    const auto value = values_[Draw(values_.size())];
    graph_.Add(IntsNode("node_limit", {}, {2}));
    AddLoop(&graph_, {value.first}, "node_limit");
    graph_.Add("AddV2", "next_0", {"body_0", value.first + "_stays"});
    graph_.Add("Enter", value.first + "_stays", {value.first},
               {{"T", TypeValue(kF)},
                {"frame_name", TextValue("loop")},
                {"is_constant", BoolValue(true)}});
    values_.push_back({"exit_0", 3 * value.second});
  }

  std::mt19937 random_;
  Graph graph_;
  std::vector<std::pair<std::string, float>> values_;  // tensors and what they hold
};

void ExpectRuns(const Case& made) {
  const auto model = LoadBytes(made.bytes, {});
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  std::vector<std::string> keys;
  for (const auto& [key, value] : made.outputs) keys.push_back(key);
  // All of them in their order, and by their names in another one.
  std::vector<std::string> turned(keys.rbegin(), keys.rend());
  for (const auto& fetches : {std::vector<std::string>(), turned}) {
    for (const int level : {0, 2}) {
      Executor executor({.threads = 1});
      const auto compiled = MustCompile(executor, model->program, model->scope,
                                        {.fetches = fetches, .opt_level = level});
      const std::vector<std::string>& want = fetches.empty() ? keys : fetches;
      ASSERT_EQ(compiled.outputs().size(), want.size());
      for (int run = 0; run < 2; ++run) {
        const auto got = MustRun(executor, compiled, made.feeds);
        for (size_t k = 0; k < want.size(); ++k) {
          EXPECT_EQ(compiled.outputs()[k].name, want[k]);
          const size_t at = fetches.empty() ? k : want.size() - 1 - k;
          EXPECT_THAT(Floats(got[k]), ElementsAre(made.outputs[at].second)) << want[k];
        }
      }
    }
  }
}

TEST(TensorflowNames, KeysVariablesAndNodesMayBeCalledAlike) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    ExpectRuns(CaseMaker(seed).Make());
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace heddle::testing::tf
