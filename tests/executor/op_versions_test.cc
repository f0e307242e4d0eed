// Operators whose meaning changed follow the version that the file names.
#include <gtest/gtest.h>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using Rows = std::vector<float>;

// Names the version of an operator; the file then names all it means to name.
void SetVersion(ProgramBuilder& b, const std::string& op, int version) {
  auto* pair = b.desc().mutable_op_version_map()->add_pair();
  pair->set_op_name(op);
  pair->mutable_op_version()->set_version(version);
}

Rows ValuesOf(const ProgramBuilder& b, const Shape& shape, const Rows& x) {
  Executor executor({.threads = 1});
  const auto out = MustRun(executor, MustCompile(executor, b.Build()), {{"x", F32(shape, x)}});
  return Floats(out[0]);
}

ProgramBuilder Activation(const std::string& op, const std::string& attr, double value) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {4});
  b.Op(op, {{"X", {"x"}}}, {{"Out", {"y"}}}, {{attr, value}});
  b.Fetch("y");
  return b;
}

TEST(OpVersions, LeakyReluWasAMaximum) {
  const Rows x{-2, -1, 1, 2};
  ProgramBuilder b = Activation("leaky_relu", "alpha", 3);
  EXPECT_EQ(ValuesOf(b, {4}, x), (Rows{-6, -3, 1, 2}));  // no versions named: the present one
  SetVersion(b, "leaky_relu", 1);
  EXPECT_EQ(ValuesOf(b, {4}, x), (Rows{-6, -3, 1, 2}));
  b = Activation("leaky_relu", "alpha", 3);
  SetVersion(b, "leaky_relu", 0);
  EXPECT_EQ(ValuesOf(b, {4}, x), (Rows{-2, -1, 3, 6}));
  b = Activation("leaky_relu", "alpha", 0.5);
  SetVersion(b, "leaky_relu", 0);
  EXPECT_EQ(ValuesOf(b, {4}, x), (Rows{-1, -0.5, 1, 2}));
  b = Activation("leaky_relu", "alpha", -1);
  SetVersion(b, "leaky_relu", 0);
  EXPECT_EQ(ValuesOf(b, {4}, x), (Rows{2, 1, 1, 2}));
}

TEST(OpVersions, AnOperatorThatAMapLeavesOutIsOfVersionZero) {
  ProgramBuilder b = Activation("leaky_relu", "alpha", 3);
  SetVersion(b, "conv2d", 1);
  EXPECT_EQ(ValuesOf(b, {4}, {-2, -1, 1, 2}), (Rows{-2, -1, 3, 6}));
}

TEST(OpVersions, GradientsGoByTheirOperator) {
  for (int version : {0, 1}) {
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {2});
    b.Fill("dy", {2}, 1);
    b.Op("leaky_relu_grad", {{"X", {"x"}}, {"Out@GRAD", {"dy"}}}, {{"X@GRAD", {"dx"}}},
         {{"alpha", 3.0}});
    b.Fetch("dx");
    SetVersion(b, "leaky_relu", version);
    EXPECT_EQ(ValuesOf(b, {2}, {-1, 1}), version == 0 ? (Rows{1, 3}) : (Rows{3, 1}));
  }
}

TEST(OpVersions, HardShrinkCountedBothSidesOfANegativeThreshold) {
  const Rows x{-2, -0.5, 0.5, 2};
  ProgramBuilder b = Activation("hard_shrink", "threshold", -1);
  EXPECT_EQ(ValuesOf(b, {4}, x), x);
  SetVersion(b, "hard_shrink", 0);
  EXPECT_EQ(ValuesOf(b, {4}, x), (Rows{-2, -1, 1, 2}));
  b = Activation("hard_shrink", "threshold", 1);
  SetVersion(b, "hard_shrink", 0);
  EXPECT_EQ(ValuesOf(b, {4}, x), (Rows{-2, 0, 0, 2}));
}

TEST(OpVersions, AxesHadOtherNames) {
  for (const char* op : {"flip", "roll"}) {
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {2, 2});
    b.Op(op, {{"X", {"x"}}}, {{"Out", {"y"}}}, {{"dims", Ints{1}}, {"shifts", Ints{1}}});
    b.Fetch("y");
    EXPECT_EQ(ValuesOf(b, {2, 2}, {1, 2, 3, 4}), (Rows{2, 1, 4, 3})) << op;
  }
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, 1, 2});
  b.Op("trace", {{"Input", {"x"}}}, {{"Out", {"y"}}}, {{"dim1", 0}, {"dim2", 2}});
  b.Fetch("y");
  EXPECT_EQ(ValuesOf(b, {2, 1, 2}, {1, 2, 3, 4}), (Rows{5}));
}

}  // namespace
}  // namespace heddle::testing
