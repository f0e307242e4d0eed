// New heads and adapters: what is found in a program, and what is refused. Training with them is
// compared in scripts/tuning.
#include "gradient/tuning/tuning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/gradient/support.h"

namespace heddle::gradient {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

Tensor Numbers(const Shape& shape, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::vector<double> values(static_cast<size_t>(shape.numel()));
  for (double& v : values) v = static_cast<double>(random() % 2000) / 1000 - 1;
  return Doubles(shape, values);
}

// softmax(x W + b) with a tanh before, fetched.
struct Classifier {
  TestProgram p;
  Variable x = p.Feed("x", {-1, 3});
  Variable hidden = p.Apply("tanh", {{"X", {x}}}, {}, "Out", "hidden");
  Variable w = p.Parameter("w", Numbers({3, 4}));
  Variable b = p.Parameter("b", Numbers({4}));
  Variable product = p.Apply("matmul_v2", {{"X", {hidden}}, {"Y", {w}}}, {}, "Out", "product");
  Variable sum = p.Apply("elementwise_add", {{"X", {product}}, {"Y", {b}}}, {}, "Out", "sum");
};

HeadRequest OfTwo(const std::string& output) {
  HeadRequest request;
  request.outputs = 2;
  request.output = output;
  return request;
}

TEST(ReplaceHead, ChangesWeightsBiasAndAllShapesBehind) {
  Classifier c;
  c.p.Apply("softmax", {{"X", {c.sum}}}, {}, "Out", "y");
  const Model model = c.p.Finish();
  const auto head = ReplaceHead(model.program, OfTwo("y"));
  ASSERT_TRUE(head.ok()) << head.status().ToString();
  EXPECT_THAT(head->reshaped, UnorderedElementsAre("w", "b", "product", "sum", "y"));
  EXPECT_EQ(head->program.variable("y")->shape, Shape({-1, 2}));
  EXPECT_THAT(head->said, HasSubstr("'w' and the bias 'b'; 4 outputs became 2"));
  for (const auto& [name, tensor] : head->parameters) model.scope->Set(name, tensor);
  const auto y = RunOnce(head->program, model.scope, {{"x", Numbers({5, 3})}}, {"y"});
  ASSERT_EQ(y.size(), 1u);
  EXPECT_EQ(y[0].shape(), Shape({5, 2}));
}

TEST(ReplaceHead, SeedsChooseTheWeights) {
  Classifier c;
  const Program program = c.p.Finish().program;
  HeadRequest request = OfTwo("sum");
  const auto first = ReplaceHead(program, request), again = ReplaceHead(program, request);
  request.seed = 1;
  const auto other = ReplaceHead(program, request);
  ASSERT_TRUE(first.ok() && again.ok() && other.ok());
  const auto values = [](const NewHead& head) { return ValuesOf(head.parameters[0].second); };
  EXPECT_EQ(values(*first), values(*again));
  EXPECT_NE(values(*first), values(*other));
  for (const double v : values(*first)) EXPECT_LT(std::abs(v), 1 / std::sqrt(3.0));
}

// A convolution of 1x1 whose bias is given four dimensions, then a pool: SqueezeNet's end.
TEST(ReplaceHead, FindsConvolutionsAndTheirBias) {
  TestProgram p;
  const Variable x = p.Feed("x", {-1, 3, 4, 4});
  const Variable w = p.Parameter("w", Numbers({6, 3, 1, 1}));
  const Variable b = p.Parameter("b", Numbers({6}));
  const Variable conv = p.Apply("conv2d", {{"Input", {x}}, {"Filter", {w}}}, {}, "Output", "conv");
  const Variable bias = p.Apply("reshape2", {{"X", {b}}},
                                {{"shape", std::vector<int64_t>{1, 6, 1, 1}}}, "Out", "bias");
  const Variable sum = p.Apply("elementwise_add", {{"X", {conv}}, {"Y", {bias}}}, {}, "Out", "sum");
  const Variable act = p.Apply("relu", {{"X", {sum}}}, {}, "Out", "act");
  p.Apply("reduce_mean", {{"X", {act}}}, {{"dim", std::vector<int64_t>{2, 3}}}, "Out", "y");
  const Model model = p.Finish();
  const auto head = ReplaceHead(model.program, OfTwo("y"));
  ASSERT_TRUE(head.ok()) << head.status().ToString();
  for (const auto& [name, tensor] : head->parameters) model.scope->Set(name, tensor);
  const auto y = RunOnce(head->program, model.scope, {{"x", Numbers({5, 3, 4, 4})}}, {"y"});
  ASSERT_EQ(y.size(), 1u);
  EXPECT_EQ(y[0].shape(), Shape({5, 2}));
}

TEST(ReplaceHead, NamesWhatTiesOutputsToTheirNumber) {
  const auto refused = [](Classifier* c, const std::string& output) {
    return ReplaceHead(c->p.Finish().program, OfTwo(output)).status().ToString();
  };
  {
    Classifier c;  // two branches
    const Variable other = c.p.Apply("sigmoid", {{"X", {c.sum}}}, {}, "Out", "other");
    c.p.Apply("elementwise_add", {{"X", {c.sum}}, {"Y", {other}}}, {}, "Out", "y");
    EXPECT_THAT(refused(&c, "y"),
                HasSubstr("operator elementwise_add (block 0, operator 4) joins"));
  }
  {
    Classifier c;  // weights that another product reads
    c.p.Apply("matmul_v2", {{"X", {c.x}}, {"Y", {c.w}}}, {}, "Out", "again");
    EXPECT_THAT(refused(&c, "sum"),
                HasSubstr("'w' are also read by operator matmul_v2 (block 0, operator 3)"));
  }
  {
    Classifier c;
    c.p.Apply("cumsum", {{"X", {c.sum}}}, {}, "Out", "y");
    EXPECT_THAT(refused(&c, "y"), HasSubstr("operator cumsum (block 0, operator 3) lies between"));
  }
  {
    Classifier c;
    EXPECT_THAT(refused(&c, "hidden"), HasSubstr("no product with weights leads to the output"));
  }
}

TEST(Adapters, AddUpToTheMergedWeights) {
  for (uint32_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    Classifier c;
    const Model model = c.p.Finish();
    AdapterRequest request;
    request.rank = 1 + seed % 3;
    request.alpha = seed % 2 == 0 ? -1 : 4;
    request.seed = seed;
    auto adapted = AddAdapters(model.program, request);
    ASSERT_TRUE(adapted.ok()) << adapted.status().ToString();
    ASSERT_EQ(adapted->adapters.size(), 1u);
    // New ones change nothing; then both sides get numbers.
    for (const auto& [name, tensor] : adapted->parameters) model.scope->Set(name, tensor);
    const std::vector<Feed> feeds = {{"x", Numbers({5, 3}, seed)}};
    const auto before = RunOnce(model.program, model.scope, feeds, {"sum"});
    EXPECT_EQ(ValuesOf(RunOnce(adapted->program, model.scope, feeds, {"sum"})[0]),
              ValuesOf(before[0]));
    Adapter& adapter = adapted->adapters[0];
    adapter.left = Numbers(adapter.left.shape(), seed + 1);
    adapter.right = Numbers(adapter.right.shape(), seed + 2);
    model.scope->Set(adapted->parameters[0].first, adapter.left);
    model.scope->Set(adapted->parameters[1].first, adapter.right);
    const auto beside = ValuesOf(RunOnce(adapted->program, model.scope, feeds, {"sum"})[0]);
    const auto read = AdaptersOf(ArraysOf(adapted->adapters));
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    ASSERT_TRUE(MergeAdapters(*read, model.scope.get()).ok());
    const auto merged = ValuesOf(RunOnce(model.program, model.scope, feeds, {"sum"})[0]);
    ASSERT_EQ(merged.size(), beside.size());
    for (size_t i = 0; i < merged.size(); ++i) EXPECT_NEAR(merged[i], beside[i], 1e-12);
    EXPECT_NE(merged, ValuesOf(before[0]));
  }
}

TEST(Adapters, OnlyWhatALossDependsOnIsTrained) {
  Classifier c;
  const Variable w2 = c.p.Parameter("w2", Numbers({3, 2}));
  c.p.Apply("matmul_v2", {{"X", {c.hidden}}, {"Y", {w2}}}, {}, "Out", "beside");
  AdapterRequest request;
  request.rank = 1;
  request.losses = {"beside"};
  const auto adapted = AddAdapters(c.p.Finish().program, request);
  ASSERT_TRUE(adapted.ok()) << adapted.status().ToString();
  EXPECT_THAT(adapted->trained, ElementsAre(LeftName("w2"), RightName("w2")));
}

TEST(Adapters, WhatDoesNotFitIsNamed) {
  Classifier c;
  const Model model = c.p.Finish();
  AdapterRequest request;
  request.rank = 1;
  request.on = [](const std::string& name) { return name == "b"; };
  EXPECT_THAT(AddAdapters(model.program, request).status().message(), HasSubstr("there are 'w'"));
  request.on = nullptr;
  request.given = {{"w", Numbers({2, 1}), Numbers({1, 4}), 1}};
  EXPECT_THAT(AddAdapters(model.program, request).status().message(),
              HasSubstr("the adapter of 'w' is for float64 of 2 x 4"));
  EXPECT_THAT(MergeAdapters(request.given, model.scope.get()).message(),
              HasSubstr("the parameter is float64 [3, 4]"));
  request.given[0].weight = "nowhere";
  EXPECT_EQ(AddAdapters(model.program, request).status().code(), StatusCode::kNotFound);
  EXPECT_THAT(AdaptersOf({{"w.lora_up", Numbers({2, 1})}}).status().message(),
              HasSubstr("'w.lora_up' is no part of an adapter"));
  EXPECT_THAT(AdaptersOf({{"w.lora_left", Numbers({2, 1})}}).status().message(),
              HasSubstr("the adapter of 'w' lacks a side"));
}

}  // namespace
}  // namespace heddle::gradient
