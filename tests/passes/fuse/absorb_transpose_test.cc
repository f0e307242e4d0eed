// Transposes in front of products: which become flags, and which stay.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

bool IsClose(const Tensor& a, const Tensor& b) {
  const std::vector<float> x = Floats(a), y = Floats(b);
  for (size_t i = 0; i < x.size(); ++i)
    if (!(std::fabs(x[i] - y[i]) <= 1e-4f * (1 + std::fabs(x[i])))) return false;
  return a.shape() == b.shape();
}

struct Product {
  Shape x = {2, 5, 7}, y = {2, 4, 7};
  Ints x_axis = {}, y_axis = {0, 2, 1};  // of the transposes in front; empty: none
  std::string op = "matmul_v2";
  bool trans_x = false, trans_y = false;
  bool overwritten = false;  // y, between its transpose and the product
  bool transpose_fetched = false;
  int transposes = 0;  // in the plan
};

void Check(const Product& p) {
  const auto build = [&] {
    ProgramBuilder b;
    b.Feed("x0", DType::kF32, p.x).Feed("y0", DType::kF32, p.y);
    b.Var("x", DType::kF32, p.x).Var("y", DType::kF32, p.y).Scale("x0", "x", 2);
    b.Scale("y0", "y", 3);
    std::string operands[] = {"x", "y"};
    const Ints* axes[] = {&p.x_axis, &p.y_axis};
    for (int k = 0; k < 2; ++k) {
      if (axes[k]->empty()) continue;
      const std::string t = operands[k] + "t";
      b.Var(t, DType::kF32, Shape(std::vector<int64_t>(axes[k]->size(), -1)));
      b.Op("transpose2", {{"X", {operands[k]}}}, {{"Out", {t}}, {"XShape", {t + "s"}}},
           {{"axis", *axes[k]}});
      operands[k] = t;
    }
    if (p.overwritten) b.Scale("y", "y", 5).Fetch("y");
    const bool old = p.op == "matmul";
    b.Op(p.op, {{"X", {operands[0]}}, {"Y", {operands[1]}}}, {{"Out", {"z"}}},
         {{old ? "transpose_X" : "trans_x", p.trans_x},
          {old ? "transpose_Y" : "trans_y", p.trans_y}});
    b.Scale("z", "end", 1).Fetch("end");
    if (p.transpose_fetched) b.Fetch(operands[1]);
    return b.Build();
  };
  Executor executor({.threads = 1});
  const std::vector<Feed> feeds = {{"x0", RandomF32(p.x, 1)}, {"y0", RandomF32(p.y, 2)}};
  auto plain = MustCompile(executor, build(), nullptr, {.opt_level = 0});
  auto fused = MustCompile(executor, build(), nullptr, {.opt_level = 2});
  const auto want = MustRun(executor, plain, feeds), got = MustRun(executor, fused, feeds);
  ASSERT_EQ(want.size(), got.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(IsClose(want[i], got[i])) << i;
  const std::string text = *executor.PlanText(fused, feeds);
  int transposes = 0;
  for (size_t at = 0; (at = text.find("transpose2", at)) != std::string::npos; ++at) ++transposes;
  EXPECT_EQ(transposes, p.transposes) << text;
}

// matmul(transpose(x), y) -> matmul(x, y, trans_x), likewise for y.
TEST(AbsorbTranspose, ATransposeOfTheLastTwoDimensionsIsAbsorbed) {
  Check({});
  Check({.x = {2, 7, 5}, .x_axis = {0, 2, 1}});
  Check({.x = {2, 7, 5}, .x_axis = {0, -1, 1}, .op = "matmul"});
  Check({.x = {5, 7}, .y = {4, 7}, .y_axis = {1, 0}});
  Check({.x = {5, 7}, .y = {2, 3, 4, 7}, .y_axis = {0, 1, 3, 2}});
}

TEST(AbsorbTranspose, BesideAVectorOrFewerDimensions) {
  for (const char* op : {"matmul_v2", "matmul"}) {
    SCOPED_TRACE(op);
    Check({.x = {7}, .y = {4, 7}, .y_axis = {1, 0}, .op = op});
    Check({.x = {7}, .y = {2, 4, 7}, .op = op});
    Check({.x = {7, 5}, .y = {7}, .x_axis = {1, 0}, .y_axis = {}, .op = op});
    Check({.x = {2, 7, 5}, .y = {7}, .x_axis = {0, 2, 1}, .y_axis = {}, .op = op});
    Check({.x = {3, 5, 7}, .y = {4, 7}, .y_axis = {1, 0}, .op = op});
    Check({.x = {7, 5}, .y = {3, 7, 4}, .x_axis = {1, 0}, .y_axis = {}, .op = op});
  }
}

TEST(AbsorbTranspose, InFrontOfATransposedOperand) {
  Check({.y = {2, 7, 4}, .trans_y = true});
  Check({.x = {2, 5, 7}, .y = {2, 7, 4}, .x_axis = {0, 2, 1}, .trans_x = true, .trans_y = true});
}

TEST(AbsorbTranspose, LeavesOtherOrders) {
  Check({.x = {3, 5, 7}, .y = {7, 3, 4}, .y_axis = {1, 0, 2}, .transposes = 1});
  Check({.x = {4, 5, 7}, .y = {3, 7, 4}, .y_axis = {2, 0, 1}, .trans_y = true, .transposes = 1});
}

TEST(AbsorbTranspose, LeavesLargeOperandsButThoseOfARow) {
  Check({.x = {16, 512}, .y = {512, 512}, .y_axis = {1, 0}, .transposes = 1});
  Check({.x = {1024, 128}, .y = {1024, 4}, .x_axis = {1, 0}, .y_axis = {}, .transposes = 1});
  Check({.x = {1, 512}, .y = {512, 512}, .y_axis = {1, 0}});
}

TEST(AbsorbTranspose, NeedsTheOperandAsItWas) { Check({.overwritten = true, .transposes = 1}); }

TEST(AbsorbTranspose, LeavesATransposeThatOthersRead) {
  Check({.transpose_fetched = true, .transposes = 1});
}

}  // namespace
}  // namespace heddle::testing
