// Every implementation of a convolution computes every case that it covers as a plain loop does:
// with random operands, so that taps, channels or pixels which are mixed up show.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/machine.h"
#include "kernels/conv/select.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

using Size = std::array<int64_t, 3>;  // depth, height, width; of images, the depth is 1

struct Layer {
  const char* title;
  int64_t batch, in_c, out_c;
  Size in, kernel;
  Size stride{1, 1, 1}, dilation{1, 1, 1}, before{0, 0, 0}, after{0, 0, 0};  // both: paddings
  int64_t groups = 1;
  int spatial = 2;
  bool channels_last = true, transposed = false, bf16 = false;

  Size out() const {
    Size size;
    for (size_t i = 0; i < 3; ++i) {
      const int64_t reach = dilation[i] * (kernel[i] - 1) + 1, pads = before[i] + after[i];
      size[i] = transposed ? (in[i] - 1) * stride[i] - pads + reach
                           : (in[i] + pads - reach) / stride[i] + 1;
    }
    return size;
  }
  // Of the sum that an element of the output is.
  int64_t terms() const { return in_c / groups * kernel[0] * kernel[1] * kernel[2]; }

  Shape Image(int64_t channels, const Size& size) const {
    Shape shape{batch};
    if (!channels_last) shape.push_back(channels);
    for (int i = 3 - spatial; i < 3; ++i) shape.push_back(size[static_cast<size_t>(i)]);
    if (channels_last) shape.push_back(channels);
    return shape;
  }
  Shape Filter() const {
    Shape shape{transposed ? in_c : out_c, (transposed ? out_c : in_c) / groups};
    for (int i = 3 - spatial; i < 3; ++i) shape.push_back(kernel[static_cast<size_t>(i)]);
    return shape;
  }
  int64_t At(int64_t b, int64_t c, const Size& p, int64_t channels, const Size& size) const {
    const int64_t pixel = (p[0] * size[1] + p[1]) * size[2] + p[2];
    const int64_t pixels = size[0] * size[1] * size[2];
    return channels_last ? (b * pixels + pixel) * channels + c
                         : (b * channels + c) * pixels + pixel;
  }
};

template <typename Fn>
void ForEach(const Size& size, Fn&& fn) {
  for (int64_t z = 0; z < size[0]; ++z)
    for (int64_t y = 0; y < size[1]; ++y)
      for (int64_t x = 0; x < size[2]; ++x) fn(Size{z, y, x});
}

// The sums as their definition has them: the filter's taps meet pixel `near` of the strided side
// and pixel `far` of the other.
std::vector<double> PlainLoop(const Layer& l, const float* x, const float* w) {
  const Size out = l.out();
  const Size &near = l.transposed ? l.in : out, &far = l.transposed ? out : l.in;
  std::vector<double> y(static_cast<size_t>(l.Image(l.out_c, out).numel()));
  const int64_t in_each = l.in_c / l.groups, out_each = l.out_c / l.groups;
  const int64_t taps = l.kernel[0] * l.kernel[1] * l.kernel[2];
  const auto add = [&](int64_t b, const Size& n, const Size& tap) {
    Size f;
    for (size_t i = 0; i < 3; ++i) {
      f[i] = n[i] * l.stride[i] - l.before[i] + tap[i] * l.dilation[i];
      if (f[i] < 0 || f[i] >= far[i]) return;
    }
    const Size &from = l.transposed ? n : f, &to = l.transposed ? f : n;
    const int64_t t = (tap[0] * l.kernel[1] + tap[1]) * l.kernel[2] + tap[2];
    for (int64_t g = 0; g < l.groups; ++g)
      for (int64_t o = 0; o < out_each; ++o)
        for (int64_t i = 0; i < in_each; ++i) {
          const int64_t row =
              l.transposed ? (g * in_each + i) * out_each + o : (g * out_each + o) * in_each + i;
          y[static_cast<size_t>(l.At(b, g * out_each + o, to, l.out_c, out))] +=
              static_cast<double>(x[l.At(b, g * in_each + i, from, l.in_c, l.in)]) *
              w[row * taps + t];
        }
  };
  for (int64_t b = 0; b < l.batch; ++b)
    ForEach(near, [&](const Size& n) { ForEach(l.kernel, [&](const Size& t) { add(b, n, t); }); });
  return y;
}

class AllOf {
 public:
  explicit AllOf(const Layer& l)
      : l_(l), x_(RandomF32(l.Image(l.in_c, l.in), 1)), w_(RandomF32(l.Filter(), 2)) {
    const auto list = [&](const Size& s) { return Ints(s.begin() + (3 - l.spatial), s.end()); };
    Ints pads;
    for (size_t i = static_cast<size_t>(3 - l.spatial); i < 3; ++i) {
      pads.push_back(l.before[i]);
      pads.push_back(l.after[i]);
    }
    const std::string layout = l.spatial == 3 ? (l.channels_last ? "NDHWC" : "NCDHW")
                                              : (l.channels_last ? "NHWC" : "NCHW");
    Attrs attrs{{"strides", list(l.stride)},
                {"paddings", pads},
                {"dilations", list(l.dilation)},
                {"groups", l.groups},
                {"data_format", layout}};
    if (l.bf16) attrs.emplace_back("fuse_bf16", true);
    const std::string type = std::string(l.bf16 ? "fused_" : "") +
                             (l.spatial == 3 ? "conv3d" : "conv2d") +
                             (l.transposed ? "_transpose" : "");
    b_.Feed("x", DType::kF32, x_.shape()).Param("w", DType::kF32, w_.shape());
    b_.Op(type, {{"Input", {"x"}}, {"Filter", {"w"}}}, {{"Output", {"y"}}}, attrs).Fetch("y");
    scope_->Set("w", Value(w_));
    want_ = PlainLoop(l, x_.data<float>(), w_.data<float>());
  }

  // Adds the names of those that compute the layer to *seen.
  void Check(std::set<std::string>* seen) {
    for (const auto& i : ConvImplementations()) {
      SCOPED_TRACE(std::string(l_.title) + ", " + i.name);
      const auto compiled = executor_.Compile(
          b_.Build(), scope_, {.opt_level = 0, .force = std::string("conv=") + i.name});
      ASSERT_TRUE(compiled.ok()) << compiled.status().message();
      const auto plan = executor_.DescribePlan(*compiled, {{"x", x_}});
      if (!plan.ok()) {
        EXPECT_THAT(plan.status().message(), HasSubstr("does not cover"));
        continue;
      }
      EXPECT_THAT(plan->instructions[0].implementation, StartsWith(i.name));
      seen->insert(i.name);
      const auto got = executor_.Run(*compiled, {{"x", x_}});
      ASSERT_TRUE(got.ok()) << got.status().message();
      Compare((*got)[0], std::string(i.name) == "onednn_bf16");
    }
  }

 private:
  void Compare(const Tensor& got, bool rounded) const {
    ASSERT_EQ(got.shape(), l_.Image(l_.out_c, l_.out()));
    // Of a sum's deviation, of which one that is mixed up is off by about as much.
    const double near = (rounded ? 1e-2 : 1e-4) * std::sqrt(static_cast<double>(l_.terms()));
    for (int64_t i = 0; i < got.numel(); ++i)
      ASSERT_NEAR(got.data<float>()[i], want_[static_cast<size_t>(i)], near) << "element " << i;
  }

  const Layer l_;
  const Tensor x_, w_;
  std::vector<double> want_;
  ProgramBuilder b_;
  std::shared_ptr<Scope> scope_ = std::make_shared<Scope>();
  Executor executor_{{.threads = 2}};  // some are for several threads alone
};

const Layer kLayers[] = {
    {"3x3", 2, 32, 24, {1, 9, 11}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}},
    {"5x5 on 20 channels",
     1,
     20,
     33,
     {1, 12, 13},
     {1, 5, 5},
     {1, 1, 1},
     {1, 1, 1},
     {0, 2, 2},
     {0, 2, 2}},
    {"strided, padded unevenly",
     2,
     16,
     8,
     {1, 8, 7},
     {1, 3, 2},
     {1, 2, 3},
     {1, 1, 1},
     {0, 1, 2},
     {0, 0, 1}},
    {"dilated", 1, 16, 17, {1, 12, 15}, {1, 3, 3}, {1, 1, 1}, {1, 2, 3}, {0, 2, 3}, {0, 1, 3}},
    {"grouped", 2, 16, 24, {1, 7, 6}, {1, 3, 3}, {1, 1, 2}, {1, 1, 1}, {0, 1, 1}, {0, 1, 0}, 4},
    {"depthwise 3x3",
     2,
     32,
     32,
     {1, 10, 9},
     {1, 3, 3},
     {1, 1, 1},
     {1, 1, 1},
     {0, 1, 1},
     {0, 1, 1},
     32},
    {"depthwise 5x5, strided",
     1,
     32,
     32,
     {1, 11, 14},
     {1, 5, 5},
     {1, 2, 2},
     {1, 1, 1},
     {0, 2, 2},
     {0, 2, 2},
     32},
    {"two outputs a channel",
     1,
     6,
     12,
     {1, 7, 8},
     {1, 3, 3},
     {1, 1, 1},
     {1, 1, 1},
     {0, 1, 1},
     {0, 1, 1},
     6,
     2,
     false},
    {"few channels", 1, 4, 3, {1, 18, 41}, {1, 5, 5}, {1, 1, 1}, {1, 1, 1}, {0, 2, 2}, {0, 2, 2}},
    {"few channels, apart",
     2,
     3,
     2,
     {1, 9, 37},
     {1, 3, 3},
     {1, 2, 1},
     {1, 1, 1},
     {0, 1, 0},
     {0, 0, 2},
     1,
     2,
     false},
    {"one channel", 1, 1, 1, {1, 8, 9}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}},
    {"1x1", 2, 32, 40, {1, 9, 7}, {1, 1, 1}},
    {"1x1, strided", 1, 24, 16, {1, 9, 7}, {1, 1, 1}, {1, 2, 2}},
    {"rows", 2, 16, 16, {1, 1, 40}, {1, 1, 5}, {1, 1, 1}, {1, 1, 1}, {0, 0, 2}, {0, 0, 2}},
    {"rows, dilated, apart",
     2,
     5,
     7,
     {1, 1, 23},
     {1, 1, 3},
     {1, 1, 2},
     {1, 1, 2},
     {0, 0, 3},
     {0, 0, 1},
     1,
     2,
     false},
    {"one pixel", 3, 20, 18, {1, 1, 1}, {1, 1, 1}},
    {"to one pixel", 2, 12, 20, {1, 4, 3}, {1, 4, 3}},
    {"channels apart",
     2,
     12,
     16,
     {1, 9, 8},
     {1, 3, 3},
     {1, 1, 1},
     {1, 1, 1},
     {0, 1, 1},
     {0, 1, 1},
     1,
     2,
     false},
    {"three dimensions",
     1,
     5,
     8,
     {4, 6, 5},
     {3, 2, 3},
     {1, 2, 1},
     {1, 1, 1},
     {1, 0, 1},
     {1, 1, 1},
     1,
     3},
    {"three dimensions, groups apart",
     2,
     4,
     6,
     {5, 4, 6},
     {2, 3, 3},
     {2, 1, 1},
     {2, 1, 1},
     {0, 1, 1},
     {1, 1, 0},
     2,
     3,
     false},
    {"transposed 2x2",
     2,
     24,
     8,
     {1, 5, 6},
     {1, 2, 2},
     {1, 2, 2},
     {1, 1, 1},
     {0, 0, 0},
     {0, 0, 0},
     1,
     2,
     true,
     true},
    {"transposed 3x3, patches overlap",
     1,
     16,
     5,
     {1, 6, 5},
     {1, 3, 3},
     {1, 2, 1},
     {1, 1, 1},
     {0, 1, 1},
     {0, 0, 1},
     1,
     2,
     true,
     true},
    {"transposed, groups apart",
     2,
     8,
     12,
     {1, 5, 4},
     {1, 3, 4},
     {1, 2, 3},
     {1, 2, 1},
     {0, 1, 0},
     {0, 2, 1},
     4,
     2,
     false,
     true},
    {"rounded",
     1,
     32,
     32,
     {1, 10, 10},
     {1, 3, 3},
     {1, 1, 1},
     {1, 1, 1},
     {0, 1, 1},
     {0, 1, 1},
     1,
     2,
     true,
     false,
     true},
};

TEST(ConvImplementations, ComputeWhatAPlainLoopDoes) {
  std::set<std::string> seen;
  for (const Layer& l : kLayers) AllOf(l).Check(&seen);
  const bool with_onednn = seen.count("onednn") != 0;  // in this build
  for (const auto& i : ConvImplementations()) {
    const std::string name = i.name;
    const bool here = (with_onednn || !name.starts_with("onednn")) &&
                      (ThisMachine().has(kAvx512Bf16) || name != "onednn_bf16");
    EXPECT_EQ(seen.count(name) != 0, here) << name;
  }
}

}  // namespace
}  // namespace heddle::testing
