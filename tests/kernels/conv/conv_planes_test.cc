// Convolutions to a few channels, in both layouts, against the sums in double.
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
  int64_t height, width, in_c, out_c;
  Ints kernel;
  std::string activation = "";
  Ints strides = {1, 1}, dilations = {1, 1};
  Ints paddings = {0, 0};  // or top, bottom, left, right
  bool channels_last = true;
};

template <typename T>
Tensor Run(const Layer& l, DType dtype, int threads) {
  const bool fused = dtype == DType::kF32;
  const Shape in =
      l.channels_last ? Shape{2, l.height, l.width, l.in_c} : Shape{2, l.in_c, l.height, l.width};
  const Shape filter{l.out_c, l.in_c, l.kernel[0], l.kernel[1]};
  ProgramBuilder b;
  b.Feed("x", dtype, in).Param("w", dtype, filter);
  auto scope = std::make_shared<Scope>();
  scope->Set("w", Value(Values<T>(dtype, filter, 78.233)));
  Slots inputs{{"Input", {"x"}}, {"Filter", {"w"}}};
  Attrs attrs{{"strides", l.strides},
              {"paddings", l.paddings},
              {"dilations", l.dilations},
              {"data_format", std::string(l.channels_last ? "NHWC" : "NCHW")}};
  if (fused) {
    b.Param("b", dtype, {l.out_c});
    scope->Set("b", Value(Values<T>(dtype, {l.out_c}, 3.7)));
    inputs.push_back({"Bias", {"b"}});
    attrs.push_back({"fuse_activation", l.activation});
  }
  b.Op(fused ? "fused_conv2d" : "conv2d", inputs, {{"Output", {"y"}}}, attrs);
  b.Fetch("y");
  Executor executor({.threads = threads});
  CompileOptions options{.opt_level = 0};
  if (fused) options.force = "conv=planes";
  auto compiled = MustCompile(executor, b.Build(), scope, options);
  return MustRun(executor, compiled, {{"x", Values<T>(dtype, in, 12.9898)}})[0];
}

void Check(const Layer& l) {
  const Tensor exact = Run<double>(l, DType::kF64, 1);
  const Tensor one = Run<float>(l, DType::kF32, 1), two = Run<float>(l, DType::kF32, 2);
  const Tensor bias = Values<float>(DType::kF32, {l.out_c}, 3.7);
  ASSERT_EQ(one.shape(), exact.shape());
  const int64_t plane = one.numel() / 2 / l.out_c;
  // Sums are rounded once for each term, while they are as large as results are.
  double largest = 1;
  for (int64_t i = 0; i < exact.numel(); ++i)
    largest = std::max(largest, std::fabs(exact.data<double>()[i]));
  const auto terms = static_cast<double>(l.in_c * l.kernel[0] * l.kernel[1]);
  const double rounding = 6e-8 * largest * (4 * std::sqrt(terms) + 8);
  for (int64_t i = 0; i < one.numel(); ++i) {
    const int64_t channel = l.channels_last ? i % l.out_c : i / plane % l.out_c;
    double x = exact.data<double>()[i] + bias.data<float>()[channel];
    if (l.activation == "relu") x = std::max(x, 0.0);
    if (l.activation == "sigmoid") x = 1 / (1 + std::exp(-x));
    ASSERT_NEAR(one.data<float>()[i], x, rounding) << "element " << i;
  }
  EXPECT_EQ(Bits(one), Bits(two)) << "one thread, two threads";
}

TEST(PlanesConvolution, ChannelsAndWidths) {
  for (const int64_t channels : {1, 2, 3, 4, 5, 7, 8})
    for (const int64_t width : {1, 15, 16, 17, 47, 130, 300})
      Check({.height = 5,
             .width = width,
             .in_c = 3,
             .out_c = channels,
             .kernel = {3, 3},
             .paddings = {1, 1}});
}

TEST(PlanesConvolution, KernelsAndPaddings) {
  Check({.height = 9,
         .width = 90,
         .in_c = 8,
         .out_c = 8,
         .kernel = {3, 39},
         .activation = "relu",
         .paddings = {1, 1, 19, 19}});
  Check({.height = 1,
         .width = 500,
         .in_c = 1,
         .out_c = 1,
         .kernel = {1, 256},
         .paddings = {0, 0, 100, 3}});
  Check({.height = 12,
         .width = 40,
         .in_c = 5,
         .out_c = 1,
         .kernel = {7, 3},
         .activation = "sigmoid",
         .strides = {3, 1},
         .paddings = {3, 2, 0, 1}});
  Check({.height = 20,
         .width = 33,
         .in_c = 2,
         .out_c = 6,
         .kernel = {3, 3},
         .dilations = {2, 5},
         .paddings = {4, 4}});
  // Rows that see nothing but padding.
  Check({.height = 2, .width = 20, .in_c = 2, .out_c = 2, .kernel = {2, 2}, .paddings = {5, 5}});
}

TEST(PlanesConvolution, ChannelsFirst) {
  Check({.height = 30,
         .width = 70,
         .in_c = 16,
         .out_c = 1,
         .kernel = {3, 3},
         .activation = "sigmoid",
         .paddings = {1, 1},
         .channels_last = false});
  Check({.height = 11,
         .width = 21,
         .in_c = 4,
         .out_c = 5,
         .kernel = {5, 5},
         .paddings = {2, 2},
         .channels_last = false});
}

// Taps far apart in wide padding: planes of it would be larger than any memory.
TEST(PlanesConvolution, IsNotForTapsFarApart) {
  constexpr int64_t kFar = 1 << 20, kWidth = 64;
  const Shape in{1, 1, 1, kWidth}, filter{1, 1, 3, 3};
  ProgramBuilder b;
  b.Feed("x", DType::kF32, in).Param("w", DType::kF32, filter);
  b.Op("conv2d", {{"Input", {"x"}}, {"Filter", {"w"}}}, {{"Output", {"y"}}},
       {{"strides", Ints{1, 1}}, {"paddings", Ints{kFar, kFar}}, {"dilations", Ints{kFar, kFar}}});
  b.Fetch("y");
  auto scope = std::make_shared<Scope>();
  const Tensor taps = Values<float>(DType::kF32, filter, 78.233);
  scope->Set("w", Value(taps));
  Executor executor({.threads = 1});
  const Tensor x = Values<float>(DType::kF32, in, 12.9898);
  const Tensor y = MustRun(executor, MustCompile(executor, b.Build(), scope, {}), {{"x", x}})[0];
  ASSERT_EQ(y.shape(), in);
  for (int64_t i = 0; i < kWidth; ++i)
    EXPECT_FLOAT_EQ(y.data<float>()[i], x.data<float>()[i] * taps.data<float>()[4]);
}

}  // namespace
}  // namespace heddle::testing
