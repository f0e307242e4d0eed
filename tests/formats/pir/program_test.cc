// Small PIR programs are run and their numbers compared.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/dtype_of.h"
#include "formats/program_source.h"
#include "heddle/params.h"
#include "tests/formats/pir/pir_text.h"
#include "tests/support/files.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using ::testing::HasSubstr;

std::vector<float> RunOn(const PirText& text, const Tensor& x, int output = 0) {
  const auto program = text.TryBuild();
  EXPECT_TRUE(program.ok()) << program.status().ToString();
  if (!program.ok()) return {};
  Executor executor({.threads = 1});
  const auto compiled = MustCompile(executor, *program);
  return Floats(MustRun(executor, compiled, {{"x", x}})[static_cast<size_t>(output)]);
}

PirText ScaledBy(double factor) {
  PirText p;
  p.Data(1, "x").Full(2, factor);
  p.Op("1.scale", {1, 2}, {3},
       PirText::Attr("bias", "0.a_f64", "1.0") + "," + PirText::Flag("bias_after_scale", true));
  return p.Fetch(3, "y");
}

TEST(Pir, ConstantsBecomeAttributes) {
  const PirText p = ScaledBy(3);
  EXPECT_EQ(p.TryBuild()->num_ops(), 1);
  EXPECT_EQ(RunOn(p, F32({2}, {1, -2})), (std::vector<float>{4, -5}));
}

// An operator whose name ends in '_' writes to its operand: who reads the old number behind it sees
// the new value, who read it before does not.
TEST(Pir, WritesInPlaceAreSeenUnderTheOldNumber) {
  PirText p;
  p.Data(1, "x").Op("1.assign", {1}, {2}).Op("1.relu", {2}, {3}).Op("1.square", {1}, {4});
  p.Op("1.assign_out_", {4, 2}, {5}).Op("1.relu", {2}, {6});
  p.Fetch(3, "before").Fetch(6, "behind");
  EXPECT_EQ(RunOn(p, F32({2}, {3, -1}), 0), (std::vector<float>{3, 0}));
  EXPECT_EQ(RunOn(p, F32({2}, {3, -1}), 1), (std::vector<float>{9, 1}));
}

// The mask and the value are broadcast, as is x.
TEST(Pir, MaskedElementsAreFilled) {
  for (const std::string name : {"1.masked_fill", "1.masked_fill_"}) {
    PirText p;
    p.Data(1, "x").Full(2, 0).Op("1.greater_than", {1, 2}, {3}, "", PirText::Type("bool", "[-1]"));
    p.Full(4, -7.5).Op(name, {1, 3, 4}, {5}).Fetch(5, "y");
    EXPECT_EQ(RunOn(p, F32({4}, {1, -2, 0, 3})), (std::vector<float>{-7.5, -2, 0, -7.5})) << name;
  }
}

TEST(Pir, ListsDissolve) {
  PirText p;
  p.Data(1, "x").Op("1.square", {1}, {2}).Full(3, 0, "int32", "i32");
  p.Op("0.combine", {1, 2, 1}, {4}, "",
       R"({"#":"0.t_vec","D":[)" + PirText::Type("f32", "[-1]") + "]}");
  p.Op("1.concat", {4, 3}, {5}).Fetch(5, "y");
  EXPECT_EQ(RunOn(p, F32({2}, {3, -1})), (std::vector<float>{3, -1, 9, 1, 3, -1}));
}

// Both carried values change places in each step.
TEST(Pir, LoopsCarryAllValuesAtOnce) {
  const std::string i64 = PirText::Type("i64", "[1]"), flag = PirText::Type("bool", "[1]");
  PirText body;
  body.Full(20, 1).Op(
      "1.scale", {-1, 20}, {21},
      PirText::Attr("bias", "0.a_f64", "1.0") + "," + PirText::Flag("bias_after_scale", true));
  body.Op("1.less_than", {21, 3}, {22}, "", flag);
  body.Op("2.yield", {22, 21, -3, -2}, {});
  PirText p;
  p.Data(1, "x").Full(2, 0).Full(3, 3).Op("1.square", {1}, {4});
  p.Op("1.less_than", {2, 3}, {5}, "", flag);
  p.Op("1.while", {5, 2, 1, 4}, {6, 7, 8}, "", PirText::Type("f32", "[-1]"),
       {body.Block({-1, -2, -3})});
  p.Fetch(7, "a").Fetch(8, "b").Op("1.relu", {1}, {9}).Fetch(9, "c");
  EXPECT_EQ(RunOn(p, F32({2}, {3, -2}), 0), (std::vector<float>{9, 4}));  // after three steps
  EXPECT_EQ(RunOn(p, F32({2}, {3, -2}), 1), (std::vector<float>{3, -2}));
  EXPECT_EQ(RunOn(p, F32({2}, {3, -2}), 2), (std::vector<float>{3, 0}));  // what was fed stays
}

// Converted programs write a loop's condition in place: the loop carries it where it is, unless
// somebody reads it behind the loop.
TEST(Pir, AConditionThatIsWrittenInPlaceIsNotCopied) {
  const std::string i64 = PirText::Type("i64", "[1]"), flag = PirText::Type("bool", "[1]");
  const auto counting = [&](bool in_place, bool read_behind) {
    PirText body;
    body.Full(20, 1).Op(
        "1.scale", {-1, 20}, {21},
        PirText::Attr("bias", "0.a_f64", "1.0") + "," + PirText::Flag("bias_after_scale", true));
    body.Op("1.square", {-2}, {24}).Op("1.less_than", {21, 3}, {22}, "", flag);
    if (in_place) body.Op("1.assign_out_", {22, 5}, {23}, "", flag);
    body.Op("2.yield", {in_place ? 23 : 22, 21, 24}, {});
    PirText p;
    p.Data(1, "x").Full(2, 0).Full(3, 3).Op("1.less_than", {2, 3}, {5}, "", flag);
    p.Op("1.while", {5, 2, 1}, {6, 7}, "", PirText::Type("f32", "[-1]"), {body.Block({-1, -2})});
    if (read_behind) p.Op("1.logical_not", {5}, {8}, "", flag).Fetch(8, "ended");
    return p.Fetch(7, "y");
  };
  EXPECT_EQ(counting(true, false).TryBuild()->num_ops(),
            counting(false, false).TryBuild()->num_ops());
  for (const bool in_place : {false, true})
    EXPECT_EQ(RunOn(counting(in_place, false), F32({2}, {2, -1})), (std::vector<float>{256, 1}));
  EXPECT_EQ(RunOn(counting(true, true), F32({2}, {2, -1}), 1), (std::vector<float>{256, 1}));
}

// The body writes the operand, of which the argument keeps the value until the round ends.
TEST(Pir, AnArgumentKeepsItsValueForARound) {
  const std::string flag = PirText::Type("bool", "[1]");
  const std::string one_more =
      PirText::Attr("bias", "0.a_f64", "1.0") + "," + PirText::Flag("bias_after_scale", true);
  PirText body, p;
  body.Full(20, 1).Op("1.scale", {-1, 20}, {21}, one_more);
  body.Op("1.scale", {-2, 20}, {24}, one_more).Op("1.assign_out_", {24, 9}, {25});
  body.Op("1.square", {-2}, {26}).Op("1.less_than", {21, 3}, {22}, "", flag);
  body.Op("2.yield", {22, 21, 25, 26}, {});
  p.Data(1, "x").Full(2, 0).Full(3, 3).Op("1.square", {1}, {9}).Op("1.square", {1}, {10});
  p.Op("1.less_than", {2, 3}, {5}, "", flag);
  p.Op("1.while", {5, 2, 9, 10}, {6, 7, 8}, "", PirText::Type("f32", "[-1]"),
       {body.Block({-1, -2, -3})});
  p.Fetch(7, "next").Fetch(8, "y");
  EXPECT_EQ(RunOn(p, F32({2}, {2, -1}), 0), (std::vector<float>{7, 4}));
  EXPECT_EQ(RunOn(p, F32({2}, {2, -1}), 1), (std::vector<float>{36, 9}));
}

PirText Branches() {
  const std::string flag = PirText::Type("bool", "[]");
  PirText yes, no, p;
  yes.Op("1.square", {1}, {10}).Op("2.yield", {10, 1}, {});
  no.Op("1.relu", {1}, {11}).Op("2.yield", {11, 11}, {});
  p.Data(1, "x").Full(2, 0).Op("1.mean_all", {1}, {3}, "", PirText::Type("f32", "[]"));
  p.Op("1.greater_than", {3, 2}, {4}, "", flag);
  p.Op("1.if", {4}, {5, 6}, "", PirText::Type("f32", "[-1]"), {yes.Block(), no.Block()});
  return p.Fetch(5, "a").Fetch(6, "b");
}

TEST(Pir, BranchesAreTakenByTheCondition) {
  const PirText p = Branches();
  EXPECT_EQ(RunOn(p, F32({2}, {3, -1}), 0), (std::vector<float>{9, 1}));
  EXPECT_EQ(RunOn(p, F32({2}, {3, -1}), 1), (std::vector<float>{3, -1}));
  EXPECT_EQ(RunOn(p, F32({2}, {1, -3}), 0), (std::vector<float>{1, 0}));
  EXPECT_EQ(RunOn(p, F32({2}, {1, -3}), 1), (std::vector<float>{1, 0}));
}

// Last in, first out.
TEST(Pir, StacksGiveBackWhatWasPushedLast) {
  const std::string stack = R"({"#":"2.t_stack"})";
  PirText p;
  p.Data(1, "x").Op("1.square", {1}, {2}).Op("2.stack_create", {}, {3, 4, 5}, "", stack);
  p.Op("2.tuple_push", {4, 1, 2}, {}).Op("2.tuple_push", {4, 2, 1}, {});
  p.Op("2.tuple_pop", {5}, {6, 7}).Op("2.tuple_pop", {5}, {8, 9});
  p.Fetch(6, "a").Fetch(8, "b");
  EXPECT_EQ(RunOn(p, F32({2}, {3, -1}), 0), (std::vector<float>{9, 1}));
  EXPECT_EQ(RunOn(p, F32({2}, {3, -1}), 1), (std::vector<float>{3, -1}));
}

// A file of float16 serves a program of float32, and the folder is enough to name both.
TEST(Pir, ParametersMayBeStoredInHalfTheWidth) {
  TempDir dir;
  PirText p;
  p.Param(1, "w", "f32", "[2]").Data(2, "x").Op("1.add", {2, 1}, {3}).Fetch(3, "y");
  WriteAll(dir / "inference.json", p.File());
  Tensor half = Tensor::Empty(DType::kF16, {2});
  half.mutable_data<float16>()[0] = float16(0.5f);
  half.mutable_data<float16>()[1] = float16(-2.f);
  ASSERT_TRUE(WriteTensors(dir / "inference.pdiparams", {{"w", half}}).ok());
  const auto model = LoadModel(dir.path());
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  Executor executor({.threads = 1});
  const auto compiled = MustCompile(executor, model->program, model->scope);
  EXPECT_EQ(Floats(MustRun(executor, compiled, {{"x", F32({2}, {1, 1})}})[0]),
            (std::vector<float>{1.5, -1}));
}

TEST(Pir, ProgramsAreWrittenAndLetGoAsTheyWereRead) {
  const PirText p = Branches();
  const auto program = p.TryBuild();
  ASSERT_TRUE(program.ok()) << program.status().ToString();
  EXPECT_EQ(*program->Serialize(), p.File());
  const auto again = formats::Pack(program->ir())->Unpack();
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  EXPECT_EQ((*again)->hash, program->hash());
  EXPECT_EQ(Program(*again).num_ops(), program->num_ops());
}

// Every shared program is read.
TEST(Pir, SharedProgramsAreRead) {
  const std::string root = SharedDir() + "/pir";
  if (SharedDir().empty() || !std::filesystem::exists(root)) GTEST_SKIP() << "no " << root;
  int read = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    if (name != "inference.json" && name != "main.json" && name != "startup.json") continue;
    const auto program = Program::Load(entry.path().string());
    EXPECT_TRUE(program.ok()) << program.status().ToString();
    ++read;
  }
  EXPECT_GT(read, 50);
}

}  // namespace
}  // namespace heddle::testing
