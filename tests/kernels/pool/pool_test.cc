// Averages over windows that are long enough for a loop of their own, and maxima of windows with
// NaN.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

std::vector<float> Means(const std::vector<float>& x, int64_t planes, int64_t size) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {1, planes, size, size}).Var("y", DType::kF32, {1, planes, 1, 1});
  b.Op("pool2d", {{"X", {"x"}}}, {{"Out", {"y"}}},
       {{"pooling_type", "avg"}, {"ksize", Ints{1, 1}}, {"global_pooling", true}});
  b.Fetch("y");
  Executor executor({.threads = 1});
  const auto compiled = MustCompile(executor, b.Build());
  return Floats(MustRun(executor, compiled, {{"x", F32({1, planes, size, size}, x)}})[0]);
}

// Planes of 36, 49 and 225 elements begin at all kinds of addresses.
TEST(Pool, EqualPlanesHaveEqualMeans) {
  constexpr int64_t kPlanes = 24;
  for (const int64_t size : {6, 7, 15}) {
    std::vector<float> x;
    double sum = 0;
    for (int64_t i = 0; i < kPlanes * size * size; ++i) {
      x.push_back(1.0f / static_cast<float>(3 + i % (size * size)));
      if (i < size * size) sum += static_cast<double>(x.back());
    }
    const std::vector<float> y = Means(x, kPlanes, size);
    ASSERT_EQ(y.size(), static_cast<size_t>(kPlanes));
    EXPECT_NEAR(y[0], sum / static_cast<double>(size * size), 1e-6);
    for (const float mean : y) EXPECT_EQ(mean, y[0]) << "size " << size;
  }
}

// The maximum of each window of 2-D `x`, element (n, c, h, w); NaN wherever the window has one.
double MaxOrNan(const std::vector<double>& plane, int64_t height, int64_t width, int64_t top,
                int64_t left, int64_t size) {
  double most = -std::numeric_limits<double>::infinity();
  for (int64_t y = std::max<int64_t>(top, 0); y < std::min(top + size, height); ++y)
    for (int64_t x = std::max<int64_t>(left, 0); x < std::min(left + size, width); ++x) {
      const double v = plane[static_cast<size_t>(y * width + x)];
      if (std::isnan(v)) return v;
      most = std::max(most, v);
    }
  return most;
}

// Random shapes, layouts, windows and dtypes, with NaN and infinities at a few places.
TEST(Pool, MaximaKeepNanWhereverItIs) {
  std::mt19937 random(7);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int round = 0; round < 120; ++round) {
    const bool last = draw(0, 1), narrow = draw(0, 1);
    const int64_t n = draw(1, 2), c = draw(1, last ? 150 : 6), size = draw(1, 4);
    const int64_t h = draw(size, 14), w = draw(size, 14), stride = draw(1, 3), pad = size / 3;
    const DType dtype = narrow ? DType::kF32 : DType::kF64;
    const Shape shape = last ? Shape{n, h, w, c} : Shape{n, c, h, w};
    ProgramBuilder b;
    b.Feed("x", dtype, shape);
    b.Op("pool2d", {{"X", {"x"}}}, {{"Out", {"y"}}},
         {{"pooling_type", "max"},
          {"ksize", Ints{size, size}},
          {"strides", Ints{stride, stride}},
          {"paddings", Ints{pad, pad}},
          {"data_format", std::string(last ? "NHWC" : "NCHW")},
          {"keep_nan", true},
          {"from_infinity", true}});
    b.Fetch("y");
    std::vector<std::vector<double>> planes(static_cast<size_t>(n * c));
    Tensor x = Tensor::Empty(dtype, shape);
    const bool clean = draw(0, 3) == 0;
    for (int64_t i = 0; i < n * c; ++i)
      for (int64_t at = 0; at < h * w; ++at) {
        double v = static_cast<double>(draw(-50, 50));
        const int64_t odd = clean ? 99 : draw(0, 60);
        if (odd == 0) v = std::nan("");
        if (odd == 1) v = -std::numeric_limits<double>::infinity();
        if (odd == 2) v = std::numeric_limits<double>::infinity();
        planes[static_cast<size_t>(i)].push_back(v);
        const int64_t to = last ? (i / c * h * w + at) * c + i % c : i * h * w + at;
        if (narrow)
          x.mutable_data<float>()[to] = static_cast<float>(v);
        else
          x.mutable_data<double>()[to] = v;
      }
    Executor executor({.threads = static_cast<int>(draw(1, 3))});
    const auto compiled = MustCompile(executor, b.Build());
    const Tensor y = MustRun(executor, compiled, {{"x", x}})[0];
    const int64_t out_h = (h + 2 * pad - size) / stride + 1,
                  out_w = (w + 2 * pad - size) / stride + 1;
    ASSERT_EQ(y.numel(), n * c * out_h * out_w);
    for (int64_t i = 0; i < n * c; ++i)
      for (int64_t at = 0; at < out_h * out_w; ++at) {
        const int64_t from =
            last ? (i / c * out_h * out_w + at) * c + i % c : i * out_h * out_w + at;
        const double is = narrow ? y.data<float>()[from] : y.data<double>()[from];
        const double expected =
            MaxOrNan(planes[static_cast<size_t>(i)], h, w, at / out_w * stride - pad,
                     at % out_w * stride - pad, size);
        ASSERT_TRUE(std::isnan(expected) ? std::isnan(is) : is == expected)
            << "round " << round << ": " << is << ", expected " << expected << "; "
            << shape.ToString() << " window " << size << (last ? " channels last" : "");
      }
  }
}

}  // namespace
}  // namespace heddle::testing
