// Programs made by hand: what they compute, what is known of their shapes, and what is refused.
#include "heddle/program_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "heddle/bounds.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using Builder = heddle::ProgramBuilder;
using ::testing::AllOf;
using ::testing::HasSubstr;

template <typename T>
T Must(Result<T> result) {
  EXPECT_TRUE(result.ok()) << result.status().ToString();
  return result.ok() ? *std::move(result) : T();
}
void Must(const Status& status) { ASSERT_TRUE(status.ok()) << status.ToString(); }

std::string ShapeOf(const Builder& b, Variable v) { return Must(b.Info(v)).shape.ToString(); }

std::vector<Tensor> RunOnce(const Model& model, const std::vector<heddle::Feed>& feeds) {
  Executor executor({.threads = 1});
  return MustRun(executor, MustCompile(executor, model.program, model.scope), feeds);
}

Tensor Counting(const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7) - 3;
  return F32(shape, values);
}

TEST(Builder, ComputesWhatAFileComputes) {
  Builder b("mlp");
  const Variable x = Must(b.Feed("x", DType::kF32, {-1, 3}));
  const Variable w = Must(b.Parameter("w", Counting({3, 4})));
  const Variable bias = Must(b.Parameter("bias", F32({4}, {1, 2, 3, 4})));
  Variable y = Must(b.Apply("matmul_v2", {{"X", {x}}, {"Y", {w}}}));
  y = Must(b.Apply("elementwise_add", {{"X", {y}}, {"Y", {bias}}}));
  y = Must(
      b.Apply("softmax", {{"X", {y}}}, {{"axis", -1}}, {{"Out", std::vector{std::string("y")}}}));
  EXPECT_EQ(ShapeOf(b, y), "[?, 4]");
  EXPECT_EQ(Must(b.Info(y)).name, "y");
  EXPECT_EQ(Must(b.Info(y)).dtype, DType::kF32);
  Must(b.Fetch(y));
  const Model model = Must(std::move(b).Finish());
  EXPECT_EQ(model.program.inputs()[0].shape, Shape({-1, 3}));
  EXPECT_EQ(model.program.persistables().size(), 2u);

  ProgramBuilder file;
  file.Feed("x", DType::kF32, {-1, 3});
  file.Param("w", DType::kF32, {3, 4}).Param("bias", DType::kF32, {4});
  file.Op("matmul_v2", {{"X", {"x"}}, {"Y", {"w"}}}, {{"Out", {"a"}}});
  file.Op("elementwise_add", {{"X", {"a"}}, {"Y", {"bias"}}}, {{"Out", {"s"}}});
  file.Op("softmax", {{"X", {"s"}}}, {{"Out", {"y"}}}, {{"axis", int64_t{-1}}});
  file.Fetch("y");
  const std::vector<heddle::Feed> feeds = {{"x", Counting({2, 3})}};
  const auto ours = RunOnce(model, feeds);
  const auto theirs = RunOnce({file.Build(), model.scope}, feeds);
  EXPECT_TRUE(SameBits(Value(ours[0]), Value(theirs[0])));
  // Written and read, it is the same program.
  const Program again = Must(Program::Parse(Must(model.program.Serialize()), "again"));
  EXPECT_TRUE(SameBits(Value(RunOnce({again, model.scope}, feeds)[0]), Value(ours[0])));
}

// The shapes that are known while building are those of a run.
TEST(Builder, ShapesWithOpenDimensions) {
  Builder b;
  const Variable image = Must(b.Feed("image", DType::kF32, {-1, 3, -1, -1}));
  const Variable filter = Must(b.Parameter("filter", Counting({8, 3, 3, 3})));
  const std::vector<int64_t> two = {2, 2}, one = {1, 1};
  const Variable conv = Must(b.Apply("conv2d", {{"Input", {image}}, {"Filter", {filter}}},
                                     {{"strides", two}, {"paddings", one}}));
  EXPECT_EQ(ShapeOf(b, conv), "[?, 8, ?, ?]");
  const Variable flat = Must(
      b.Apply("flatten_contiguous_range", {{"X", {conv}}}, {{"start_axis", 2}, {"stop_axis", 3}}));
  EXPECT_EQ(ShapeOf(b, flat), "[?, 8, ?]");
  const Variable mean =
      Must(b.Apply("reduce_mean", {{"X", {flat}}}, {{"dim", std::vector<int64_t>{2}}}));
  EXPECT_EQ(ShapeOf(b, mean), "[?, 8]");
  const auto parts = Must(b.Add("split", {{"X", {mean}}}, {{"axis", 1}, {"num", 2}}, {{"Out", 2}}));
  EXPECT_EQ(ShapeOf(b, parts[0].second[1]), "[?, 4]");
  // Right for an input of five rows only.
  const Variable five = Must(b.Parameter("five", Counting({5, 4})));
  const Variable sum =
      Must(b.Apply("elementwise_add", {{"X", {parts[0].second[1]}}, {"Y", {five}}}));
  EXPECT_EQ(Must(b.Info(sum)).dtype, DType::kF32);
  EXPECT_FALSE(Must(b.Info(sum)).shape.known_rank());
  Must(b.Declare(sum, DType::kF32, {5, 4}));
  EXPECT_EQ(ShapeOf(b, sum), "[5, 4]");
  Must(b.Fetch(sum));
  const Model model = Must(std::move(b).Finish());
  const auto out = RunOnce(model, {{"image", Counting({5, 3, 6, 8})}});
  EXPECT_EQ(out[0].shape(), Shape({5, 4}));
}

TEST(Builder, ALoopThatAdds) {
  Builder b;
  const Variable x = Must(b.Feed("x", DType::kF32, {1, 2}));
  const Variable n = Must(b.Parameter("n", I64({1}, {3})));
  const Variable step =
      Must(b.Apply("fill_constant", {},
                   {{"shape", std::vector<int64_t>{1}}, {"dtype", DType::kI64}, {"value", 0.0}}));
  const Variable rows = Must(b.Apply("assign", {{"X", {x}}}));
  const Variable more = Must(b.Apply("less_than", {{"X", {step}}, {"Y", {n}}}));
  EXPECT_EQ(ShapeOf(b, rows), "[1, 2]");
  Must(b.BeginWhile(more));
  const Variable longer = Must(b.Apply("concat", {{"X", {rows, x}}}, {{"axis", 0}}));
  EXPECT_EQ(ShapeOf(b, longer), "[2, 2]");
  const Variable doubled = Must(b.Apply("scale", {{"X", {rows}}}, {{"scale", 2.0}}));
  Must(b.Assign(longer, rows));
  Must(b.Add("increment", {{"X", {step}}}, {{"step", 1.0}}, {{"Out", std::vector{step}}}).status());
  Must(b.Add("less_than", {{"X", {step}}, {"Y", {n}}}, {}, {{"Out", std::vector{more}}}).status());
  Must(b.EndBlock());
  // The second step has more rows than the first.
  EXPECT_EQ(ShapeOf(b, rows), "[?, 2]");
  EXPECT_THAT(b.Apply("relu", {{"X", {doubled}}}).status().ToString(),
              HasSubstr("was made in a block that has ended"));
  Must(b.Fetch(rows));
  const Model model = Must(std::move(b).Finish());
  EXPECT_EQ(model.program.num_blocks(), 2);
  EXPECT_EQ(RunOnce(model, {{"x", F32({1, 2}, {1, 2})}})[0].shape(), Shape({4, 2}));
  const Program again = Must(Program::Parse(Must(model.program.Serialize()), "again"));
  EXPECT_EQ(RunOnce({again, model.scope}, {{"x", F32({1, 2}, {1, 2})}})[0].shape(), Shape({4, 2}));
}

// Shapes are unknown if those of a later step fit for some sizes only, or have another rank.
TEST(Builder, ALoopWhoseSecondStepIsAnother) {
  Builder b;
  const Variable x = Must(b.Feed("x", DType::kF32, {2, 2}));
  const Variable more = Must(b.Feed("more", DType::kBool, {1}));
  const Variable w = Must(b.Parameter("w", Counting({2, 4})));
  const Variable two = Must(b.Parameter("two", Counting({2, 2})));
  const Variable rows = Must(b.Apply("assign", {{"X", {x}}}));
  const Variable deep = Must(b.Apply("assign", {{"X", {x}}}));
  Must(b.BeginWhile(more));
  Must(b.Assign(Must(b.Apply("matmul_v2", {{"X", {rows}}, {"Y", {w}}})), rows));
  const Variable product = Must(b.Apply("matmul_v2", {{"X", {deep}}, {"Y", {two}}}));
  const std::vector<int64_t> first = {0};
  Must(b.Assign(Must(b.Apply("unsqueeze2", {{"X", {product}}}, {{"axes", first}})), deep));
  EXPECT_EQ(ShapeOf(b, rows), "[2, 4]");
  EXPECT_EQ(ShapeOf(b, deep), "[1, 2, 2]");
  Must(b.EndBlock());
  for (const Variable v : {rows, deep}) {
    EXPECT_FALSE(Must(b.Info(v)).shape.known_rank());
    EXPECT_EQ(Must(b.Info(v)).dtype, DType::kF32);
  }
}

// A counter of each loop begins anew in each turn of the loop around it, so that every level is
// looked at again. If each look at one were two at what is inside it, forty levels would be 10^12.
TEST(Builder, LoopsInLoops) {
  for (const int levels : {1, 2, 40, kMostNestedBlocks + 1}) {
    Builder b;
    const Variable x = Must(b.Feed("x", DType::kF32, {2}));
    const Variable sum = Must(b.Apply("assign", {{"X", {x}}}));
    const auto number = [&](double value) {
      return Must(
          b.Apply("fill_constant", {},
                  {{"shape", std::vector<int64_t>{1}}, {"dtype", DType::kI64}, {"value", value}}));
    };
    Status begun = Status::Ok();
    std::vector<std::array<Variable, 3>> open;
    for (int level = 0; level < levels && begun.ok(); ++level) {
      const Variable turn = number(0), end = number(1);
      const Variable more = Must(b.Apply("less_than", {{"X", {turn}}, {"Y", {end}}}));
      begun = b.BeginWhile(more);
      if (begun.ok()) open.push_back({turn, end, more});
    }
    EXPECT_EQ(begun.ok(), levels <= kMostNestedBlocks);
    if (!begun.ok()) {
      EXPECT_THAT(begun.ToString(), HasSubstr("more than 200 levels of blocks in blocks"));
      EXPECT_EQ(open.size(), static_cast<size_t>(kMostNestedBlocks));
      break;
    }
    Must(b.Assign(Must(b.Apply("elementwise_add", {{"X", {sum}}, {"Y", {x}}})), sum));
    for (; !open.empty(); open.pop_back()) {
      const auto& [turn, end, more] = open.back();
      Must(b.Add("increment", {{"X", {turn}}}, {{"step", 1.0}}, {{"Out", std::vector{turn}}})
               .status());
      Must(b.Add("less_than", {{"X", {turn}}, {"Y", {end}}}, {}, {{"Out", std::vector{more}}})
               .status());
      Must(b.EndBlock());
    }
    EXPECT_EQ(ShapeOf(b, sum), "[2]");
    Must(b.Fetch(sum));
    const Model model = Must(std::move(b).Finish());
    EXPECT_EQ(Floats(RunOnce(model, {{"x", F32({2}, {1, 2})}})[0]), (std::vector<float>{2, 4}));
  }
}

// A parameter is no constant for the operators of a loop that writes to it.
TEST(Builder, ALoopThatChangesAShape) {
  Builder b;
  const Variable x = Must(b.Feed("x", DType::kF32, {2, 3}));
  const Variable more = Must(b.Feed("more", DType::kBool, {1}));
  const Variable dims = Must(b.Parameter("dims", I64({2}, {6, 1})));
  const Variable other = Must(b.Parameter("other", I64({2}, {1, 6})));
  const Variable y =
      Must(b.Apply("fill_constant", {}, {{"shape", std::vector<int64_t>{6, 1}}, {"value", 0.0}}));
  Must(b.BeginWhile(more));
  const Variable shaped = Must(b.Apply("reshape2", {{"X", {x}}, {"Shape", {dims}}}));
  EXPECT_EQ(ShapeOf(b, shaped), "[6, 1]");
  Must(b.Assign(shaped, y));
  Must(b.Assign(other, dims));
  Must(b.EndBlock());
  EXPECT_FALSE(Must(b.Info(y)).shape.known_rank());
}

// Names of ours are none that the caller gives in the same call.
TEST(Builder, FreshNamesAreFresh) {
  Builder b;
  const Variable x = Must(b.Feed("x", DType::kF32, {4}));
  const std::vector<std::string> names = {"", "split_0"};
  const auto parts = Must(b.Add("split", {{"X", {x}}}, {{"num", 2}}, {{"Out", names}}));
  EXPECT_EQ(Must(b.Info(parts[0].second[0])).name, "split_1");
  EXPECT_EQ(Must(b.Info(parts[0].second[1])).name, "split_0");
}

TEST(Builder, VariablesOfAFinishedProgramAreRefused) {
  Builder b;
  std::vector<Variable> old;
  for (int i = 0; i < 4; ++i) {  // the memory of a program that is gone serves a later one
    old.push_back(Must(b.Feed("x", DType::kF32, {1})));
    Must(std::move(b).Finish());
  }
  Must(b.Feed("x", DType::kF32, {1}));
  for (const Variable v : old)
    EXPECT_THAT(b.Info(v).status().message(), HasSubstr("a variable of another program"));
}

TEST(Builder, TheLastDeclarationHolds) {
  Builder b;
  const Variable array = Must(b.Array("items", DType::kF32));
  const Variable at = Must(b.Parameter("at", I64({1}, {0})));
  const Variable item = Must(b.Apply("read_from_array", {{"X", {array}}, {"I", {at}}}));
  Must(b.Declare(item, DType::kF32, {-1, 4}));
  Must(b.Declare(item, DType::kF32, {3, 4}));
  EXPECT_EQ(ShapeOf(b, item), "[3, 4]");
}

TEST(Builder, ABranch) {
  Builder b;
  const Variable x = Must(b.Feed("x", DType::kF32, {-1}));
  const Variable yes = Must(b.Feed("yes", DType::kBool, {1}));
  const Variable y = Must(b.Apply("assign", {{"X", {x}}}));
  Must(b.BeginIf(yes));
  Must(b.Assign(Must(b.Apply("scale", {{"X", {x}}}, {{"scale", -1.0}})), y));
  Must(b.EndBlock());
  EXPECT_EQ(ShapeOf(b, y), "[?]");
  Must(b.Fetch(y));
  const Model model = Must(std::move(b).Finish());
  for (const bool taken : {true, false}) {
    const auto out = RunOnce(model, {{"x", F32({2}, {1, 2})}, {"yes", Bool(taken)}});
    EXPECT_EQ(Floats(out[0]), taken ? (std::vector<float>{-1, -2}) : (std::vector<float>{1, 2}));
  }
}

TEST(Builder, TrainsWhatItWritesTo) {
  Builder b;
  const Variable gradient = Must(b.Feed("gradient", DType::kF32, {2}));
  const Variable w = Must(b.Parameter("w", F32({2}, {1, 1})));
  const Variable rate = Must(b.Parameter("rate", F32({1}, {0.5f})));
  Must(b.Add("sgd", {{"Param", {w}}, {"Grad", {gradient}}, {"LearningRate", {rate}}}, {},
             {{"ParamOut", std::vector{w}}})
           .status());
  const Model model = Must(std::move(b).Finish());
  Executor executor({.threads = 1});
  CompileOptions options;
  options.fetches = {"w"};
  const auto compiled = MustCompile(executor, model.program, model.scope, options);
  for (int i = 0; i < 2; ++i) MustRun(executor, compiled, {{"gradient", F32({2}, {1, 2})}});
  EXPECT_EQ(Floats(model.scope->Find("w")->tensor()), (std::vector<float>{0, -1}));
}

// A call that fails names the operator and what was expected, and changes nothing.
class Refusals : public ::testing::Test {
 protected:
  Refusals() {
    x = Must(b.Feed("x", DType::kF32, {-1, 8}));
    w = Must(b.Parameter("w", Counting({9, 4})));
    ids = Must(b.Feed("ids", DType::kI64, {4}));
  }
  std::string Said(std::string_view type, const Operands& in, const Attributes& attributes = {},
                   const Targets& targets = {}) {
    const auto result = b.Add(type, in, attributes, targets);
    return result.ok() ? "OK" : result.status().ToString();
  }
  void TearDown() override {  // all of that left nothing behind
    Must(
        b.Fetch(Must(b.Apply("relu", {{"X", {x}}}, {}, {{"Out", std::vector{std::string("r")}}}))));
    EXPECT_EQ(Must(std::move(b).Finish()).program.num_ops(), 1);
  }
  Builder b;
  Variable x, w, ids;
};

TEST_F(Refusals, Names) {
  EXPECT_EQ(Said("rellu", {{"X", {x}}}),
            "UNIMPLEMENTED: block 0, op 0 (rellu): heddle has no operator 'rellu'; did you mean "
            "'relu'?");
  EXPECT_EQ(Said("relu", {{"Y", {x}}}),
            "INVALID_ARGUMENT: block 0, op 0 (relu): has no input slot 'Y'; there is X");
  EXPECT_THAT(Said("relu", {{"X", {x}}}, {}, {{"Y", 1}}), HasSubstr("has no output slot 'Y'"));
  EXPECT_THAT(Said("scale", {{"X", {x}}}, {{"factor", 2.0}}),
              AllOf(HasSubstr("has no attribute 'factor'"), HasSubstr("bias")));
  EXPECT_THAT(Said("relu", {{"X", {x}}}, {}, {{"Out", std::vector{std::string("x")}}}),
              HasSubstr("variable 'x': there is one of this name"));
  EXPECT_THAT(Said("while", {}), HasSubstr("BeginWhile"));
  EXPECT_FALSE(b.Feed("x", DType::kF32, {1}).ok());
  EXPECT_FALSE(b.Feed("", DType::kF32, {1}).ok());
}

TEST_F(Refusals, Operands) {
  EXPECT_THAT(Said("matmul_v2", {{"X", {x}}}), HasSubstr("input slot 'Y' is required"));
  EXPECT_THAT(Said("relu", {{"X", {x, w}}}), HasSubstr("takes one variable, not 2"));
  EXPECT_THAT(Said("relu", {{"X", {x}}, {"X", {w}}}), HasSubstr("'X' is given twice"));
  EXPECT_THAT(Said("relu", {{"X", {Variable()}}}), HasSubstr("input slot 'X' is required"));
  Builder other;
  const Variable foreign = Must(other.Feed("x", DType::kF32, {1}));
  EXPECT_THAT(Said("relu", {{"X", {foreign}}}),
              HasSubstr("input slot 'X': a variable of another program"));
  EXPECT_THAT(Said("split", {{"X", {x}}}, {{"num", 2}, {"axis", 1}}),
              HasSubstr("output slot 'Out' takes a list: say how many"));
  EXPECT_THAT(Said("split", {{"X", {x}}}, {{"num", 2}, {"axis", 1}}, {{"Out", std::vector{x, x}}}),
              HasSubstr("two outputs are variable 'x'"));
  EXPECT_THAT(Said("relu", {{"X", {x}}}, {}, {{"Out", 2}}), HasSubstr("takes one variable, not 2"));
  EXPECT_THAT(Said("relu", {{"X", {x}}}, {}, {{"Out", -1}}), HasSubstr("cannot have -1 variables"));
}

TEST_F(Refusals, AttributesShapesAndDTypes) {
  EXPECT_THAT(Said("softmax", {{"X", {x}}}, {{"axis", 1.5}}),
              HasSubstr("attribute 'axis' is an int, not a float"));
  EXPECT_THAT(Said("softmax", {{"X", {x}}}, {{"axis", "last"}}),
              HasSubstr("is an int, not a text"));
  EXPECT_THAT(Said("softmax", {{"X", {x}}}, {{"axis", 1}, {"axis", 0}}),
              HasSubstr("attribute 'axis' is given twice"));
  EXPECT_THAT(Said("matmul_v2", {{"X", {x}}, {"Y", {w}}}),
              AllOf(HasSubstr("block 0, op 0 (matmul_v2): "), HasSubstr("8"), HasSubstr("9")));
  EXPECT_THAT(Said("softmax", {{"X", {ids}}}),
              AllOf(HasSubstr("UNIMPLEMENTED"), HasSubstr("has no kernel for int64")));
  EXPECT_THAT(Said("cast", {{"X", {x}}}, {{"in_dtype", DType::kF32}, {"out_dtype", DType::kI64}},
                   {{"Out", std::vector{x}}}),
              HasSubstr("variable 'x' is float32, and the operator makes int64"));
  const Variable array = Must(b.Array("items", DType::kF32));
  EXPECT_THAT(Said("relu", {{"X", {array}}}), HasSubstr("a tensor is expected"));
  EXPECT_THAT(b.BeginWhile(x).ToString(),
              AllOf(HasSubstr("(while)"), HasSubstr("one bool is expected")));
  EXPECT_THAT(b.EndBlock().ToString(), HasSubstr("no block to end"));
  EXPECT_THAT(b.Declare(x, DType::kF32, {1, 9}).ToString(), HasSubstr("has shape [?, 8]"));
  EXPECT_THAT(b.Declare(x, DType::kF32, {-2, 8}).ToString(), HasSubstr("-2 is no dimension"));
}

TEST(Builder, OpenBlocksAndPlaces) {
  Builder b;
  const Variable go = Must(b.Feed("go", DType::kBool, {1}));
  b.SetPlace("net.py:12");
  const auto failed = b.Apply("relu", {});
  EXPECT_EQ(failed.status().location()->call_stack, "    net.py:12\n");
  Must(b.BeginIf(go));
  EXPECT_THAT(std::move(b).Finish().status().ToString(),
              HasSubstr("1 blocks have begun and not ended"));
}

// Equal programs have equal hashes, whoever made them; others do not.
TEST(Builder, TheHashIsOfTheProgram) {
  const auto make = [](double factor, const char* name) {
    Builder b;
    const Variable x = Must(b.Feed("x", DType::kF32, {2}));
    Must(b.Fetch(Must(b.Apply("scale", {{"X", {x}}}, {{"scale", factor}},
                              {{"Out", std::vector{std::string(name)}}}))));
    return Must(std::move(b).Finish()).program.hash();
  };
  EXPECT_EQ(make(2, "y"), make(2, "y"));
  EXPECT_NE(make(2, "y"), make(3, "y"));
  EXPECT_NE(make(2, "y"), make(2, "z"));
}

}  // namespace
}  // namespace heddle::testing
