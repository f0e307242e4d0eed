// Two pointwise convolutions that multiply in bfloat16, taken through both by pixels, beside sums
// in double of the same rounded factors.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "core/half.h"
#include "core/machine.h"
#include "kernels/simd/bf16.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

constexpr const char* kNewMachine =
    R"({"name": "new", "instructions": "avx2 fma avx512 avx512_bf16"})";

struct Pair {
  int64_t batch = 1, rows = 5, columns = 31, in = 64, between = 96, out = 64;
  std::string activation = "gelu";
  double alpha = 0, beta = 0;
  std::string last = "";  // activation behind the residual
  bool residual = false, over_input = false;
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
          {"fuse_bf16", true}});
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

  Pair pair;
  Tensor x, w, wb, v, vb, r;
  ProgramBuilder b = {};
  std::shared_ptr<Scope> scope = std::make_shared<Scope>();
  std::vector<Feed> feeds = {};
};

void Check(const Pair& pair) {
  if (simd::Bf16KernelsFor(ThisMachine()) == nullptr)
    GTEST_SKIP() << "this machine does not multiply bfloat16";
  SCOPED_TRACE(::testing::Message()
               << pair.batch << "x" << pair.rows << "x" << pair.columns << ", " << pair.in << "-"
               << pair.between << "-" << pair.out << ", " << pair.activation);
  Case c(pair);
  const auto [expected, slack] = c.Expected();
  for (const int threads : {1, 2, 3}) {
    const Tensor got = c.Run(threads, "conv_chain=pair");
    ASSERT_EQ(got.numel(), static_cast<int64_t>(expected.size()));
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(got.data<float>()[i], expected[i], slack[i]) << "element " << i;
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
  if (simd::Bf16KernelsFor(ThisMachine()) == nullptr)
    GTEST_SKIP() << "this machine does not multiply bfloat16";
  Case c({.rows = 1, .columns = 20});
  c.x.mutable_data<float>()[64 * 3 + 5] = std::nanf("");
  c.x.mutable_data<float>()[64 * 4] = 1e30f;
  c.feeds[0].value = c.x;
  const Tensor got = c.Run(1, "conv_chain=pair");
  for (int64_t i = 0; i < got.numel(); ++i)
    EXPECT_EQ(std::isnan(got.data<float>()[i]), i / 64 == 3) << i;
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
  EXPECT_EQ(name({}, without).find("pair"), std::string::npos) << name({}, without);
  EXPECT_EQ(name({.rows = 1, .columns = 2}, kNewMachine).find("convolutions"), 0u);
  EXPECT_EQ(name({.in = 2, .between = 3, .out = 2}, kNewMachine).find("convolutions"), 0u);
}

}  // namespace
}  // namespace heddle::testing
