// Normalisation over rows, channels and groups beside a plain loop in double: random values, sizes
// and layouts, drawn from a seed.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

// What elements are normalised together, and which scale and bias an element has.
struct Rule {
  std::string op;
  Attrs attrs;
  int64_t sets, parameters;
  int64_t (*set)(const Rule& rule, int64_t i);
  int64_t (*parameter)(const Rule& rule, int64_t i);
  int64_t pixels = 1, channels = 1, groups = 1;  // as the functions need them
  bool last = false;

  int64_t Channel(int64_t i) const { return last ? i % channels : i / pixels % channels; }
  int64_t Image(int64_t i) const { return i / (pixels * channels); }
};

void Check(const Rule& rule, const Shape& shape, uint32_t seed) {
  const double epsilon = 1e-3;
  const Tensor x = RandomF32(shape, seed, 3), scale = RandomF32({rule.parameters}, seed + 1),
               bias = RandomF32({rule.parameters}, seed + 2);
  ProgramBuilder b;
  b.Feed("x", DType::kF32, shape).Feed("scale", DType::kF32, scale.shape());
  b.Feed("bias", DType::kF32, bias.shape());
  Attrs attrs = rule.attrs;
  attrs.emplace_back("epsilon", epsilon);
  b.Op(rule.op, {{"X", {"x"}}, {"Scale", {"scale"}}, {"Bias", {"bias"}}}, {{"Y", {"y"}}}, attrs);
  b.Fetch("y");
  Executor executor({.threads = 2});
  const Tensor got = MustRun(executor, MustCompile(executor, b.Build()),
                             {{"x", x}, {"scale", scale}, {"bias", bias}})[0];
  ASSERT_EQ(got.shape(), shape);
  struct Sums {
    double count = 0, sum = 0, squares = 0;
  };
  std::vector<Sums> sums(static_cast<size_t>(rule.sets));
  for (int64_t i = 0; i < x.numel(); ++i) {
    Sums& s = sums[static_cast<size_t>(rule.set(rule, i))];
    s.count += 1;
    s.sum += static_cast<double>(x.data<float>()[i]);
  }
  for (int64_t i = 0; i < x.numel(); ++i) {
    Sums& s = sums[static_cast<size_t>(rule.set(rule, i))];
    const double off = static_cast<double>(x.data<float>()[i]) - s.sum / s.count;
    s.squares += off * off;
  }
  for (int64_t i = 0; i < x.numel(); ++i) {
    const Sums& s = sums[static_cast<size_t>(rule.set(rule, i))];
    const double off = static_cast<double>(x.data<float>()[i]) - s.sum / s.count;
    const int64_t p = rule.parameter(rule, i);
    const double want = off / std::sqrt(s.squares / s.count + epsilon) *
                            static_cast<double>(scale.data<float>()[p]) +
                        static_cast<double>(bias.data<float>()[p]);
    ASSERT_NEAR(got.data<float>()[i], want, 2e-5) << rule.op << ", element " << i;
  }
}

class NormBesidePlainLoop : public ::testing::Test {
 protected:
  int64_t Draw(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  std::mt19937 random_{13};
};

TEST_F(NormBesidePlainLoop, Rows) {
  for (uint32_t round = 0; round < 60; ++round) {
    const int64_t rows = Draw(1, 9), more = Draw(1, 3), width = Draw(1, 90);
    const bool two = Draw(0, 1) != 0;  // axes are normalised
    Rule rule{.op = "layer_norm",
              .attrs = {{"begin_norm_axis", int64_t{two ? 1 : 2}}},
              .sets = two ? rows : rows * more,
              .parameters = two ? more * width : width,
              .set = [](const Rule& r, int64_t i) { return i / r.parameters; },
              .parameter = [](const Rule& r, int64_t i) { return i % r.parameters; }};
    ASSERT_NO_FATAL_FAILURE(Check(rule, {rows, more, width}, round));
  }
}

TEST_F(NormBesidePlainLoop, Channels) {
  for (uint32_t round = 0; round < 60; ++round) {
    const int64_t batch = Draw(1, 3), channels = Draw(1, 40), h = Draw(2, 7), w = Draw(2, 9);
    const Rule rule{.op = "instance_norm",
                    .attrs = {},
                    .sets = batch * channels,
                    .parameters = channels,
                    .set = [](const Rule& r, int64_t i) { return i / r.pixels; },
                    .parameter = [](const Rule& r, int64_t i) { return r.Channel(i); },
                    .pixels = h * w,
                    .channels = channels};
    ASSERT_NO_FATAL_FAILURE(Check(rule, {batch, channels, h, w}, round));
  }
}

TEST_F(NormBesidePlainLoop, GroupsOfChannels) {
  for (uint32_t round = 0; round < 60; ++round) {
    const int64_t groups = Draw(1, 6), channels = groups * Draw(1, 6), batch = Draw(1, 3);
    const int64_t h = Draw(2, 7), w = Draw(1, 9);
    const bool last = Draw(0, 1) != 0;
    const Rule rule{
        .op = "group_norm",
        .attrs = {{"groups", groups}, {"data_layout", std::string(last ? "NHWC" : "NCHW")}},
        .sets = batch * groups,
        .parameters = channels,
        .set =
            [](const Rule& r, int64_t i) {
              return r.Image(i) * r.groups + r.Channel(i) / (r.channels / r.groups);
            },
        .parameter = [](const Rule& r, int64_t i) { return r.Channel(i); },
        .pixels = h * w,
        .channels = channels,
        .groups = groups,
        .last = last};
    ASSERT_NO_FATAL_FAILURE(
        Check(rule, last ? Shape{batch, h, w, channels} : Shape{batch, channels, h, w}, round));
  }
}

}  // namespace
}  // namespace heddle::testing
