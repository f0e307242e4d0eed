// Averages over windows that are long enough for a loop of their own.
#include <gtest/gtest.h>

#include <cstdint>
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

}  // namespace
}  // namespace heddle::testing
