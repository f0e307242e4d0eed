// Images of one column are convolved as images of one row.
#include <gtest/gtest.h>

#include <random>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

struct Line {
  int64_t batch, in_c, out_c, length, kernel, stride, dilation, groups;
  int64_t before, behind;  // padding
  bool channels_last, transposed;
};

struct Outcome {
  Tensor result;
  std::string implementation;
};

Outcome Convolve(const Line& l, bool column, int threads) {
  const auto image = [&](int64_t channels, int64_t length) {
    const int64_t h = column ? length : 1, w = column ? 1 : length;
    return l.channels_last ? Shape{l.batch, h, w, channels} : Shape{l.batch, channels, h, w};
  };
  const auto pair = [&](int64_t along, int64_t other) {
    return column ? Ints{along, other} : Ints{other, along};
  };
  const int64_t rows = l.transposed ? l.in_c : l.out_c;
  const int64_t columns = (l.transposed ? l.out_c : l.in_c) / l.groups;
  const Shape filter{rows, columns, column ? l.kernel : 1, column ? 1 : l.kernel};
  ProgramBuilder b;
  b.Feed("x", DType::kF32, image(l.in_c, l.length)).Param("w", DType::kF32, filter);
  auto scope = std::make_shared<Scope>();
  scope->Set("w", Value(RandomF32(filter, 3)));
  b.Op(l.transposed ? "conv2d_transpose" : "conv2d", {{"Input", {"x"}}, {"Filter", {"w"}}},
       {{"Output", {"y"}}},
       {{"strides", pair(l.stride, 1)},
        {"dilations", pair(l.dilation, 1)},
        {"paddings", column ? Ints{l.before, l.behind, 0, 0} : Ints{0, 0, l.before, l.behind}},
        {"groups", l.groups},
        {"data_format", std::string(l.channels_last ? "NHWC" : "NCHW")}});
  b.Fetch("y");
  Executor executor({.threads = threads});
  const auto compiled = MustCompile(executor, b.Build(), scope, {.opt_level = 0});
  const std::vector<heddle::Feed> feeds{{"x", RandomF32(image(l.in_c, l.length), 5)}};
  const auto plan = executor.DescribePlan(compiled, feeds);
  EXPECT_TRUE(plan.ok()) << plan.status().ToString();
  return {MustRun(executor, compiled, feeds)[0], plan->instructions[0].implementation};
}

TEST(ConvGeometry, AColumnIsComputedAsARow) {
  std::mt19937 random(11);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int round = 0; round < 150; ++round) {
    Line l;
    l.transposed = draw(0, 3) == 0;
    l.channels_last = draw(0, 1) == 0;
    l.batch = draw(1, 3), l.groups = draw(0, 3) == 0 ? draw(2, 4) : 1;
    l.in_c = l.groups * draw(1, 40), l.out_c = l.groups * draw(1, 40);
    l.kernel = draw(1, 7), l.stride = draw(1, 3), l.dilation = draw(1, 3);
    l.before = draw(0, 3), l.behind = draw(0, 3);
    if (l.transposed) l.before = l.behind = 0;
    l.length = (l.kernel - 1) * l.dilation + draw(1, 60);
    const int threads = static_cast<int>(draw(1, 2));
    const Outcome column = Convolve(l, true, threads), row = Convolve(l, false, threads);
    ASSERT_EQ(column.implementation, row.implementation) << "round " << round;
    ASSERT_EQ(column.result.numel(), row.result.numel()) << "round " << round;
    ASSERT_EQ(Bits(column.result), Bits(row.result))
        << "round " << round << ", " << row.implementation;
  }
}

}  // namespace
}  // namespace heddle::testing
