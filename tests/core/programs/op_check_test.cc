// Operators of a program that contradict their definitions: one problem each, told when the program
// is made.
#include "core/programs/op_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/op_registry.h"
#include "core/operands/slot_kinds.h"
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

// Declares `name` as a variable of this kind.
void Declare(ProgramBuilder& b, const char* name, proto::VarType::Type kind) {
  auto* var = b.desc().mutable_blocks(0)->add_vars();
  var->set_name(name);
  var->mutable_type()->set_type(kind);
  if (kind == proto::VarType::LOD_TENSOR)
    var->mutable_type()->mutable_lod_tensor()->mutable_tensor()->set_data_type(
        proto::VarType::FP32);
}

TEST(OpCheck, SlotsTakeVariablesOfTheirKinds) {
  const auto with = [](const char* op, proto::VarType::Type in, proto::VarType::Type out) {
    ProgramBuilder b;
    Declare(b, "x", in);
    Declare(b, "y", out);
    b.Op(op, {{"X", {"x"}}}, {{"Out", {"y"}}}).Fetch("y");
    return ErrorOf(b);
  };
  const auto dense = proto::VarType::LOD_TENSOR, rows = proto::VarType::SELECTED_ROWS,
             array = proto::VarType::LOD_TENSOR_ARRAY, raw = proto::VarType::RAW,
             scopes = proto::VarType::STEP_SCOPES;
  EXPECT_EQ(with("relu", dense, dense), "");
  for (const auto kind : {rows, array, raw, scopes}) {
    EXPECT_THAT(with("relu", kind, dense), AllOf(HasSubstr("op 0 (relu)"), HasSubstr("input 'X'")));
    EXPECT_THAT(with("relu", dense, kind), AllOf(HasSubstr("op 0 (relu)"), HasSubstr("output")));
  }
  EXPECT_THAT(with("relu", dense, array), AllOf(HasSubstr("'y', declared as a tensor array"),
                                                HasSubstr("a tensor is expected")));
  EXPECT_EQ(with("scale", rows, rows), "");
  EXPECT_EQ(with("assign", array, array), "");
  EXPECT_THAT(with("assign", dense, array), HasSubstr("no input is a tensor array"));
  EXPECT_EQ(with("lod_array_length", array, dense), "");
  EXPECT_THAT(with("lod_array_length", dense, dense), HasSubstr("a tensor array is expected"));
}

TEST(OpCheck, AVariableThatNothingDeclaresMayBeOfAnyKind) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2}).Fill("i", {1}, 0);
  b.Op("write_to_array", {{"X", {"x"}}, {"I", {"i"}}}, {{"Out", {"a"}}});
  b.Op("lod_array_length", {{"X", {"a"}}}, {{"Out", {"n"}}}).Fetch("n");
  EXPECT_EQ(ErrorOf(b), "");
  b.Unary("relu", "a", "z");
  EXPECT_THAT(ErrorOf(b), AllOf(HasSubstr("(relu)"), HasSubstr("'a', declared as a tensor array")));
}

TEST(OpCheck, SlotsOfOtherKindsSayWhich) {
  for (const OpDef* def : AllOps())
    for (const auto* slots : {&def->inputs(), &def->outputs()})
      for (const SlotDef& slot : *slots)
        EXPECT_TRUE((slot.flags & kAnyKind) == 0 || (slot.flags & kTakesAll) != 0)
            << def->name() << " " << slot.name;
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
