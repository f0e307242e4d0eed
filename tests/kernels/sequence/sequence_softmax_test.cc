// Rows without an element: offsets say that there are rows, and the tensor has nothing in them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

TEST(SequenceSoftmax, RowsHaveOneElement) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1, -1}).Var("y", DType::kF32, {-1, -1});
  b.Op("sequence_softmax", {{"X", {"x"}}}, {{"Out", {"y"}}}).Fetch("y");
  Executor executor({.threads = 1});
  auto compiled = MustCompile(executor, b.Build(), nullptr);
  Tensor empty = F32({4, 0}, {});
  empty.set_lod({{0, 4}});
  const auto out = executor.Run(compiled, {{"x", empty}});
  EXPECT_THAT(out.status().message(), ::testing::HasSubstr("not [4, 0]"));
  Tensor none = F32({0, 1}, {});
  none.set_lod({{0, 0}});
  EXPECT_EQ(MustRun(executor, compiled, {{"x", none}})[0].numel(), 0);
}

}  // namespace
}  // namespace heddle::testing
