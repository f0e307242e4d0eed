// What the reader and the plan know of shapes before a run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/formats/onnx/onnx_runs.h"

namespace heddle::testing {
namespace {

using ::testing::ElementsAre;

// The shape that the reader declares for the first output.
Shape Declared(const OnnxGraph& g) {
  const Model model = ModelOf(g.Model());
  return model.program ? model.program.outputs()[0].shape : Shape::Unknown();
}

OnnxGraph& Numbers(OnnxGraph& g, std::string_view name, const std::vector<int64_t>& values) {
  return g.Weight(Tensor64(name, {static_cast<int64_t>(values.size())}, values));
}

// y = relu(reshape(x, [shape(x)[0], shape(x)[1] * 3, 4])) of x [n, 3, 4], all from computed parts.
TEST(OnnxShapes, ComputedDimensionsOfReshapeAreKnown) {
  OnnxGraph g;
  g.In("x", 1, {-1, 3, 4});
  Numbers(Numbers(Numbers(g, "0", {0}), "1", {1}), "2", {2});
  Numbers(g, "four", {4});
  g.Add(Node("Shape", {"x"}, {"s"})).Add(Node("Slice", {"s", "0", "1", "0"}, {"n"}));
  g.Add(Node("Slice", {"s", "1", "2", "0"}, {"c"}))
      .Add(Node("Cast", {"c"}, {"c32"}, {IntAttr("to", 6)}));
  g.Add(Node("Cast", {"c32"}, {"c64"}, {IntAttr("to", 7)})).Add(Node("Div", {"c64", "1"}, {"d"}));
  g.Add(Node("Concat", {"n", "d", "four"}, {"t"}, {IntAttr("axis", 0)}));
  g.Add(Node("Reshape", {"x", "t"}, {"r"}))
      .Add(Node("Relu", {"r"}, {"y"}))
      .Out("y", 1, {-1, -1, -1});
  EXPECT_EQ(Declared(g), Shape({-1, 3, 4}));
}

// Dimensions that are not known follow from the others where only one is not.
TEST(OnnxShapes, OneComputedDimensionIsWhatIsLeft) {
  OnnxGraph g;
  g.In("x", 1, {-1, -1, 12});
  Numbers(Numbers(Numbers(g, "0", {0}), "1", {1}), "2", {2});
  Numbers(g, "parts", {3, 4});
  g.Add(Node("Shape", {"x"}, {"s"})).Add(Node("Slice", {"s", "1", "2"}, {"n"}));
  g.Add(Node("Concat", {"0", "n", "parts"}, {"t"}, {IntAttr("axis", 0)}));
  g.Add(Node("Reshape", {"x", "t"}, {"y"})).Out("y", 1, {-1, -1, -1, -1});
  EXPECT_EQ(Declared(g), Shape({-1, -1, 3, 4}));
  const Model model = ModelOf(g.Model());
  for (const auto& dims : {std::vector<int64_t>{2, 5, 12}, {1, 0, 12}, {0, 5, 12}}) {
    const Shape shape{dims[0], dims[1], dims[2]};
    const auto y = RunValuesOf(model, {{"x", Tensor::Zeros(DType::kF32, shape)}});
    EXPECT_EQ(y[0].tensor().shape(), Shape({dims[0], dims[1], 3, 4}));
  }
}

// What an operand tells of a dimension holds for the result.
TEST(OnnxShapes, OperandsTellWhatIsLeftOpen) {
  OnnxGraph concat, product, sum;
  concat.In("a", 1, {-1, 3, -1}).In("b", 1, {-1, 2, 1});
  concat.Add(Node("Concat", {"a", "b"}, {"y"}, {IntAttr("axis", 1)})).Out("y", 1, {-1, -1, -1});
  EXPECT_EQ(Declared(concat), Shape({-1, 5, 1}));
  product.In("x", 1, {-1, -1, -1}).Weight(Tensor32("w", {2, 3}, {1, 2, 3, 4, 5, 6}));
  product.Add(Node("MatMul", {"x", "w"}, {"y"})).Out("y", 1, {-1, -1, -1});
  EXPECT_EQ(Declared(product), Shape({-1, -1, 3}));
  sum.In("a", 1, {-1, 480, 1}).In("b", 1, {-1, -1, -1});
  sum.Add(Node("Add", {"a", "b"}, {"y"})).Out("y", 1, {-1, -1, -1});
  EXPECT_EQ(Declared(sum), Shape({-1, 480, -1}));
}

OnnxGraph Branch(const Message& node) {
  OnnxGraph g;
  return g.Add(node).Out("b");
}

// c = shape(x)[-1] == 1; v = c ? squeeze(x, -1) : x; y = rank(v) == 2 ? relu(v) : neg(v)
OnnxGraph Choices() {
  OnnxGraph g;
  g.In("x", 1, {-1, -1, -1}).Weight(Tensor64("two", {}, {2}));
  Numbers(Numbers(g, "last", {-1}), "1", {1});
  g.Add(Node("Shape", {"x"}, {"s"})).Add(Node("Gather", {"s", "last"}, {"n"}));
  g.Add(Node("Equal", {"n", "1"}, {"c"}));
  g.Add(Node("If", {"c"}, {"v"},
             {GraphAttr("then_branch", Branch(Node("Squeeze", {"x", "last"}, {"b"})).message()),
              GraphAttr("else_branch", Branch(Node("Identity", {"x"}, {"b"})).message())}));
  g.Add(Node("Shape", {"v"}, {"r"})).Add(Node("Size", {"r"}, {"k"}));
  g.Add(Node("Equal", {"k", "two"}, {"d"}));
  g.Add(Node("If", {"d"}, {"y"},
             {GraphAttr("then_branch", Branch(Node("Relu", {"v"}, {"b"})).message()),
              GraphAttr("else_branch", Branch(Node("Neg", {"v"}, {"b"})).message())}));
  return g.Out("y", 1, {});
}

TEST(OnnxShapes, ConditionsThatFollowFromShapesAreDecidedByThePlan) {
  const Model model = ModelOf(Choices().Model());
  Executor executor({.threads = 1});
  const auto compiled = MustCompile(executor, model.program, model.scope, {});
  const auto run = [&](const Shape& shape, const std::vector<float>& values) {
    const std::vector<Feed> feeds = {{"x", Tensor::Of(DType::kF32, shape, values)}};
    const auto stats = executor.Prepare(compiled, feeds);
    EXPECT_TRUE(stats.ok());
    const auto plan = executor.DescribePlan(compiled, feeds);
    EXPECT_TRUE(plan.ok());
    for (const auto& step : plan->instructions)
      EXPECT_TRUE(step.op == "conditional_block" || step.mode != "dynamic") << step.op;
    auto made = executor.Run(compiled, feeds);
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    return made.ok() ? (*made)[0] : Tensor();
  };
  const Tensor column = run({1, 2, 1}, {-3, 4});
  EXPECT_EQ(column.shape(), Shape({1, 2}));
  EXPECT_THAT(Floats(column), ElementsAre(0, 4));
  const Tensor row = run({1, 1, 2}, {-3, 4});
  EXPECT_EQ(row.shape(), Shape({1, 1, 2}));
  EXPECT_THAT(Floats(row), ElementsAre(3, -4));
}

// One variable has what either branch makes, also where both give one value twice.
TEST(OnnxShapes, BranchesMayGiveAValueTwice) {
  OnnxGraph yes, no, g;
  yes.Add(Node("Neg", {"x"}, {"b"})).Out("b").Out("b");
  no.Add(Node("Abs", {"x"}, {"b"})).Out("b").Out("x");
  g.In("c", 9, {1}).In("x");
  g.Add(Node("If", {"c"}, {"y", "z"},
             {GraphAttr("then_branch", yes.message()), GraphAttr("else_branch", no.message())}));
  const Model model = ModelOf(g.Out("y").Out("z").Model());
  for (const bool c : {true, false}) {
    const auto made = RunValuesOf(
        model,
        {{"c", Tensor::Of(DType::kBool, {1}, std::vector<uint8_t>{c})}, {"x", F32({2}, {-1, 2})}});
    EXPECT_EQ(Floats(made[0].tensor()),
              c ? (std::vector<float>{1, -2}) : (std::vector<float>{1, 2}));
    EXPECT_EQ(Floats(made[1].tensor()),
              c ? (std::vector<float>{1, -2}) : (std::vector<float>{-1, 2}));
  }
}

// y = c ? x * w3 : x * w4, z = reshape(x, [shape(x)[1], -1]): what one branch needs of x does not
// hold where the other one runs.
TEST(OnnxShapes, BranchesTellNothingOfWhatIsOutside) {
  OnnxGraph g;
  g.In("c", 9, {1}).In("x", 1, {-1, -1});
  g.Weight(Tensor32("w3", {3, 1}, {1, 1, 1})).Weight(Tensor32("w4", {4, 1}, {1, 1, 1, 1}));
  Numbers(Numbers(Numbers(g, "1", {1}), "2", {2}), "rest", {-1});
  g.Add(Node("If", {"c"}, {"y"},
             {GraphAttr("then_branch", Branch(Node("MatMul", {"x", "w3"}, {"b"})).message()),
              GraphAttr("else_branch", Branch(Node("MatMul", {"x", "w4"}, {"b"})).message())}));
  g.Add(Node("Shape", {"x"}, {"s"})).Add(Node("Slice", {"s", "1", "2"}, {"n"}));
  g.Add(Node("Concat", {"n", "rest"}, {"t"}, {IntAttr("axis", 0)}));
  g.Add(Node("Reshape", {"x", "t"}, {"z"}));
  const Model model = ModelOf(g.Out("y").Out("z", 1, {-1, -1}).Model());
  for (const int64_t columns : {3, 4}) {
    const Tensor c = Tensor::Of(DType::kBool, {1}, std::vector<uint8_t>{columns == 3});
    const auto made =
        RunValuesOf(model, {{"c", c}, {"x", Tensor::Zeros(DType::kF32, {2, columns})}});
    EXPECT_EQ(made[0].tensor().shape(), Shape({2, 1}));
    EXPECT_EQ(made[1].tensor().shape(), Shape({columns, 2}));
  }
}

// An Identity in front of an output costs nothing.
TEST(OnnxShapes, OutputsTakeTheirNames) {
  OnnxGraph g;
  g.In("x").Add(Node("Relu", {"x"}, {"r"})).Add(Node("Identity", {"r"}, {"y"})).Out("y");
  const Model model = ModelOf(g.Model());
  EXPECT_EQ(model.program.num_ops(), 1);
  EXPECT_EQ(model.program.outputs()[0].name, "y");
}

}  // namespace
}  // namespace heddle::testing
