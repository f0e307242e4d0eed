// Element-wise operators that have loops of their own for some attributes, beside the definition in
// double: by themselves, in place, and as steps of a fused loop.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<float> Numbers(bool positive) {
  std::vector<float> x = {0.f, -0.f, kInf, 1e-30f, 3e5f};
  if (!positive) x.insert(x.end(), {-kInf, std::nanf(""), -1e-30f, -3e5f});
  for (int i = -999; i < 1000; ++i)
    if (!positive || i > 0) x.push_back(static_cast<float>(i) * 0.05f);
  return x;
}

void Same(double got, double want, double part, float of) {
  if (std::isnan(want)) {
    EXPECT_TRUE(std::isnan(got)) << "of " << of;
  } else if (std::isinf(want) || want == 0) {
    EXPECT_EQ(got, want) << "of " << of;
    EXPECT_EQ(std::signbit(got), std::signbit(want)) << "of " << of;
  } else {
    EXPECT_NEAR(got, want, part * std::fabs(want) + 1e-37) << "of " << of;
  }
}

// z = y + y for y = op(x), with the scalar `other` as Y where there is one. At level 2 both are
// steps of one loop.
std::vector<float> Twice(const std::string& type, const std::vector<float>& x, const Attrs& attrs,
                         int level, const float* other = nullptr) {
  ProgramBuilder b;
  const Shape shape{static_cast<int64_t>(x.size())};
  b.Feed("x", DType::kF32, shape);
  Slots in{{"X", {"x"}}};
  for (const char* name : {"y", "z"}) b.Var(name, DType::kF32, shape);
  if (other != nullptr) {
    b.Var("c", DType::kF32, {1});
    b.Op("fill_constant", {}, {{"Out", {"c"}}},
         {{"shape", Ints{1}}, {"value", static_cast<double>(*other)}, {"dtype", int64_t{5}}});
    in.push_back({"Y", {"c"}});
  }
  b.Op(type, in, {{"Out", {"y"}}}, attrs);
  b.Op("elementwise_add", {{"X", {"y"}}, {"Y", {"y"}}}, {{"Out", {"z"}}}).Fetch("z");
  Executor executor({.threads = 1});
  auto compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = level});
  const std::vector<Feed> feeds{{"x", F32(shape, x)}};
  const auto stats = executor.Prepare(compiled, feeds);
  EXPECT_TRUE(stats.ok()) << stats.status().ToString();
  if (level == 2 && stats.ok()) {
    EXPECT_EQ(stats->instructions, 1) << "not fused";
  }
  return Floats(MustRun(executor, compiled, feeds)[0]);
}

void Check(const std::string& type, const Attrs& attrs, const std::function<double(double)>& fn,
           double part, bool positive = false, const float* other = nullptr) {
  const std::vector<float> x = Numbers(positive);
  for (int level : {0, 2}) {
    const std::vector<float> z = Twice(type, x, attrs, level, other);
    for (size_t i = 0; i < x.size(); ++i) Same(z[i], 2 * fn(x[i]), part, x[i]);
  }
}

TEST(Pow, ExponentsWithLoopsOfTheirOwn) {
  for (const double p : {2.0, 3.0, 0.5, -0.5, -1.0, 1.5, 1.0, -2.0}) {
    SCOPED_TRACE(p);
    const auto want = [p](double x) {
      const double y = std::pow(x, p);
      return std::fabs(2 * y) > 3.4e38 ? std::copysign(static_cast<double>(kInf), y) : y;
    };
    // What leaves float's range does so for all ways of computing it but those on its border.
    Check(
        "pow", {{"factor", p}}, [&](double x) { return want(x); }, 4e-7);
  }
}

TEST(Pow, SquaresByAConstant) {
  for (const float p : {2.f, 1.5f}) {
    SCOPED_TRACE(p);
    Check(
        "elementwise_pow", {}, [p](double x) { return std::pow(x, p); }, 4e-7, false, &p);
  }
}

TEST(Mish, OfAnyThreshold) {
  for (const double threshold : {20.0, 5.0, 30.0}) {
    SCOPED_TRACE(threshold);
    const auto want = [&](double x) {
      return x * std::tanh(x > threshold ? x : x > 30 ? x : std::log1p(std::exp(x)));
    };
    Check("mish", {{"threshold", threshold}}, want, 1e-6, true);
  }
}

// Longer than what is computed at a time, and no multiple of a vector.
TEST(Activations, InPlaceAndBeside) {
  std::vector<float> x;
  for (int i = 0; i < 5003; ++i) x.push_back(static_cast<float>(i % 401) * 0.05f - 10);
  const struct {
    const char* type;
    Attrs attrs;
    std::function<double(double)> fn;
  } all[] = {
      {"sigmoid", {}, [](double v) { return 1 / (1 + std::exp(-v)); }},
      {"tanh", {}, [](double v) { return std::tanh(v); }},
      {"silu", {}, [](double v) { return v / (1 + std::exp(-v)); }},
      {"swish", {{"beta", 1.5}}, [](double v) { return v / (1 + std::exp(-1.5 * v)); }},
      {"gelu",
       {{"approximate", false}},
       [](double v) { return 0.5 * v * std::erfc(-v * std::sqrt(0.5)); }},
      {"mish",
       {{"threshold", 20.0}},
       [](double v) { return v * std::tanh(std::log1p(std::exp(v))); }},
  };
  for (const auto& a : all)
    for (int level : {0, 2}) {
      SCOPED_TRACE(a.type);
      const std::vector<float> z = Twice(a.type, x, a.attrs, level);
      for (size_t i = 0; i < x.size(); ++i)
        EXPECT_NEAR(z[i], 2 * a.fn(x[i]), 3e-6 * std::fabs(2 * a.fn(x[i])) + 3e-6);
    }
}

}  // namespace
}  // namespace heddle::testing
