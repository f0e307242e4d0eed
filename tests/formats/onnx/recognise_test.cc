// Operators that exporters wrote out are recognised, and no others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/formats/onnx/onnx_runs.h"

namespace heddle::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;

std::string OnlyOperator(const OnnxGraph& g) {
  const Model model = ModelOf(g.Model());
  if (!model.program) return "";
  const auto counts = model.program.op_counts();
  return counts.size() == 1 && counts[0].count == 1 ? counts[0].type
                                                    : std::to_string(model.program.num_ops());
}

std::vector<float> RunOn(const OnnxGraph& g, const Tensor& x) {
  return Floats(RunValuesOf(ModelOf(g.Model()), {{"x", x}})[0].tensor());
}

OnnxGraph HardSwish(float divisor, bool divide_first) {
  OnnxGraph g;
  g.In("x").Weight(Tensor32("three", {}, {3})).Weight(Tensor32("zero", {}, {0}));
  g.Weight(Tensor32("top", {}, {6})).Weight(Tensor32("d", {1}, {divisor}));
  g.Add(Node("Add", {"x", "three"}, {"a"})).Add(Node("Clip", {"a", "zero", "top"}, {"c"}));
  if (divide_first)
    g.Add(Node("Div", {"c", "d"}, {"h"})).Add(Node("Mul", {"x", "h"}, {"y"}));
  else
    g.Add(Node("Mul", {"x", "c"}, {"h"})).Add(Node("Div", {"h", "d"}, {"y"}));
  return g.Out("y");
}

TEST(RecogniseOnnx, HardSwish) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const bool divide_first : {false, true}) {
    EXPECT_EQ(OnlyOperator(HardSwish(6, divide_first)), "hard_swish");
    // The product overflows where it is not divided first.
    EXPECT_THAT(RunOn(HardSwish(6, divide_first), F32({4}, {-4, 1, 5, 1e38F})),
                ElementsAre(0, FloatNear(4 / 6.0, 1e-6), 5, divide_first ? 1e38F : kInf));
  }
  OnnxGraph node;
  node.In("x").Add(Node("HardSwish", {"x"}, {"y"})).Out("y");
  EXPECT_THAT(RunOn(node, F32({2}, {5, 1e38F})), ElementsAre(5, 1e38F));
  // With other numbers it is another operator.
  EXPECT_THAT(RunOn(HardSwish(3, true), F32({3}, {-4, 1, 5})),
              ElementsAre(0, FloatNear(4 / 3.0, 1e-6), 10));
}

// hard_swish has one slope; by default ONNX's hard sigmoid has another one.
TEST(RecogniseOnnx, AProductWithAHardSigmoidOfOtherNumbersStays) {
  OnnxGraph g;
  g.In("x").Add(Node("HardSigmoid", {"x"}, {"h"})).Add(Node("Mul", {"x", "h"}, {"y"})).Out("y");
  EXPECT_THAT(RunOn(g, F32({3}, {-4, 1, 5})), ElementsAre(0, FloatNear(0.7, 1e-6), 5));
}

TEST(RecogniseOnnx, ValuesThatAreReadElsewhereStay) {
  OnnxGraph g = HardSwish(6, false);
  g.Out("c");
  const Model model = ModelOf(g.Model());
  const auto made = RunValuesOf(model, {{"x", F32({2}, {-4, 1})}});
  EXPECT_THAT(Floats(made[0].tensor()), ElementsAre(0, FloatNear(4 / 6.0, 1e-6)));
  EXPECT_THAT(Floats(made[1].tensor()), ElementsAre(0, 4));
}

TEST(RecogniseOnnx, Swish) {
  OnnxGraph g;
  g.In("x").Add(Node("Sigmoid", {"x"}, {"s"})).Add(Node("Mul", {"x", "s"}, {"y"})).Out("y");
  EXPECT_EQ(OnlyOperator(g), "swish");
  EXPECT_THAT(RunOn(g, F32({1}, {2})), ElementsAre(FloatNear(2 / (1 + std::exp(-2.0f)), 1e-6)));
}

TEST(RecogniseOnnx, SwishOfAMultiple) {
  OnnxGraph g;
  g.In("x").Weight(Tensor32("k", {1}, {2})).Add(Node("Mul", {"x", "k"}, {"m"}));
  g.Add(Node("Sigmoid", {"m"}, {"s"})).Add(Node("Mul", {"x", "s"}, {"y"})).Out("y");
  EXPECT_EQ(OnlyOperator(g), "swish");
  EXPECT_THAT(RunOn(g, F32({1}, {2})), ElementsAre(FloatNear(2 / (1 + std::exp(-4.0f)), 1e-6)));
}

TEST(RecogniseOnnx, Gelu) {
  OnnxGraph g;
  g.In("x").Weight(Tensor32("r", {}, {std::sqrt(2.0f)})).Weight(Tensor32("one", {}, {1}));
  g.Weight(Tensor32("half", {}, {0.5}));
  g.Add(Node("Div", {"x", "r"}, {"q"})).Add(Node("Erf", {"q"}, {"e"}));
  g.Add(Node("Add", {"e", "one"}, {"a"})).Add(Node("Mul", {"x", "a"}, {"m"}));
  g.Add(Node("Mul", {"m", "half"}, {"y"})).Out("y");
  EXPECT_EQ(OnlyOperator(g), "gelu");
  EXPECT_THAT(RunOn(g, F32({2}, {1, -1})),
              ElementsAre(FloatNear(0.8413447, 1e-5), FloatNear(-0.1586553, 1e-5)));
}

OnnxGraph LayerNorm(bool with_bias) {
  OnnxGraph g;
  g.In("x", 1, {-1, 2}).Weight(Tensor32("two", {}, {2})).Weight(Tensor32("eps", {}, {1e-5f}));
  g.Weight(Tensor32("w", {2}, {10, 20})).Weight(Tensor32("b", {2}, {1, 2}));
  const Message last = IntsAttr("axes", {-1});
  g.Add(Node("ReduceMean", {"x"}, {"m"}, {last})).Add(Node("Sub", {"x", "m"}, {"d"}));
  g.Add(Node("Pow", {"d", "two"}, {"p"})).Add(Node("ReduceMean", {"p"}, {"v"}, {last}));
  g.Add(Node("Add", {"v", "eps"}, {"e"})).Add(Node("Sqrt", {"e"}, {"r"}));
  g.Add(Node("Div", {"d", "r"}, {"n"}));
  g.Add(Node("Mul", {"n", "w"}, {with_bias ? "s" : "y"}));
  if (with_bias) g.Add(Node("Add", {"s", "b"}, {"y"}));
  return g.Out("y", 1, {-1, 2});
}

TEST(RecogniseOnnx, LayerNorm) {
  for (const bool with_bias : {false, true}) {
    EXPECT_EQ(OnlyOperator(LayerNorm(with_bias)), "layer_norm");
    const float b = with_bias ? 1 : 0;
    EXPECT_THAT(RunOn(LayerNorm(with_bias), F32({1, 2}, {3, 5})),
                ElementsAre(FloatNear(-10 + b, 1e-3), FloatNear(20 + 2 * b, 1e-3)));
  }
}

// NaN stays NaN where nothing before it is fused with.
TEST(RecogniseOnnx, ReluKeepsNan) {
  OnnxGraph g;
  g.In("x").Add(Node("Relu", {"x"}, {"y"})).Out("y");
  const std::vector<float> y = RunOn(g, F32({3}, {NAN, -1, 2}));
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(y[1], 0);
  EXPECT_EQ(y[2], 2);
}

}  // namespace
}  // namespace heddle::testing
