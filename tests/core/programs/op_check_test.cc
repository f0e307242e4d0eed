// Operators of a program that contradict their definitions: one problem each, told when the program
// is made.
#include "core/programs/op_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/programs/program_builder.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string ErrorOf(const ProgramBuilder& b) {
  const auto program = b.TryBuild();
  if (program.ok()) return "";
  EXPECT_EQ(program.status().code(), StatusCode::kInvalidArgument);
  return program.status().ToString();
}

TEST(OpCheck, ASlotIsGivenOnce) {
  const auto twice = [](bool input) {
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {2});
    if (input)
      b.Op("relu", {{"X", {"x"}}, {"X", {"x"}}}, {{"Out", {"y"}}});
    else
      b.Op("relu", {{"X", {"x"}}}, {{"Out", {"y"}}, {"Out", {"z"}}});
    b.Fetch("y");
    return ErrorOf(b);
  };
  EXPECT_THAT(twice(true), AllOf(HasSubstr("op 1 (relu)"), HasSubstr("'X' is given twice")));
  EXPECT_THAT(twice(false), AllOf(HasSubstr("op 1 (relu)"), HasSubstr("'Out' is given twice")));
}

TEST(OpCheck, RequiredOperandsAreThere) {
  const auto with = [](const Slots& inputs, const Slots& outputs) {
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {2}).Op("share_data", inputs, outputs).Fetch("x");
    return ErrorOf(b);
  };
  EXPECT_EQ(with({{"X", {"x"}}}, {{"Out", {"y"}}}), "");
  EXPECT_THAT(with({}, {{"Out", {"y"}}}), HasSubstr("misses input 'X'"));
  EXPECT_THAT(with({{"X", {"@EMPTY@"}}}, {{"Out", {"y"}}}), HasSubstr("input 'X' is required"));
  EXPECT_THAT(with({{"X", {"x"}}}, {}), HasSubstr("misses output 'Out'"));
  EXPECT_THAT(with({{"X", {"x"}}}, {{"Out", {}}}), HasSubstr("misses output 'Out'"));
  EXPECT_THAT(with({{"X", {"x"}}}, {{"Out", {"@EMPTY@"}}}), HasSubstr("output 'Out' is required"));
}

TEST(OpCheck, AMisspeltOutputIsNoUnknownOne) {
  const auto with = [](const std::string& slot) {
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {2, 3});
    b.Op("norm", {{"X", {"x"}}}, {{"Out", {"y"}}, {slot, {"n"}}}).Fetch("y");
    return ErrorOf(b);
  };
  EXPECT_EQ(with("Norm"), "");
  EXPECT_EQ(with("SomethingOfAnotherVersion"), "");
  for (const char* slot : {"norm", "Nrm", "Norms", "Nosm"})
    EXPECT_THAT(with(slot), AllOf(HasSubstr(slot), HasSubstr("there is 'Norm'")));
}

TEST(OpCheck, AVariableIsOneOutput) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, 3});
  b.Op("norm", {{"X", {"x"}}}, {{"Out", {"y"}}, {"Norm", {"y"}}}).Fetch("y");
  EXPECT_THAT(ErrorOf(b), AllOf(HasSubstr("'Norm'"), HasSubstr("another output")));
}

TEST(OpCheck, AShapeWithoutContentsIsReadByThoseWhoReadShapes) {
  const auto with = [](const char* reader) {
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {2, 3});
    b.Op("reshape2", {{"X", {"x"}}}, {{"Out", {"y"}}, {"XShape", {"s"}}}, {{"shape", Ints{6}}});
    if (std::string(reader) == "reshape2_grad")
      b.Op(reader, {{"Out@GRAD", {"y"}}, {"XShape", {"s"}}}, {{"X@GRAD", {"z"}}});
    else
      b.Op(reader, {{"X", {"s"}}}, {{"Out", {"z"}}});
    b.Fetch("z");
    return ErrorOf(b);
  };
  EXPECT_EQ(with("reshape2_grad"), "");
  EXPECT_THAT(with("relu"), AllOf(HasSubstr("op 2 (relu)"), HasSubstr("shape without contents")));
}

TEST(OpCheck, ARecordOfStepsIsNoValue) {
  const auto with = [](const std::string& scopes) {
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {1}).Feed("go", DType::kBool, {1}).Fill("n", {1}, 1);
    const int body = b.Block(0);
    b.Op("while", {{"X", {"x"}}, {"Condition", {"go"}}}, {{"Out", {"x"}}, {"StepScopes", {scopes}}},
         {{"sub_block", BlockRef{body}}});
    b.Scale("n", "y", 2).Fetch("y");
    b.In(body).Op("logical_not", {{"X", {"go"}}}, {{"Out", {"go"}}});
    return ErrorOf(b);
  };
  EXPECT_EQ(with("scopes"), "");
  EXPECT_THAT(with("n"), AllOf(HasSubstr("(scale)"), HasSubstr("'n'"), HasSubstr("record")));
  EXPECT_THAT(with("go"), AllOf(HasSubstr("'Condition'"), HasSubstr("record")));
}

}  // namespace
}  // namespace heddle::testing
