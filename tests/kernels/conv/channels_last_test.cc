// Kernels that work with channels last give what they give with channels second.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

// Distinct values in no order.
Tensor Values(const Shape& shape) {
  std::vector<float> v(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < v.size(); ++i) v[i] = std::sin(static_cast<float>(i) * 12.9898f) * 100;
  return F32(shape, v);
}

Tensor Moved(const Tensor& x, const Ints& axis) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, x.shape());
  b.Op("transpose2", {{"X", {"x"}}}, {{"Out", {"y"}}}, {{"axis", axis}}).Fetch("y");
  Executor executor({.threads = 2});
  return MustRun(executor, MustCompile(executor, b.Build(), nullptr, {.opt_level = 0}),
                 {{"x", x}})[0];
}

TEST(ChannelsLast, ImagesOfThreeChannels) {
  for (const int64_t width : {1, 5, 7, 8, 9, 31, 224}) {
    const Shape shape{2, 3, 11, width};
    const Tensor x = Values(shape);
    const auto from = Floats(x), to = Floats(Moved(x, {0, 2, 3, 1}));
    const int64_t pixels = 11 * width;
    for (int64_t i = 0; i < shape.numel(); ++i) {
      const int64_t image = i / (3 * pixels), pixel = i / 3 % pixels, c = i % 3;
      ASSERT_EQ(to[static_cast<size_t>(i)],
                from[static_cast<size_t>((image * 3 + c) * pixels + pixel)])
          << width << ": element " << i;
    }
  }
}

Tensor Pool(const Tensor& x, const std::string& type, const std::string& format, bool exclusive,
            const Ints& window) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, x.shape());
  b.Op("pool2d", {{"X", {"x"}}}, {{"Out", {"y"}}},
       {{"pooling_type", type},
        {"ksize", window},
        {"strides", Ints{2, 1}},
        {"paddings", Ints{1, 0}},
        {"data_format", format},
        {"exclusive", exclusive}});
  b.Fetch("y");
  Executor executor({.threads = 2});
  return MustRun(executor, MustCompile(executor, b.Build(), nullptr, {.opt_level = 0}),
                 {{"x", x}})[0];
}

TEST(ChannelsLast, PoolsOfAnyNumberOfChannels) {
  for (const int64_t channels : {1, 3, 4, 6, 8, 13, 16, 24, 37, 64, 100})
    for (const Ints& window : {Ints{3, 2}, Ints{2, 2}, Ints{3, 3}})
      for (const auto& [type, exclusive] :
           {std::pair{"max", true}, {"avg", false}, {"avg", true}}) {
        const Tensor x = Values({2, channels, 7, 6});
        const auto second = Floats(Moved(Pool(x, type, "NCHW", exclusive, window), {0, 2, 3, 1}));
        const auto last = Floats(Pool(Moved(x, {0, 2, 3, 1}), type, "NHWC", exclusive, window));
        ASSERT_EQ(second.size(), last.size());
        for (size_t i = 0; i < last.size(); ++i)
          ASSERT_NEAR(last[i], second[i], 2e-5 * (1 + std::abs(second[i])))
              << type << ", " << channels << " channels, element " << i;
      }
}

Tensor Resize(const Tensor& x, const std::string& type, const std::string& format, int64_t rows,
              int64_t columns, bool corners) {
  ProgramBuilder b;
  b.Feed("x", x.dtype(), x.shape());
  b.Op(type, {{"X", {"x"}}}, {{"Out", {"y"}}},
       {{"out_h", rows},
        {"out_w", columns},
        {"align_corners", corners},
        {"align_mode", int64_t{0}},
        {"interp_method", type.substr(0, type.find('_'))},
        {"data_layout", format}});
  b.Fetch("y");
  Executor executor({.threads = 2});
  return MustRun(executor, MustCompile(executor, b.Build(), nullptr, {.opt_level = 0}),
                 {{"x", x}})[0];
}

TEST(ChannelsLast, ResizesToAnySize) {
  for (const int64_t channels : {1, 3, 19, 64})
    for (const char* type : {"bilinear_interp_v2", "bicubic_interp_v2"})
      for (const auto& [rows, columns] :
           {std::pair<int64_t, int64_t>{14, 24}, {3, 2}, {7, 7}, {1, 1}, {40, 3}})
        for (const bool corners : {false, true}) {
          const Tensor x = Values({2, channels, 7, 6});
          const auto second =
              Floats(Moved(Resize(x, type, "NCHW", rows, columns, corners), {0, 2, 3, 1}));
          const auto last =
              Floats(Resize(Moved(x, {0, 2, 3, 1}), type, "NHWC", rows, columns, corners));
          ASSERT_EQ(second.size(), last.size());
          for (size_t i = 0; i < last.size(); ++i)
            ASSERT_NEAR(last[i], second[i], 1e-4) << type << " to " << rows << "x" << columns
                                                  << ", " << channels << " channels, element " << i;
        }
}

}  // namespace
}  // namespace heddle::testing
