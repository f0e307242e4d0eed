// Programs of fused loops that say nothing sensible are refused.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

// The message why the program, of one operand of 6 elements, cannot run.
std::string WhyNot(const Strings& ops, const std::vector<double>& values, const Ints& code,
                   const Ints& outs) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {6});
  std::vector<std::string> results;
  for (size_t i = 0; i < outs.size(); ++i) {
    results.push_back("y" + std::to_string(i));
    b.Fetch(results.back());
  }
  b.Op("fused_elementwise", {{"X", {"x"}}}, {{"Out", results}},
       {{"ops", ops}, {"values", values}, {"code", code}, {"outs", outs}});
  Executor executor({.threads = 1});
  const auto compiled = executor.Compile(b.Build(), nullptr, {});
  if (!compiled.ok()) return compiled.status().ToString();
  const auto out = executor.Run(*compiled, {{"x", F32({6}, {0, 1, 2, 3, 4, 5})}});
  return out.ok() ? "" : out.status().ToString();
}

// The program reshapes its operand to [`rows`, `cols`].
std::string WhyNoShape(double rows, double cols) {
  return WhyNot({"reshape2", "relu"}, {2, rows, cols, 0}, {0, 0, 1, 1}, {2});
}

TEST(ElementProgram, ResultsHaveOneOutputEach) {
  EXPECT_EQ(WhyNot({"relu"}, {0}, {0, 0}, {1}), "");
  EXPECT_NE(WhyNot({"relu"}, {0}, {0, 0}, {1, 1}).find("outs names 1 twice"), std::string::npos);
}

TEST(ElementProgram, ShapesFit) {
  EXPECT_EQ(WhyNoShape(2, 3), "");
  EXPECT_EQ(WhyNoShape(-1, 3), "");
  for (const double rows : {std::nan(""), 1e300, -2.0})
    EXPECT_NE(WhyNoShape(rows, 3).find("a value is given the dimension"), std::string::npos);
  for (const double rows : {-1.0, 0.0, 4.0, 5e14})
    EXPECT_NE(WhyNoShape(rows, 4e14).find("cannot be given the shape"), std::string::npos) << rows;
}

// Rows of different lengths, so that loops and reductions run one after another.
TEST(ElementProgram, AReductionThatNobodyReadsHasMemoryOfItsOwn) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, 2}).Feed("y", DType::kF32, {3});
  b.Op("fused_rows", {{"X", {"x", "y"}}}, {{"Out", {"out"}}},
       {{"ops", Strings{"reduce_sum", "reduce_max", "relu"}},
        {"values", std::vector<double>{0, 0, -1, -1, 0, 0, 0, 0, -1, -1, 0}},
        {"code", Ints{0, 1, 1, 0, 2, 3}},
        {"outs", Ints{4}}});
  b.Fetch("out");
  Executor executor({.threads = 1});
  const auto compiled = MustCompile(executor, b.Build());
  const auto out =
      MustRun(executor, compiled, {{"x", F32({2, 2}, {1, 2, 3, 4})}, {"y", F32({3}, {5, 6, 7})}});
  EXPECT_EQ(Floats(out[0]), (std::vector<float>{2, 4}));
}

}  // namespace
}  // namespace heddle::testing
