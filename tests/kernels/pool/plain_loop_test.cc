// Averages and maxima of windows in both layouts, in two and three dimensions, beside a plain loop:
// random values, windows, steps and paddings, drawn from a seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <random>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using Size = std::array<int64_t, 3>;  // depth, height, width; of images, the depth is 1

struct Windows {
  int64_t batch, channels;
  Size in, size, step, pad;
  bool average, exclusive, last, cubes;

  int64_t Out(size_t i) const { return (in[i] + 2 * pad[i] - size[i]) / step[i] + 1; }
  Shape Image(const Size& of) const {
    Shape shape{batch};
    if (!last) shape.push_back(channels);
    for (size_t i = cubes ? 0 : 1; i < 3; ++i) shape.push_back(of[i]);
    if (last) shape.push_back(channels);
    return shape;
  }
  int64_t At(const Size& of, int64_t b, int64_t c, const Size& p) const {
    const int64_t pixel = (p[0] * of[1] + p[1]) * of[2] + p[2], pixels = of[0] * of[1] * of[2];
    return last ? (b * pixels + pixel) * channels + c : (b * channels + c) * pixels + pixel;
  }
};

double Expected(const Windows& w, const float* x, int64_t b, int64_t c, const Size& at) {
  double sum = 0, most = -std::numeric_limits<double>::infinity();
  int64_t inside = 0;
  for (int64_t z = 0; z < w.size[0]; ++z)
    for (int64_t y = 0; y < w.size[1]; ++y)
      for (int64_t v = 0; v < w.size[2]; ++v) {
        const Size p{at[0] * w.step[0] - w.pad[0] + z, at[1] * w.step[1] - w.pad[1] + y,
                     at[2] * w.step[2] - w.pad[2] + v};
        bool in = true;
        for (size_t i = 0; i < 3; ++i) in = in && p[i] >= 0 && p[i] < w.in[i];
        if (!in) continue;
        const double value = static_cast<double>(x[w.At(w.in, b, c, p)]);
        ++inside;
        sum += value;
        most = std::max(most, value);
      }
  const int64_t whole = w.size[0] * w.size[1] * w.size[2];
  return w.average ? sum / static_cast<double>(w.exclusive ? inside : whole) : most;
}

void Check(const Windows& w, uint32_t seed) {
  const Tensor x = RandomF32(w.Image(w.in), seed);
  const auto list = [&](const Size& s) { return Ints(s.begin() + (w.cubes ? 0 : 1), s.end()); };
  ProgramBuilder b;
  b.Feed("x", DType::kF32, x.shape());
  b.Op(w.cubes ? "pool3d" : "pool2d", {{"X", {"x"}}}, {{"Out", {"y"}}},
       {{"pooling_type", std::string(w.average ? "avg" : "max")},
        {"ksize", list(w.size)},
        {"strides", list(w.step)},
        {"paddings", list(w.pad)},
        {"exclusive", w.exclusive},
        {"data_format",
         std::string(w.cubes ? (w.last ? "NDHWC" : "NCDHW") : (w.last ? "NHWC" : "NCHW"))}});
  b.Fetch("y");
  Executor executor({.threads = 2});
  const Tensor got = MustRun(executor, MustCompile(executor, b.Build()), {{"x", x}})[0];
  const Size out{w.Out(0), w.Out(1), w.Out(2)};
  ASSERT_EQ(got.shape(), w.Image(out));
  for (int64_t n = 0; n < w.batch; ++n)
    for (int64_t c = 0; c < w.channels; ++c)
      for (int64_t z = 0; z < out[0]; ++z)
        for (int64_t y = 0; y < out[1]; ++y)
          for (int64_t v = 0; v < out[2]; ++v)
            ASSERT_NEAR(got.data<float>()[w.At(out, n, c, {z, y, v})],
                        Expected(w, x.data<float>(), n, c, {z, y, v}), 1e-5)
                << n << ' ' << c << ' ' << z << ' ' << y << ' ' << v;
}

TEST(PoolBesidePlainLoop, WindowsOfAllKinds) {
  std::mt19937 random(11);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (uint32_t round = 0; round < 160; ++round) {
    Windows w{.batch = draw(1, 2),
              .channels = 1,
              .in = {1, 1, 1},
              .size = {1, 1, 1},
              .step = {1, 1, 1},
              .pad = {0, 0, 0},
              .average = draw(0, 1) != 0,
              .exclusive = draw(0, 1) != 0,
              .last = draw(0, 1) != 0,
              .cubes = draw(0, 3) == 0};
    w.channels = draw(1, w.last ? 70 : 5);
    for (size_t i = w.cubes ? 0 : 1; i < 3; ++i) {
      w.size[i] = draw(1, 5);
      w.in[i] = draw(w.size[i], w.cubes ? 8 : 19);
      w.step[i] = draw(1, 3);
      w.pad[i] = w.size[i] > 1 ? draw(0, w.size[i] / 2) : 0;
    }
    SCOPED_TRACE("round " + std::to_string(round));
    ASSERT_NO_FATAL_FAILURE(Check(w, round));
  }
}

// Windows of two by two pixels side by side have loops of their own; as windows of cubes of depth 1
// they have not. Bits are equal, also of NaN, infinities, -0 and several equal maxima.
template <typename T>
void CompareHalved(std::mt19937& random) {
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  const T values[] = {T(-1), T(-0.), T(0),       T(1),      T(1.5),
                      T(2),  T(7),   -kInfinity, kInfinity, std::numeric_limits<T>::quiet_NaN()};
  const bool odd = draw(0, 2) == 0;  // with NaN and infinities
  const Shape image{draw(1, 2), draw(1, 3), draw(2, 41), draw(2, 41)};
  const Shape pooled{image[0], image[1], image[2] / 2, image[3] / 2};
  const auto fill = [&](const Shape& shape, int64_t last) {
    Tensor t = Tensor::Zeros(kDTypeOf<T>, shape);
    for (int64_t k = 0; k < t.numel(); ++k) t.mutable_data<T>()[k] = values[draw(0, last)];
    return t;
  };
  const std::vector<heddle::Feed> feeds = {{"x", fill(image, odd ? 9 : 6)},
                                           {"dy", fill(pooled, 6)}};
  const std::string type = draw(0, 3) == 0 ? "avg" : "max";
  const bool skip_nan = draw(0, 1) != 0, keep_nan = !skip_nan && draw(0, 1) != 0;
  const auto run = [&](bool cubes) {
    ProgramBuilder b;
    const auto deep = [&](const Shape& s) { return cubes ? Shape{s[0], s[1], 1, s[2], s[3]} : s; };
    std::vector<heddle::Feed> given;
    for (const heddle::Feed& f : feeds) {
      const Tensor& t = f.value.tensor();
      b.Feed(f.name, t.dtype(), deep(t.shape()));
      given.push_back({f.name, t.Reshaped(deep(t.shape()))});
    }
    const Ints two = cubes ? Ints{1, 2, 2} : Ints{2, 2}, none(two.size(), 0);
    const auto attrs = [&] {
      return Attrs{{"pooling_type", type}, {"ksize", two},         {"strides", two},
                   {"paddings", none},     {"skip_nan", skip_nan}, {"keep_nan", keep_nan}};
    };
    const std::string op = cubes ? "pool3d" : "pool2d";
    b.Op(op, {{"X", {"x"}}}, {{"Out", {"y"}}}, attrs());
    b.Op(op + "_grad", {{"X", {"x"}}, {"Out", {"y"}}, {"Out@GRAD", {"dy"}}}, {{"X@GRAD", {"dx"}}},
         attrs());
    b.Fetch("y");
    b.Fetch("dx");
    Executor executor({.threads = 1});
    return MustRun(executor, MustCompile(executor, b.Build(), nullptr, {.opt_level = 0}), given);
  };
  const auto want = run(true), got = run(false);
  for (size_t k = 0; k < 2; ++k) {
    ASSERT_EQ(got[k].bytes(), want[k].bytes());
    ASSERT_EQ(std::memcmp(got[k].raw(), want[k].raw(), want[k].bytes()), 0)
        << type << ' ' << image.ToString() << (k == 0 ? " forward" : " backward");
  }
}

TEST(PoolBesidePlainLoop, HalvedPlanesGiveTheSameBits) {
  std::mt19937 random(12);
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    ASSERT_NO_FATAL_FAILURE(CompareHalved<float>(random));
    ASSERT_NO_FATAL_FAILURE(CompareHalved<double>(random));
  }
}

}  // namespace
}  // namespace heddle::testing
