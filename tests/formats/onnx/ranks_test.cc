// The reader takes no rank and no dtype for granted that a file does not tell.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/formats/onnx/onnx_runs.h"

namespace heddle::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<Shape> DeclaredShapes(const OnnxGraph& g) {
  const Model model = ModelOf(g.Model());
  std::vector<Shape> shapes;
  if (!model.program) return shapes;
  for (const TensorInfo& output : model.program.outputs()) shapes.push_back(output.shape);
  return shapes;
}

int CountOf(const Model& model, std::string_view type) {
  int count = 0;
  for (const auto& op : model.program.op_counts()) count += op.type == type ? op.count : 0;
  return count;
}

// A loop of m turns; the body makes the next value of each name from its present one.
struct LoopGraph {
  OnnxGraph body, all;
  LoopGraph(const std::vector<std::string>& names, const std::vector<std::string>& first) {
    body.In("i", 7, {}).In("c", 9, {});
    body.Add(Node("Identity", {"c"}, {"d"})).Out("d", 9, {});
    for (const std::string& name : names) body.In(name);
    std::vector<std::string> inputs = {"m", ""}, outputs;
    inputs.insert(inputs.end(), first.begin(), first.end());
    for (const std::string& name : names) outputs.push_back(name + "_last");
    inputs_ = inputs, outputs_ = outputs;
    all.In("m", 7, {});
  }
  OnnxGraph& Close() {
    return all.Add(Node("Loop", inputs_, outputs_, {GraphAttr("body", body.message())}));
  }

 private:
  std::vector<std::string> inputs_, outputs_;
};

// a gets a dimension in each turn, b keeps its rank.
OnnxGraph Growing() {
  LoopGraph loop({"a", "b"}, {"x", "x"});
  loop.body.Weight(Tensor64("0", {1}, {0}));
  loop.body.Add(Node("Unsqueeze", {"a", "0"}, {"a2"})).Add(Node("Relu", {"b"}, {"b2"}));
  loop.body.Out("a2").Out("b2");
  loop.all.In("x", 1, {-1, 2});
  OnnxGraph& g = loop.Close();
  return g.Add(Node("Flatten", {"a_last"}, {"y"}, {IntAttr("axis", -1)})).Out("a_last").Out("y");
}

TEST(OnnxRanks, AValueThatALoopMakesGrowHasNone) {
  EXPECT_EQ(DeclaredShapes(Growing())[0], Shape::Unknown());
  const Model model = ModelOf(Growing().Model());
  for (const int64_t turns : {0, 1, 3}) {
    const auto out = RunValuesOf(model, {{"m", I64({}, {turns})}, {"x", F32({1, 2}, {1, -2})}});
    EXPECT_EQ(out[0].tensor().rank(), 2 + turns);
    EXPECT_EQ(out[1].tensor().shape(), Shape({1, 2}));
  }
}

TEST(OnnxRanks, AValueThatALoopLeavesAsItIsKeepsItsOwn) {
  OnnxGraph g = Growing();
  g.Add(Node("Relu", {"b_last"}, {"r"})).Out("r");
  EXPECT_EQ(DeclaredShapes(g)[2].rank(), 2);
}

// b grows because a does, which is seen when the body is read for an a of any rank.
TEST(OnnxRanks, AValueThatGrowsMakesAnotherGrow) {
  LoopGraph loop({"b", "a"}, {"v", "v"});
  loop.body.Weight(Tensor64("0", {1}, {0}));
  loop.body.Add(Node("Add", {"b", "a"}, {"b2"})).Add(Node("Unsqueeze", {"a", "0"}, {"a2"}));
  loop.body.Out("b2").Out("a2");
  loop.all.In("v");
  OnnxGraph& g = loop.Close();
  g.Add(Node("Softmax", {"b_last"}, {"y"}, {IntAttr("axis", -1)})).Out("y").Out("b_last");
  EXPECT_EQ(DeclaredShapes(g)[1], Shape::Unknown());
  const auto out = RunValuesOf(ModelOf(g.Model()), {{"m", I64({}, {3})}, {"v", F32({2}, {0, 0})}});
  EXPECT_EQ(out[0].tensor().shape(), Shape({1, 1, 2}));
  EXPECT_THAT(Floats(out[0].tensor()), ElementsAre(0.5, 0.5));
}

// A body is read twice; what is unknown in it is there once.
TEST(OnnxRanks, WhatIsReadTwiceIsToldOnce) {
  LoopGraph loop({"a"}, {"v"});
  loop.body.Weight(Tensor64("0", {1}, {0}));
  loop.body.Add(Node("Unsqueeze", {"a", "0"}, {"a2"})).Add(Node("Frobnicate", {"a"}, {"f"}));
  loop.body.Out("a2");
  loop.all.In("v");
  OnnxGraph& unknown = loop.Close();
  const auto parsed = ParseModel(unknown.Out("a_last").Model(), "", "test.onnx");
  EXPECT_THAT(parsed.status().message(), HasSubstr("Frobnicate (1 time, "));
  LoopGraph bad({"a"}, {"v"});
  bad.body.Weight(Tensor64("0", {1}, {0}));
  bad.body.Add(Node("Unsqueeze", {"a", "0"}, {"a2"})).Add(Node("Relu", {"none"}, {"f"}));
  bad.body.Out("a2");
  bad.all.In("v");
  OnnxGraph& mistaken = bad.Close();
  const auto told = ParseModel(mistaken.Out("a_last").Model(), "", "test.onnx");
  EXPECT_THAT(told.status().message(), HasSubstr("input 'none' is made by no node"));
  EXPECT_THAT(told.status().message(), Not(HasSubstr("2 problems")));
}

// An operator that only the rank taken for granted does not suit is not missing.
TEST(OnnxRanks, WhatIsReadForAnotherRankIsForgotten) {
  LoopGraph loop({"a"}, {"v"});
  loop.body.Weight(Tensor64("0", {1}, {0}));
  loop.body.Add(Node("ReduceMax", {"a"}, {"r"}, {IntsAttr("axes", {0}), IntAttr("keepdims", 0)}));
  loop.body.Add(Node("Softmax", {"r"}, {"s"})).Add(Node("Unsqueeze", {"a", "0"}, {"a2"}));
  loop.body.Out("a2").Out("s");
  loop.all.In("v");
  OnnxGraph& g = loop.Close();
  EXPECT_TRUE(ParseModel(g.Out("a_last").Model(), "", "test.onnx").ok());
}

// Loops inside of each other, each of which grows, are read a few times each and not twice as often
// with every one.
TEST(OnnxRanks, GrowingLoopsLieInEachOther) {
  OnnxGraph inner;
  inner.Weight(Tensor64("0", {1}, {0}));
  inner.Add(Node("Unsqueeze", {"a0", "0"}, {"a0_last"}));
  for (int depth = 1; depth <= 24; ++depth) {
    const std::string now = "a" + std::to_string(depth), before = "a" + std::to_string(depth - 1);
    OnnxGraph body = inner;
    body.In("i" + std::to_string(depth), 7, {}).In("c" + std::to_string(depth), 9, {}).In(before);
    body.Add(Node("Identity", {"c" + std::to_string(depth)}, {"d" + std::to_string(depth)}));
    body.Out("d" + std::to_string(depth), 9, {}).Out(before + "_last");
    inner = OnnxGraph();
    inner.Add(Node("Loop", {"one", "", now}, {now + "_last"}, {GraphAttr("body", body.message())}));
  }
  inner.In("a24").Weight(Tensor64("one", {}, {1})).Out("a24_last");
  const auto out = RunValuesOf(ModelOf(inner.Model()), {{"a24", F32({1}, {5})}});
  EXPECT_EQ(out[0].tensor().shape(), Shape({1, 1}));
}

// The integers behind a value of unknown rank are integers.
TEST(OnnxRanks, CastsOfWhatIsNotKnownStay) {
  OnnxGraph g;
  g.In("raw").In("shape", 7, {-1}).Add(Node("Reshape", {"raw", "shape"}, {"x"}));
  g.Weight(TensorHead("w", 3, {2, 1}).Bytes(9, "\x01\x02"));
  g.Add(Node("DynamicQuantizeLinear", {"x"}, {"q", "s", "z"}));
  g.Add(Node("MatMulInteger", {"q", "w", "z"}, {"p"}));
  g.Add(Node("Cast", {"p"}, {"y"}, {IntAttr("to", 1)})).Out("y", 1, {});
  const Model model = ModelOf(g.Model());
  EXPECT_EQ(CountOf(model, "cast"), 1);
  const auto out =
      RunValuesOf(model, {{"raw", F32({4}, {0, 51, 102, 255})}, {"shape", I64({3}, {1, 2, 2})}});
  EXPECT_EQ(out[0].tensor().shape(), Shape({1, 2, 1}));
  EXPECT_THAT(Floats(out[0].tensor()), ElementsAre(102, 612));
}

// The length of a shape that is fed is the rank of what it makes.
TEST(OnnxRanks, AFedShapeTellsNone) {
  OnnxGraph g;
  g.In("raw").In("shape", 7, {-1}).Add(Node("Reshape", {"raw", "shape"}, {"x"})).Out("x");
  g.Add(Node("Transpose", {"x"}, {"t"})).Add(Node("GlobalMaxPool", {"t"}, {"y"})).Out("y");
  EXPECT_EQ(DeclaredShapes(g)[0], Shape::Unknown());
  const auto out = RunValuesOf(
      ModelOf(g.Model()), {{"raw", F32({6}, {1, 2, 3, 4, 5, 6})}, {"shape", I64({3}, {2, 1, 3})}});
  EXPECT_EQ(out[1].tensor().shape(), Shape({3, 1, 1}));
  EXPECT_THAT(Floats(out[1].tensor()), ElementsAre(4, 5, 6));
}

// Forms with a number as a vector of one element make a vector of a scalar.
TEST(OnnxRanks, AScalarTimesAVectorIsAVector) {
  OnnxGraph g;
  g.In("x", 1, {}).Weight(Tensor32("b", {1}, {2}));
  g.Add(Node("Mul", {"x", "b"}, {"p"})).Add(Node("Sigmoid", {"p"}, {"s"}));
  g.Add(Node("Mul", {"x", "s"}, {"y"})).Out("y");
  const auto out = RunValuesOf(ModelOf(g.Model()), {{"x", F32({}, {1})}});
  EXPECT_EQ(out[0].tensor().shape(), Shape({1}));
  EXPECT_THAT(Floats(out[0].tensor()), ElementsAre(FloatNear(0.8807971, 1e-6)));
}

// A last dimension of 1 is broadcast to the scale.
TEST(OnnxRanks, ANormalisationThatIsBroadcastIsNone) {
  OnnxGraph g;
  g.In("x", 1, {-1, -1}).Weight(Tensor32("e", {}, {1})).Weight(Tensor32("w", {3}, {1, 2, 3}));
  const Message last = IntsAttr("axes", {-1});
  g.Add(Node("ReduceMean", {"x"}, {"m"}, {last})).Add(Node("Sub", {"x", "m"}, {"d"}));
  g.Add(Node("Mul", {"d", "d"}, {"q"})).Add(Node("ReduceMean", {"q"}, {"v"}, {last}));
  g.Add(Node("Add", {"v", "e"}, {"a"})).Add(Node("Sqrt", {"a"}, {"r"}));
  g.Add(Node("Div", {"d", "r"}, {"n"})).Add(Node("Mul", {"n", "w"}, {"y"})).Out("y", 1, {-1, -1});
  const Model model = ModelOf(g.Model());
  const auto out = RunValuesOf(model, {{"x", F32({2, 1}, {5, 7})}});
  EXPECT_EQ(out[0].tensor().shape(), Shape({2, 3}));
}

}  // namespace
}  // namespace heddle::testing
