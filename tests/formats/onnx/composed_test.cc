// Nodes that the reader composes of several operators, with the answers of ONNX Runtime or of
// ONNX's reference evaluator.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/formats/onnx/onnx_runs.h"

namespace heddle::testing {
namespace {

constexpr std::string_view kTraining = "ai.onnx.preview.training";

Message StringAttr(std::string_view name, std::string_view value) {
  return Message().Bytes(1, name).Bytes(4, value).Int(20, 3);
}
Tensor V(const std::vector<float>& values) {
  return F32({static_cast<int64_t>(values.size())}, values);
}

struct NodeCase {
  std::string type;
  std::string_view domain = {};
  std::vector<Message> attributes = {};
  std::vector<Tensor> inputs, results;
  int64_t opset = 17;
};

void ExpectNode(const NodeCase& c) {
  OnnxGraph graph;
  std::vector<std::string> inputs, outputs;
  std::vector<Feed> feeds;
  for (const Tensor& t : c.inputs) {
    inputs.push_back("x" + std::to_string(inputs.size()));
    const std::vector<int64_t> open(static_cast<size_t>(t.rank()), -1);
    graph.In(inputs.back(), t.dtype() == DType::kI64 ? 7 : 1, open);
    feeds.push_back({inputs.back(), t});
  }
  for (size_t i = 0; i < c.results.size(); ++i) {
    outputs.push_back("y" + std::to_string(i));
    graph.Out(outputs.back());
  }
  graph.Add(Node(c.type, inputs, outputs, c.attributes, c.domain));
  const Message import = Message().Add(8, Message().Bytes(1, kTraining).Int(2, 1));
  const Model model = ModelOf(graph.Model(c.opset, import));
  const std::vector<Value> made = RunValuesOf(model, feeds);
  ASSERT_EQ(made.size(), c.results.size());
  for (size_t i = 0; i < made.size(); ++i) {
    const std::vector<float> got = Floats(made[i].tensor()), want = Floats(c.results[i]);
    EXPECT_EQ(made[i].tensor().shape(), c.results[i].shape()) << i;
    ASSERT_EQ(got.size(), want.size()) << i;
    for (size_t k = 0; k < got.size(); ++k)
      EXPECT_NEAR(got[k], want[k], 2e-6F * (1 + std::abs(want[k]))) << i << " " << k;
  }
}

TEST(OnnxComposed, AdagradOneTensor) {
  ExpectNode({.type = "Adagrad",
              .domain = kTraining,
              .attributes = {FloatAttr("norm_coefficient", 0.001F), FloatAttr("epsilon", 1e-5F),
                             FloatAttr("decay_factor", 0.1F)},
              .inputs = {F32({}, {0.1}), I64({}, {2}), V({1, -2}), V({-1, 0.5}), V({2, 0.25})},
              .results = {V({1.0480802, -2.0588064}), V({2.998001, 0.498004})}});
}

TEST(OnnxComposed, AdagradTwoTensors) {
  ExpectNode({.type = "Adagrad",
              .domain = kTraining,
              .attributes = {},
              .inputs = {F32({}, {0.1}), I64({}, {0}), V({1}), V({1, 2}), V({-1}), V({-1, -3}),
                         V({2}), V({4, 1})},
              .results = {V({1.057735}), V({1.0447214, 2.0948682}), V({3}), V({5, 10})}});
}

TEST(OnnxComposed, AdamOneTensor) {
  ExpectNode({.type = "Adam",
              .domain = kTraining,
              .attributes = {FloatAttr("norm_coefficient", 0.001F), FloatAttr("alpha", 0.95F),
                             FloatAttr("beta", 0.1F), FloatAttr("epsilon", 1e-7F),
                             FloatAttr("norm_coefficient_post", 0.01F)},
              .inputs = {F32({}, {0.1}), I64({}, {3}), V({1.2, 2.8}), V({-0.94, -2.5}),
                         V({1.7, 3.6}), V({0.1, 0.1})},
              .results = {V({-0.025864024, 1.8078715}), V({1.56806, 3.2951398}),
                          V({0.8032108, 5.622407})}});
}

TEST(OnnxComposed, MomentumStandard) {
  ExpectNode(
      {.type = "Momentum",
       .domain = kTraining,
       .attributes = {FloatAttr("norm_coefficient", 0.001F), FloatAttr("alpha", 0.95F),
                      FloatAttr("beta", 0.1F), StringAttr("mode", "standard")},
       .inputs = {F32({}, {0.1}), I64({}, {0}), V({1.2, 2.8}), V({-0.94, -2.5}), V({1.7, 3.6})},
       .results = {V({1.13238, 2.70772}), V({0.67620003, 0.9227998})}});
}

TEST(OnnxComposed, MomentumNesterov) {
  ExpectNode(
      {.type = "Momentum",
       .domain = kTraining,
       .attributes = {FloatAttr("norm_coefficient", 0.01F), FloatAttr("alpha", 0.95F),
                      FloatAttr("beta", 0.85F), StringAttr("mode", "nesterov")},
       .inputs = {F32({}, {0.1}), I64({}, {1}), V({1.2, 2.8}), V({-0.94, -2.5}), V({1.7, 3.6})},
       .results = {V({1.214311, 2.9219139}), V({0.8262, 1.3188})}});
}

TEST(OnnxComposed, MaxUnpool) {
  const Tensor places = I64({1, 1, 2, 2}, {5, 7, 13, 15});
  ExpectNode({.type = "MaxUnpool",
              .attributes = {IntsAttr("kernel_shape", {2, 2}), IntsAttr("strides", {2, 2})},
              .inputs = {F32({1, 1, 2, 2}, {1, 2, 3, 4}), places},
              .results = {F32({1, 1, 4, 4}, {0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 3, 0, 4})}});
  ExpectNode({.type = "MaxUnpool",
              .attributes = {IntsAttr("kernel_shape", {2, 2}), IntsAttr("strides", {2, 2})},
              .inputs = {F32({1, 1, 2, 2}, {5, 6, 7, 8}), places, I64({4}, {1, 1, 5, 5})},
              .results = {F32({1, 1, 5, 5}, {0, 0, 0, 0, 0, 0, 5, 0, 6, 0, 0, 0, 0,
                                             0, 0, 0, 7, 0, 8, 0, 0, 0, 0, 0, 0})}});
}

// Pads take places away; of places that repeat the last one counts.
TEST(OnnxComposed, MaxUnpoolOfPaddedImages) {
  ExpectNode({.type = "MaxUnpool",
              .attributes = {IntsAttr("kernel_shape", {2, 2}), IntsAttr("strides", {2, 2}),
                             IntsAttr("pads", {0, 1, 1, 0})},
              .inputs = {F32({1, 1, 2, 4}, {-2.88, -1.83, 0.79, 1.27, 0.34, -3.03, 1.59, -2.12}),
                         I64({1, 1, 2, 4}, {5, 7, 13, 15, 5, 7, 13, 15})},
              .results = {F32({1, 1, 3, 7}, {0, 0, 0,    0, 0,     0.34, 0, -3.03, 0, 0, 0,
                                             0, 0, 1.59, 0, -2.12, 0,    0, 0,     0, 0})}});
}

TEST(OnnxComposed, NormsOfPlanes) {
  const Tensor x = F32({1, 2, 2, 2}, {1, -2, 3, 4, 5, -6, 0, 1});
  ExpectNode({.type = "GlobalLpPool",
              .inputs = {x},
              .results = {F32({1, 2, 1, 1}, {5.477226, 7.8740077})}});
  ExpectNode({.type = "GlobalLpPool",
              .attributes = {IntAttr("p", 1)},
              .inputs = {F32({1, 2, 3}, {1, -2, 3, 4, 5, -6})},
              .results = {F32({1, 2, 1}, {6, 15})}});
  ExpectNode({.type = "GlobalLpPool",
              .attributes = {IntAttr("p", 3)},
              .inputs = {x},
              .results = {F32({1, 2, 1, 1}, {4.6415888, 6.9931907})}});
}

TEST(OnnxComposed, SlopesThatAreBroadcast) {
  ExpectNode({.type = "PRelu",
              .inputs = {F32({}, {-2}), F32({2, 1}, {0.5, -1})},
              .results = {F32({2, 1}, {-1, 2})}});
  ExpectNode({.type = "PRelu",
              .inputs = {F32({1, 2, 2}, {1, -2, -3, 4}), F32({2, 1}, {0.5, -1})},
              .results = {F32({1, 2, 2}, {1, -1, 3, 4})}});
  ExpectNode({.type = "PRelu",
              .inputs = {F32({1, 2, 2}, {1, -2, -3, 4}), V({0.5, -1})},
              .results = {F32({1, 2, 2}, {1, -1, 3, 4})},
              .opset = 6});
}

}  // namespace
}  // namespace heddle::testing
