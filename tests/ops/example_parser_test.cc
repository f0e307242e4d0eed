#include "tests/ops/example_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <filesystem>

#include "tests/ops/compare.h"
#include "tests/ops/example_files.h"
#include "tests/support/files.h"

namespace heddle::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::SizeIs;

std::vector<Example> MustParse(const std::string& text) {
  auto examples = ParseExamples("an_op", text, "a.cc", 10);
  EXPECT_TRUE(examples.ok()) << examples.status().ToString();
  return examples.ok() ? *std::move(examples) : std::vector<Example>();
}

std::string ErrorOf(const std::string& text) {
  const auto examples = ParseExamples("an_op", text, "a.cc", 10);
  return examples.ok() ? "" : examples.status().message();
}

Tensor InputOf(const std::string& tensor) {
  const auto examples = MustParse("example x\nin X " + tensor + "\nout Out ?\n");
  return examples.empty() ? Tensor() : examples[0].inputs.at(0).value.tensor();
}

template <typename T>
std::vector<T> Elements(const Tensor& t) {
  return std::vector<T>(t.data<T>(), t.data<T>() + t.numel());
}

TEST(ExampleParser, ReadsOperandsAndOutputs) {
  const auto examples = MustParse(
      "\n"
      "# says nothing\n"
      "example the first one\n"
      "in X float32 [2, 3] 1 -2.5 1e-07\n"
      "  0*3\n"
      "in X float32 [] 4\n"
      "in W int64 [2] param 5 6\n"
      "out Out float32 [2] 1 2\n"
      "out WOut=W.1 int64 [2] ?\n"
      "out XShape ?\n"
      "example another\n"
      "close 1e-3 0.5\n"
      "out Out bool [1] 1\n");
  ASSERT_THAT(examples, SizeIs(2));
  const Example& e = examples[0];
  EXPECT_EQ(e.op, "an_op");
  EXPECT_EQ(e.title, "the first one");
  EXPECT_EQ(e.file, "a.cc");
  EXPECT_EQ(e.line, 12);
  ASSERT_THAT(e.inputs, SizeIs(3));
  EXPECT_THAT(Elements<float>(e.inputs[0].value.tensor()), ElementsAre(1, -2.5f, 1e-7f, 0, 0, 0));
  EXPECT_EQ(e.inputs[1].value.tensor().shape(), Shape{});
  EXPECT_FALSE(e.inputs[0].param);
  EXPECT_TRUE(e.inputs[2].param);
  ASSERT_THAT(e.outputs, SizeIs(3));
  EXPECT_EQ(e.outputs[0].check, Check::kValues);
  EXPECT_EQ(e.outputs[1].slot, "WOut");
  EXPECT_EQ(e.outputs[1].same_as, "W");
  EXPECT_EQ(e.outputs[1].same_index, 1);
  EXPECT_EQ(e.outputs[1].check, Check::kMeta);
  EXPECT_EQ(e.outputs[2].check, Check::kNothing);
  EXPECT_FALSE(e.close.has_value());
  ASSERT_TRUE(examples[1].close.has_value());
  EXPECT_EQ(examples[1].close->atol, 0.5);
}

TEST(ExampleParser, ReadsEveryDType) {
  EXPECT_THAT(Elements<bool>(InputOf("bool [2] 1 0")), ElementsAre(true, false));
  EXPECT_THAT(Elements<int8_t>(InputOf("int8 [2] -128 127")), ElementsAre(-128, 127));
  EXPECT_THAT(Elements<int64_t>(InputOf("int64 [1] 9007199254740993")),
              ElementsAre(9007199254740993));
  EXPECT_THAT(Elements<double>(InputOf("float64 [2] 0.1 -inf")), ElementsAre(0.1, -INFINITY));
  EXPECT_TRUE(std::isnan(InputOf("float32 [1] nan").data<float>()[0]));
  EXPECT_EQ(ElementAt(InputOf("float16 [1] 0.5"), 0).real(), 0.5);
  EXPECT_EQ(ElementAt(InputOf("bfloat16 [1] -3"), 0).real(), -3);
  using C = std::complex<double>;
  EXPECT_THAT(Elements<C>(InputOf("complex128 [4] 1.5-2j 3 1e-3+2e2j -1j*1")),
              ElementsAre(C(1.5, -2), C(3, 0), C(1e-3, 2e2), C(0, -1)));
}

TEST(ExampleParser, ReadsSequencesRowsAndArrays) {
  EXPECT_EQ(InputOf("float32 [3] lod [[0, 2, 2], [0, 1, 3]] 1 2 3").lod(),
            (LoD{{0, 2, 2}, {0, 1, 3}}));
  EXPECT_EQ(InputOf("float32 [0, 3] none").shape(), Shape({0, 3}));
  const auto examples = MustParse(
      "example x\n"
      "in G float32 [2, 1] rows [4, 1] height 6 1 2\n"
      "in A array 2\n"
      "item int32 [1] 7\n"
      "item int32 [0]\n"
      "out Out float32 [1] ?\n");
  ASSERT_THAT(examples, SizeIs(1));
  const Value &rows = examples[0].inputs[0].value, &array = examples[0].inputs[1].value;
  ASSERT_TRUE(rows.is_rows());
  EXPECT_THAT(rows.rows().rows, ElementsAre(4, 1));
  EXPECT_EQ(rows.rows().height, 6);
  ASSERT_TRUE(array.is_array());
  ASSERT_THAT(array.array(), SizeIs(2));
  EXPECT_EQ(array.array()[1].shape(), Shape({0}));
}

TEST(ExampleParser, ReadsAttributesOfTheFormatsTypes) {
  const auto examples = MustParse(
      "example x\n"
      "attr a INT -3\n"
      "attr b FLOATS [0.5, NaN, -Infinity]\n"
      "attr c STRING \"a \\\"b\\\" [\"\n"
      "attr d BOOLEANS [true, false]\n"
      "attr e STRINGS [\"x, y\", \"z\"]\n"
      "attr f SCALARS [1, 2.5]\n"
      "attr g FLOAT64 0.1\n"
      "attr h INTS []\n"
      "out Out float32 [0]\n");
  ASSERT_THAT(examples, SizeIs(1));
  const auto& attrs = examples[0].attrs;
  ASSERT_THAT(attrs, SizeIs(8));
  EXPECT_EQ(attrs[0].i(), -3);
  EXPECT_EQ(attrs[1].floats_size(), 3);
  EXPECT_EQ(attrs[1].floats(2), -INFINITY);
  EXPECT_EQ(attrs[2].s(), "a \"b\" [");
  EXPECT_EQ(attrs[3].bools_size(), 2);
  EXPECT_EQ(attrs[4].strings(0), "x, y");
  EXPECT_EQ(attrs[5].scalars(0).i(), 1);
  EXPECT_EQ(attrs[5].scalars(1).r(), 2.5);
  EXPECT_EQ(attrs[6].float64(), 0.1);
  EXPECT_EQ(attrs[7].ints_size(), 0);
}

TEST(ExampleParser, ReadsStatisticsSeedsAndReasons) {
  const auto examples = MustParse(
      "example x\n"
      "random\n"
      "seed 7\n"
      "gradient none: not smooth here\n"
      "dtypes none: any order is right\n"
      "out Out float32 [64] mean 0 0.1 var 1 0.2 range -6 6 count 3\n");
  ASSERT_THAT(examples, SizeIs(1));
  EXPECT_TRUE(examples[0].random);
  EXPECT_EQ(examples[0].seed, 7u);
  EXPECT_EQ(examples[0].no_gradient, "not smooth here");
  EXPECT_EQ(examples[0].no_dtypes, "any order is right");
  const Statistics& s = examples[0].outputs[0].statistics;
  EXPECT_EQ(examples[0].outputs[0].check, Check::kStatistics);
  EXPECT_EQ(s.variance, std::pair(1.0, 0.2));
  EXPECT_EQ(s.range, std::pair(-6.0, 6.0));
  EXPECT_EQ(s.distinct, 3);
}

TEST(ExampleParser, ReadsWhatOfTheGradientsIsCompared) {
  const auto examples = MustParse(
      "example x\n"
      "gradient none of A B: they are counts\n"
      "dtypes real: another function\n"
      "out Out ?\n"
      "example y\n"
      "gradient symmetric: one triangle is read\n"
      "out Out ?\n");
  ASSERT_THAT(examples, SizeIs(2));
  EXPECT_THAT(examples[0].no_gradient_slots, ElementsAre("A", "B"));
  EXPECT_EQ(examples[0].no_gradient, "they are counts");
  EXPECT_EQ(examples[0].no_complex, "another function");
  EXPECT_EQ(examples[0].no_dtypes, "");
  EXPECT_EQ(examples[1].symmetric, "one triangle is read");
  EXPECT_EQ(examples[1].no_gradient, "");
}

TEST(ExampleParser, LeavesPaddlesOperatorsOut) {
  const auto examples = MustParse(
      "example x\n"
      "attr own INT 1\n"
      "from relu X=X -> Out=Out\n"
      "attr paddles INT 2\n"
      "out Out float32 [0]\n"
      "example y\n"
      "attr own INT 1\n"
      "out Out float32 [0]\n");
  ASSERT_THAT(examples, SizeIs(2));
  EXPECT_THAT(examples[0].attrs, SizeIs(1));
  EXPECT_THAT(examples[1].attrs, SizeIs(1));
}

TEST(ExampleParser, ReadsPrograms) {
  const auto examples = MustParse(
      "example x\n"
      "in i float32 [1] 0\n"
      "var scopes step_scopes\n"
      "op while X=i,n Condition=go -> Out=i,go StepScopes=scopes\n"
      "attr sub_block BLOCK 1\n"
      "out i float32 [1] 3\n"
      "block 1 0\n"
      "op increment X=i -> Out=i\n"
      "block 2 0 1\n");
  ASSERT_THAT(examples, SizeIs(1));
  const Example& e = examples[0];
  ASSERT_THAT(e.program, SizeIs(2));
  EXPECT_THAT(e.program[0].inputs[0].second, ElementsAre("i", "n"));
  EXPECT_THAT(e.program[0].outputs, SizeIs(2));
  EXPECT_EQ(e.program[0].attrs.at(0).block_idx(), 1);
  EXPECT_EQ(e.program[1].block, 1);
  EXPECT_THAT(e.block_parents, ElementsAre(-1, 0, 0));
  EXPECT_THAT(e.forward_blocks, ElementsAre(-1, -1, 1));
}

TEST(ExampleParser, AnOperatorBehindPaddlesHasItsAttributes) {
  const auto examples = MustParse(
      "example x\n"
      "from relu X=X -> Out=y\n"
      "attr paddles INT 2\n"
      "op call X=x -> Out=y\n"
      "attr sub_block BLOCK 1\n"
      "out y ?\n"
      "block 1 0\n");
  ASSERT_THAT(examples, SizeIs(1));
  ASSERT_THAT(examples[0].program, SizeIs(1));
  EXPECT_THAT(examples[0].program[0].attrs, SizeIs(1));
}

TEST(ExampleParser, ErrorsNameTheLine) {
  EXPECT_EQ(ErrorOf("in X float32 [1] 1\n"), "a.cc:10: expected 'example', not 'in'");
  const std::string begin = "example x\n";
  EXPECT_EQ(ErrorOf(begin + "out Out float32 [2] 1\n"), "a.cc:11: 1 values, the shape [2] has 2");
  EXPECT_THAT(ErrorOf(begin + "out Out float32 [1] 1 2\n"), HasSubstr("a.cc:11: more values"));
  EXPECT_THAT(ErrorOf(begin + "out Out float33 [1] 1\n"), HasSubstr("'float33' is not a dtype"));
  EXPECT_THAT(ErrorOf(begin + "out Out float32 [1] 1x\n"), HasSubstr("'1x' is not a number"));
  EXPECT_THAT(ErrorOf(begin + "out Out int8 [1] 128\n"), HasSubstr("range"));
  EXPECT_THAT(ErrorOf(begin + "out Out bool [1] 2\n"), HasSubstr("'2' is not 0 or 1"));
  EXPECT_THAT(ErrorOf(begin + "attr a INTEGER 1\n"), HasSubstr("attribute type"));
  EXPECT_THAT(ErrorOf(begin + "shout Out\n"), HasSubstr("unknown statement 'shout'"));
  EXPECT_THAT(ErrorOf(begin + "gradient none\n"), HasSubstr("expected 'none:' or 'none of'"));
  EXPECT_THAT(ErrorOf(begin + "gradient none of A\n"), HasSubstr("operand"));
  EXPECT_THAT(ErrorOf(begin + "gradient symmetric:\n"), HasSubstr("a reason is missing"));
  EXPECT_THAT(ErrorOf(begin + "dtypes some: x\n"), HasSubstr("expected 'none:' or 'real:'"));
  EXPECT_THAT(ErrorOf(begin), HasSubstr("no 'out' line"));
  EXPECT_THAT(ErrorOf(begin + "in A array 1\nout Out ?\n"), HasSubstr("lacks an 'item'"));
  EXPECT_THAT(ErrorOf(begin + "out Out ?\n" + begin), HasSubstr("there is an example 'x'"));
  EXPECT_THAT(ErrorOf(begin + "out Out ? x\n"), HasSubstr("'x' is left over"));
}

class ExampleFiles : public ::testing::Test {
 protected:
  void Write(const std::string& file, const std::string& text) {
    const std::filesystem::path path = dir_ / file;
    std::filesystem::create_directories(path.parent_path());
    WriteAll(path, text);
  }
  TempDir dir_;
};

TEST_F(ExampleFiles, BelongToTheSourceFileOfTheirOperator) {
  Write("activation/relu.txt", "example one\nout Out ?\n");
  Write("activation/relu_grad.txt", "# a word\n\nexample two\nout X@GRAD ?\n");
  const auto files = ReadExampleFiles(dir_.path());
  const ExampleFile& relu = files.at("activation/relu");
  EXPECT_THAT(relu.operators, IsSupersetOf({"relu", "relu_grad"}));
  EXPECT_THAT(relu.errors, IsEmpty());
  ASSERT_THAT(relu.examples, SizeIs(2));
  EXPECT_EQ(relu.examples[0].op, "relu");
  EXPECT_EQ(relu.examples[1].op, "relu_grad");
  EXPECT_EQ(relu.examples[1].line, 3);
  EXPECT_THAT(files.at("activation/elu").examples, IsEmpty());
}

TEST_F(ExampleFiles, OnesOfNoOperatorAndOfAnotherFamilySayWhatIsWrong) {
  Write("activation/reul.txt", "example one\nout Out ?\n");
  Write("math/relu.txt", "example one\nout Out ?\n");
  Write("activation/elu.txt", "sample one\n");
  const auto files = ReadExampleFiles(dir_.path());
  EXPECT_THAT(files.at("activation/reul").errors,
              ElementsAre(HasSubstr("reul.txt:1: a file here")));
  EXPECT_THAT(files.at("activation/relu").errors,
              ElementsAre(HasSubstr("relu.txt:1: the operator is defined in kernels/activation")));
  EXPECT_THAT(files.at("activation/elu").errors,
              ElementsAre(HasSubstr("elu.txt:1: expected 'example', not 'sample'")));
}

}  // namespace
}  // namespace heddle::testing
