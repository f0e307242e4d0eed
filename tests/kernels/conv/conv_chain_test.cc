// Chains of convolutions give the very bits of the convolutions one after the other, by stripes of
// rows and without them.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

Tensor Values(const Shape& shape, double seed) {
  Tensor t = Tensor::Empty(DType::kF32, shape);
  for (int64_t i = 0; i < shape.numel(); ++i)
    t.mutable_data<float>()[i] = static_cast<float>(std::sin(static_cast<double>(i) * seed));
  return t;
}

struct Stage {
  int64_t channels, kernel = 1, stride = 1;  // kernel 1: pointwise, else depthwise
  std::string activation = "";
  double alpha = 0, beta = 0, scale = 1, shift = 0;
  Ints pads{};  // of a depthwise one: top, bottom, left, right; kernel / 2 when there are none
};

struct Chain {
  Shape input;
  std::vector<Stage> stages;
  bool residual = false;
  int64_t residual_batch = 0;  // 0: the input's
};

Ints PadsOf(const Stage& s) { return s.pads.empty() ? Ints(4, s.kernel / 2) : s.pads; }

Shape After(const Shape& in, const Stage& s) {
  const Ints pads = PadsOf(s);
  return {in[0], (in[1] + pads[0] + pads[1] - s.kernel) / s.stride + 1,
          (in[2] + pads[2] + pads[3] - s.kernel) / s.stride + 1, s.channels};
}

Attrs SingleAttrs(const Stage& s) {
  return {{"strides", Ints{s.stride, s.stride}},
          {"paddings", PadsOf(s)},
          {"groups", s.kernel == 1 ? int64_t{1} : s.channels},
          {"data_format", std::string("NHWC")},
          {"fuse_activation", s.activation},
          {"fuse_alpha", s.alpha},
          {"fuse_beta", s.beta},
          {"fuse_scale", s.scale},
          {"fuse_shift", s.shift}};
}

Attrs ChainAttrs(const std::vector<Stage>& stages) {
  Ints strides, paddings;
  Strings activations;
  std::vector<double> alpha, beta, scale, shift;
  for (const Stage& s : stages) {
    strides.insert(strides.end(), 2, s.stride);
    const Ints pads = PadsOf(s);
    paddings.insert(paddings.end(), pads.begin(), pads.end());
    activations.push_back(s.activation);
    alpha.push_back(s.alpha);
    beta.push_back(s.beta);
    scale.push_back(s.scale);
    shift.push_back(s.shift);
  }
  return {{"strides", strides},  {"paddings", paddings}, {"fuse_activation", activations},
          {"fuse_alpha", alpha}, {"fuse_beta", beta},    {"fuse_scale", scale},
          {"fuse_shift", shift}};
}

// One operator or as many as there are stages.
Tensor Run(const Chain& c, bool chained, int threads) {
  ProgramBuilder b;
  auto scope = std::make_shared<Scope>();
  std::vector<Feed> feeds{{"x", Values(c.input, 12.9898)}};
  b.Feed("x", DType::kF32, c.input);
  std::vector<std::string> filters, biases;
  Shape at = c.input;
  std::string x = "x";
  Slots residual;
  for (size_t i = 0; i < c.stages.size(); ++i) {
    const Stage& s = c.stages[i];
    const std::string n = std::to_string(i), w = "w" + n, bias = "b" + n, y = "y" + n;
    const Shape filter{s.channels, s.kernel == 1 ? at[3] : 1, s.kernel, s.kernel};
    b.Param(w, DType::kF32, filter).Param(bias, DType::kF32, {s.channels});
    scope->Set(w, Value(Values(filter, 78.233 + static_cast<double>(i))));
    scope->Set(bias, Value(Values({s.channels}, 3.7 + static_cast<double>(i))));
    at = After(at, s);
    b.Var(y, DType::kF32, at);
    if (i + 1 == c.stages.size() && c.residual) {
      Shape shape = at;
      if (c.residual_batch > 0) shape[0] = c.residual_batch;
      b.Feed("r", DType::kF32, shape);
      feeds.push_back({"r", Values(shape, 5.1)});
      residual = {{"ResidualData", {"r"}}};
    }
    Slots inputs{{"Input", {x}}, {"Filter", {w}}, {"Bias", {bias}}};
    inputs.insert(inputs.end(), residual.begin(), residual.end());
    if (!chained) b.Op("fused_conv2d", inputs, {{"Output", {y}}}, SingleAttrs(s));
    filters.push_back(w);
    biases.push_back(bias);
    x = y;
  }
  Slots inputs{{"Input", {"x"}}, {"Filters", filters}, {"Biases", biases}};
  inputs.insert(inputs.end(), residual.begin(), residual.end());
  if (chained) b.Op("fused_conv_chain", inputs, {{"Output", {x}}}, ChainAttrs(c.stages));
  b.Fetch(x);
  Executor executor({.threads = threads});
  // Lean: the loops that chains are made of.
  auto compiled = MustCompile(executor, b.Build(), scope, {.opt_level = 0, .lean = true});
  return MustRun(executor, compiled, feeds)[0];
}

void Check(const Chain& c) {
  SCOPED_TRACE(::testing::Message() << c.input.ToString() << ", " << c.stages.size() << " stages, "
                                    << c.stages[0].channels << " channels");
  const Tensor apart = Run(c, false, 1);
  for (const int threads : {1, 2, 3}) {
    const Tensor chained = Run(c, true, threads);
    ASSERT_EQ(chained.shape(), apart.shape());
    EXPECT_EQ(Bits(chained), Bits(apart)) << threads << " threads";
  }
}

TEST(ConvChain, KernelsAndStrides) {
  for (const int64_t kernel : {3, 5})
    for (const int64_t stride : {1, 2})
      for (const int64_t height : {25, 26}) {
        Check({{1, height, 27, 8}, {{40}, {40, kernel, stride}, {24}}});
        Check(
            {{1, height, 21, 5}, {{37}, {37, kernel, stride, "", 0, 0, 1, 0, {0, 0, 0, 0}}, {19}}});
        Check(
            {{1, height, 24, 6}, {{35}, {35, kernel, stride, "", 0, 0, 1, 0, {0, 2, 1, 0}}, {3}}});
      }
}

TEST(ConvChain, WhatFollowsEachConvolution) {
  const Chain chain{{1, 16, 30, 16},
                    {{48, 1, 1, "hard_swish", 0, 0, 0.7, 0.1},
                     {48, 3, 1, "clip", 0, 6},
                     {16, 1, 1, "relu", 0, 0, 2, -1}},
                    true};
  Check(chain);
  Chain other = chain;
  other.stages[0].activation = "sigmoid";
  other.stages[1].activation = "hard_swish";
  other.stages[2].activation = "leaky_relu";
  other.stages[2].alpha = 0.1;
  Check(other);
}

TEST(ConvChain, SeveralImages) {
  Check({{5, 11, 20, 8}, {{48}, {48, 3}, {8}}, true});
  Check({{3, 13, 20, 8}, {{48}, {48, 5, 2}, {8}}});
}

// Rows that the pointwise loops take in several stretches.
TEST(ConvChain, LongRows) { Check({{1, 11, 300, 8}, {{64}, {64, 3}, {8}}, true}); }

TEST(ConvChain, TwoConvolutions) { Check({{1, 96, 96, 4}, {{32}, {32, 3, 2, "relu"}}}); }

// Too few rows or bytes in between, or filters too large, for stripes.
TEST(ConvChain, Apart) {
  Check({{2, 7, 7, 16}, {{96, 1, 1, "relu"}, {96, 3, 1, "relu"}, {16}}, true});
  Check({{1, 12, 12, 160}, {{160}, {160, 3}, {160}}, true});
  Check({{1, 32, 32, 4}, {{32}, {32, 3, 2, "relu"}}});
}

TEST(ConvChain, ResidualOfAnotherBatch) {
  Check({{3, 12, 20, 8}, {{48}, {48, 3}, {8, 1, 1, "relu"}}, true, 1});
  Check({{1, 12, 20, 8}, {{48}, {48, 3}, {8, 1, 1, "relu"}}, true, 3});
}

TEST(ConvChain, RefusesWhatDoesNotFit) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {1, 12, 12, 8}).Param("w", DType::kF32, {16, 9, 1, 1});
  b.Param("b", DType::kF32, {16}).Var("y", DType::kF32, {1, 12, 12, 16});
  const auto run = [&](const std::vector<double>& alpha) {
    ProgramBuilder p = b;
    Attrs attrs = ChainAttrs({{16}});
    for (auto& [name, value] : attrs)
      if (name == std::string("fuse_alpha")) value = alpha;
    p.Op("fused_conv_chain", {{"Input", {"x"}}, {"Filters", {"w"}}, {"Biases", {"b"}}},
         {{"Output", {"y"}}}, attrs);
    p.Fetch("y");
    auto scope = std::make_shared<Scope>();
    scope->Set("w", Value(Values({16, 9, 1, 1}, 1)));
    scope->Set("b", Value(Values({16}, 1)));
    Executor executor({.threads = 1});
    auto compiled = MustCompile(executor, p.Build(), scope, {.opt_level = 0});
    return executor.Run(compiled, {{"x", Values({1, 12, 12, 8}, 1)}}).status().ToString();
  };
  EXPECT_NE(run({0}).find("stage 0 is given 8 channels"), std::string::npos) << run({0});
  EXPECT_NE(run({}).find("fuse_alpha is not one number for each stage"), std::string::npos)
      << run({});
}

}  // namespace
}  // namespace heddle::testing
