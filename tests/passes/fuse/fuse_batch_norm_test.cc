// batch_norm and the activation after it as one pass over memory, and when they stay two.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <tuple>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

constexpr int64_t kChannels = 37;

Tensor Values(const Shape& shape, float seed, float offset = 0) {
  std::vector<float> v(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < v.size(); ++i) v[i] = std::sin(static_cast<float>(i) * seed) * 2 + offset;
  return F32(shape, v);
}

struct Norm {
  std::string activation = "relu";
  Attrs activation_attrs = {};
  Shape x = {2, kChannels, 5, 6};
  std::string layout = "NCHW";
  bool is_test = true;
  Shape factor = Shape::Unknown(), offset = Shape::Unknown();  // of what follows, if anything does
  bool fetch_between = false, read_twice = false, scale_is_fed = false, scale_is_written = false;
};

struct Built {
  Program program;
  std::shared_ptr<Scope> scope;
  std::vector<Feed> feeds;
};

Built Build(const Norm& n) {
  ProgramBuilder b;
  auto scope = std::make_shared<Scope>();
  std::vector<Feed> feeds{{"x", Values(n.x, 0.7f)}};
  b.Feed("x", DType::kF32, n.x);
  const Shape vector{kChannels};
  const struct {
    const char* name;
    float seed, offset;
  } parameters[] = {{"scale", 1.3f, 0}, {"bias", 2.1f, 0}, {"mean", 0.9f, 1}, {"var", 1.7f, 2.5f}};
  for (const auto& p : parameters) {
    if (n.scale_is_fed && p.name == std::string("scale")) {
      b.Feed(p.name, DType::kF32, vector);
      feeds.push_back({p.name, Values(vector, p.seed, p.offset)});
      continue;
    }
    b.Param(p.name, DType::kF32, vector);
    scope->Set(p.name, Value(Values(vector, p.seed, p.offset)));
  }
  b.Var("y", DType::kF32, n.x).Var("z", DType::kF32, n.x);
  b.Op("batch_norm",
       {{"X", {"x"}},
        {"Scale", {"scale"}},
        {"Bias", {"bias"}},
        {"Mean", {"mean"}},
        {"Variance", {"var"}}},
       {{"Y", {"y"}},
        {"MeanOut", {"mean"}},
        {"VarianceOut", {"var"}},
        {"SavedMean", {"sm"}},
        {"SavedVariance", {"sv"}}},
       {{"is_test", n.is_test}, {"data_layout", n.layout}, {"epsilon", 1e-3}});
  if (n.scale_is_written) b.Scale("scale", "scale", 2);
  std::string last = "y";
  for (const auto& [op, name, shape] : {std::tuple{"elementwise_mul", "factor", n.factor},
                                        {"elementwise_add", "offset", n.offset}}) {
    if (!shape.known_rank()) continue;
    b.Param(name, DType::kF32, shape).Var(std::string("by_") + name, DType::kF32, n.x);
    scope->Set(name, Value(Values(shape, 0.3f, 0.5f)));
    b.Op(op, {{"X", {last}}, {"Y", {name}}}, {{"Out", {std::string("by_") + name}}}, {});
    last = std::string("by_") + name;
  }
  b.Op(n.activation, {{"X", {last}}}, {{"Out", {"z"}}}, n.activation_attrs).Fetch("z");
  if (n.fetch_between) b.Fetch("y");
  if (n.read_twice) b.Scale("y", "again", 3).Fetch("again");
  return {b.Build(), scope, feeds};
}

// Whether they became one, after a check that results are those of level 0.
bool Fused(const Norm& n) {
  std::vector<Tensor> out[2];
  std::string text;
  for (const int level : {0, 2}) {
    const Built built = Build(n);
    Executor executor({.threads = 2});
    auto compiled = MustCompile(executor, built.program, built.scope, {.opt_level = level});
    const auto plan = executor.PlanText(compiled, built.feeds);
    EXPECT_TRUE(plan.ok()) << plan.status().ToString();
    if (plan.ok()) text = *plan;
    out[level / 2] = MustRun(executor, compiled, built.feeds);
  }
  for (size_t i = 0; i < out[0].size(); ++i) {
    EXPECT_EQ(out[0][i].shape(), out[1][i].shape());
    const auto a = Floats(out[0][i]), b = Floats(out[1][i]);
    for (size_t k = 0; k < a.size(); ++k)
      if (!(std::abs(a[k] - b[k]) <= 1e-5 * (1 + std::abs(a[k])))) {
        ADD_FAILURE() << "output " << i << ", element " << k << ": " << a[k] << " and " << b[k];
        break;
      }
  }
  return text.find("fused_batch_norm") != std::string::npos;
}

Norm Make(const std::function<void(Norm&)>& change) {
  Norm n;
  change(n);
  return n;
}

TEST(FuseBatchNorm, ActivationsLayoutsAndRanks) {
  EXPECT_TRUE(Fused({}));
  EXPECT_TRUE(Fused(Make([](Norm& n) { n.activation = "sigmoid"; })));
  EXPECT_TRUE(Fused(Make([](Norm& n) {
    n.activation = "leaky_relu";
    n.activation_attrs = {{"alpha", 0.1}};
  })));
  EXPECT_TRUE(Fused(Make([](Norm& n) {
    n.x = {3, 4, 5, kChannels};
    n.layout = "NHWC";
  })));
  EXPECT_TRUE(Fused(Make([](Norm& n) {
    n.x = {3, 4, 5, kChannels};
    n.layout = "NHWC";
    n.activation = "tanh";
  })));
  EXPECT_TRUE(Fused(Make([](Norm& n) { n.x = {9, kChannels}; })));
  EXPECT_TRUE(Fused(Make([](Norm& n) { n.x = {1, kChannels, 70, 80}; })));
}

TEST(FuseBatchNorm, FactorsAndOffsets) {
  EXPECT_TRUE(Fused(Make([](Norm& n) { n.factor = n.offset = {kChannels, 1, 1}; })));
  EXPECT_TRUE(Fused(Make([](Norm& n) {
    n.factor = {1, kChannels, 1, 1};
    n.offset = {1};
    n.activation = "exp";  // which stays
  })));
  EXPECT_TRUE(Fused(Make([](Norm& n) {
    n.x = {3, 4, 5, kChannels};
    n.layout = "NHWC";
    n.offset = {kChannels};
  })));
  // As long as channels are, along another axis.
  EXPECT_FALSE(Fused(Make([](Norm& n) {
    n.x = {2, kChannels, 3, kChannels};
    n.factor = {kChannels};
    n.activation = "exp";
  })));
  EXPECT_FALSE(Fused(Make([](Norm& n) {
    n.factor = {kChannels, 5, 1};
    n.activation = "exp";
  })));
}

TEST(FuseBatchNorm, WhatOthersReadStays) {
  EXPECT_FALSE(Fused(Make([](Norm& n) { n.fetch_between = true; })));
  EXPECT_FALSE(Fused(Make([](Norm& n) { n.read_twice = true; })));
}

TEST(FuseBatchNorm, StatisticsOfTheBatchStay) {
  EXPECT_FALSE(Fused(Make([](Norm& n) { n.is_test = false; })));
}

TEST(FuseBatchNorm, ParametersMustBeConstant) {
  EXPECT_FALSE(Fused(Make([](Norm& n) { n.scale_is_fed = true; })));
  EXPECT_FALSE(Fused(Make([](Norm& n) { n.scale_is_written = true; })));
}

TEST(FuseBatchNorm, OtherFollowersStay) {
  EXPECT_FALSE(Fused(Make([](Norm& n) { n.activation = "exp"; })));
}

}  // namespace
}  // namespace heddle::testing
