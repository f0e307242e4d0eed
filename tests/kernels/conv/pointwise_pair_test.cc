// Two pointwise convolutions that multiply in bfloat16 or in 8-bit integers, taken through both by
// pixels, beside sums in double of the same rounded factors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/half.h"
#include "core/machine.h"
#include "kernels/simd/bf16.h"
#include "kernels/simd/int8.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

constexpr const char* kNewMachine =
    R"({"name": "new", "instructions": "avx2 fma avx512 avx512_vnni avx512_bf16"})";

struct Pair {
  int64_t batch = 1, rows = 5, columns = 31, in = 64, between = 96, out = 64;
  std::string activation = "gelu";
  double alpha = 0, beta = 0;
  std::string last = "";  // activation behind the residual
  bool residual = false, over_input = false;
  bool int8 = false;
};

Tensor Values(const Shape& shape, double seed, double size) {
  Tensor t = Tensor::Empty(DType::kF32, shape);
  for (int64_t i = 0; i < shape.numel(); ++i)
    t.mutable_data<float>()[i] =
        static_cast<float>(size * std::sin(static_cast<double>(i + 1) * seed));
  return t;
}

double Rounded(float x) { return static_cast<float>(bfloat16(x)); }

double Activated(const std::string& name, double x) {
  if (name == "relu") return std::max(0.0, x);
  if (name == "gelu") return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
  if (name == "swish") return x / (1 + std::exp(-x));
  if (name == "sigmoid") return 1 / (1 + std::exp(-x));
  if (name == "hard_swish") return x * std::min(1.0, std::max(0.0, x / 6 + 0.5));
  if (name == "tanh") return std::tanh(x);
  return x;
}

struct Case {
  explicit Case(const Pair& p)
      : pair(p),
        x(Values({p.batch, p.rows, p.columns, p.in}, 12.9898, 2)),
        w(Values({p.between, p.in, 1, 1}, 78.233, 2 / std::sqrt(static_cast<double>(p.in)))),
        wb(Values({p.between}, 3.7, 0.5)),
        v(Values({p.out, p.between, 1, 1}, 39.425, 2 / std::sqrt(static_cast<double>(p.between)))),
        vb(Values({p.out}, 5.3, 0.5)),
        r(Values({p.batch, p.rows, p.columns, p.out}, 1.618, 1)) {
    scope->Set("w", Value(w));
    scope->Set("wb", Value(wb));
    scope->Set("v", Value(v));
    scope->Set("vb", Value(vb));
    b.Feed("x", DType::kF32, x.shape());
    b.Param("w", DType::kF32, w.shape()).Param("wb", DType::kF32, wb.shape());
    b.Param("v", DType::kF32, v.shape()).Param("vb", DType::kF32, vb.shape());
    b.Var("y", DType::kF32, r.shape());
    Slots inputs{{"Input", {"x"}}, {"Filters", {"w", "v"}}, {"Biases", {"wb", "vb"}}};
    if (p.residual && !p.over_input) b.Feed("r", DType::kF32, r.shape());
    if (p.residual) inputs.push_back({"ResidualData", {p.over_input ? "x" : "r"}});
    b.Op("fused_conv_chain", inputs, {{"Output", {"y"}}},
         {{"strides", Ints{1, 1, 1, 1}},
          {"paddings", Ints(8, 0)},
          {"fuse_activation", Strings{p.activation, p.last}},
          {"fuse_alpha", std::vector<double>{p.alpha, 0}},
          {"fuse_beta", std::vector<double>{p.beta, 0}},
          {"fuse_scale", std::vector<double>{1, 1}},
          {"fuse_shift", std::vector<double>{0, 0}},
          {"fuse_bf16", true},
          {"fuse_int8", p.int8}});
    b.Fetch("y");
    feeds = {{"x", x}};
    if (p.residual && !p.over_input) feeds.push_back({"r", r});
  }

  Tensor Run(int threads, const std::string& force) {
    Executor executor({.threads = threads});
    auto compiled = MustCompile(executor, b.Build(), scope, {.opt_level = 0, .force = force});
    return MustRun(executor, compiled, feeds)[0];
  }

  // And what rounding the results in between may change, at most.
  std::pair<std::vector<double>, std::vector<double>> Expected() const {
    std::vector<double> y, slack;
    const int64_t pixels = pair.batch * pair.rows * pair.columns;
    for (int64_t m = 0; m < pixels; ++m) {
      std::vector<double> h;
      for (int64_t k = 0; k < pair.between; ++k) {
        double sum = wb.data<float>()[k];
        for (int64_t c = 0; c < pair.in; ++c)
          sum +=
              Rounded(x.data<float>()[m * pair.in + c]) * Rounded(w.data<float>()[k * pair.in + c]);
        h.push_back(Activated(pair.activation, sum));
      }
      for (int64_t o = 0; o < pair.out; ++o) {
        double sum = vb.data<float>()[o], most = 1e-4;
        for (int64_t k = 0; k < pair.between; ++k) {
          const double factor = Rounded(v.data<float>()[o * pair.between + k]);
          sum += h[static_cast<size_t>(k)] * factor;
          // Half a step of bfloat16, and what the activation is off by.
          most += (std::abs(h[static_cast<size_t>(k)]) * std::ldexp(1.01, -8) + 1e-4) *
                  std::abs(factor);
        }
        if (pair.residual) sum += (pair.over_input ? x : r).data<float>()[m * pair.out + o];
        y.push_back(Activated(pair.last, sum));
        slack.push_back(most);
      }
    }
    return {y, slack};
  }

  // With 8-bit integers; `exact`: without rounding.
  std::vector<double> ExpectedInt8(bool exact) const {
    const std::vector<double> first = RoundedFilter(w, exact), second = RoundedFilter(v, exact);
    std::vector<double> y;
    for (int64_t m = 0; m < pair.batch * pair.rows * pair.columns; ++m) {
      const float* const pixel = x.data<float>() + m * pair.in;
      const std::vector<double> in = RoundedRow({pixel, pixel + pair.in}, exact);
      std::vector<double> h;
      for (int64_t k = 0; k < pair.between; ++k)
        h.push_back(Activated(pair.activation,
                              wb.data<float>()[k] + Product(in, first.data() + k * pair.in)));
      h = RoundedRow(h, exact);
      for (int64_t o = 0; o < pair.out; ++o) {
        double sum = vb.data<float>()[o] + Product(h, second.data() + o * pair.between);
        if (pair.residual) sum += (pair.over_input ? x : r).data<float>()[m * pair.out + o];
        y.push_back(Activated(pair.last, sum));
      }
    }
    return y;
  }
  static double Product(const std::vector<double>& a, const double* b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
  }
  // 256 steps from the least number to the largest, 0 among them.
  static std::vector<double> RoundedRow(std::vector<double> row, bool exact) {
    double low = 0, high = 0;
    for (double e : row) low = std::min(low, e), high = std::max(high, e);
    const double step = (high - low) / 255, zero = std::nearbyint(-low / step);
    if (step > 0 && !exact)
      for (double& e : row)
        e = (std::clamp(std::nearbyint(e / step + zero), 0.0, 255.0) - zero) * step;
    return row;
  }
  // 127 steps from 0 to the largest number of an output channel.
  static std::vector<double> RoundedFilter(const Tensor& t, bool exact) {
    std::vector<double> all(t.data<float>(), t.data<float>() + t.numel());
    const int64_t depth = t.dim(1);
    for (int64_t o = 0; o < t.dim(0) && !exact; ++o) {
      double most = 0;
      for (int64_t c = 0; c < depth; ++c)
        most = std::max(most, std::abs(all[static_cast<size_t>(o * depth + c)]));
      for (int64_t c = 0; c < depth; ++c) {
        double& e = all[static_cast<size_t>(o * depth + c)];
        e = std::nearbyint(e / most * 127) * most / 127;
      }
    }
    return all;
  }

  Pair pair;
  Tensor x, w, wb, v, vb, r;
  ProgramBuilder b = {};
  std::shared_ptr<Scope> scope = std::make_shared<Scope>();
  std::vector<Feed> feeds = {};
};

// |a - b| / |b|
double Distance(const Tensor& a, const std::vector<double>& b) {
  double norm = 0, distance = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    norm += b[i] * b[i];
    distance += std::pow(a.data<float>()[i] - b[i], 2);
  }
  return std::sqrt(distance / norm);
}

void CheckBf16(Case& c) {
  if (simd::Bf16KernelsFor(ThisMachine()) == nullptr) return;
  const auto [expected, slack] = c.Expected();
  for (const int threads : {1, 2, 3}) {
    const Tensor got = c.Run(threads, "conv_chain=pair");
    ASSERT_EQ(got.numel(), static_cast<int64_t>(expected.size()));
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(got.data<float>()[i], expected[i], slack[i]) << "element " << i;
  }
}

void CheckInt8(Case& c) {
  if (simd::Int8KernelsFor(ThisMachine()) == nullptr) return;
  const auto expected = c.ExpectedInt8(false), exact = c.ExpectedInt8(true);
  const double rounding = Distance(
      F32({static_cast<int64_t>(expected.size())}, {expected.begin(), expected.end()}), exact);
  for (const int threads : {1, 2, 3}) {
    const Tensor got = c.Run(threads, "conv_chain=pair_int8");
    ASSERT_EQ(got.numel(), static_cast<int64_t>(expected.size()));
    // Some numbers in between lie so near to the middle of two steps that they take the other one.
    EXPECT_LT(Distance(got, expected), 3e-3) << threads << " threads";
    // The activation in between is off, too, by 9e-5.
    EXPECT_LT(Distance(got, exact), 1.1 * rounding + 5e-4) << threads << " threads";
  }
}

void Check(Pair pair) {
  if (simd::Bf16KernelsFor(ThisMachine()) == nullptr &&
      simd::Int8KernelsFor(ThisMachine()) == nullptr)
    GTEST_SKIP() << "this machine multiplies neither bfloat16 nor 8-bit integers";
  SCOPED_TRACE(::testing::Message()
               << pair.batch << "x" << pair.rows << "x" << pair.columns << ", " << pair.in << "-"
               << pair.between << "-" << pair.out << ", " << pair.activation);
  for (const bool int8 : {false, true}) {
    pair.int8 = int8;
    Case c(pair);
    int8 ? CheckInt8(c) : CheckBf16(c);
  }
}

TEST(PointwisePair, PixelsInWholeTilesAndLess) {
  for (const int64_t columns : {1, 13, 14, 15, 56, 57, 301}) Check({.rows = 1, .columns = columns});
  Check({.batch = 3, .rows = 7, .columns = 11});
}

TEST(PointwisePair, ChannelsInWholePanelsAndLess) {
  Check({.in = 1, .between = 1, .out = 1});
  Check({.in = 5, .between = 33, .out = 17});
  Check({.in = 48, .between = 31, .out = 47});
  Check({.in = 384, .between = 768, .out = 384});
}

TEST(PointwisePair, Activations) {
  for (const char* name : {"", "relu", "gelu", "swish", "sigmoid", "hard_swish", "tanh"})
    Check({.between = 40, .activation = name});
}

TEST(PointwisePair, ResidualsAndWhatFollowsThem) {
  Check({.residual = true});
  Check({.last = "relu", .residual = true});
  Check({.residual = true, .over_input = true});
  Check({.columns = 17, .in = 33, .out = 33, .last = "gelu", .residual = true});
}

TEST(PointwisePair, NumbersThatAreNone) {
  for (const bool int8 : {false, true}) {
    if (int8 ? simd::Int8KernelsFor(ThisMachine()) == nullptr
             : simd::Bf16KernelsFor(ThisMachine()) == nullptr)
      continue;
    Case c({.rows = 1, .columns = 20, .int8 = int8});
    c.x.mutable_data<float>()[64 * 3 + 5] = std::nanf("");
    c.x.mutable_data<float>()[64 * 4] = 1e30f;
    std::fill_n(c.x.mutable_data<float>() + 64 * 5, 64, 0.f);
    c.feeds[0].value = c.x;
    const Tensor got = c.Run(1, int8 ? "conv_chain=pair_int8" : "conv_chain=pair");
    for (int64_t i = 0; i < got.numel(); ++i)
      EXPECT_EQ(std::isnan(got.data<float>()[i]), i / 64 == 3) << i;
  }
}

// On a machine that multiplies bfloat16, for enough pixels.
TEST(PointwisePair, IsChosenWhereItPays) {
  const auto name = [](const Pair& pair, const std::string& machine) {
    Case c(pair);
    Executor executor({.threads = 1});
    auto compiled =
        MustCompile(executor, c.b.Build(), c.scope, {.opt_level = 0, .machine = machine});
    auto plan = executor.DescribePlan(compiled, c.feeds);
    return plan.ok() ? plan->instructions[0].implementation : plan.status().ToString();
  };
  const std::string without = R"({"instructions": "avx2 fma avx512"})";
  EXPECT_EQ(name({}, kNewMachine), "pair, avx512");
  EXPECT_EQ(name({.in = 96, .int8 = true}, kNewMachine), "pair_int8, avx512");
  EXPECT_EQ(name({.int8 = true}, kNewMachine), "pair, avx512") << "rounding pays from 80 on";
  EXPECT_EQ(name({.in = 96, .int8 = true}, R"({"instructions": "avx2 fma avx512 avx512_bf16"})"),
            "pair, avx512");
  EXPECT_EQ(name({}, without).find("pair"), std::string::npos) << name({}, without);
  EXPECT_EQ(name({.rows = 1, .columns = 2}, kNewMachine).find("convolutions"), 0u);
  EXPECT_EQ(name({.in = 2, .between = 3, .out = 2}, kNewMachine).find("convolutions"), 0u);
}

}  // namespace
}  // namespace heddle::testing
