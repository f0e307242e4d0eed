// Real image sizes that do not fit the images are refused.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

// Windows of 1 by 1 in two images of 2 by 3, halved: the number of windows, or the message.
std::string Windows(const Shape& shape, const std::vector<float>& sizes) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, 1, 2, 3}).Feed("sizes", DType::kF32, shape);
  b.Var("y", DType::kF32, {-1, 1});
  b.Op("im2sequence", {{"X", {"x"}}, {"Y", {"sizes"}}}, {{"Out", {"y"}}},
       {{"kernels", Ints{1, 1}}, {"out_stride", Ints{2, 2}}});
  b.Fetch("y");
  Executor executor({.threads = 1});
  const auto compiled = MustCompile(executor, b.Build());
  const auto out = executor.Run(compiled, {{"x", F32({2, 1, 2, 3}, std::vector<float>(12, 1))},
                                           {"sizes", F32(shape, sizes)}});
  return out.ok() ? std::to_string((*out)[0].dim(0)) : out.status().ToString();
}

TEST(Im2Sequence, SizesMustFitTheImages) {
  EXPECT_EQ(Windows({2, 2}, {4, 6, 3, 1}), std::to_string(6 + 2));
  for (const float height : {0.0f, -1.0f, 5.0f, 1e30f, std::nanf("")})
    EXPECT_NE(Windows({2, 2}, {4, 6, height, 1}).find("'Y' says that dimension 0 of image 1 has"),
              std::string::npos)
        << height;
  EXPECT_NE(Windows({3}, {4, 6, 3}).find("float32 [2, 2], the height and width of each image"),
            std::string::npos);
}

}  // namespace
}  // namespace heddle::testing
