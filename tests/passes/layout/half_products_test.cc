// Products with operands of bfloat16 on devices with kernels of their own.
#include <gtest/gtest.h>

#include <cmath>

#include "core/half.h"
#include "passes/pass_manager.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

constexpr int64_t kRows = 3, kWidth = 8;

// Two products of x, a third one of what x is later, and one of two feeds. `named`: the place that
// the first one names.
Program Build(const char* named) {
  ProgramBuilder b;
  const Shape square{kWidth, kWidth}, rows{kRows, kWidth};
  b.Feed("x", DType::kF32, rows).Feed("z", DType::kF32, square);
  for (const char* w : {"u", "v", "w"}) b.Param(w, DType::kF32, square);
  b.Var("c", DType::kF32, rows);
  b.Op("scale", {{"X", {"x"}}}, {{"Out", {"c"}}}, {{"scale", 1.5}});
  const auto product = [&](const char* y, const std::string& out, const Attrs& more = {}) {
    b.Var(out, DType::kF32, rows);
    b.Op("matmul_v2", {{"X", {"c"}}, {"Y", {y}}}, {{"Out", {out}}}, more);
    b.Fetch(out);
  };
  product("u", "cu", *named == 0 ? Attrs{} : Attrs{{"op_device", std::string(named)}});
  product("v", "cv");
  b.Op("scale", {{"X", {"c"}}}, {{"Out", {"c"}}}, {{"scale", -0.25}});
  product("w", "cw");
  product("z", "cz");
  return b.Build();
}

std::shared_ptr<Scope> NewScope() {
  auto scope = std::make_shared<Scope>();
  uint32_t seed = 1;
  for (const char* w : {"u", "v", "w"}) scope->Set(w, Value(RandomF32({kWidth, kWidth}, seed++)));
  return scope;
}

struct Seen {
  int casts = 0, halves = 0, marked = 0, plain = 0;
};
Seen Optimized(bool host_caches, Precision precision, const char* named = "") {
  PassOptions options;
  options.precision = precision;
  options.only = {"lower_precision", "half_products"};
  passes::Target target;
  target.host_caches = host_caches;
  const auto made = passes::Optimize(Build(named).impl(), NewScope(), {2, {}, options}, target);
  EXPECT_TRUE(made.ok()) << made.status().ToString();
  Seen seen;
  for (const ir::Op& op : made->program->blocks[0].ops) {
    seen.casts += op.type() == "cast";
    seen.plain += op.type() == "matmul_v2";
    if (op.type() != "fused_matmul") continue;
    seen.marked += op.Attr<bool>("fuse_bf16");
    if (!op.Attr<bool>("fuse_float_out")) continue;
    ++seen.halves;
    for (const char* slot : {"X", "Y"})
      EXPECT_EQ(made->program->vars[op.In(slot)[0]].dtype, DType::kBF16);
    EXPECT_EQ(made->program->vars[op.Out("Out")[0]].dtype, DType::kF32);
  }
  return seen;
}

TEST(HalfProducts, ReadOneCastOfOneValue) {
  const Seen device = Optimized(false, Precision::kBFloat16);
  EXPECT_EQ(device.halves, 3);
  EXPECT_EQ(device.casts, 2) << "of c, and of what is written to it later";
  EXPECT_EQ(device.marked, 0);
  EXPECT_EQ(device.plain, 1) << "a product of two feeds";
}

TEST(HalfProducts, NeedTheWishAndADevice) {
  const Seen host = Optimized(true, Precision::kBFloat16);
  EXPECT_EQ(host.marked, 3);
  EXPECT_EQ(host.casts + host.halves, 0);
  const Seen floats = Optimized(false, Precision::kFloat32);
  EXPECT_EQ(floats.plain, 4);
  EXPECT_EQ(floats.casts + floats.halves, 0);
  const Seen some = Optimized(false, Precision::kBFloat16, "cpu");
  EXPECT_EQ(some.halves, 2);
  EXPECT_EQ(some.marked, 1) << "the host's";
}

// fused_matmul with operands of bfloat16 and results of float32: factors are rounded, sums are not.
TEST(HalfProducts, GiveFloats) {
  ProgramBuilder b;
  b.Feed("x", DType::kBF16, {kRows, kWidth}).Param("w", DType::kBF16, {kWidth, kWidth});
  b.Param("bias", DType::kF32, {kWidth});
  b.Op("fused_matmul", {{"X", {"x"}}, {"Y", {"w"}}, {"Bias", {"bias"}}}, {{"Out", {"y"}}},
       {{"fuse_float_out", true}});
  b.Fetch("y");
  const auto half = [](const Shape& shape, uint32_t seed) {
    const Tensor wide = RandomF32(shape, seed);
    Tensor t = Tensor::Empty(DType::kBF16, shape);
    for (int64_t i = 0; i < t.numel(); ++i)
      t.mutable_data<bfloat16>()[i] = static_cast<bfloat16>(wide.data<float>()[i]);
    return t;
  };
  const Tensor x = half({kRows, kWidth}, 5), w = half({kWidth, kWidth}, 6),
               bias = RandomF32({kWidth}, 7);
  auto scope = std::make_shared<Scope>();
  scope->Set("w", Value(w));
  scope->Set("bias", Value(bias));
  Executor executor({.threads = 1});
  const Tensor y = MustRun(executor, MustCompile(executor, b.Build(), scope), {{"x", x}})[0];
  ASSERT_EQ(y.dtype(), DType::kF32);
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 0; j < kWidth; ++j) {
      double sum = static_cast<double>(bias.data<float>()[j]);
      for (int64_t k = 0; k < kWidth; ++k)
        sum += static_cast<double>(static_cast<float>(x.data<bfloat16>()[i * kWidth + k])) *
               static_cast<double>(static_cast<float>(w.data<bfloat16>()[k * kWidth + j]));
      ASSERT_NEAR(y.data<float>()[i * kWidth + j], sum, 1e-5);
    }
}

}  // namespace
}  // namespace heddle::testing
