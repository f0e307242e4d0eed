// Every implementation of a convolution with NaN, infinities and zeros among its operands, and
// every activation behind it: what is NaN or infinite by definition comes out as that.
#include "tests/kernels/edge_values.h"

#include <gtest/gtest.h>

#include "kernels/conv/select.h"

namespace heddle::testing {
namespace {

struct Layer {
  const char* name;
  int64_t size, in_c, out_c, kernel, stride, pad, groups;
  bool last = true;  // channels
  bool row = false;  // the kernel has one row

  int64_t height() const { return row ? 1 : kernel; }
  int64_t upper_pad() const { return row ? 0 : pad; }
};
constexpr Layer kLayers[] = {
    {"3x3", 12, 32, 32, 3, 1, 1, 1},
    {"3x3, channels first", 12, 32, 32, 3, 1, 1, 1, false},
    {"1x1", 9, 24, 40, 1, 1, 0, 1},
    {"depthwise", 14, 24, 24, 3, 1, 1, 24},
    {"depthwise 5x5, strided", 15, 16, 16, 5, 2, 2, 16},
    {"few channels", 40, 4, 4, 5, 1, 2, 1},
    {"first layer", 21, 3, 16, 3, 2, 1, 1},
    {"groups", 9, 16, 16, 3, 1, 1, 2},
    {"row of 3", 13, 32, 32, 3, 1, 1, 1, true, true},
    {"row of 5", 11, 20, 40, 5, 1, 2, 1, true, true},
};

class EdgeValuesOfConv : public ::testing::TestWithParam<Layer> {
 protected:
  EdgeValuesOfConv() : l_(GetParam()), out_((l_.size + 2 * l_.pad - l_.kernel) / l_.stride + 1) {
    x_ = WithEdges(ShapeOf(l_.size, l_.in_c), 0.004, 1);
    w_ = WithEdges({l_.out_c, l_.in_c / l_.groups, l_.height(), l_.kernel}, 0, 2);
    b_ = WithEdges({l_.out_c}, 0.02, 3);
    r_ = WithEdges(ShapeOf(out_, l_.out_c), 0.01, 4);
  }
  Shape ShapeOf(int64_t size, int64_t channels) const {
    return l_.last ? Shape{1, size, size, channels} : Shape{1, channels, size, size};
  }
  int64_t At(int64_t size, int64_t channels, int64_t y, int64_t x, int64_t c) const {
    return l_.last ? (y * size + x) * channels + c : (c * size + y) * size + x;
  }

  // The sums by definition, bias and residual added.
  std::vector<EdgeSum> Sums() const {
    std::vector<EdgeSum> sums(static_cast<size_t>(out_ * out_ * l_.out_c));
    const int64_t per_group = l_.in_c / l_.groups, out_per_group = l_.out_c / l_.groups;
    for (int64_t y = 0; y < out_; ++y)
      for (int64_t x = 0; x < out_; ++x)
        for (int64_t o = 0; o < l_.out_c; ++o) {
          const int64_t at = At(out_, l_.out_c, y, x, o);
          EdgeSum& sum = sums[static_cast<size_t>(at)];
          sum.Add(b_.data<float>()[o]);
          for (int64_t i = 0; i < per_group; ++i)
            for (int64_t ky = 0; ky < l_.height(); ++ky)
              for (int64_t kx = 0; kx < l_.kernel; ++kx) {
                const int64_t sy = y * l_.stride + ky - l_.upper_pad(),
                              sx = x * l_.stride + kx - l_.pad;
                if (sy < 0 || sy >= l_.size || sx < 0 || sx >= l_.size) continue;
                const int64_t c = o / out_per_group * per_group + i;
                sum.Add(
                    double{x_.data<float>()[At(l_.size, l_.in_c, sy, sx, c)]} *
                    w_.data<float>()[((o * per_group + i) * l_.height() + ky) * l_.kernel + kx]);
              }
          sum.Add(r_.data<float>()[at]);
        }
    return sums;
  }

  Result<Tensor> Run(const EdgeActivation& a, const std::string& force, int threads) {
    ProgramBuilder p;
    p.Feed("x", DType::kF32, x_.shape()).Feed("r", DType::kF32, r_.shape());
    p.Param("w", DType::kF32, w_.shape()).Param("b", DType::kF32, b_.shape());
    p.Op("fused_conv2d",
         {{"Input", {"x"}}, {"Filter", {"w"}}, {"Bias", {"b"}}, {"ResidualData", {"r"}}},
         {{"Output", {"y"}}},
         {{"strides", Ints{l_.stride, l_.stride}},
          {"paddings", Ints{l_.upper_pad(), l_.pad}},
          {"groups", l_.groups},
          {"data_format", std::string(l_.last ? "NHWC" : "NCHW")},
          {"fuse_activation", std::string(a.name)},
          {"fuse_alpha", a.alpha},
          {"fuse_beta", a.beta}});
    p.Fetch("y");
    auto scope = std::make_shared<Scope>();
    scope->Set("w", Value(w_));
    scope->Set("b", Value(b_));
    Executor executor({.threads = threads});
    auto compiled = executor.Compile(p.Build(), scope, {.opt_level = 0, .force = force});
    if (!compiled.ok()) return compiled.status();
    auto out = executor.Run(*compiled, {{"x", x_}, {"r", r_}});
    if (!out.ok()) return out.status();
    return (*out)[0];
  }

  const Layer l_;
  const int64_t out_;
  Tensor x_, w_, b_, r_;
};

TEST_P(EdgeValuesOfConv, StayWhatTheyAre) {
  const std::vector<EdgeSum> sums = Sums();
  int ran = 0;
  for (const ConvImplementation& implementation : ConvImplementations()) {
    const std::string name = implementation.name;
    if (name == "onednn_bf16") continue;  // rounds its operands
    for (const EdgeActivation& a : EdgeActivations())
      for (const int threads : {1, 2}) {
        const auto out = Run(a, "conv=" + name, threads);
        if (!out.ok()) continue;  // does not cover it
        ++ran;
        int wrong = 0;
        for (int64_t i = 0; i < out->numel(); ++i) {
          const double sum = sums[static_cast<size_t>(i)].value(), want = Activated(a, sum),
                       got = out->data<float>()[i];
          if (sums[static_cast<size_t>(i)].in_doubt()) continue;
          if (!SameClass(got, want, 1e-4) && ++wrong < 3)
            ADD_FAILURE() << l_.name << ", " << name << ", " << threads << " threads, '" << a.name
                          << "' " << a.alpha << " " << a.beta << " of " << sum << " gave " << got
                          << ", expected " << want << " at " << i;
        }
      }
  }
  EXPECT_GE(ran, 2 * static_cast<int>(EdgeActivations().size()));
}

INSTANTIATE_TEST_SUITE_P(, EdgeValuesOfConv, ::testing::ValuesIn(kLayers),
                         [](const auto& info) { return "Layer" + std::to_string(info.index); });

struct TransposedLayer {
  int64_t size, in_c, out_c, kernel, stride;
};

class EdgeValuesOfTransposedConv : public ::testing::TestWithParam<TransposedLayer> {};

// Of an image of ones and a bias at the edge: each sum is the bias and a number.
TEST_P(EdgeValuesOfTransposedConv, StayWhatTheyAre) {
  const TransposedLayer l = GetParam();
  const Tensor x = WithEdges({1, l.in_c, l.size, l.size}, 0, 1),
               w = WithEdges({l.in_c, l.out_c, l.kernel, l.kernel}, 0, 2),
               b = WithEdges({l.out_c}, 0.6, 3);
  const auto run = [&](const EdgeActivation& a, int threads) {
    ProgramBuilder p;
    p.Feed("x", DType::kF32, x.shape()).Param("w", DType::kF32, w.shape());
    p.Param("b", DType::kF32, b.shape());
    p.Op("fused_conv2d_transpose", {{"Input", {"x"}}, {"Filter", {"w"}}, {"Bias", {"b"}}},
         {{"Output", {"y"}}},
         {{"strides", Ints{l.stride, l.stride}},
          {"fuse_activation", std::string(a.name)},
          {"fuse_alpha", a.alpha},
          {"fuse_beta", a.beta}});
    p.Fetch("y");
    auto scope = std::make_shared<Scope>();
    scope->Set("w", Value(w));
    scope->Set("b", Value(b));
    Executor executor({.threads = threads});
    return MustRun(executor, MustCompile(executor, p.Build(), scope), {{"x", x}})[0];
  };
  const Tensor sums = run({""}, 1);
  for (const EdgeActivation& a : EdgeActivations())
    for (const int threads : {1, 2}) {
      const Tensor out = run(a, threads);
      ASSERT_EQ(out.numel(), sums.numel());
      int wrong = 0;
      for (int64_t i = 0; i < out.numel(); ++i) {
        const double sum = sums.data<float>()[i], want = Activated(a, sum),
                     got = out.data<float>()[i];
        if (!SameClass(got, want, 1e-4) && ++wrong < 3)
          ADD_FAILURE() << "'" << a.name << "' " << a.alpha << " " << a.beta << " of " << sum
                        << " gave " << got << ", expected " << want << ", " << threads
                        << " threads";
      }
    }
}

INSTANTIATE_TEST_SUITE_P(, EdgeValuesOfTransposedConv,
                         ::testing::Values(TransposedLayer{5, 8, 16, 3, 1},
                                           TransposedLayer{6, 3, 5, 1, 1},
                                           TransposedLayer{4, 4, 8, 2, 2},
                                           TransposedLayer{9, 16, 24, 4, 2}),
                         [](const auto& info) { return "Layer" + std::to_string(info.index); });

}  // namespace
}  // namespace heddle::testing
