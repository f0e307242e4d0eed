// Convolutions and their windows, whichever operators they become.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/formats/tensorflow/graph_bytes.h"

namespace heddle::testing::tf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Message ListValue(const std::vector<int64_t>& values) {
  Message list;
  for (const int64_t v : values) list.Int(3, v);
  return Message().Add(1, list);
}

// y = Conv2D(x, w), a filter of one row and two columns.
Graph Convolution(const Message& input, const std::vector<int64_t>& filter,
                  const std::vector<float>& weights, NamedValues attributes) {
  Graph g;
  g.Add(input).Add(FloatsNode("w", filter, weights));
  attributes.emplace_back("T", TypeValue(kF));
  return g.Add("Conv2D", "y", {"x", "w"}, attributes);
}
const NamedValues kSame = {{"strides", ListValue({1, 1, 2, 1})}, {"padding", TextValue("SAME")}};

// Width 4, stride 2, two taps: nothing is padded.
TEST(TensorflowNetwork, SamePaddingIsKnownOnlyWhenTheSizesAre) {
  const auto x = F32({1, 1, 4, 1}, {1, 2, 3, 4});
  NamedValues known = {{"dtype", TypeValue(kF)}, {"shape", ShapeValue({1, 1, 4, 1})}};
  NamedValues open = {{"dtype", TypeValue(kF)}, {"shape", ShapeValue({1, -1, -1, 1})}};
  for (const Message& input : {NodeOf("Placeholder", "x", {}, known),
                               NodeOf("Placeholder", "x", {}, open), PlaceholderNode("x")}) {
    const Graph g = Convolution(input, {1, 2, 1, 1}, {1, 10}, kSame);
    EXPECT_THAT(RunGraph(g, {{"x", x}}, "y"), ElementsAre(21, 43));
  }
}

// Width 3: one column of zeros behind the last.
TEST(TensorflowNetwork, SamePaddingGoesToTheEndFirst) {
  const Graph g = Convolution(PlaceholderNode("x"), {1, 2, 1, 1}, {1, 10}, kSame);
  EXPECT_THAT(RunGraph(g, {{"x", F32({1, 1, 3, 1}, {1, 2, 3})}}, "y"), ElementsAre(21, 3));
}

// No attribute says that there are groups.
TEST(TensorflowNetwork, AFilterOfFewerChannelsHasGroups) {
  NamedValues known = {{"dtype", TypeValue(kF)}, {"shape", ShapeValue({1, 1, 1, 2})}};
  const NamedValues valid = {{"strides", ListValue({1, 1, 1, 1})}, {"padding", TextValue("VALID")}};
  for (const Message& input : {NodeOf("Placeholder", "x", {}, known), PlaceholderNode("x")}) {
    const Graph g = Convolution(input, {1, 1, 1, 4}, {1, 2, 3, 4}, valid);
    EXPECT_THAT(RunGraph(g, {{"x", F32({1, 1, 1, 2}, {10, 100})}}, "y"),
                ElementsAre(10, 20, 300, 400));
  }
}

TEST(TensorflowNetwork, WindowsThatDoNotFitAreNamed) {
  NamedValues known = {{"dtype", TypeValue(kF)}, {"shape", ShapeValue({1, 4, 4, 1})}};
  Graph g;
  g.Add(NodeOf("Placeholder", "x", {}, known));
  g.Add("MaxPool", "y", {"x"},
        {{"ksize", ListValue({1, 2})},
         {"strides", ListValue({1, 1, 1, 1})},
         {"padding", TextValue("VALID")}});
  EXPECT_THAT(ErrorOf(g.bytes(), {.fetches = {"y"}}),
              ::testing::AllOf(HasSubstr("MaxPool 'y'"), HasSubstr("ksize")));
}

TEST(TensorflowNetwork, AnEmptyProductIsZeros) {
  Graph g;
  g.Add(FloatsNode("a", {2, 0}, {})).Add(FloatsNode("b", {0, 1}, {}));
  g.Add("MatMul", "y", {"a", "b"});
  EXPECT_THAT(RunGraph(g, {}, "y"), ElementsAre(0, 0));
}

}  // namespace
}  // namespace heddle::testing::tf
