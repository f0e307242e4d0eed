// Products of one tensor: which become one operator.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

struct Case {
  Shape x = {8, 16};
  std::vector<Shape> weights = {{16, 16}, {16, 16}, {16, 16}};
  bool trans_y = false;  // of the first
  bool bias = false, relu = false;
  bool overwritten = false;  // x, behind the first product
  bool fed_weight = false;   // the last
  int instructions = 1;      // that multiply
};

int Count(const std::string& text, const std::string& what) {
  int n = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++n;
  return n;
}

void Check(const Case& c, int threads = 1) {
  auto scope = std::make_shared<Scope>();
  std::vector<Feed> feeds = {{"x0", RandomF32(c.x, 1)}};
  ProgramBuilder b;
  b.Feed("x0", DType::kF32, c.x).Var("x", DType::kF32, c.x).Scale("x0", "x", 2);
  for (size_t i = 0; i < c.weights.size(); ++i) {
    const std::string n = std::to_string(i);
    const bool fed = c.fed_weight && i + 1 == c.weights.size();
    if (fed) {
      b.Feed("w" + n, DType::kF32, c.weights[i]);
      feeds.push_back({"w" + n, RandomF32(c.weights[i], 7)});
    } else {
      b.Param("w" + n, DType::kF32, c.weights[i]);
      scope->Set("w" + n, Value(RandomF32(c.weights[i], 10 + static_cast<uint32_t>(i))));
    }
    const bool trans = c.trans_y && i == 0;
    const int64_t columns = c.weights[i][trans ? 0 : 1];
    Shape out = c.x;
    out[out.rank() - 1] = columns;
    b.Var("p" + n, DType::kF32, out).Var("q" + n, DType::kF32, out).Var("r" + n, DType::kF32, out);
    b.Op("matmul_v2", {{"X", {"x"}}, {"Y", {"w" + n}}}, {{"Out", {"p" + n}}}, {{"trans_y", trans}});
    std::string last = "p" + n;
    if (c.bias) {
      b.Param("b" + n, DType::kF32, {columns});
      scope->Set("b" + n, Value(RandomF32({columns}, 20 + static_cast<uint32_t>(i))));
      b.Binary("elementwise_add", last, "b" + n, "q" + n);
      last = "q" + n;
    }
    if (c.relu && i == 0) b.Unary("relu", std::exchange(last, "r" + n), "r" + n);
    b.Fetch(last);
    if (c.overwritten && i == 0) b.Scale("x", "x", 3);
  }
  const Program program = b.Build();
  Executor executor({.threads = threads});
  auto plain = MustCompile(executor, program, scope, {.opt_level = 0});
  auto merged = MustCompile(executor, program, scope, {.opt_level = 2});
  for (int run = 0; run < 2; ++run) {
    const auto want = MustRun(executor, plain, feeds), got = MustRun(executor, merged, feeds);
    ASSERT_EQ(want.size(), got.size());
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_EQ(want[i].shape(), got[i].shape());
      const std::vector<float> x = Floats(want[i]), y = Floats(got[i]);
      for (size_t k = 0; k < x.size(); ++k)
        ASSERT_NEAR(x[k], y[k], 1e-4f * (1 + std::fabs(x[k]))) << i << ", " << k;
    }
  }
  const std::string text = *executor.PlanText(merged, feeds);
  EXPECT_EQ(Count(text, "matmul") + Count(text, "fused_products"), c.instructions) << text;
}

TEST(MergeProducts, OfOneTensor) {
  Check({});
  Check({.x = {1, 16}});
  Check({.x = {0, 16}, .bias = true});
  Check({.x = {2, 3, 16}, .weights = {{16, 5}, {16, 40}, {16, 33}, {16, 1}}});
  Check({.weights = {{24, 16}, {16, 24}}, .trans_y = true});
  Check({.bias = true, .relu = true});
}

TEST(MergeProducts, SharesALoopAmongThreads) {
  for (const int64_t rows : {1, 7, 200, 2000}) Check({.x = {rows, 16}, .bias = true}, 4);
  Check({.x = {16, 512}, .weights = {{512, 48}, {512, 64}}, .bias = true}, 4);
}

// Each case breaks one condition of the merge.
TEST(MergeProducts, ProductsThatAreNotMerged) {
  Check({.weights = {{16, 16}}});
  Check({.overwritten = true, .instructions = 2});
  Check({.fed_weight = true, .instructions = 2});
  Check({.weights = {{16, 16}, {16, 16}}, .fed_weight = true, .instructions = 2});
  Check({.x = {2, 256}, .weights = {{256, 256}, {256, 64}}, .instructions = 2});  // 320 KiB
  Check({.x = {2049, 16}, .instructions = 3});
}

}  // namespace
}  // namespace heddle::testing
