// A table's gradient with an addend that does not go with it.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

// The message why the gradient of a table of 3 rows cannot be added to a tensor of this shape.
std::string WhyNot(const Shape& addend, bool sparse) {
  ProgramBuilder b;
  b.Feed("w", DType::kF32, {3, 2}).Feed("ids", DType::kI64, {2}).Feed("d", DType::kF32, {2, 2});
  b.Feed("addend", DType::kF32, addend);
  b.Op("lookup_table_v2_grad",
       {{"W", {"w"}}, {"Ids", {"ids"}}, {"Out@GRAD", {"d"}}, {"AddendOfW", {"addend"}}},
       {{"W@GRAD", {"g"}}}, {{"is_sparse", sparse}});
  b.Fetch("g");
  Executor executor({.threads = 1});
  const auto compiled = executor.Compile(b.Build(), nullptr, {});
  if (!compiled.ok()) return compiled.status().ToString();
  const auto out = executor.Run(*compiled, {{"w", RandomF32({3, 2}, 1)},
                                            {"ids", I64({2}, {2, 0})},
                                            {"d", RandomF32({2, 2}, 2)},
                                            {"addend", RandomF32(addend, 3)}});
  return out.ok() ? "" : out.status().ToString();
}

TEST(LookupTableGrad, IsAddedToTensorsOfTheTablesShapeAlone) {
  EXPECT_EQ(WhyNot({3, 2}, false), "");
  EXPECT_NE(WhyNot({2, 2}, false).find("'AddendOfW' is float32 [2, 2]"), std::string::npos);
  EXPECT_NE(WhyNot({3, 2}, true).find("cannot be added to a sparse gradient"), std::string::npos);
}

}  // namespace
}  // namespace heddle::testing
