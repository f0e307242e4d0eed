// Products with a constant matrix, with what follows: by heddle's own loops where they are small or
// the build has no primitives library, by the library else.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

struct Product {
  int64_t m, n, k;
  bool trans_y = false, residual = false;
  std::string activation = "";
};

Tensor Run(const Product& p, int threads, bool lean) {
  const Shape y = p.trans_y ? Shape{p.n, p.k} : Shape{p.k, p.n};
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {p.m, p.k}).Param("y", DType::kF32, y);
  b.Param("b", DType::kF32, {p.n}).Var("out", DType::kF32, {p.m, p.n});
  auto scope = std::make_shared<Scope>();
  scope->Set("y", Value(RandomF32(y, 2)));
  scope->Set("b", Value(RandomF32({p.n}, 3)));
  std::vector<Feed> feeds{{"x", RandomF32({p.m, p.k}, 1)}};
  Slots inputs{{"X", {"x"}}, {"Y", {"y"}}, {"Bias", {"b"}}};
  if (p.residual) {
    b.Feed("r", DType::kF32, {p.m, p.n});
    feeds.push_back({"r", RandomF32({p.m, p.n}, 4)});
    inputs.push_back({"ResidualData", {"r"}});
  }
  b.Op("fused_matmul", inputs, {{"Out", {"out"}}},
       {{"trans_y", p.trans_y}, {"fuse_activation", p.activation}});
  b.Fetch("out");
  Executor executor({.threads = threads});
  auto compiled = MustCompile(executor, b.Build(), scope, {.opt_level = 0, .lean = lean});
  return MustRun(executor, compiled, feeds)[0];
}

void Check(const Product& p) {
  SCOPED_TRACE(::testing::Message()
               << p.m << "x" << p.n << "x" << p.k << (p.trans_y ? " trans " : " ") << p.activation);
  const Tensor one = Run(p, 1, false), two = Run(p, 2, false);
  const Tensor lean_one = Run(p, 1, true), lean_two = Run(p, 2, true);  // by the loops
  const Tensor x = RandomF32({p.m, p.k}, 1), bias = RandomF32({p.n}, 3);
  const Tensor y = RandomF32(p.trans_y ? Shape{p.n, p.k} : Shape{p.k, p.n}, 2);
  const Tensor residual = RandomF32({p.m, p.n}, 4);
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j) {
      double sum = bias.data<float>()[j];
      for (int64_t k = 0; k < p.k; ++k)
        sum += static_cast<double>(x.data<float>()[i * p.k + k]) *
               y.data<float>()[p.trans_y ? j * p.k + k : k * p.n + j];
      if (p.residual) sum += residual.data<float>()[i * p.n + j];
      if (p.activation == "relu") sum = std::max(sum, 0.0);
      if (p.activation == "sigmoid") sum = 1 / (1 + std::exp(-sum));
      if (p.activation == "tanh") sum = std::tanh(sum);
      for (const Tensor* t : {&one, &two, &lean_one, &lean_two})
        ASSERT_NEAR(t->data<float>()[i * p.n + j], sum, 1e-6 * std::sqrt(p.k) + 1e-5)
            << i << ' ' << j;
    }
}

TEST(ConstantProduct, Sizes) {
  for (const int64_t m : {1, 5, 14, 15, 300})
    for (const int64_t n : {1, 16, 17, 33, 100})
      for (const int64_t k : {8, 200})
        for (const bool trans : {false, true}) Check({.m = m, .n = n, .k = k, .trans_y = trans});
}

TEST(ConstantProduct, WhatFollowsIsFused) {
  for (const std::string activation : {"", "relu", "sigmoid", "tanh"})
    for (const bool residual : {false, true})
      for (const int64_t m : {37, 50})
        Check({.m = m, .n = 70, .k = 200, .residual = residual, .activation = activation});
}

// Rows that share few places in the caches are gone through some columns at a time.
TEST(ConstantProduct, LongRowsOfAPowerOfTwo) {
  for (const std::string activation : {"", "relu", "tanh"})
    for (const bool residual : {false, true})
      for (const int64_t k : {512, 1024})
        Check({.m = 15, .n = 50, .k = k, .residual = residual, .activation = activation});
  Check({.m = 300, .n = 17, .k = 1024, .residual = true, .activation = "relu"});
  // A small matrix that stays near while many rows pass.
  Check({.m = 1000, .n = 50, .k = 96, .residual = true, .activation = "tanh"});
}

}  // namespace
}  // namespace heddle::testing
