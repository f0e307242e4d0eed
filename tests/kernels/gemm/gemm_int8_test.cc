// Products with a constant matrix that is held as integers of 8 bits.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/memory/lazy_buffer.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

constexpr int64_t kGroup = 128;

struct Product {
  int64_t m, n, k;
  bool trans_y = false, residual = false;
  double alpha = 1;
  std::string activation = "";
};

Tensor Multiply(const Product& p, const Tensor& x, const Value& y, int threads, bool int8) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {p.m, p.k});
  b.Param("y", DType::kF32, p.trans_y ? Shape{p.n, p.k} : Shape{p.k, p.n});
  b.Param("b", DType::kF32, {p.n}).Var("out", DType::kF32, {p.m, p.n});
  auto scope = std::make_shared<Scope>();
  scope->Set("y", y);
  scope->Set("b", Value(RandomF32({p.n}, 3)));
  std::vector<Feed> feeds{{"x", x}};
  Slots inputs{{"X", {"x"}}, {"Y", {"y"}}, {"Bias", {"b"}}};
  if (p.residual) {
    b.Feed("r", DType::kF32, {p.m, p.n});
    feeds.push_back({"r", RandomF32({p.m, p.n}, 4)});
    inputs.push_back({"ResidualData", {"r"}});
  }
  b.Op("fused_matmul", inputs, {{"Out", {"out"}}},
       {{"trans_y", p.trans_y},
        {"fuse_activation", p.activation},
        {"alpha", p.alpha},
        {"fuse_int8", int8}});
  b.Fetch("out");
  Executor executor({.threads = threads});
  auto compiled = MustCompile(executor, b.Build(), scope, {.opt_level = 0});
  return MustRun(executor, compiled, feeds)[0];
}

// Elements that are themselves integers times a factor lose nothing.
void CheckExact(const Product& p) {
  SCOPED_TRACE(::testing::Message()
               << p.m << "x" << p.n << "x" << p.k << (p.trans_y ? " trans " : " ") << p.activation);
  Tensor y = RandomF32(p.trans_y ? Shape{p.n, p.k} : Shape{p.k, p.n}, 2);
  for (int64_t k = 0; k < p.k; ++k)
    for (int64_t j = 0; j < p.n; ++j) {
      float& v = y.mutable_data<float>()[p.trans_y ? j * p.k + k : k * p.n + j];
      v = k % kGroup == (j + k / kGroup) % std::min(kGroup, p.k - k / kGroup * kGroup)
              ? -127
              : std::nearbyint(v * 127);
      v *= 0.25f * static_cast<float>(1 + (j + k / kGroup) % 3);  // a factor for each group
    }
  const Tensor x = RandomF32({p.m, p.k}, 1);
  const Tensor want = Multiply(p, x, Value(y), 1, false);
  double largest = 1;
  for (int64_t i = 0; i < want.numel(); ++i)
    largest = std::max(largest, std::fabs(double{want.data<float>()[i]}));
  for (const int threads : {1, 2}) {
    const Tensor got = Multiply(p, x, Value(y), threads, true);
    for (int64_t i = 0; i < want.numel(); ++i)
      ASSERT_NEAR(got.data<float>()[i], want.data<float>()[i], 2e-6 * largest)
          << threads << " threads, " << i / p.n << ' ' << i % p.n;
  }
}

TEST(Int8Product, IsExactForIntegers) {
  for (const int64_t m : {1, 5, 15, 300})
    for (const int64_t n : {33, 100})
      for (const int64_t k : {127, 128, 300})
        for (const bool trans : {false, true})
          CheckExact({.m = m, .n = n, .k = k, .trans_y = trans});
  CheckExact({.m = 3, .n = 16, .k = 1000});
  CheckExact({.m = 40, .n = 2049, .k = 130, .trans_y = true});
  CheckExact({.m = 20, .n = 40, .k = 1536, .residual = true, .activation = "relu"});
}

TEST(Int8Product, WhatFollowsIsFused) {
  for (const std::string activation : {"", "relu", "tanh"})
    for (const bool residual : {false, true})
      CheckExact({.m = 37,
                  .n = 70,
                  .k = 260,
                  .residual = residual,
                  .alpha = 0.001,
                  .activation = activation});
}

// Others are off by half a step at most, and are off.
TEST(Int8Product, IsOffByHalfAStep) {
  const Product p{.m = 9, .n = 50, .k = 400};
  const Tensor y = RandomF32({p.k, p.n}, 2), x = RandomF32({p.m, p.k}, 1);
  const Tensor want = Multiply(p, x, Value(y), 1, false), got = Multiply(p, x, Value(y), 1, true);
  EXPECT_FALSE(SameBits(want, got));
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j) {
      double most = 1e-4;
      for (int64_t begin = 0; begin < p.k; begin += kGroup) {
        const int64_t end = std::min(begin + kGroup, p.k);
        float largest = 0;
        double sum = 0;
        for (int64_t k = begin; k < end; ++k) {
          largest = std::max(largest, std::fabs(y.data<float>()[k * p.n + j]));
          sum += std::fabs(x.data<float>()[i * p.k + k]);
        }
        most += sum * largest / 254;
      }
      ASSERT_NEAR(got.data<float>()[i * p.n + j], want.data<float>()[i * p.n + j], most)
          << i << ' ' << j;
    }
}

TEST(Int8Product, ZerosAndWhatIsNoNumber) {
  const Product p{.m = 2, .n = 40, .k = 200};
  Tensor y = RandomF32({p.k, p.n}, 2);
  std::fill_n(y.mutable_data<float>(), y.numel(), 0.f);
  y.mutable_data<float>()[5] = std::numeric_limits<float>::infinity();
  y.mutable_data<float>()[150 * p.n + 6] = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = RandomF32({p.m, p.k}, 1), bias = RandomF32({p.n}, 3);
  const Tensor got = Multiply(p, x, Value(y), 1, true);
  for (int64_t i = 0; i < got.numel(); ++i) {
    if (i % p.n == 5 || i % p.n == 6)
      EXPECT_TRUE(std::isnan(got.data<float>()[i])) << i;
    else
      EXPECT_EQ(got.data<float>()[i], bias.data<float>()[i % p.n]) << i;
  }
}

// The matrix is read part by part, and not held besides.
TEST(Int8Product, ReadsPartByPart) {
  const Product p{.m = 4, .n = 512, .k = 2048};
  for (const bool trans : {false, true}) {
    size_t most = 0;
    const Shape shape = trans ? Shape{p.n, p.k} : Shape{p.k, p.n};
    const auto contents = [&most](void* to, size_t begin, size_t end) {
      most = std::max(most, end - begin);
      std::fill_n(static_cast<float*>(to), (end - begin) / sizeof(float), 1.f);
      return Status::Ok();
    };
    const auto bytes = static_cast<size_t>(p.n * p.k) * sizeof(float);
    const Tensor y(DType::kF32, shape, MakeLazyBuffer(bytes, contents));
    Product of = p;
    of.trans_y = trans;
    const Tensor x = RandomF32({p.m, p.k}, 1);
    const Tensor got = Multiply(of, x, Value(y), 1, true);
    EXPECT_GT(most, 0u);
    EXPECT_LE(most, bytes / 4);
    double sum = 0;
    for (int64_t k = 0; k < p.k; ++k) sum += x.data<float>()[k];
    EXPECT_NEAR(got.data<float>()[0], sum + RandomF32({p.n}, 3).data<float>()[0], 1e-3);
  }
}

}  // namespace
}  // namespace heddle::testing
