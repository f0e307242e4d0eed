// Updates write their variables and return them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/formats/tensorflow/graph_bytes.h"

namespace heddle::testing::tf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Graph WithVariable(const std::vector<float>& values) {
  const NamedValues type = {{"dtype", TypeValue(kF)},
                            {"shape", ShapeValue({static_cast<int64_t>(values.size())})}};
  Graph g;
  g.Add("VariableV2", "v", {}, type);
  g.Add(FloatsNode("first", {static_cast<int64_t>(values.size())}, values));
  return g.Add("Assign", "set", {"v", "first"});
}

TEST(TensorflowTrain, AStepOfGradientDescent) {
  Graph g = WithVariable({1, 2});
  g.Add(FloatsNode("rate", {}, {0.5F})).Add(PlaceholderNode("g"));
  g.Add("ApplyGradientDescent", "step", {"v", "rate", "g", "^set"});
  g.Add("Identity", "after", {"v", "^step"});
  const std::vector<Feed> feeds = {{"g", F32({2}, {2, -4})}};
  EXPECT_THAT(RunGraph(g, feeds, "step"), ElementsAre(0, 4));
  EXPECT_THAT(RunGraph(g, feeds, "after"), ElementsAre(0, 4));
}

TEST(TensorflowTrain, RowsThatOccurTwiceAreAddedTwice) {
  Graph g = WithVariable({1, 2, 3});
  g.Add(IntsNode("rows", {3}, {2, 0, 2})).Add(FloatsNode("more", {3}, {10, 20, 30}));
  g.Add("ScatterAdd", "y", {"v", "rows", "more", "^set"});
  EXPECT_THAT(RunGraph(g, {}, "y"), ElementsAre(21, 2, 43));
}

TEST(TensorflowTrain, AMissingOperandIsNamed) {
  Graph g = WithVariable({1, 2});
  g.Add(FloatsNode("rate", {}, {0.5F})).Add("ApplyGradientDescent", "y", {"v", "rate", "^set"});
  EXPECT_THAT(ErrorOf(g.bytes(), {.fetches = {"y"}}), HasSubstr("has 2 inputs, expected 3"));
}

}  // namespace
}  // namespace heddle::testing::tf
