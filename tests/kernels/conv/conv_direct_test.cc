// Convolutions by their definition give what the sums give, whatever the kernel, its steps and what
// follows. Lean programs take this way in every build.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>

#include "kernels/simd/microkernels.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

struct Layer {
  int64_t batch, height, width, in_c, out_c, kernel_h = 3, kernel_w = 3;
  Ints strides{1, 1}, pads{1, 1, 1, 1}, dilations{1, 1};  // pads: top, bottom, left, right
  std::string activation = "";
  bool residual = false;
  double alpha = 0, beta = 0, scale = 1, shift = 0;
};

Shape OutShape(const Layer& l) {
  const auto size = [&](int64_t in, int64_t kernel, size_t d) {
    return (in + l.pads[2 * d] + l.pads[2 * d + 1] - (kernel - 1) * l.dilations[d] - 1) /
               l.strides[d] +
           1;
  };
  return {l.batch, size(l.height, l.kernel_h, 0), size(l.width, l.kernel_w, 1), l.out_c};
}

Shape InShape(const Layer& l) { return {l.batch, l.height, l.width, l.in_c}; }
Shape FilterShape(const Layer& l) { return {l.out_c, l.in_c, l.kernel_h, l.kernel_w}; }

Tensor Run(const Layer& l, int threads) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, InShape(l)).Param("w", DType::kF32, FilterShape(l));
  b.Param("b", DType::kF32, {l.out_c}).Var("y", DType::kF32, OutShape(l));
  auto scope = std::make_shared<Scope>();
  scope->Set("w", Value(RandomF32(FilterShape(l), 2)));
  scope->Set("b", Value(RandomF32({l.out_c}, 3)));
  std::vector<Feed> feeds{{"x", RandomF32(InShape(l), 1)}};
  Slots inputs{{"Input", {"x"}}, {"Filter", {"w"}}, {"Bias", {"b"}}};
  if (l.residual) {
    b.Feed("r", DType::kF32, OutShape(l));
    feeds.push_back({"r", RandomF32(OutShape(l), 4)});
    inputs.push_back({"ResidualData", {"r"}});
  }
  b.Op("fused_conv2d", inputs, {{"Output", {"y"}}},
       {{"strides", l.strides},
        {"paddings", l.pads},
        {"dilations", l.dilations},
        {"data_format", std::string("NHWC")},
        {"fuse_activation", l.activation},
        {"fuse_alpha", l.alpha},
        {"fuse_beta", l.beta},
        {"fuse_scale", l.scale},
        {"fuse_shift", l.shift}});
  b.Fetch("y");
  Executor executor({.threads = threads});
  auto compiled = MustCompile(executor, b.Build(), scope, {.opt_level = 0, .lean = true});
  return MustRun(executor, compiled, feeds)[0];
}

double Activate(const Layer& l, double x) {
  if (l.activation == "relu") return std::max(x, 0.0);
  if (l.activation == "clip") return std::min(std::max(x, l.alpha), l.beta);
  if (l.activation == "leaky_relu") return x < 0 ? l.alpha * x : x;
  if (l.activation == "hard_swish") return x * std::clamp(l.alpha * x + l.beta, 0.0, 1.0);
  if (l.activation == "sigmoid") return 1 / (1 + std::exp(-x));
  return x;
}

// One sum, as it is defined.
double Sum(const Layer& l, const float* x, const float* w, int64_t n, int64_t y, int64_t at,
           int64_t o) {
  double sum = 0;
  for (int64_t i = 0; i < l.kernel_h; ++i)
    for (int64_t j = 0; j < l.kernel_w; ++j) {
      const int64_t row = y * l.strides[0] - l.pads[0] + i * l.dilations[0];
      const int64_t column = at * l.strides[1] - l.pads[2] + j * l.dilations[1];
      if (row < 0 || row >= l.height || column < 0 || column >= l.width) continue;
      for (int64_t c = 0; c < l.in_c; ++c)
        sum += static_cast<double>(x[((n * l.height + row) * l.width + column) * l.in_c + c]) *
               w[((o * l.in_c + c) * l.kernel_h + i) * l.kernel_w + j];
    }
  return sum;
}

void Check(const Layer& l) {
  const Tensor one = Run(l, 1), two = Run(l, 2), three = Run(l, 3);
  const Shape out = OutShape(l);
  ASSERT_EQ(one.shape(), out);
  const Tensor x = RandomF32(InShape(l), 1), w = RandomF32(FilterShape(l), 2);
  const Tensor bias = RandomF32({l.out_c}, 3), residual = RandomF32(out, 4);
  int64_t i = 0;
  for (int64_t n = 0; n < out[0]; ++n)
    for (int64_t y = 0; y < out[1]; ++y)
      for (int64_t at = 0; at < out[2]; ++at)
        for (int64_t o = 0; o < out[3]; ++o, ++i) {
          double v = Sum(l, x.data<float>(), w.data<float>(), n, y, at, o) + bias.data<float>()[o];
          if (l.residual) v += residual.data<float>()[i];
          v = l.scale * Activate(l, v) + l.shift;
          for (const Tensor* t : {&one, &two})
            ASSERT_NEAR(t->data<float>()[i], v, 2e-5) << n << ' ' << y << ' ' << at << ' ' << o;
        }
  EXPECT_EQ(Bits(two), Bits(three)) << "two threads, three threads";
}

TEST(DirectConv, SizesOfImagesAndChannels) {
  for (const int64_t size : {1, 2, 5, 13, 14, 15, 29})
    Check({.batch = 1, .height = size, .width = size + 1, .in_c = 3, .out_c = 40});
  for (const int64_t channels : {1, 8, 15, 16, 17, 31, 32, 33, 64, 70})
    Check({.batch = 1, .height = 6, .width = 9, .in_c = 5, .out_c = channels});
  Check({.batch = 3, .height = 40, .width = 33, .in_c = 7, .out_c = 35});
}

TEST(DirectConv, KernelsAndSteps) {
  const Layer l{.batch = 2, .height = 17, .width = 20, .in_c = 3, .out_c = 19};
  for (const auto& [h, w] : {std::pair{1, 1}, {1, 5}, {7, 1}, {5, 5}, {2, 4}})
    for (const int64_t stride : {1, 2, 3})
      for (const int64_t dilation : {1, 2}) {
        SCOPED_TRACE(std::to_string(h) + "x" + std::to_string(w) + " stride " +
                     std::to_string(stride) + " dilation " + std::to_string(dilation));
        Layer now = l;
        now.kernel_h = h, now.kernel_w = w;
        now.strides = {stride, stride}, now.dilations = {dilation, dilation};
        for (const Ints& pads : {Ints{0, 0, 0, 0}, Ints{2, 1, 0, 3}, Ints{9, 9, 9, 9}}) {
          now.pads = pads;
          Check(now);
        }
      }
}

TEST(DirectConv, FiltersLargerThanTheImage) {
  Check({.batch = 1, .height = 4, .width = 4, .in_c = 7, .out_c = 500});
  Check({.batch = 1,
         .height = 3,
         .width = 2,
         .in_c = 7,
         .out_c = 300,
         .kernel_h = 1,
         .kernel_w = 1,
         .pads = {0, 0, 0, 0}});
}

TEST(DirectConv, WhatFollowsIsFused) {
  Layer l{.batch = 1, .height = 18, .width = 23, .in_c = 4, .out_c = 37};
  for (const bool residual : {false, true}) {
    l.residual = residual;
    const struct {
      const char* name;
      double alpha, beta, scale;
    } all[] = {{"", 0, 0, 1},          {"relu", 0, 0, 1},           {"relu", 0, 0, 2},
               {"clip", -0.5, .75, 1}, {"leaky_relu", 0.1, 0, 1},   {"sigmoid", 0, 0, 1},
               {"", 0, 0, -3},         {"hard_swish", 0.3, 0.4, 1}, {"hard_swish", 0.3, 0.4, 2}};
    for (const auto& a : all) {
      SCOPED_TRACE(a.name);
      l.activation = a.name, l.alpha = a.alpha, l.beta = a.beta;
      l.scale = a.scale, l.shift = a.scale == 1 ? 0 : 0.5;
      Check(l);
    }
  }
}

// Without a window, each thread has pixels of its own: as many as there are, over all images.
TEST(PointwiseConv, PartsOfThePixels) {
  Layer l{.batch = 1,
          .height = 7,
          .width = 7,
          .in_c = 20,
          .out_c = 40,
          .kernel_h = 1,
          .kernel_w = 1,
          .pads = {0, 0, 0, 0}};
  for (const auto& [batch, height, width] :
       {std::tuple{1, 7, 7}, {1, 8, 9}, {1, 1, 48}, {1, 73, 1}, {2, 5, 11}, {3, 14, 13}})
    for (const auto& [in, out] : {std::pair{20, 40}, {64, 64}, {3, 130}, {17, 5}})
      for (const bool residual : {false, true})
        for (const char* activation : {"", "relu", "sigmoid"}) {
          SCOPED_TRACE(::testing::Message() << batch << ' ' << height << ' ' << width << ", " << in
                                            << " to " << out << ' ' << activation);
          l.batch = batch, l.height = height, l.width = width, l.in_c = in, l.out_c = out;
          l.residual = residual, l.activation = activation;
          Check(l);
        }
}

// Both sets of inner loops, on one block, where the machine has both: sums have one order.
TEST(DirectConv, InstructionSetsAgree) {
  using namespace simd;
  const Microkernels* both[2] = {Avx2Microkernels(), Avx512Microkernels()};
  if (both[0] == nullptr || both[1] == nullptr || BestIsa() < Isa::kAvx512)
    GTEST_SKIP() << "one instruction set";
  constexpr int64_t kDepth = 21, kPixels = 40, kChannels = 11;
  const Tensor x = RandomF32({(kPixels + 3) * kDepth}, 5), w = RandomF32({kDepth, kChannels}, 6);
  std::vector<float> out[2];
  for (int k = 0; k < 2; ++k) {
    const int width = both[k]->lanes < kChannels ? 2 * both[k]->lanes : both[k]->lanes;
    std::vector<float> panel(static_cast<size_t>(kDepth * width), 0.f);
    for (int64_t i = 0; i < kDepth * kChannels; ++i)
      panel[static_cast<size_t>(i / kChannels * width + i % kChannels)] = w.data<float>()[i];
    out[k].assign(kPixels * kChannels, 0.f);
    DirectTile b{};
    b.pixels = x.data<float>();
    b.pixel_step = kDepth;
    b.filter = panel.data();
    b.rows = b.columns = 1;
    b.depth = kDepth;
    b.out = out[k].data();
    b.out_step = b.channels = kChannels;
    b.low = -1.f, b.high = 2.f;
    both[k]->direct_tile[width > both[k]->lanes](b, kPixels);
  }
  EXPECT_EQ(0, std::memcmp(out[0].data(), out[1].data(), out[0].size() * 4));
}

}  // namespace
}  // namespace heddle::testing
