// Products of matrices that are no constants, in plans that are made quickly: by heddle's own
// loops.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

struct Product {
  Shape x, y, out;  // as matmul_v2 takes them
  bool trans_y = false;
};

void Check(const Product& p) {
  SCOPED_TRACE(::testing::Message() << p.x.ToString() << " by " << p.y.ToString());
  ProgramBuilder b;
  b.Feed("x", DType::kF32, p.x).Feed("y", DType::kF32, p.y);
  b.Var("out", DType::kF32, p.out);
  b.Op("matmul_v2", {{"X", {"x"}}, {"Y", {"y"}}}, {{"Out", {"out"}}},
       {{"trans_x", false}, {"trans_y", p.trans_y}});
  b.Fetch("out");
  const Tensor x = RandomF32(p.x, 1), y = RandomF32(p.y, 2);
  const int64_t m = p.x.dim(-2), k = p.x.dim(-1), n = p.out.dim(-1);
  const auto at = [](const Shape& s, int64_t product) {  // of the one batch dimension
    return s.rank() < 3 || s[0] == 1 ? 0 : product * s.dim(-1) * s.dim(-2);
  };
  for (const int threads : {1, 2}) {
    Executor executor({.threads = threads});
    auto compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = 0, .lean = true});
    const Tensor out = MustRun(executor, compiled, {{"x", x}, {"y", y}})[0];
    ASSERT_EQ(out.shape(), p.out);
    for (int64_t i = 0; i < out.numel(); ++i) {
      const int64_t product = i / (m * n), row = i / n % m, column = i % n;
      const float* left = x.data<float>() + at(p.x, product) + row * k;
      const float* right = y.data<float>() + at(p.y, product);
      double sum = 0;
      for (int64_t j = 0; j < k; ++j)
        sum += double{left[j]} * right[p.trans_y ? column * k + j : j * n + column];
      ASSERT_NEAR(out.data<float>()[i], sum, 1e-6 * std::sqrt(static_cast<double>(k)) + 1e-5)
          << threads << " threads, element " << i;
    }
  }
}

TEST(FreshProduct, Sizes) {
  for (const int64_t m : {1, 3, 14, 15, 200})
    for (const int64_t n : {1, 16, 17, 70})
      for (const int64_t k : {127, 128, 300})
        for (const bool trans : {false, true})
          Check({{m, k}, trans ? Shape{n, k} : Shape{k, n}, {m, n}, trans});
}

TEST(FreshProduct, Batches) {
  for (const bool trans : {false, true}) {
    const Shape y = trans ? Shape{40, 130} : Shape{130, 40};
    Check({{5, 20, 130}, {5, y[0], y[1]}, {5, 20, 40}, trans});
    Check({{5, 20, 130}, {1, y[0], y[1]}, {5, 20, 40}, trans});
    Check({{1, 20, 130}, {5, y[0], y[1]}, {5, 20, 40}, trans});
    Check({{0, 20, 130}, {1, y[0], y[1]}, {0, 20, 40}, trans});
  }
}

}  // namespace
}  // namespace heddle::testing
