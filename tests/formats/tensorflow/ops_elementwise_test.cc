// Where TensorFlow's element-wise operators differ from Paddle's of the same names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/formats/tensorflow/graph_bytes.h"

namespace heddle::testing::tf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsNan;

Graph Of(std::string_view op, const std::vector<std::string>& inputs,
         const NamedValues& attributes = {}) {
  Graph g;
  for (const std::string& input : inputs) g.Add(PlaceholderNode(input));
  return g.Add(op, "y", inputs, attributes);
}

TEST(TensorflowElementwise, NanGoesThroughRectifiersAndExtremes) {
  const auto x = F32({3}, {std::nanf(""), -1, 9});
  EXPECT_THAT(RunGraph(Of("Relu", {"x"}), {{"x", x}}, "y"), ElementsAre(IsNan(), 0, 9));
  EXPECT_THAT(RunGraph(Of("Relu6", {"x"}), {{"x", x}}, "y"), ElementsAre(IsNan(), 0, 6));
  for (const char* op : {"Maximum", "Minimum"}) {
    const auto zero = F32({1}, {0});
    EXPECT_THAT(RunGraph(Of(op, {"x", "z"}), {{"x", x}, {"z", zero}}, "y")[0], IsNan());
    EXPECT_THAT(RunGraph(Of(op, {"z", "x"}), {{"x", x}, {"z", zero}}, "y")[0], IsNan());
  }
}

TEST(TensorflowElementwise, RemaindersHaveTheDivisorsSign) {
  const std::vector<Feed> feeds = {{"a", F32({4}, {-7, 7, -7, 7})},
                                   {"b", F32({4}, {2, -2, -2, 2})}};
  EXPECT_THAT(RunGraph(Of("FloorMod", {"a", "b"}), feeds, "y"), ElementsAre(1, -1, -1, 1));
  EXPECT_THAT(RunGraph(Of("TruncateMod", {"a", "b"}), feeds, "y"), ElementsAre(-1, 1, -1, 1));
  EXPECT_THAT(RunGraph(Of("FloorDiv", {"a", "b"}), feeds, "y"), ElementsAre(-4, -4, 3, 3));
}

TEST(TensorflowElementwise, IntegersAreNotDividedByZero) {
  Graph g;
  g.Add(IntsNode("a", {1}, {1})).Add(IntsNode("b", {1}, {0})).Add("FloorDiv", "q", {"a", "b"});
  g.Add("Cast", "y", {"q"}, {{"SrcT", TypeValue(kI)}, {"DstT", TypeValue(kF)}});
  const auto model = LoadBytes(g.bytes(), {.fetches = {"y"}});
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const auto values = TryRun(*model, {});
  ASSERT_FALSE(values.ok());
  EXPECT_THAT(values.status().message(), HasSubstr("0"));
}

TEST(TensorflowElementwise, ZeroTimesAnythingMayBeZero) {
  const std::vector<Feed> feeds = {{"a", F32({2}, {INFINITY, 3})}, {"b", F32({2}, {0, 2})}};
  EXPECT_THAT(RunGraph(Of("MulNoNan", {"a", "b"}), feeds, "y"), ElementsAre(0, 6));
  EXPECT_THAT(RunGraph(Of("DivNoNan", {"a", "b"}), feeds, "y"), ElementsAre(0, 1.5));
}

}  // namespace
}  // namespace heddle::testing::tf
