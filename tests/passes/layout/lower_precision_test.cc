// bfloat16 and integers of 8 bits where the user allows them, and nowhere else.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

// conv2d + bias + relu, then conv2d by itself; pooled; two products, one with a bias, and one of
// two feeds. Sizes are above those below which rounding does not pay.
class LowerPrecision : public ::testing::Test {
 protected:
  LowerPrecision() {
    b_.Feed("x", DType::kF32, {1, 32, 20, 20});
    b_.Param("f", DType::kF32, {48, 32, 3, 3});
    b_.Param("fb", DType::kF32, {48});
    b_.Param("g", DType::kF32, {64, 48, 1, 1});
    b_.Param("w", DType::kF32, {400, 256});
    b_.Param("wb", DType::kF32, {256});
    b_.Param("v", DType::kF32, {256, 256});
    const Attrs padded = {{"strides", Ints{1, 1}},
                          {"paddings", Ints{1, 1}},
                          {"dilations", Ints{1, 1}},
                          {"groups", int64_t{1}}};
    const Attrs plain = {{"strides", Ints{1, 1}},
                         {"paddings", Ints{0, 0}},
                         {"dilations", Ints{1, 1}},
                         {"groups", int64_t{1}}};
    Var("c", {1, 48, 20, 20});
    b_.Op("conv2d", {{"Input", {"x"}}, {"Filter", {"f"}}}, {{"Output", {"c"}}}, padded);
    Var("d", {1, 48, 20, 20});
    b_.Op("elementwise_add", {{"X", {"c"}}, {"Y", {"fb"}}}, {{"Out", {"d"}}},
          {{"axis", int64_t{1}}});
    Var("e", {1, 48, 20, 20});
    b_.Op("relu", {{"X", {"d"}}}, {{"Out", {"e"}}});
    Var("h", {1, 64, 20, 20});
    b_.Op("conv2d", {{"Input", {"e"}}, {"Filter", {"g"}}}, {{"Output", {"h"}}}, plain);
    Var("flat", {64, 400});
    Var("hs", {0});
    b_.Op("reshape2", {{"X", {"h"}}}, {{"Out", {"flat"}}, {"XShape", {"hs"}}},
          {{"shape", Ints{64, 400}}});
    Var("p", {64, 256});
    b_.Op("matmul_v2", {{"X", {"flat"}}, {"Y", {"w"}}}, {{"Out", {"p"}}});
    Var("q", {64, 256});
    b_.Op("elementwise_add", {{"X", {"p"}}, {"Y", {"wb"}}}, {{"Out", {"q"}}},
          {{"axis", int64_t{-1}}});
    Var("y", {64, 256});
    b_.Op("matmul_v2", {{"X", {"q"}}, {"Y", {"v"}}}, {{"Out", {"y"}}});
    Var("z", {64, 64});
    b_.Op("matmul_v2", {{"X", {"y"}}, {"Y", {"y"}}}, {{"Out", {"z"}}}, {{"trans_y", true}});
    b_.Fetch("y").Fetch("z");
  }

  void Var(const std::string& name, const Shape& shape) { b_.Var(name, DType::kF32, shape); }

  struct Outcome {
    std::vector<Tensor> out;
    std::string plan;
  };
  Outcome Run(const CompileOptions& options) {
    auto scope = std::make_shared<Scope>();
    uint32_t seed = 10;
    for (const auto& [name, shape] :
         std::vector<std::pair<std::string, Shape>>{{"f", {48, 32, 3, 3}},
                                                    {"fb", {48}},
                                                    {"g", {64, 48, 1, 1}},
                                                    {"w", {400, 256}},
                                                    {"wb", {256}},
                                                    {"v", {256, 256}}})
      scope->Set(name, Value(RandomF32(shape, seed++)));
    Executor executor({.threads = 2});
    auto compiled = MustCompile(executor, b_.Build(), scope, options);
    const std::vector<heddle::Feed> feeds = {{"x", RandomF32({1, 32, 20, 20}, 1)}};
    Outcome o{MustRun(executor, compiled, feeds), {}};
    for (const PassReport::Run& run : compiled.pass_report().runs)
      if (run.name == "lower_precision" && run.changed) o.plan += "lowered ";
    return o;
  }

  ProgramBuilder b_;
};

TEST_F(LowerPrecision, IsNeverSilent) {
  EXPECT_EQ(Run({}).plan, "");
  CompileOptions low;
  low.passes.precision = Precision::kBFloat16;
  low.opt_level = 1;
  EXPECT_EQ(Run(low).plan, "");
}

TEST_F(LowerPrecision, StaysNear) {
  CompileOptions low;
  low.passes.precision = Precision::kBFloat16;
  const Outcome exact = Run({}), rounded = Run(low);
  EXPECT_EQ(rounded.plan, "lowered ");
  ASSERT_EQ(exact.out.size(), rounded.out.size());
  for (size_t i = 0; i < exact.out.size(); ++i) {
    const auto a = Floats(exact.out[i]), b = Floats(rounded.out[i]);
    double norm = 0, distance = 0;
    for (size_t k = 0; k < a.size(); ++k) {
      norm += double{a[k]} * a[k];
      distance += std::pow(double{a[k]} - b[k], 2);
    }
    // Four roundings to 8 bits of mantissa, one after another, at most 2^-9 relative each.
    EXPECT_LT(std::sqrt(distance / norm), 8 * std::ldexp(1.0, -9)) << i;
  }
}

TEST_F(LowerPrecision, Int8HoldsTheMatricesOfProducts) {
  CompileOptions low;
  low.passes.precision = Precision::kInt8Weights;
  const Outcome exact = Run({}), rounded = Run(low);
  EXPECT_EQ(rounded.plan, "lowered ");
  for (size_t i = 0; i < exact.out.size(); ++i) {
    const auto a = Floats(exact.out[i]), b = Floats(rounded.out[i]);
    double norm = 0, distance = 0;
    for (size_t k = 0; k < a.size(); ++k) {
      norm += double{a[k]} * a[k];
      distance += std::pow(double{a[k]} - b[k], 2);
    }
    // Two matrices of elements in [-1, 1), each off by at most 1/254 (1/254 / sqrt(3) as a rule)
    // where they are 1/sqrt(3) as a rule; the second output is the square of the first.
    EXPECT_GT(std::sqrt(distance / norm), 1e-4) << i;
    EXPECT_LT(std::sqrt(distance / norm), 4 / 254.) << i;
  }
}

}  // namespace
}  // namespace heddle::testing
