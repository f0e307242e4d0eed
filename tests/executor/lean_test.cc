// CompileOptions::lean: weights are read part by part, and no plan forgets it.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "core/memory/lazy_buffer.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

constexpr int64_t kOut = 256, kIn = 256, kTaps = 9;
constexpr size_t kBytes = kOut * kIn * kTaps * sizeof(float);

// y = conv2d(x, w), 3x3, channels last; `dynamic`: x has the shape that the feed `s` holds.
Program ConvNet(bool dynamic) {
  ProgramBuilder b;
  b.Param("w", DType::kF32, {kOut, kIn, 3, 3}).Feed("x", DType::kF32, {1, 20, 20, kIn});
  if (dynamic) {
    b.Feed("s", DType::kI64, {4});
    b.Op("reshape2", {{"X", {"x"}}, {"Shape", {"s"}}}, {{"Out", {"z"}}},
         {{"shape", Ints{1, 20, 20, -1}}});
  }
  b.Op("conv2d", {{"Input", {dynamic ? "z" : "x"}}, {"Filter", {"w"}}}, {{"Output", {"y"}}},
       {{"strides", Ints{1, 1}}, {"paddings", Ints{1, 1}}, {"data_format", std::string("NHWC")}});
  return b.Fetch("y").Build();
}

// A filter that is made when somebody reads it, and how much is read at once at most.
struct Weights {
  std::atomic<size_t> most{0};
  std::shared_ptr<Scope> Make() {
    const auto contents = [this](void* to, size_t begin, size_t end) {
      most = std::max(most.load(), end - begin);
      for (size_t i = begin / sizeof(float); i < end / sizeof(float); ++i)
        static_cast<float*>(to)[i - begin / sizeof(float)] =
            static_cast<float>(static_cast<int>(i * 7 % 31) - 15) / 97;
      return Status::Ok();
    };
    auto scope = std::make_shared<Scope>();
    scope->Set("w", Tensor(DType::kF32, {kOut, kIn, 3, 3}, MakeLazyBuffer(kBytes, contents)));
    return scope;
  }
};

Tensor Convolve(bool dynamic, bool lean, size_t* most = nullptr) {
  Weights weights;
  Executor executor({.threads = 1});
  auto compiled = MustCompile(executor, ConvNet(dynamic), weights.Make(), {.lean = lean});
  std::vector<Feed> feeds{{"x", RandomF32({1, 20, 20, kIn}, 1)}};
  if (dynamic) feeds.push_back({"s", I64({4}, {1, 20, 20, kIn})});
  Tensor y = MustRun(executor, compiled, feeds)[0];
  if (most != nullptr) *most = weights.most;
  return y;
}

TEST(Lean, ReadsWeightsPartByPart) {
  size_t usual = 0, lean = 0;
  const Tensor want = Convolve(false, false, &usual), got = Convolve(false, true, &lean);
  EXPECT_EQ(usual, kBytes);
  EXPECT_GT(lean, 0u);
  EXPECT_LE(lean, kBytes / 2);
  for (int64_t i = 0; i < want.numel(); ++i)
    ASSERT_NEAR(got.data<float>()[i], want.data<float>()[i], 2e-4f) << i;
}

TEST(Lean, AlsoWhereShapesAreFoundWhileRunning) {
  const Tensor lean = Convolve(false, true);
  ASSERT_FALSE(SameBits(lean, Convolve(false, false))) << "the ways cannot be told apart";
  EXPECT_TRUE(SameBits(lean, Convolve(true, true)));
}

// y = x w, for constant w, with an activation that the library and heddle compute each in its own
// way.
Tensor Multiply(int64_t size, bool lean) {
  ProgramBuilder b;
  b.Param("w", DType::kF32, {size, size}).Feed("x", DType::kF32, {16, size});
  b.Var("y", DType::kF32, {16, size});
  b.Op("fused_matmul", {{"X", {"x"}}, {"Y", {"w"}}}, {{"Out", {"y"}}},
       {{"fuse_activation", std::string("sigmoid")}});
  auto scope = std::make_shared<Scope>();
  scope->Set("w", RandomF32({size, size}, 2));
  Executor executor({.threads = 1});
  auto compiled = MustCompile(executor, b.Fetch("y").Build(), scope, {.lean = lean});
  return MustRun(executor, compiled, {{"x", RandomF32({16, size}, 1)}})[0];
}

TEST(Lean, ChangesNoSmallProduct) {
  EXPECT_TRUE(SameBits(Multiply(128, true), Multiply(128, false)));
}

}  // namespace
}  // namespace heddle::testing
