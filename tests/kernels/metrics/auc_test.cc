// Predictions without a column have nothing to be read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

TEST(Auc, PredictionsHaveAColumn) {
  ProgramBuilder b;
  b.Feed("p", DType::kF32, {-1, -1}).Feed("l", DType::kI64, {-1, 1});
  b.Fill("s", {4}, 0, DType::kI64).Fill("t", {4}, 0, DType::kI64);
  b.Op("auc", {{"Predict", {"p"}}, {"Label", {"l"}}, {"StatPos", {"s"}}, {"StatNeg", {"t"}}},
       {{"AUC", {"a"}}, {"StatPosOut", {"so"}}, {"StatNegOut", {"to"}}},
       {{"num_thresholds", int64_t{3}}, {"slide_steps", int64_t{0}}});
  b.Fetch("a");
  Executor executor({.threads = 1});
  auto compiled = MustCompile(executor, b.Build(), nullptr);
  const auto out = executor.Run(compiled, {{"p", F32({2, 0}, {})}, {"l", I64({2, 1}, {0, 1})}});
  EXPECT_THAT(out.status().message(), ::testing::HasSubstr("Predict must be [N, 1] or [N, 2]"));
}

}  // namespace
}  // namespace heddle::testing
