// Winograd convolutions give what the sums as they stand give, for every size of image and
// channels, with everything that may follow, whatever instructions they are made of.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "kernels/simd/microkernels.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

Tensor Random(DType dtype, const Shape& shape, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> value(-1, 1);
  Tensor t = Tensor::Empty(dtype, shape);
  for (int64_t i = 0; i < shape.numel(); ++i) {
    const float x = value(random);
    if (dtype == DType::kF32)
      t.mutable_data<float>()[i] = x;
    else
      t.mutable_data<double>()[i] = x;
  }
  return t;
}

struct Layer {
  int64_t batch, height, width, in_c, out_c;
  Ints pads{1, 1};
  std::string activation = "";
  bool residual = false;
  double alpha = 0, beta = 0;
  int64_t kernel = 3;
  bool row = false;  // the kernel has one row, and the pads are those of columns
  int64_t dilation = 1;
  std::string force = "";

  int64_t kernel_height() const { return row ? 1 : kernel; }
};

Shape OutShape(const Layer& l) {
  const bool four = l.pads.size() == 4;
  const int64_t top = l.pads[0], left = four ? l.pads[2] : l.pads[1];
  const int64_t bottom = l.pads[four ? 1 : 0], right = l.pads[four ? 3 : 1];
  return {l.batch, l.height + top + bottom - l.kernel_height() + 1,
          l.width + left + right - l.dilation * (l.kernel - 1), l.out_c};
}

// The layer in channels last; in double it is computed without any trick.
Tensor Run(const Layer& l, DType dtype, int threads, bool lean = false) {
  const bool fused = dtype == DType::kF32;
  ProgramBuilder b;
  const Shape in{l.batch, l.height, l.width, l.in_c}, out = OutShape(l);
  const Shape filter{l.out_c, l.in_c, l.kernel_height(), l.kernel};
  b.Feed("x", dtype, in).Param("w", dtype, filter);
  b.Var("y", dtype, out);
  Slots inputs{{"Input", {"x"}}, {"Filter", {"w"}}};
  std::vector<Feed> feeds{{"x", Random(dtype, in, 1)}};
  Attrs attrs{{"strides", Ints{1, 1}},
              {"paddings", l.pads},
              {"dilations", Ints{1, l.dilation}},
              {"data_format", std::string("NHWC")}};
  auto scope = std::make_shared<Scope>();
  scope->Set("w", Value(Random(dtype, filter, 2)));
  if (fused) {
    b.Param("b", dtype, {l.out_c});
    scope->Set("b", Value(Random(dtype, {l.out_c}, 3)));
    inputs.push_back({"Bias", {"b"}});
    attrs.push_back({"fuse_activation", l.activation});
    attrs.push_back({"fuse_alpha", l.alpha});
    attrs.push_back({"fuse_beta", l.beta});
    if (l.residual) {
      b.Feed("r", dtype, out);
      feeds.push_back({"r", Random(dtype, out, 4)});
      inputs.push_back({"ResidualData", {"r"}});
    }
  }
  b.Op(fused ? "fused_conv2d" : "conv2d", inputs, {{"Output", {"y"}}}, attrs).Fetch("y");
  Executor executor({.threads = threads});
  auto compiled = MustCompile(executor, b.Build(), scope,
                              {.opt_level = 0, .lean = lean, .force = fused ? l.force : ""});
  return MustRun(executor, compiled, feeds)[0];
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
  const Tensor exact = Run(l, DType::kF64, 1);
  const Tensor one = Run(l, DType::kF32, 1), two = Run(l, DType::kF32, 2);
  ASSERT_EQ(one.shape(), OutShape(l));
  const Tensor bias = Random(DType::kF32, {l.out_c}, 3);
  const Tensor residual = Random(DType::kF32, OutShape(l), 4);
  const double scale = std::sqrt(static_cast<double>(l.in_c * l.kernel_height() * l.kernel)) /
                       3;  // deviation of a sum
  for (int64_t i = 0; i < one.numel(); ++i) {
    double x = exact.data<double>()[i] + bias.data<float>()[i % l.out_c];
    if (l.residual) x += residual.data<float>()[i];
    ASSERT_NEAR(one.data<float>()[i], Activate(l, x), 1e-5 * scale) << "element " << i;
  }
  EXPECT_EQ(Bits(one), Bits(two)) << "one thread, two threads";
}

TEST(Winograd, ImagesThatTilesDoNotFit) {
  for (const int64_t size : {12, 13, 14, 15, 27})
    Check({.batch = 1, .height = size, .width = size + 2, .in_c = 32, .out_c = 32});
}

TEST(Winograd, ChannelsThatVectorsDoNotFit) {
  Check({.batch = 1, .height = 28, .width = 28, .in_c = 16, .out_c = 24});
  Check({.batch = 1, .height = 28, .width = 28, .in_c = 19, .out_c = 64});
  Check({.batch = 1, .height = 28, .width = 28, .in_c = 40, .out_c = 33});
}

TEST(Winograd, BatchesAndPads) {
  Check({.batch = 3, .height = 14, .width = 14, .in_c = 32, .out_c = 32});
  Check({.batch = 2, .height = 30, .width = 18, .in_c = 32, .out_c = 32, .pads = {0, 0}});
  Check({.batch = 2, .height = 30, .width = 18, .in_c = 32, .out_c = 32, .pads = {0, 2, 1, 0}});
}

TEST(Winograd, WhatFollowsIsFused) {
  Layer l{.batch = 1, .height = 22, .width = 22, .in_c = 32, .out_c = 40};
  for (const bool residual : {false, true}) {
    l.residual = residual;
    const struct {
      const char* name;
      double alpha, beta;
    } all[] = {{"", 0, 0},           {"relu", 0, 0},         {"leaky_relu", 0.1, 0},
               {"clip", -0.5, 0.75}, {"hard_swish", .2, .5}, {"hard_sigmoid", .25, .5},
               {"swish", 1.5, 0},    {"sigmoid", 0, 0},      {"tanh", 0, 0},
               {"mish", 0, 0}};
    for (const auto& a : all) {
      SCOPED_TRACE(a.name);
      l.activation = a.name, l.alpha = a.alpha, l.beta = a.beta;
      Check(l);
    }
  }
}

// The bits tell which way was taken: another one rounds differently.
bool LeanIsAsUsual(const Layer& l) {
  return Bits(Run(l, DType::kF32, 1)) == Bits(Run(l, DType::kF32, 1, true));
}

TEST(Winograd, LeanProgramsUseItForLargeImagesAlone) {
  EXPECT_TRUE(LeanIsAsUsual({.batch = 1, .height = 160, .width = 160, .in_c = 16, .out_c = 24}));
  EXPECT_FALSE(LeanIsAsUsual({.batch = 1, .height = 28, .width = 28, .in_c = 64, .out_c = 64}));
}

TEST(Winograd, KernelsOfFive) {
  const struct {
    int64_t batch, height, width, in_c, out_c;
    Ints pads;
  } all[] = {{1, 56, 56, 16, 16, {2, 2}},
             {1, 27, 29, 32, 33, {2, 2}},
             {3, 18, 18, 40, 24, {2, 2}},
             {2, 22, 25, 19, 64, {0, 0}},
             {1, 24, 23, 32, 16, {0, 4, 1, 2}}};
  for (const auto& a : all)
    for (const bool residual : {false, true})
      Check({.batch = a.batch,
             .height = a.height,
             .width = a.width,
             .in_c = a.in_c,
             .out_c = a.out_c,
             .pads = a.pads,
             .activation = "relu",
             .residual = residual,
             .kernel = 5});
}

// Layers drawn from a seed: kernels of one row, of any dilation, with what may follow.
TEST(Winograd, Rows) {
  std::mt19937 random(7);
  const auto any = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint32_t>(high - low + 1));
  };
  for (int i = 0; i < 60; ++i) {
    const int64_t kernel = any(0, 1) == 0 ? 3 : 5, dilation = any(0, 1) == 0 ? 1 : any(2, 40);
    const int64_t reach = dilation * (kernel - 1);
    Layer l{.batch = any(1, 3),
            .height = any(1, 3),
            .width = reach + any(1, 300),
            .in_c = any(16, 70),
            .out_c = any(16, 70),
            .pads = {0, 0, any(0, reach), any(0, reach)},
            .activation = any(0, 1) == 0 ? "" : "relu",
            .residual = any(0, 1) == 0,
            .kernel = kernel,
            .row = true,
            .dilation = dilation,
            .force = "conv=winograd"};
    SCOPED_TRACE(::testing::Message()
                 << i << ": kernel " << kernel << ", dilation " << dilation << ", width " << l.width
                 << ", channels " << l.in_c << " to " << l.out_c);
    Check(l);
  }
}

// Both sets of inner loops, on one tile, where the machine has both.
TEST(Winograd, InstructionSetsAgree) {
  using namespace simd;
  const Microkernels* narrow = Avx2Microkernels();
  const Microkernels* wide = Avx512Microkernels();
  if (narrow == nullptr || wide == nullptr || BestIsa() < Isa::kAvx512)
    GTEST_SKIP() << "one instruction set";
  constexpr int64_t kChannels = 16, kStep = 64;
  const Tensor image = Random(DType::kF32, {kWinogradWindow * kWinogradWindow * kChannels}, 5);
  WinogradInput in{
      image.data<float>(), kWinogradWindow * kChannels, kChannels, 0, kWinogradWindow, 1, 5};
  std::vector<float> points[2], pixels[2];
  const Microkernels* both[2] = {narrow, wide};
  for (int k = 0; k < 2; ++k) {
    for (const bool row : {false, true}) {
      const size_t from = points[k].size();
      const int64_t count = row ? kWinogradWindow : kWinogradPoints;
      points[k].resize(from + static_cast<size_t>(count * kStep));
      float* const transformed = points[k].data() + from;
      both[k]->winograd_input[row](in, kChannels, transformed, kStep);
      for (const int64_t kernel : {3, 5}) {
        const size_t at = pixels[k].size();
        const int tile = WinogradTileOf(kernel), rows = row ? 1 : tile;
        pixels[k].resize(at + static_cast<size_t>(rows * tile * kChannels));
        WinogradOutput out{};
        out.data = pixels[k].data() + at;
        out.row_step = tile * kChannels;
        out.pixel_step = kChannels;
        out.rows = rows, out.columns = tile;
        both[k]->WinogradOutputFor(Activation::kNone, kernel, row)(transformed, kStep, kChannels,
                                                                   nullptr, {}, out);
      }
    }
  }
  EXPECT_EQ(0, std::memcmp(points[0].data(), points[1].data(), points[0].size() * 4));
  EXPECT_EQ(0, std::memcmp(pixels[0].data(), pixels[1].data(), pixels[0].size() * 4));
}

}  // namespace
}  // namespace heddle::testing
