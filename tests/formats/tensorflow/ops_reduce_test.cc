// Axes of reductions: known, fed, none at all, and bad ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/formats/tensorflow/graph_bytes.h"

namespace heddle::testing::tf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const auto kMatrix = F32({2, 2}, {1, 2, 3, 5});

Graph Sum(const std::vector<int32_t>& axes) {
  NamedValues known = {{"dtype", TypeValue(kF)}, {"shape", ShapeValue({2, 2})}};
  Graph g;
  g.Add(NodeOf("Placeholder", "x", {}, known));
  g.Add(IntsNode("axes", {static_cast<int64_t>(axes.size())}, axes));
  return g.Add("Sum", "y", {"x", "axes"});
}

TEST(TensorflowReduce, NoAxesReduceNothing) {
  EXPECT_THAT(RunGraph(Sum({}), {{"x", kMatrix}}, "y"), ElementsAre(1, 2, 3, 5));
  EXPECT_THAT(RunGraph(Sum({-1}), {{"x", kMatrix}}, "y"), ElementsAre(3, 8));
  EXPECT_THAT(RunGraph(Sum({1, 0}), {{"x", kMatrix}}, "y"), ElementsAre(11));
}

TEST(TensorflowReduce, AxesMayBeFed) {
  Graph g;
  g.Add(PlaceholderNode("x")).Add(PlaceholderNode("axes", kI)).Add("Max", "y", {"x", "axes"});
  Tensor axes = Tensor::Empty(DType::kI32, {1});
  *axes.mutable_data<int32_t>() = 0;
  EXPECT_THAT(RunGraph(g, {{"x", kMatrix}, {"axes", axes}}, "y"), ElementsAre(3, 5));
}

TEST(TensorflowReduce, BadAxesAreErrors) {
  EXPECT_THAT(ErrorOf(Sum({2}).bytes(), {.fetches = {"y"}}), HasSubstr("axis 2"));
  EXPECT_THAT(ErrorOf(Sum({0, -2}).bytes(), {.fetches = {"y"}}), HasSubstr("twice"));
}

}  // namespace
}  // namespace heddle::testing::tf
