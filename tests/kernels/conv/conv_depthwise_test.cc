// Depthwise convolutions with channels last against the sums in double.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

template <typename T>
Tensor Values(DType dtype, const Shape& shape, double seed) {
  Tensor t = Tensor::Empty(dtype, shape);
  for (int64_t i = 0; i < shape.numel(); ++i)
    t.mutable_data<T>()[i] =
        static_cast<T>(static_cast<float>(std::sin(static_cast<double>(i) * seed)));
  return t;
}

struct Layer {
  int64_t height, width, channels, kernel, stride;
  Ints pads;
  std::string activation = "";
  double alpha = 0, beta = 0;
  int64_t row_stride = 0;  // 0: as the columns'
};

template <typename T>
Tensor Run(const Layer& l, DType dtype, int threads) {
  const bool fused = dtype == DType::kF32;
  const Shape in{2, l.height, l.width, l.channels}, filter{l.channels, 1, l.kernel, l.kernel};
  ProgramBuilder b;
  b.Feed("x", dtype, in).Param("w", dtype, filter);
  auto scope = std::make_shared<Scope>();
  scope->Set("w", Value(Values<T>(dtype, filter, 78.233)));
  Slots inputs{{"Input", {"x"}}, {"Filter", {"w"}}};
  Attrs attrs{{"strides", Ints{l.row_stride > 0 ? l.row_stride : l.stride, l.stride}},
              {"paddings", l.pads},
              {"dilations", Ints{1, 1}},
              {"groups", l.channels},
              {"data_format", std::string("NHWC")}};
  if (fused) {
    b.Param("b", dtype, {l.channels});
    scope->Set("b", Value(Values<T>(dtype, {l.channels}, 3.7)));
    inputs.push_back({"Bias", {"b"}});
    attrs.push_back({"fuse_activation", l.activation});
    attrs.push_back({"fuse_alpha", l.alpha});
    attrs.push_back({"fuse_beta", l.beta});
  }
  b.Op(fused ? "fused_conv2d" : "conv2d", inputs, {{"Output", {"y"}}}, attrs).Fetch("y");
  Executor executor({.threads = threads});
  auto compiled = MustCompile(executor, b.Build(), scope, {.opt_level = 0});
  return MustRun(executor, compiled, {{"x", Values<T>(dtype, in, 12.9898)}})[0];
}

double Activate(const Layer& l, double x) {
  const double line = std::min(std::max(l.alpha * x + l.beta, 0.0), 1.0);
  if (l.activation == "relu") return std::max(x, 0.0);
  if (l.activation == "leaky_relu") return x < 0 ? l.alpha * x : x;
  if (l.activation == "clip") return std::min(std::max(x, l.alpha), l.beta);
  if (l.activation == "hard_swish") return x * line;
  if (l.activation == "hard_sigmoid") return line;
  if (l.activation == "swish") return x / (1 + std::exp(-l.alpha * x));
  if (l.activation == "sigmoid") return 1 / (1 + std::exp(-x));
  if (l.activation == "tanh") return std::tanh(x);
  if (l.activation == "mish") return x * std::tanh(std::log1p(std::exp(x)));
  return x;
}

void Check(const Layer& l) {
  SCOPED_TRACE(::testing::Message() << l.height << "x" << l.width << "x" << l.channels
                                    << ", kernel " << l.kernel << ", stride " << l.stride);
  const Tensor exact = Run<double>(l, DType::kF64, 1);
  const Tensor one = Run<float>(l, DType::kF32, 1), two = Run<float>(l, DType::kF32, 2);
  const Tensor bias = Values<float>(DType::kF32, {l.channels}, 3.7);
  ASSERT_EQ(one.shape(), exact.shape());
  for (int64_t i = 0; i < one.numel(); ++i) {
    const double x = exact.data<double>()[i] + bias.data<float>()[i % l.channels];
    ASSERT_NEAR(one.data<float>()[i], Activate(l, x), 1e-5) << "element " << i;
  }
  EXPECT_EQ(Bits(one), Bits(two)) << "one thread, two threads";
}

TEST(Depthwise, SizesAndStrides) {
  for (const int64_t kernel : {3, 5})
    for (const int64_t stride : {1, 2})
      for (const int64_t width : {5, 6, 7, 9, 16, 33}) {
        const int64_t pad = kernel / 2;
        Check({6, width, 19, kernel, stride, {pad, pad}});
        Check({8, width, 32, kernel, stride, {0, 0}});
        Check({7, width, 5, kernel, stride, {0, pad, 1, 2}});
      }
}

TEST(Depthwise, RowsAndColumnsWithStridesOfTheirOwn) {
  for (const int64_t kernel : {3, 5})
    for (const auto& [rows, columns] : {std::pair{1, 2}, {2, 1}, {3, 1}, {3, 2}})
      for (const int64_t width : {7, 18}) {
        Layer l{9, width, 21, kernel, columns, {1, 2, 2, 0}};
        l.row_stride = rows;
        Check(l);
      }
}

TEST(Depthwise, WhatFollowsIsFused) {
  Check({9, 20, 24, 3, 1, {1, 1}, "relu"});
  Check({9, 20, 24, 3, 1, {1, 1}, "leaky_relu", 0.1});
  Check({9, 20, 24, 3, 2, {1, 1}, "clip", 0, 0.6});
  Check({9, 20, 24, 5, 1, {2, 2}, "hard_swish", 1. / 6, 0.5});
  Check({9, 20, 24, 5, 2, {2, 2}, "hard_sigmoid", 0.2, 0.5});
  Check({9, 20, 24, 5, 2, {2, 2}, "swish", 1.0, 0});
  Check({9, 20, 24, 3, 1, {1, 1}, "mish", 0, 0});
  Check({9, 20, 21, 3, 1, {1, 1}, "sigmoid", 0, 0});
  Check({9, 20, 24, 3, 1, {1, 1}, "tanh", 0, 0});
}

}  // namespace
}  // namespace heddle::testing
