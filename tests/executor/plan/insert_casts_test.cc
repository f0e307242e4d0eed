// Casts that a plan inserts: what Paddle 2.6.2 gives for these programs.
#include <gtest/gtest.h>

#include <complex>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using C64 = std::complex<float>;
using C128 = std::complex<double>;

Result<std::vector<Tensor>> RunPair(const std::string& op, const Tensor& x, const Tensor& y,
                                    std::string* plan, int level = 2) {
  ProgramBuilder b;
  b.Feed("x", x.dtype(), x.shape()).Feed("y", y.dtype(), y.shape());
  b.Binary(op, "x", "y", "z").Fetch("z");
  Executor executor({.threads = 1});
  auto compiled = executor.Compile(b.Build(), nullptr, {.opt_level = level});
  if (!compiled.ok()) return compiled.status();
  const std::vector<Feed> feeds = {{"x", x}, {"y", y}};
  if (auto text = executor.PlanText(*compiled, feeds); text.ok()) *plan = *text;
  return executor.Run(*compiled, feeds);
}

const std::vector<float> kReal = {1.5, 2, 3, 4};

TEST(InsertCasts, RealOperandsBesideComplexOnes) {
  const Tensor x = Tensor::Of<float>(DType::kF32, {2, 2}, kReal);
  const Tensor y = Tensor::Of<C64>(DType::kC64, {2, 2}, {{1.5, 1.5}, {2, 2}, {3, 3}, {4, 4}});
  for (const int level : {0, 2}) {
    std::string plan;
    auto out = RunPair("matmul_v2", x, y, &plan, level);
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    ASSERT_EQ((*out)[0].dtype(), DType::kC64);
    const C64 want[] = {{8.25, 8.25}, {11, 11}, {16.5, 16.5}, {22, 22}};
    for (int i = 0; i < 4; ++i) EXPECT_EQ((*out)[0].data<C64>()[i], want[i]) << i;
    EXPECT_NE(plan.find("cast [static] (x#"), std::string::npos) << plan;
  }
  std::string plan;
  auto out = RunPair("kron", x, y, &plan);
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ((*out)[0].data<C64>()[0], C64(2.25, 2.25));
  EXPECT_EQ((*out)[0].data<C64>()[15], C64(16, 16));
}

// complex64 beside float64 is complex128, for which the complex operand is cast, too.
TEST(InsertCasts, ToTheTypeThatHoldsBoth) {
  const Tensor x = Tensor::Of<C64>(DType::kC64, {2, 2}, {{1.5, 1.5}, {2, 2}, {3, 3}, {4, 4}});
  const Tensor y = Tensor::Of<double>(DType::kF64, {2, 2}, {1.5, 2, 3, 4});
  std::string plan;
  auto out = RunPair("matmul_v2", x, y, &plan);
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  ASSERT_EQ((*out)[0].dtype(), DType::kC128);
  const C128 want[] = {{8.25, 8.25}, {11, 11}, {16.5, 16.5}, {22, 22}};
  for (int i = 0; i < 4; ++i) EXPECT_EQ((*out)[0].data<C128>()[i], want[i]) << i;
  EXPECT_NE(plan.find("cast [static] (x#"), std::string::npos) << plan;
  EXPECT_NE(plan.find("cast [static] (y#"), std::string::npos) << plan;
}

TEST(InsertCasts, OtherMixturesAreErrors) {
  const Tensor real = Tensor::Of<float>(DType::kF32, {2, 2}, kReal);
  const Tensor wide = Tensor::Of<double>(DType::kF64, {2, 2}, {1, 2, 3, 4});
  const Tensor integer = Tensor::Of<int32_t>(DType::kI32, {2, 2}, {1, 2, 3, 4});
  const Tensor complex = Tensor::Of<C64>(DType::kC64, {2, 2}, {1, 2, 3, 4});
  std::string plan;
  for (const char* op : {"matmul_v2", "kron"}) {
    EXPECT_FALSE(RunPair(op, real, wide, &plan).ok()) << op;
    EXPECT_FALSE(RunPair(op, integer, complex, &plan).ok()) << op;
  }
}

}  // namespace
}  // namespace heddle::testing
