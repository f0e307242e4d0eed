// Ranks, shapes and element types that the reader does not know, and must not guess.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/tensorflow/types.h"
#include "formats/tensorflow/types/op_types.h"
#include "tests/formats/tensorflow/graph_bytes.h"

namespace heddle::testing::tf {
namespace {

using tensorflow::Attribute;
using tensorflow::DefinedType;
using tensorflow::TakesNarrowIndices;
using ::testing::ElementsAre;

constexpr int kI16 = 5, kI64 = 9, kVariant = 21;

Tensor Int(int32_t value) {
  Tensor t = Tensor::Empty(DType::kI32, {});
  *t.mutable_data<int32_t>() = value;
  return t;
}

// x, its rank added to it and one axis more, in each round.
void AddGrowingLoop(Graph* g) {
  AddLoop(g, {"x"}, "n");
  g->Add(IntsNode("axis", {}, {0}, {"^body_i"}));
  g->Add("Rank", "rank", {"body_0"}, {{"T", TypeValue(kF)}});
  g->Add("Cast", "more", {"rank"}, {{"SrcT", TypeValue(kI)}, {"DstT", TypeValue(kF)}});
  g->Add("AddV2", "sum", {"body_0", "more"}, {{"T", TypeValue(kF)}});
  g->Add("ExpandDims", "next_0", {"sum", "axis"}, {{"T", TypeValue(kF)}});
}

TEST(TensorflowRanks, GrowInOldLoops) {
  Graph g;
  g.Add(PlaceholderNode("n", kI)).Add(FloatsNode("x", {2}, {10, 20}));
  AddGrowingLoop(&g);
  EXPECT_THAT(RunGraph(g, {{"n", Int(0)}}, "exit_0"), ElementsAre(10, 20));
  EXPECT_THAT(RunGraph(g, {{"n", Int(3)}}, "exit_0"), ElementsAre(16, 26));
}

// A loop in a loop, whose value the outer one carries: each reading finds one more of the two.
TEST(TensorflowRanks, GrowInLoopsInEachOther) {
  Graph g;
  g.Add(PlaceholderNode("n", kI)).Add(FloatsNode("x", {2}, {10, 20}));
  const NamedValues inner = {{"T", TypeValue(kF)}, {"frame_name", TextValue("inner")}};
  AddLoop(&g, {"x"}, "n");
  g.Add(IntsNode("nothing", {}, {0}, {"^body_i"}));
  g.Add("Enter", "e_j", {"nothing"}, inner).Add("Enter", "e_v", {"body_0"}, inner);
  g.Add("Merge", "m_j", {"e_j", "b_j"}).Add("Merge", "m_v", {"e_v", "b_v"});
  g.Add(IntsNode("two", {}, {2}, {"^m_j"})).Add("Less", "fewer", {"m_j", "two"});
  g.Add("LoopCond", "c", {"fewer"});
  g.Add("Switch", "s_j", {"m_j", "c"}).Add("Switch", "s_v", {"m_v", "c"});
  g.Add("Identity", "j", {"s_j:1"}).Add("Identity", "v", {"s_v:1"});
  g.Add(IntsNode("step", {}, {1}, {"^j"})).Add("AddV2", "after", {"j", "step"});
  g.Add(IntsNode("axis", {}, {-1}, {"^j"})).Add("ExpandDims", "longer", {"v", "axis"});
  g.Add("Rank", "rank", {"longer"}, {{"T", TypeValue(kF)}});
  g.Add("Cast", "more", {"rank"}, {{"SrcT", TypeValue(kI)}, {"DstT", TypeValue(kF)}});
  g.Add("AddV2", "sum", {"longer", "more"}, {{"T", TypeValue(kF)}});
  g.Add("NextIteration", "b_j", {"after"}).Add("NextIteration", "b_v", {"sum"});
  g.Add("Exit", "next_0", {"s_v"});
  EXPECT_THAT(RunGraph(g, {{"n", Int(2)}}, "exit_0"), ElementsAre(24, 34));
}

// The rank of item 1, where item 0 has another one, read in a loop before item 1 is written.
TEST(TensorflowRanks, OfItemsInOneArray) {
  Graph g;
  g.Add(PlaceholderNode("n", kI)).Add(FloatsNode("x", {2}, {10, 20}));
  g.Add("TensorArrayV3", "array", {"n"}, {{"dtype", TypeValue(kF)}});
  g.Add(IntsNode("first", {}, {0})).Add(IntsNode("second", {}, {1})).Add(FloatsNode("s", {}, {7}));
  g.Add("TensorArrayWriteV3", "w0", {"array", "first", "x", "array:1"}, {{"T", TypeValue(kF)}});
  g.Add("TensorArrayReadV3", "r0", {"array", "first", "w0"}, {{"dtype", TypeValue(kF)}});
  g.Add("TensorArrayWriteV3", "w1", {"array", "second", "s", "w0"}, {{"T", TypeValue(kF)}});
  g.Add("TensorArrayReadV3", "r1", {"array", "second", "w1"}, {{"dtype", TypeValue(kF)}});
  for (const char* k : {"0", "1"}) {
    const std::string n = k;
    g.Add("Rank", "rank" + n, {"r" + n}, {{"T", TypeValue(kF)}});
    g.Add("Cast", "y" + n, {"rank" + n}, {{"SrcT", TypeValue(kI)}, {"DstT", TypeValue(kF)}});
  }
  const auto made = RunGraph(g.bytes(), {{"n", Int(2)}}, {"y0", "y1"});
  EXPECT_THAT(made[0], ElementsAre(1));
  EXPECT_THAT(made[1], ElementsAre(0));
}

TEST(TensorflowRanks, OfItemsInOneList) {
  Graph g;
  const NamedValues items = {{"element_dtype", TypeValue(kF)}};
  g.Add(PlaceholderNode("x")).Add(IntsNode("any", {}, {-1})).Add(IntsNode("zero", {}, {0}));
  g.Add(IntsNode("one", {}, {1})).Add(IntsNode("two", {}, {2})).Add(FloatsNode("s", {}, {7}));
  g.Add(FloatsNode("pair", {2}, {7, 8}));
  g.Add("TensorListReserve", "list", {"any", "two"}, items);
  g.Add("TensorListSetItem", "l0", {"list", "zero", "pair"}, items);
  g.Add("TensorListSetItem", "l1", {"l0", "one", "s"}, items);
  g.Add("TensorListGetItem", "item", {"l1", "one", "any"}, items);
  g.Add("Rank", "rank", {"item"}, {{"T", TypeValue(kF)}});
  g.Add("Cast", "r", {"rank"}, {{"SrcT", TypeValue(kI)}, {"DstT", TypeValue(kF)}});
  g.Add("AddV2", "y", {"r", "x"}, {{"T", TypeValue(kF)}});
  EXPECT_THAT(RunGraph(g, {{"x", F32({}, {0.5F})}}, "y"), ElementsAre(0.5F));
}

// A scalar's value decides; other tensors hold where they have elements.
TEST(TensorflowRanks, OfConditions) {
  Graph g;
  g.Add(PlaceholderNode("c")).Add(PlaceholderNode("x"));
  g.Add("If", "y", {"c", "x"},
        {{"then_branch", FunctionValue("same")}, {"else_branch", FunctionValue("neg")}});
  g.Function(FunctionOf("same", {"a"}, {{"r", "s:output:0"}}, {NodeOf("Identity", "s", {"a"})}));
  g.Function(FunctionOf("neg", {"a"}, {{"r", "s:y:0"}}, {NodeOf("Neg", "s", {"a"})}));
  const auto run = [&](const Tensor& condition) {
    return RunGraph(g, {{"c", condition}, {"x", F32({1}, {3})}}, "y");
  };
  EXPECT_THAT(run(F32({}, {0})), ElementsAre(-3));
  EXPECT_THAT(run(F32({}, {2})), ElementsAre(3));
  EXPECT_THAT(run(F32({1}, {0})), ElementsAre(3));
  EXPECT_THAT(run(F32({2, 1}, {0, 0})), ElementsAre(3));
  EXPECT_THAT(run(F32({2, 0}, {})), ElementsAre(-3));
}

// A cast is left out only where the types of both sides are known: OneHot gives floats.
TEST(TensorflowTypes, CastsStay) {
  Graph g;
  g.Add(PlaceholderNode("i", kI)).Add(IntsNode("depth", {}, {2}));
  g.Add(FloatsNode("on", {}, {2.5F})).Add(FloatsNode("off", {}, {-1.5F}));
  g.Add("OneHot", "hot", {"i", "depth", "on", "off"},
        {{"T", TypeValue(kF)}, {"TI", TypeValue(kI)}, {"axis", IntValue(-1)}});
  g.Add("Cast", "cut", {"hot"}, {{"SrcT", TypeValue(kF)}, {"DstT", TypeValue(kI)}});
  g.Add("Cast", "y", {"cut"}, {{"SrcT", TypeValue(kI)}, {"DstT", TypeValue(kF)}});
  EXPECT_THAT(RunGraph(g, {{"i", Int(1)}}, "y"), ElementsAre(-1, 2));
}

Message ShortsNode(std::string_view name, const std::vector<int16_t>& values) {
  const auto count = static_cast<int64_t>(values.size());
  return NodeOf("Const", name, {},
                {{"dtype", TypeValue(kI16)},
                 {"value", TensorValue(TensorHeadOf(kI16, {count}).Bytes(4, RawOf(values)))}});
}

TEST(TensorflowTypes, IndicesMayBeShort) {
  Graph g;
  g.Add(PlaceholderNode("x")).Add(ShortsNode("begin", {-2})).Add(ShortsNode("end", {5}));
  g.Add(ShortsNode("strides", {1}));
  g.Add("StridedSlice", "y", {"x", "begin", "end", "strides"},
        {{"T", TypeValue(kF)}, {"Index", TypeValue(kI16)}});
  EXPECT_THAT(RunGraph(g, {{"x", F32({3}, {1, 2, 3})}}, "y"), ElementsAre(2, 3));
  // Not known when the graph is read.
  Graph fed;
  fed.Add(PlaceholderNode("x")).Add(PlaceholderNode("i", kI));
  fed.Add("Cast", "short", {"i"}, {{"SrcT", TypeValue(kI)}, {"DstT", TypeValue(kI16)}});
  fed.Add(IntsNode("axis", {}, {0}));
  fed.Add("GatherV2", "y", {"x", "short", "axis"},
          {{"Tparams", TypeValue(kF)}, {"Tindices", TypeValue(kI16)}, {"Taxis", TypeValue(kI)}});
  EXPECT_THAT(RunGraph(fed, {{"x", F32({3}, {1, 2, 3})}, {"i", Int(2)}}, "y"), ElementsAre(3));
}

Attribute TypeAttribute(int type) {
  Attribute a;
  a.kind = Attribute::kType;
  a.i = type;
  return a;
}

TEST(TensorflowTypes, FollowFromDefinitions) {
  const Attribute i16 = TypeAttribute(kI16);
  Attribute count;
  count.kind = Attribute::kInt;
  count.i = 2;
  Attribute types;
  types.kind = Attribute::kList;
  types.ints = {kF, 100 + kB};
  const auto find = [&](std::string_view name) -> const Attribute* {
    return name == "num_split" ? &count : name == "Tout" ? &types : name == "T" ? &i16 : nullptr;
  };
  EXPECT_EQ(DefinedType("Less", 0, find), kB);
  EXPECT_EQ(DefinedType("TopKV2", 0, find), kI16);
  EXPECT_EQ(DefinedType("TopKV2", 1, find), kI);  // the default
  EXPECT_EQ(DefinedType("Split", 1, find), kI16);
  EXPECT_EQ(DefinedType("Split", 2, find), tensorflow::kNoType);
  EXPECT_EQ(DefinedType("PartitionedCall", 1, find), kB);
  EXPECT_EQ(DefinedType("TensorListReserve", 0, find), kVariant);
  EXPECT_EQ(DefinedType("NoSuchOperator", 0, find), tensorflow::kNoType);
  EXPECT_EQ(DefinedType("Where", 0, find), kI64);
  EXPECT_TRUE(TakesNarrowIndices("StridedSlice", 3));
  EXPECT_FALSE(TakesNarrowIndices("StridedSlice", 0));
  EXPECT_FALSE(TakesNarrowIndices("Neg", 0));
}

}  // namespace
}  // namespace heddle::testing::tf
