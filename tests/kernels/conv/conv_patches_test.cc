// Transposed convolutions with channels last by patches that lie side by side or overlap, against
// the sums in double.
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
  Ints strides = {};  // empty: as the kernel
  Ints paddings = {0, 0};

  int64_t Stride(size_t d) const { return strides.empty() ? kernel[d] : strides[d]; }
  int64_t OutSize(size_t d) const {
    return ((d == 0 ? height : width) - 1) * Stride(d) - 2 * paddings[d] + kernel[d];
  }
};

template <typename T>
Tensor Run(const Layer& l, DType dtype, int threads) {
  const bool fused = dtype == DType::kF32;
  const Shape in{2, l.height, l.width, l.in_c}, filter{l.in_c, l.out_c, l.kernel[0], l.kernel[1]};
  ProgramBuilder b;
  b.Feed("x", dtype, in).Param("w", dtype, filter);
  auto scope = std::make_shared<Scope>();
  scope->Set("w", Value(Values<T>(dtype, filter, 78.233)));
  Slots inputs{{"Input", {"x"}}, {"Filter", {"w"}}};
  Attrs attrs{{"strides", Ints{l.Stride(0), l.Stride(1)}},
              {"paddings", l.paddings},
              {"dilations", Ints{1, 1}},
              {"data_format", std::string("NHWC")}};
  if (fused) {
    b.Param("b", dtype, {l.out_c});
    scope->Set("b", Value(Values<T>(dtype, {l.out_c}, 3.7)));
    inputs.push_back({"Bias", {"b"}});
    attrs.push_back({"fuse_activation", l.activation});
  }
  b.Op(fused ? "fused_conv2d_transpose" : "conv2d_transpose", inputs, {{"Output", {"y"}}}, attrs);
  b.Fetch("y");
  Executor executor({.threads = threads});
  auto compiled = MustCompile(executor, b.Build(), scope, {.opt_level = 0});
  return MustRun(executor, compiled, {{"x", Values<T>(dtype, in, 12.9898)}})[0];
}

void Check(const Layer& l) {
  const Tensor exact = Run<double>(l, DType::kF64, 1);
  const Tensor one = Run<float>(l, DType::kF32, 1), two = Run<float>(l, DType::kF32, 2);
  const Tensor bias = Values<float>(DType::kF32, {l.out_c}, 3.7);
  ASSERT_EQ(one.shape(), (Shape{2, l.OutSize(0), l.OutSize(1), l.out_c}));
  for (int64_t i = 0; i < one.numel(); ++i) {
    double x = exact.data<double>()[i] + bias.data<float>()[i % l.out_c];
    if (l.activation == "relu") x = std::max(x, 0.0);
    if (l.activation == "sigmoid") x = 1 / (1 + std::exp(-x));
    ASSERT_NEAR(one.data<float>()[i], x, 2e-5) << "element " << i;
  }
  EXPECT_EQ(Bits(one), Bits(two)) << "one thread, two threads";
}

TEST(PatchConvolution, SizesAndChannels) {
  Check({7, 61, 24, 24, {2, 2}});
  Check({5, 3, 13, 7, {3, 2}});
  Check({1, 57, 8, 3, {1, 4}});
  Check({64, 64, 16, 5, {2, 2}, "relu"});
}

TEST(PatchConvolution, OneChannelOut) {
  Check({9, 60, 24, 1, {2, 2}, "sigmoid"});
  Check({9, 10, 5, 1, {4, 4}, "relu"});
}

TEST(PatchConvolution, PatchesThatOverlap) {
  Check({9, 60, 24, 1, {3, 3}, "sigmoid", {2, 2}, {1, 1}});
  Check({16, 16, 64, 3, {4, 4}, "relu", {2, 2}, {1, 1}});
  Check({5, 7, 6, 4, {5, 3}, "", {1, 2}, {2, 0}});
  Check({40, 70, 3, 2, {4, 5}, "relu", {3, 2}, {0, 2}});
  Check({1, 1, 9, 3, {7, 7}, "", {1, 1}, {0, 0}});
  Check({3, 4, 5, 1, {2, 2}, "", {3, 3}, {0, 0}});  // with pixels between them
  Check({6, 6, 5, 1, {3, 3}, "", {1, 1}, {2, 2}});  // and some outside altogether
  Check({7, 7, 32, 13, {3, 3}, "relu", {2, 2}, {1, 1}});
}

// Too many columns for this way: the library's.
TEST(PatchConvolution, WideFilters) { Check({4, 5, 8, 80, {2, 2}}); }

}  // namespace
}  // namespace heddle::testing
