// Chains in the body of a loop are replaced like those of block 0, also where they read what the
// loop carries, unless that is overwritten before the chain ends.
#include "passes/fuse/replace_chains.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using ::testing::Contains;
using ::testing::Not;

const Shape kImage{2, 3, 5, 5}, kRows{4, 6};

// for (i = 0; i < n; ++i) h = body(h, x), where h begins as x * 0.5.
struct Loop {
  ProgramBuilder b = {};
  std::shared_ptr<Scope> scope = std::make_shared<Scope>();
  std::vector<Feed> feeds = {};
  int body = 0;

  explicit Loop(const Shape& shape) : Loop(shape, shape) {}
  // `shape` may have open dimensions, which `fed` has not.
  Loop(const Shape& shape, const Shape& fed) {
    b.Feed("x", DType::kF32, shape).Feed("n", DType::kI64, {1});
    feeds.push_back({"x", RandomF32(fed, 1)});
    b.Var("h", DType::kF32, shape).Scale("x", "h", 0.5);
    b.Fill("i", {1}, 0, DType::kI64).Var("go", DType::kBool, {1});
    b.Binary("less_than", "i", "n", "go");
    body = b.Block(0);
    b.In(body);
  }
  void Param(const std::string& name, const Shape& shape, uint32_t seed) {
    b.Param(name, DType::kF32, shape);
    scope->Set(name, Value(RandomF32(shape, seed, 0.5f)));
  }
  void Op(const std::string& type, const Slots& inputs, const std::string& slot,
          const std::string& out, const Shape& shape, const Attrs& attrs = {}) {
    b.Var(out, DType::kF32, shape);
    b.Op(type, inputs, {{slot, {out}}}, attrs);
  }
  void End() {
    b.Increment("i").Binary("less_than", "i", "n", "go").In(0);
    b.Op("while", {{"X", {"h", "x", "i", "n"}}, {"Condition", {"go"}}},
         {{"Out", {"h", "i", "go"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{body}}});
    b.Var("y", DType::kF32, {}).Scale("h", "y", 1).Fetch("y");
  }
  std::vector<Feed> Feeds(int64_t turns) const {
    auto all = feeds;
    all.push_back({"n", I64({1}, {turns})});
    return all;
  }
  // Operators of the body at level 2, once its results were seen to be those of level 0.
  std::multiset<std::string> Ops() {
    const Program program = b.Build();
    for (const int64_t turns : {0, 1, 4}) {
      Executor plain, fused;
      const auto want =
          MustRun(plain, MustCompile(plain, program, scope, {.opt_level = 0}), Feeds(turns));
      const auto got =
          MustRun(fused, MustCompile(fused, program, scope, {.opt_level = 2}), Feeds(turns));
      const auto a = Floats(want[0]), z = Floats(got[0]);
      EXPECT_EQ(a.size(), z.size());
      for (size_t k = 0; k < a.size() && k < z.size(); ++k) EXPECT_NEAR(a[k], z[k], 1e-5) << turns;
    }
    Executor executor;
    const auto compiled = MustCompile(executor, program, scope, {.opt_level = 2});
    const auto plan = executor.DescribePlan(compiled, Feeds(4));
    EXPECT_TRUE(plan.ok()) << plan.status().ToString();
    std::multiset<std::string> ops;
    if (plan.ok())
      for (const auto& in : plan->instructions)
        if (in.block == body) ops.insert(in.op);
    return ops;
  }
};

// h = tanh(conv(h) + h); with `overwrite`, h is twice its value before tanh, and after it.
Loop Convolution(bool overwrite) {
  Loop l(kImage);
  l.Param("w", {3, 3, 3, 3}, 2);
  l.Op("conv2d", {{"Input", {"h"}}, {"Filter", {"w"}}}, "Output", "c", kImage,
       {{"paddings", Ints{1, 1}}});
  l.Op("elementwise_add", {{"X", {"c"}}, {"Y", {"h"}}}, "Out", "s", kImage);
  if (overwrite) l.b.Scale("x", "h", 2);
  l.Op("tanh", {{"X", {"s"}}}, "Out", "t", kImage);
  if (overwrite) l.Op("elementwise_add", {{"X", {"t"}}, {"Y", {"h"}}}, "Out", "u", kImage);
  l.b.Unary("assign", overwrite ? "u" : "t", "h");
  l.End();
  return l;
}

TEST(ReplaceChains, AConvolutionOfWhatALoopCarries) {
  EXPECT_THAT(Convolution(false).Ops(), Contains("fused_conv2d"));
  EXPECT_THAT(Convolution(false).Ops(), Not(Contains("tanh")));
  Convolution(true).Ops();
}

// k = relu(h); h = mean(h) of rows and columns; h = conv(h) + k, at open sizes: conv(h) and k come
// from h, but not from one value of it.
TEST(ReplaceChains, AResidualOfAnotherSize) {
  const Shape open{2, 3, -1, -1};
  Loop l(open, kImage);
  l.Param("w", {3, 3, 1, 1}, 2);
  l.Op("relu", {{"X", {"h"}}}, "Out", "k", open);
  l.Op("reduce_mean", {{"X", {"h"}}}, "Out", "m", open, {{"dim", Ints{2, 3}}, {"keep_dim", true}});
  l.b.Unary("assign", "m", "h");
  l.Op("conv2d", {{"Input", {"h"}}, {"Filter", {"w"}}}, "Output", "c", open,
       {{"paddings", Ints{0, 0}}});
  l.Op("elementwise_add", {{"X", {"c"}}, {"Y", {"k"}}}, "Out", "s", open);
  l.b.Unary("assign", "s", "h");
  l.End();
  l.Ops();
}

// h = tanh(h @ w + h)
Loop Product(bool overwrite) {
  Loop l(kRows);
  l.Param("w", {6, 6}, 2);
  l.Op("matmul_v2", {{"X", {"h"}}, {"Y", {"w"}}}, "Out", "m", kRows);
  if (overwrite) l.b.Scale("x", "h", 2);
  l.Op("tanh", {{"X", {"m"}}}, "Out", "t", kRows);
  l.Op("elementwise_add", {{"X", {"t"}}, {"Y", {"h"}}}, "Out", "u", kRows);
  l.b.Unary("assign", "u", "h");
  l.End();
  return l;
}

TEST(ReplaceChains, AProductOfWhatALoopCarries) {
  EXPECT_THAT(Product(false).Ops(), Contains("fused_matmul"));
  EXPECT_THAT(Product(true).Ops(), Contains("matmul_v2"));
}

// h = relu(batch_norm(h))
Loop Norm(bool overwrite) {
  Loop l(kImage);
  for (const char* name : {"scale", "bias", "mean"}) l.Param(name, {3}, 5);
  l.b.Param("variance", DType::kF32, {3});
  l.scope->Set("variance", Value(F32({3}, {0.5f, 1, 2})));
  l.b.Var("y1", DType::kF32, kImage);
  l.b.Op("batch_norm",
         {{"X", {"h"}},
          {"Scale", {"scale"}},
          {"Bias", {"bias"}},
          {"Mean", {"mean"}},
          {"Variance", {"variance"}}},
         {{"Y", {"y1"}}}, {{"is_test", true}, {"epsilon", 1e-5}});
  if (overwrite) l.b.Scale("x", "h", 2);
  l.Op("relu", {{"X", {"y1"}}}, "Out", "t", kImage);
  l.Op("elementwise_add", {{"X", {"t"}}, {"Y", {"h"}}}, "Out", "u", kImage);
  l.b.Unary("assign", "u", "h");
  l.End();
  return l;
}

TEST(ReplaceChains, ANormOfWhatALoopCarries) {
  EXPECT_THAT(Norm(false).Ops(), Not(Contains("batch_norm")));
  EXPECT_THAT(Norm(true).Ops(), Contains("batch_norm"));
}

}  // namespace
}  // namespace heddle::testing
