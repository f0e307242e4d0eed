// Graphs that are damaged, or that no program can be made of: one error each, which says where.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "heddle/program.h"
#include "tests/formats/tensorflow/graph_bytes.h"

namespace heddle::testing::tf {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

// y = relu(x + w)
Graph Small() {
  Graph g;
  g.Add(FloatsNode("w", {2}, {1, -2})).Add(PlaceholderNode("x"));
  return g.Add("AddV2", "sum", {"x", "w"}).Add("Relu", "y", {"sum"});
}

std::string Fetching(const Graph& g, const std::string& fetch) {
  return ErrorOf(g.bytes(), {.fetches = {fetch}});
}

TEST(BadTensorflow, UnknownOperatorsAreAllListed) {
  Graph g = Small();
  g.Add("Frobnicate", "a", {"y"}).Add("Frobnicate", "b", {"a"}).Add("Strange", "c", {"b"});
  const std::string error = Fetching(g, "c");
  EXPECT_THAT(error, HasSubstr("2 operators that heddle does not have"));
  EXPECT_THAT(error, HasSubstr("Frobnicate (2 times, first: op 4 (Frobnicate 'a'))"));
  EXPECT_THAT(error, HasSubstr("Strange (1 time"));
}

TEST(BadTensorflow, NamesAreThoseOfTheGraph) {
  EXPECT_THAT(Fetching(Small(), "z"), HasSubstr("the graph has no tensor 'z'"));
  EXPECT_THAT(Fetching(Small(), "y:3"), HasSubstr("has no output 3"));
  EXPECT_THAT(Fetching(Small(), "y:99999999999"), HasSubstr("no tensor 'y:99999999999'"));
  EXPECT_THAT(ErrorOf(Small().bytes(), {.feeds = {"q"}, .fetches = {"y"}}),
              HasSubstr("the graph has no tensor 'q'"));
  EXPECT_THAT(ErrorOf(Small().bytes(), {.feeds = {"x", "x:0"}, .fetches = {"y"}}),
              HasSubstr("are the same tensor"));
  EXPECT_THAT(ErrorOf(Small().bytes(), {.targets = {"q"}}), HasSubstr("no operator 'q'"));
}

TEST(BadTensorflow, InputsAreMadeBySomething) {
  Graph dangling = Small(), port = Small(), control = Small(), twice = Small();
  dangling.Add("AddV2", "z", {"y", "nobody"});
  EXPECT_THAT(Fetching(dangling, "z"), HasSubstr("'z' (AddV2): input 1 is 'nobody'"));
  port.Add("Neg", "z", {"y:7"});
  EXPECT_THAT(Fetching(port, "z"), HasSubstr("'y:7' is an output that its node does not have"));
  control.Add("Neg", "z", {"y", "^nobody"});
  EXPECT_THAT(Fetching(control, "z"), HasSubstr("waits for '^nobody'"));
  twice.Add("Neg", "y", {"x"});
  EXPECT_THAT(Fetching(twice, "y"), HasSubstr("two nodes are called 'y'"));
}

TEST(BadTensorflow, CyclesNeedANextIteration) {
  Graph g, self;
  g.Add("Relu", "a", {"b"}).Add("Relu", "b", {"a"});
  EXPECT_THAT(Fetching(g, "b"), HasSubstr("cycle that no NextIteration closes"));
  self.Add("NoOp", "a", {"^a"}).Add(FloatsNode("c", {1}, {1}, {"^a"}));
  EXPECT_THAT(Fetching(self, "c"), HasSubstr("cycle"));
}

TEST(BadTensorflow, LoopsAreLeft) {
  Graph endless;
  endless.Add(PlaceholderNode("n", kI)).Add(PlaceholderNode("x"));
  AddLoop(&endless, {"x"}, "n");
  endless.Add("Neg", "next_0", {"body_0"});
  EXPECT_THAT(Fetching(endless, "body_0"), HasSubstr("nothing leaves the loop 'loop'"));
  Graph unconditional;
  unconditional.Add(FloatsNode("one", {}, {1}));
  unconditional.Add("Enter", "e", {"one"}, {{"frame_name", TextValue("f")}});
  unconditional.Add("Merge", "m", {"e", "n"}).Add("NextIteration", "n", {"m"});
  unconditional.Add("Exit", "y", {"m"});
  EXPECT_THAT(Fetching(unconditional, "y"), HasSubstr("has 0 LoopConds"));
  Graph outside;
  outside.Add(FloatsNode("one", {}, {1})).Add("Exit", "y", {"one"});
  EXPECT_THAT(Fetching(outside, "y"), HasSubstr("lies in no loop"));
  Graph nameless;
  nameless.Add(FloatsNode("one", {}, {1})).Add("Enter", "e", {"one"});
  EXPECT_THAT(Fetching(nameless, "e"), HasSubstr("no attribute 'frame_name'"));
}

TEST(BadTensorflow, MergesJoinTwoSides) {
  Graph g;
  g.Add(PlaceholderNode("a")).Add(PlaceholderNode("b")).Add("Merge", "m", {"a", "b"});
  EXPECT_THAT(Fetching(g, "m"), HasSubstr("are not the two sides of one Switch"));
}

TEST(BadTensorflow, FunctionsEnd) {
  Graph g;
  g.Add(PlaceholderNode("x")).Add("PartitionedCall", "y", {"x"}, {{"f", FunctionValue("f")}});
  g.Function(FunctionOf("f", {"a"}, {{"r", "again:output:0"}},
                        {NodeOf("PartitionedCall", "again", {"a"}, {{"f", FunctionValue("f")}})}));
  EXPECT_THAT(Fetching(g, "y"), HasSubstr("recursion is refused: function 'f' calls 'f'"));
  Graph missing;
  missing.Add(PlaceholderNode("x"));
  missing.Add("PartitionedCall", "y", {"x"}, {{"f", FunctionValue("nobody")}});
  EXPECT_THAT(Fetching(missing, "y"), HasSubstr("a function that the file does not have"));
  Graph counts;
  counts.Add("PartitionedCall", "y", {}, {{"f", FunctionValue("f")}});
  counts.Function(FunctionOf("f", {"a"}, {{"r", "a"}}, {}));
  EXPECT_THAT(Fetching(counts, "y"), HasSubstr("gives 0 values to function 'f', which takes 1"));
}

// Calls that double at each level: a few hundred bytes, and more nodes than any memory holds.
TEST(BadTensorflow, CallsAreBounded) {
  Graph g;
  g.Add(PlaceholderNode("x")).Add("PartitionedCall", "y", {"x"}, {{"f", FunctionValue("f0")}});
  for (int k = 0; k < 40; ++k) {
    const NamedValues next = {{"f", FunctionValue("f" + std::to_string(k + 1))}};
    g.Function(FunctionOf("f" + std::to_string(k), {"a"}, {{"r", "b:output:0"}},
                          {NodeOf("PartitionedCall", "c", {"a"}, next),
                           NodeOf("PartitionedCall", "b", {"c:output:0"}, next)}));
  }
  g.Function(FunctionOf("f40", {"a"}, {{"r", "a"}}, {}));
  EXPECT_THAT(Fetching(g, "y"), HasSubstr("more than 1000000 nodes"));
}

// A branch in a branch in a branch …, of functions that call the next one at the innermost: less
// deep in calls and in branches than is allowed of each.
TEST(BadTensorflow, RegionsAreBounded) {
  Graph g;
  g.Add(PlaceholderNode("x")).Add("PartitionedCall", "y", {"x"}, {{"f", FunctionValue("f0")}});
  constexpr int kFunctions = 10, kLevels = 60;
  for (int f = 0; f < kFunctions; ++f) {
    std::vector<Message> nodes;
    std::string last = "a";
    for (int k = 0; k < kLevels; ++k) {
      const std::string n = std::to_string(k);
      nodes.push_back(NodeOf("Greater", "p" + n, {"a", "a"}));
      nodes.push_back(NodeOf("Switch", "s" + n, {last, "p" + n + ":z:0"}));
      last = "s" + n + ":output_true:0";
    }
    const std::string next = "f" + std::to_string(f + 1);
    nodes.push_back(NodeOf("PartitionedCall", "c", {last}, {{"f", FunctionValue(next)}}));
    g.Function(FunctionOf("f" + std::to_string(f), {"a"}, {{"r", "c:output:0"}}, nodes));
  }
  g.Function(FunctionOf("f" + std::to_string(kFunctions), {"a"}, {{"r", "a"}}, {}));
  EXPECT_THAT(Fetching(g, "y"), HasSubstr("lie in each other more than 256 deep"));
}

// In a graph, such a node runs once in a round, whoever needs it.
TEST(BadTensorflow, LoopsWriteInTheConditionOrTheBody) {
  const auto error = [](const std::string& condition_waits, const std::string& body_waits) {
    const NamedValues frame = {{"frame_name", TextValue("f")}};
    Graph g;
    g.Add(PlaceholderNode("x"));
    g.Add("VariableV2", "v", {}, {{"dtype", TypeValue(kF)}, {"shape", ShapeValue({1})}});
    g.Add("Enter", "e", {"x"}, frame).Add("Enter", "ev", {"v"}, frame);
    g.Add("Merge", "m", {"e", "b"}).Add("AssignAdd", "count", {"ev", "m"});
    g.Add("Less", "l", {"m", "m", condition_waits}).Add("LoopCond", "c", {"l"});
    g.Add("Switch", "s", {"m", "c"}).Add("Neg", "next", {"s:1", body_waits});
    g.Add("NextIteration", "b", {"next"}).Add("Exit", "y", {"s"});
    return Fetching(g, "y");
  };
  EXPECT_THAT(error("^count", "^count"),
              HasSubstr("'count' (AssignAdd) of the loop 'f' is of the"));
  EXPECT_EQ(error("^count", "^s"), "");
  EXPECT_EQ(error("^m", "^count"), "");
}

TEST(BadTensorflow, SwitchesAreOfTheirOwnLoop) {
  Graph g;
  g.Add(PlaceholderNode("n", kI)).Add(PlaceholderNode("x"));
  AddLoop(&g, {"x"}, "n");
  const NamedValues inner = {{"frame_name", TextValue("inner")}};
  g.Add("Enter", "e", {"body_0"}, inner).Add("Merge", "m", {"e", "b"});
  g.Add("Less", "l", {"m", "m"}).Add("LoopCond", "c", {"l"});
  g.Add("Switch", "s", {"m", "c"}).Add("Switch", "other", {"merge_0", "c"});
  g.Add("AddV2", "sum", {"s:1", "other:1"}).Add("NextIteration", "b", {"sum"});
  g.Add("Exit", "next_0", {"s"}).Add("Identity", "y", {"exit_0"});
  EXPECT_THAT(Fetching(g, "y"), HasSubstr("'other' (Switch) switches a variable of another loop"));
}

// x doubles until it is `limit`; "probe", made of "m", is of the condition and of the body.
void AddProbedLoop(Graph* g) {
  const auto in_frame = [](const char* frame, bool stays) {
    return NamedValues{
        {"T", TypeValue(kF)}, {"frame_name", TextValue(frame)}, {"is_constant", BoolValue(stays)}};
  };
  g->Add(PlaceholderNode("x")).Add(FloatsNode("limit", {}, {9}));
  g->Add("VarHandleOp", "v", {}, {{"dtype", TypeValue(kF)}, {"shape", ShapeValue({})}});
  g->Add("Enter", "enter_v", {"v"}, in_frame("outer", true));
  g->Add("Enter", "enter_limit", {"limit"}, in_frame("outer", true));
  g->Add("Enter", "e", {"x"}, in_frame("outer", false)).Add("Merge", "m", {"e", "next"});
  g->Add("Less", "less", {"probe", "enter_limit"}).Add("LoopCond", "c", {"less"});
  g->Add("Switch", "s", {"m", "c"}).Add("AddV2", "sum", {"s:1", "probe"});
  g->Add("NextIteration", "next", {"sum"}).Add("Exit", "y", {"s"});
  g->Add("Enter", "v_within", {"enter_v"}, in_frame("inner", true));
  g->Add("Enter", "limit_within", {"enter_limit"}, in_frame("inner", true));
  g->Add("Enter", "e2", {"m"}, in_frame("inner", false)).Add("Merge", "m2", {"e2", "next2"});
  g->Add("Less", "less2", {"m2", "limit_within"}).Add("LoopCond", "c2", {"less2"});
  g->Add("Switch", "s2", {"m2", "c2"}).Add("NextIteration", "next2", {"sum2"});
  g->Add("Exit", "y2", {"s2"});
}

// Heddle executes it once for the condition and once for the body, so that it may not write.
TEST(BadTensorflow, WritersOfConditionAndBodyAreFoundWhereverTheyAre) {
  const NamedValues type = {{"dtype", TypeValue(kF)}};
  const auto bump = [&](const std::vector<Message>& nodes, const std::vector<std::string>& runs) {
    return FunctionOf("bump", {"v", "a"}, {{"z", "twice:z:0"}}, nodes, runs);
  };
  const Message twice = NodeOf("AddV2", "twice", {"a", "a"});
  Graph plain, calls, nested, drawn, reads;
  for (Graph* g : {&plain, &calls, &nested, &drawn, &reads}) AddProbedLoop(g);
  plain.Add("Identity", "probe", {"m", "^w"})
      .Add("AssignAddVariableOp", "w", {"enter_v", "m"}, type);
  EXPECT_THAT(Fetching(plain, "y"), HasSubstr("'w' (AssignAddVariableOp) of the loop 'outer'"));

  const NamedValues call = {{"f", FunctionValue("outer_bump")}};
  calls.Add("StatefulPartitionedCall", "probe", {"enter_v", "m"}, call);
  calls.Function(bump({NodeOf("AssignAddVariableOp", "w", {"v", "a"}, type), twice}, {"w"}));
  calls.Function(FunctionOf(
      "outer_bump", {"v", "a"}, {{"z", "inner:output:0"}},
      {NodeOf("StatefulPartitionedCall", "inner", {"v", "a"}, {{"f", FunctionValue("bump")}})}));
  EXPECT_THAT(Fetching(calls, "y"),
              HasSubstr("'probe' (StatefulPartitionedCall) of the loop 'outer'"));

  nested.Add("Identity", "probe", {"y2"});
  nested.Add("AssignAddVariableOp", "w", {"v_within", "s2:1"}, type);
  nested.Add("AddV2", "sum2", {"s2:1", "s2:1", "^w"});
  EXPECT_THAT(Fetching(nested, "y"), HasSubstr("'w' (AssignAddVariableOp) of the loop 'outer'"));

  drawn.Add(IntsNode("none", {0}, {}));
  drawn.Add("RandomUniform", "u", {"none", "^m"}, {{"dtype", TypeValue(kF)}, {"T", TypeValue(kI)}});
  drawn.Add("AddV2", "probe", {"m", "u"});
  EXPECT_THAT(Fetching(drawn, "y"), HasSubstr("'u' (RandomUniform) of the loop 'outer'"));

  reads.Function(bump({twice}, {}));
  reads.Add("StatefulPartitionedCall", "probe", {"enter_v", "m"}, {{"f", FunctionValue("bump")}});
  EXPECT_EQ(Fetching(reads, "y"), "");
}

// Each vector is the one before twice.
TEST(BadTensorflow, SizesThatAreFollowedAreFew) {
  Graph g;
  const NamedValues ints = {{"T", TypeValue(kI)}};
  g.Add(PlaceholderNode("x", kI)).Add(IntsNode("axis", {}, {0}));
  g.Add("Pack", "v0", {"x", "x"}, ints);
  for (int i = 0; i < 30; ++i) {
    const std::string before = "v" + std::to_string(i);
    g.Add("ConcatV2", "v" + std::to_string(i + 1), {before, before, "axis"}, ints);
  }
  EXPECT_EQ(Fetching(g, "v30"), "");
}

TEST(BadTensorflow, FilesThatAreCutAreRefused) {
  const std::string whole = Small().bytes();
  const ProgramPart part{.fetches = {"y"}};
  EXPECT_EQ(ErrorOf(whole, part), "");
  constexpr size_t kVersions = 5;  // the last field, without which the graph is whole
  for (size_t n = 0; n < whole.size(); ++n)
    EXPECT_TRUE(n == whole.size() - kVersions || !ErrorOf(whole.substr(0, n), part).empty()) << n;
}

// Any bytes give a program or an error.
TEST(BadTensorflow, DamagedFilesAreNoCrash) {
  Graph loop;
  loop.Add(PlaceholderNode("n", kI)).Add(PlaceholderNode("x"));
  AddLoop(&loop, {"x"}, "n");
  loop.Add("Neg", "next_0", {"body_0"}).Add("Identity", "y", {"exit_0"});
  std::mt19937 random(7);
  for (const std::string& whole : {Small().bytes(), loop.bytes()}) {
    for (int round = 0; round < 3000; ++round) {
      std::string bytes = whole;
      for (int k = 0; k <= round % 4; ++k)
        bytes[random() % bytes.size()] = static_cast<char>(random());
      const auto model = LoadBytes(bytes, {.fetches = {"y"}});
      EXPECT_TRUE(model.ok() || !model.status().message().empty());
    }
  }
}

// As TensorFlow says when it takes a graph: there is an operator of a name for some types alone.
TEST(BadTensorflow, TypesThatAnOperatorDoesNotExistForAreRefused) {
  constexpr int kInt8 = 6, kDouble = 2;
  int refused = 0, taken = 0;
  for (const char* op : {"Sqrt", "Rsqrt", "Exp", "Log", "Sigmoid", "Tanh", "Softmax", "Softplus",
                         "Elu", "Selu", "IsNan", "IsInf", "Floor", "Erf", "Sin", "Reciprocal"})
    for (const int type : {kF, kDouble, kI, kInt8, kB}) {
      const bool floats = type == kF || type == kDouble;
      Graph g;
      g.Add(PlaceholderNode("x", type)).Add(op, "y", {"x"}, {{"T", TypeValue(type)}});
      const std::string error = ErrorOf(g.bytes(), {.fetches = {"y"}});
      if (floats) {
        EXPECT_EQ(error, "") << op;
      } else {
        EXPECT_THAT(error, HasSubstr("(" + std::string(op) + " 'y'): there is no such")) << type;
      }
      ++(floats ? taken : refused);
    }
  EXPECT_GT(refused, taken);
}

TEST(BadTensorflow, AnInputOfAnotherTypeThanItsAttributeSaysIsRefused) {
  Graph g;
  g.Add(PlaceholderNode("x", kI)).Add("Sqrt", "y", {"x"}, {{"T", TypeValue(kF)}});
  EXPECT_THAT(ErrorOf(g.bytes(), {.fetches = {"y"}}),
              HasSubstr("input 0 ('x') is int32, where float32 is expected"));
}

// Attributes say into how many parts operators split a value: far more than there is memory for.
struct Splitter {
  const char *op, *count;
  std::vector<std::string> inputs;
};
const Splitter kSplitters[] = {{"Split", "num_split", {"zero", "y"}},
                               {"Unpack", "num", {"y"}},
                               {"DynamicPartition", "num_partitions", {"y", "parts"}}};

std::string ErrorOfSplits(const Splitter& s, int64_t count, int nodes) {
  Graph g = Small();
  g.Add(IntsNode("zero", {}, {0})).Add(IntsNode("parts", {2}, {0, 0}));
  std::vector<std::string> names;
  for (int k = 0; k < nodes; ++k) {
    names.push_back("s" + std::to_string(k));
    g.Add(NodeOf(s.op, names.back(), s.inputs, {{"T", TypeValue(kF)}, {s.count, IntValue(count)}}));
  }
  g.Add(NodeOf("AddN", "all", names, {{"T", TypeValue(kF)}, {"N", IntValue(nodes)}}));
  return Fetching(g, "all");
}

TEST(BadTensorflow, CountsInAttributesHaveBounds) {
  for (const Splitter& s : kSplitters)
    for (const int64_t count : {int64_t{-1}, int64_t{1} << 31, int64_t{1} << 62})
      EXPECT_THAT(ErrorOfSplits(s, count, 1), AnyOf(HasSubstr(" to 131072"), HasSubstr(" or more")))
          << s.op << count;
}

TEST(BadTensorflowStress, CountsInAttributesHaveABoundTogether) {
  EXPECT_THAT(ErrorOfSplits(kSplitters[1], 1 << 17, 5), HasSubstr("have more than 524288"));
}

}  // namespace
}  // namespace heddle::testing::tf
