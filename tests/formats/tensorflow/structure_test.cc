// Branches and loops, old and new, lists and TensorArrays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>

#include "tests/formats/tensorflow/graph_bytes.h"

namespace heddle::testing::tf {
namespace {

using ::testing::ElementsAre;

Tensor Int(int32_t value) { return Tensor::Of(DType::kI32, Shape(), std::vector<int32_t>{value}); }

// y = c ? x + x : (x * x with a constant that hangs on the branch)
Graph Branches() {
  Graph g;
  g.Add(PlaceholderNode("c", kB)).Add(PlaceholderNode("x"));
  g.Add("Switch", "pivot", {"c", "c"}).Add("Identity", "no", {"pivot"});
  g.Add("Switch", "sx", {"x", "c"}).Add("AddV2", "yes_value", {"sx:1", "sx:1"});
  g.Add(FloatsNode("three", {}, {3}, {"^no"})).Add("Mul", "no_value", {"sx", "three"});
  return g.Add("Merge", "y", {"no_value", "yes_value"});
}

TEST(TensorflowControl, SwitchAndMergeAreBranches) {
  const Tensor x = F32({2}, {2, 5});
  EXPECT_THAT(RunGraph(Branches(), {{"c", Bool(true)}, {"x", x}}, "y"), ElementsAre(4, 10));
  EXPECT_THAT(RunGraph(Branches(), {{"c", Bool(false)}, {"x", x}}, "y"), ElementsAre(6, 15));
}

// Only one side runs: the other's assertion would fail.
TEST(TensorflowControl, TheOtherSideDoesNotRun) {
  Graph g = Branches();
  g.Add(
      NodeOf("Const", "never", {"^no"}, {{"value", TensorValue(TensorHeadOf(kB, {}).Int(11, 0))}}));
  g.Add("Assert", "check", {"never"}).Add("Identity", "guarded", {"no_value", "^check"});
  g.Add("Merge", "z", {"guarded", "yes_value"});
  const Tensor x = F32({1}, {2});
  EXPECT_THAT(RunGraph(g, {{"c", Bool(true)}, {"x", x}}, "z"), ElementsAre(4));
  const auto model = LoadBytes(g.bytes(), {.feeds = {"c", "x"}, .fetches = {"z"}});
  ASSERT_TRUE(model.ok());
  EXPECT_FALSE(TryRun(*model, {{"c", Bool(false)}, {"x", x}}).ok());
}

// A branch in a branch: what it uses passes two Switches.
TEST(TensorflowControl, BranchesLieInEachOther) {
  Graph g;
  g.Add(PlaceholderNode("c", kB)).Add(PlaceholderNode("d", kB)).Add(PlaceholderNode("x"));
  g.Add("Switch", "sd", {"d", "c"}).Add("Switch", "sx", {"x", "c"});
  g.Add("Switch", "ssx", {"sx:1", "sd:1"});
  g.Add("Neg", "inner_no", {"ssx"}).Add("Square", "inner_yes", {"ssx:1"});
  g.Add("Merge", "inner", {"inner_no", "inner_yes"});
  g.Add("AddV2", "outer_no", {"sx", "sx"}).Add("Merge", "y", {"outer_no", "inner"});
  const auto run = [&](bool c, bool d) {
    return RunGraph(g, {{"c", Bool(c)}, {"d", Bool(d)}, {"x", F32({1}, {3})}}, "y");
  };
  EXPECT_THAT(run(false, true), ElementsAre(6));
  EXPECT_THAT(run(true, false), ElementsAre(-3));
  EXPECT_THAT(run(true, true), ElementsAre(9));
}

// A Merge of three: c ? x + x : d ? x * x : -x, and which input it took. `order`: of the inputs.
Graph ThreeWays(const std::vector<std::string>& order) {
  Graph g;
  g.Add(PlaceholderNode("c", kB)).Add(PlaceholderNode("d", kB)).Add(PlaceholderNode("x"));
  g.Add("Switch", "sx", {"x", "c"}).Add("Switch", "sd", {"d", "c"});
  g.Add("Switch", "ssx", {"sx", "sd"});
  g.Add("AddV2", "twice", {"sx:1", "sx:1"});
  g.Add("Mul", "square", {"ssx:1", "ssx:1"}).Add("Neg", "minus", {"ssx"});
  g.Add("Merge", "y", order).Add("Cast", "which", {"y:1"}, {{"DstT", TypeValue(kF)}});
  return g;
}

TEST(TensorflowControl, MergesOfManyInputs) {
  for (const std::vector<std::string>& order :
       std::vector<std::vector<std::string>>{{"twice", "square", "minus"},
                                             {"minus", "twice", "square"},
                                             {"square", "minus", "twice"}}) {
    const auto place = [&](const char* name) {
      return static_cast<float>(std::find(order.begin(), order.end(), name) - order.begin());
    };
    const auto run = [&](bool c, bool d) {
      return RunGraph(ThreeWays(order).bytes(),
                      {{"c", Bool(c)}, {"d", Bool(d)}, {"x", F32({1}, {3})}},
                      std::vector<std::string>{"y", "which"});
    };
    EXPECT_THAT(run(true, true)[0], ElementsAre(6));
    EXPECT_THAT(run(true, false)[1], ElementsAre(place("twice")));
    EXPECT_THAT(run(false, true)[0], ElementsAre(9));
    EXPECT_THAT(run(false, true)[1], ElementsAre(place("square")));
    EXPECT_THAT(run(false, false)[0], ElementsAre(-3));
    EXPECT_THAT(run(false, false)[1], ElementsAre(place("minus")));
  }
}

// Only the side that is taken runs, however deep it lies.
TEST(TensorflowControl, OtherInputsOfAMergeDoNotRun) {
  Graph g = ThreeWays({"twice", "square", "guarded"});
  g.Add(NodeOf("Const", "never", {"^minus"},
               {{"value", TensorValue(TensorHeadOf(kB, {}).Int(11, 0))}}));
  g.Add("Assert", "check", {"never"}).Add("Identity", "guarded", {"minus", "^check"});
  const auto model = LoadBytes(g.bytes(), {.feeds = {"c", "d", "x"}, .fetches = {"y"}});
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const auto runs = [&](bool c, bool d) {
    return TryRun(*model, {{"c", Bool(c)}, {"d", Bool(d)}, {"x", F32({1}, {3})}}).ok();
  };
  EXPECT_TRUE(runs(true, false));
  EXPECT_TRUE(runs(false, true));
  EXPECT_FALSE(runs(false, false));
}

// A switch of many outputs: a number that none has is the last one's.
TEST(TensorflowControl, SwitchesOfManyOutputs) {
  Graph g;
  g.Add(PlaceholderNode("k", kI)).Add(PlaceholderNode("x"));
  g.Add("_SwitchN", "s", {"x", "k"}, {{"num_outs", IntValue(3)}, {"T", TypeValue(kF)}});
  g.Add("Neg", "a", {"s"}).Add("Square", "b", {"s:1"}).Add("AddV2", "c", {"s:2", "s:2"});
  g.Add("Merge", "y", {"a", "b", "c"});
  const auto run = [&](int32_t k) {
    return RunGraph(g, {{"k", Int(k)}, {"x", F32({1}, {3})}}, "y");
  };
  EXPECT_THAT(run(0), ElementsAre(-3));
  EXPECT_THAT(run(1), ElementsAre(9));
  EXPECT_THAT(run(2), ElementsAre(6));
  EXPECT_THAT(run(5), ElementsAre(6));
  EXPECT_THAT(run(-1), ElementsAre(6));
}

TEST(TensorflowControl, SwitchesSayHowManyOutputsTheyHave) {
  for (const int64_t count : {std::numeric_limits<int64_t>::min(), int64_t{0}, int64_t{1} << 40}) {
    Graph g;
    g.Add(PlaceholderNode("k", kI)).Add(PlaceholderNode("x"));
    g.Add("_SwitchN", "s", {"x", "k"}, {{"num_outs", IntValue(count)}, {"T", TypeValue(kF)}});
    g.Add("Identity", "y", {"x", "^s"});
    EXPECT_THAT(ErrorOf(g.bytes(), {.fetches = {"y"}}), ::testing::HasSubstr("expected 1 to"));
  }
}

TEST(TensorflowControl, MergesOfValuesThatDoNotExcludeEachOther) {
  Graph g;
  g.Add(PlaceholderNode("c", kB)).Add(PlaceholderNode("d", kB)).Add(PlaceholderNode("x"));
  g.Add("Switch", "sc", {"x", "c"}).Add("Switch", "sd", {"x", "d"});
  g.Add("Merge", "y", {"sc:1", "sc", "sd:1"});
  EXPECT_THAT(ErrorOf(g.bytes(), {.fetches = {"y"}}),
              ::testing::HasSubstr("node 'y' (Merge): its inputs are not sides of Switches that "
                                   "exclude each other"));
  EXPECT_THAT(ErrorOf(Graph().Add(PlaceholderNode("x")).Add("Merge", "y", {"x"}).bytes(),
                      {.fetches = {"y"}}),
              ::testing::HasSubstr("has 1 inputs; two are expected, or more"));
}

// c ? (d ? x * x : nothing) : x + x
TEST(TensorflowControl, SidesThatHaveAValueAtTimesAreRefused) {
  for (const bool first : {false, true}) {
    Graph g;
    g.Add(PlaceholderNode("c", kB)).Add(PlaceholderNode("d", kB)).Add(PlaceholderNode("x"));
    g.Add("Switch", "sx", {"x", "c"}).Add("Switch", "sd", {"d", "c"});
    g.Add("Switch", "ssx", {"sx:1", "sd:1"});
    g.Add("Square", "square", {"ssx:1"}).Add("AddV2", "twice", {"sx", "sx"});
    g.Add("Merge", "y", {first ? "square" : "twice", first ? "twice" : "square"});
    EXPECT_THAT(
        ErrorOf(g.bytes(), {.fetches = {"y"}}),
        ::testing::HasSubstr("node 'y' (Merge): its input " + std::to_string(first ? 0 : 1) +
                             " runs under further conditions"));
  }
}

// a, b = b, a + b
Graph Fibonacci() {
  Graph g;
  g.Add(PlaceholderNode("n", kI)).Add(PlaceholderNode("a")).Add(PlaceholderNode("b"));
  AddLoop(&g, {"a", "b"}, "n");
  return g.Add("Identity", "next_0", {"body_1"}).Add("AddV2", "next_1", {"body_0", "body_1"});
}

TEST(TensorflowControl, LoopVariablesChangeTogether) {
  const auto run = [&](int32_t n) {
    return RunGraph(Fibonacci().bytes(),
                    {{"n", Int(n)}, {"a", F32({1}, {0})}, {"b", F32({1}, {1})}},
                    std::vector<std::string>{"exit_0", "exit_1"});
  };
  EXPECT_THAT(run(0)[0], ElementsAre(0));
  EXPECT_THAT(run(0)[1], ElementsAre(1));
  EXPECT_THAT(run(7)[0], ElementsAre(13));
  EXPECT_THAT(run(7)[1], ElementsAre(21));
}

// A TensorArray that a loop writes: the flow goes around, the handle stays.
TEST(TensorflowControl, LoopsWriteTensorArrays) {
  Graph g;
  g.Add(PlaceholderNode("n", kI)).Add(PlaceholderNode("x"));
  g.Add("TensorArrayV3", "array", {"n"}, {{"dtype", TypeValue(kF)}});
  AddLoop(&g, {"x", "array:1"}, "n");
  g.Add("Enter", "enter_array", {"array"},
        {{"frame_name", TextValue("loop")}, {"is_constant", BoolValue(true)}});
  g.Add("AddV2", "next_0", {"body_0", "body_0"});
  g.Add("TensorArrayWriteV3", "next_1", {"enter_array", "body_i", "body_0", "body_1"});
  g.Add(IntsNode("places", {2}, {2, 0}));
  g.Add("TensorArrayGatherV3", "y", {"array", "places", "exit_1"}, {{"dtype", TypeValue(kF)}});
  EXPECT_THAT(RunGraph(g, {{"n", Int(3)}, {"x", F32({1}, {5})}}, "y"), ElementsAre(20, 5));
}

TEST(TensorflowControl, StacksGiveTheLastFirst) {
  Graph g;
  g.Add(PlaceholderNode("x")).Add(IntsNode("most", {}, {-1}));
  g.Add("StackV2", "s", {"most"}, {{"elem_type", TypeValue(kF)}});
  g.Add("StackPushV2", "push1", {"s", "x"}).Add("Neg", "minus", {"x"});
  g.Add("StackPushV2", "push2", {"s", "minus", "^push1"});
  g.Add("StackPopV2", "pop1", {"s", "^push2"}, {{"elem_type", TypeValue(kF)}});
  g.Add("StackPopV2", "pop2", {"s", "^pop1"}, {{"elem_type", TypeValue(kF)}});
  const auto made =
      RunGraph(g.bytes(), {{"x", F32({1}, {5})}}, std::vector<std::string>{"pop1", "pop2"});
  EXPECT_THAT(made[0], ElementsAre(-5));
  EXPECT_THAT(made[1], ElementsAre(5));
}

// Functions as bodies; a value that comes back as it was is no loop variable.
Graph WhileFunctions() {
  Graph g;
  g.Add(PlaceholderNode("n", kI)).Add(PlaceholderNode("x")).Add(IntsNode("zero", {}, {0}));
  g.Add("While", "w", {"zero", "x", "n"},
        {{"cond", FunctionValue("cond")}, {"body", FunctionValue("body")}});
  g.Add("Identity", "y", {"w:1"});
  g.Function(FunctionOf("cond", {"i", "v", "n"}, {{"r", "less:z:0"}},
                        {NodeOf("Less", "less", {"i", "n"})}));
  g.Function(FunctionOf("body", {"i", "v", "n"},
                        {{"a", "next:z:0"}, {"b", "twice:z:0"}, {"c", "same:output:0"}},
                        {NodeOf("AddV2", "next", {"i", "one:output:0"}), IntsNode("one", {}, {1}),
                         NodeOf("Identity", "same", {"n"}), NodeOf("AddV2", "twice", {"v", "v"})}));
  return g;
}

TEST(TensorflowControl, WhileRunsFunctions) {
  const auto run = [&](int32_t n) {
    return RunGraph(WhileFunctions(), {{"n", Int(n)}, {"x", F32({1}, {3})}}, "y");
  };
  EXPECT_THAT(run(0), ElementsAre(3));
  EXPECT_THAT(run(4), ElementsAre(48));
}

// Also behind fusions, and where a function is called twice.
TEST(TensorflowControl, ErrorsNameFunctionsAndTheirNodes) {
  Graph g = WhileFunctions();
  g.Add("PartitionedCall", "call", {"y"}, {{"f", FunctionValue("outer")}});
  g.Add("PartitionedCall", "last", {"call"}, {{"f", FunctionValue("outer")}});
  g.Function(
      FunctionOf("outer", {"a"}, {{"r", "out:y:0"}},
                 {NodeOf("Sub", "less", {"a", "fifty:output:0"}), FloatsNode("fifty", {}, {50}),
                  NodeOf("Sqrt", "root", {"less:z:0"}), NodeOf("Neg", "out", {"root:y:0"})}));
  ProgramPart part{.feeds = {"n", "x"}, .fetches = {"last"}};
  const auto model = LoadBytes(g.bytes(), part);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const std::pair<float, const char*> cases[] = {{1, "'outer/root'"}, {100, "'outer/root/"}};
  for (const int level : {0, 2})
    for (const auto& [x, name] : cases) {
      Executor executor({.threads = 1});
      const auto compiled =
          MustCompile(executor, model->program, model->scope, {.opt_level = level});
      const auto out =
          executor.Run(compiled, {{"n", Int(0)}, {"x", F32({1}, {x})}}, {.check_nan_inf = true});
      EXPECT_NE(out.status().ToString().find(std::string("variable ") + name), std::string::npos)
          << out.status().ToString();
    }
}

// Of a number, a condition is whether it is not 0; an index that no branch has takes the last one.
TEST(TensorflowControl, IfAndCaseRunFunctions) {
  Graph g;
  g.Add(PlaceholderNode("k", kI)).Add(PlaceholderNode("x"));
  g.Add("If", "i", {"k", "x"},
        {{"then_branch", FunctionValue("neg")}, {"else_branch", FunctionValue("twice")}});
  Message branches;
  for (const char* f : {"neg", "twice", "same"}) branches.Add(9, Message().Bytes(1, f));
  g.Add("Case", "c", {"k", "x"}, {{"branches", Message().Add(1, branches)}});
  g.Function(FunctionOf("neg", {"a"}, {{"r", "y:y:0"}}, {NodeOf("Neg", "y", {"a"})}));
  g.Function(FunctionOf("twice", {"a"}, {{"r", "y:z:0"}}, {NodeOf("AddV2", "y", {"a", "a"})}));
  g.Function(FunctionOf("same", {"a"}, {{"r", "a"}}, {}));
  const auto run = [&](int32_t k, const std::string& fetch) {
    return RunGraph(g, {{"k", Int(k)}, {"x", F32({1}, {3})}}, fetch);
  };
  EXPECT_THAT(run(0, "i"), ElementsAre(6));
  EXPECT_THAT(run(-2, "i"), ElementsAre(-3));
  EXPECT_THAT(run(0, "c"), ElementsAre(-3));
  EXPECT_THAT(run(1, "c"), ElementsAre(6));
  EXPECT_THAT(run(2, "c"), ElementsAre(3));
  EXPECT_THAT(run(7, "c"), ElementsAre(3));
  EXPECT_THAT(run(-1, "c"), ElementsAre(3));
}

// Lists are values: one that was written to is another.
TEST(TensorflowControl, ListsAreValues) {
  Graph g;
  g.Add(PlaceholderNode("x")).Add(IntsNode("two", {}, {2})).Add(IntsNode("shape", {1}, {1}));
  g.Add(IntsNode("at", {}, {1}));
  const NamedValues floats = {{"element_dtype", TypeValue(kF)}};
  g.Add("TensorListReserve", "a", {"shape", "two"}, floats);
  g.Add("TensorListSetItem", "b", {"a", "at", "x"}, floats);
  g.Add("TensorListStack", "sa", {"a", "shape"}, floats);
  g.Add("TensorListStack", "sb", {"b", "shape"}, floats);
  const auto made =
      RunGraph(g.bytes(), {{"x", F32({1}, {5})}}, std::vector<std::string>{"sa", "sb"});
  EXPECT_THAT(made[0], ElementsAre(0, 0));
  EXPECT_THAT(made[1], ElementsAre(0, 5));
}

// A list that a loop hands on has as many items as before, so that what is stacked has a shape; one
// that it pushes to has more.
TEST(TensorflowControl, ListsThatLoopsCarryKeepTheirLength) {
  const NamedValues floats = {{"element_dtype", TypeValue(kF)}};
  Graph g;
  g.Add(PlaceholderNode("n", kI)).Add(PlaceholderNode("x")).Add(IntsNode("zero", {}, {0}));
  g.Add(IntsNode("shape", {1}, {-1})).Add(IntsNode("none", {}, {0}));
  g.Add("TensorListReserve", "set", {"shape", "n"}, floats);
  g.Add("TensorListReserve", "pushed", {"shape", "none"}, floats);
  g.Add("While", "w", {"zero", "set", "pushed", "x", "n"},
        {{"cond", FunctionValue("cond")}, {"body", FunctionValue("body")}});
  g.Add("TensorListStack", "y", {"w:1", "shape"}, floats);
  g.Add("TensorListStack", "z", {"w:2", "shape"}, floats);
  g.Function(FunctionOf("cond", {"i", "a", "b", "v", "n"}, {{"r", "less:z:0"}},
                        {NodeOf("Less", "less", {"i", "n"})}));
  g.Function(FunctionOf("body", {"i", "a", "b", "v", "n"},
                        {{"i_out", "next:z:0"},
                         {"a_out", "set:output_handle:0"},
                         {"b_out", "push:output_handle:0"},
                         {"v_out", "twice:z:0"},
                         {"n_out", "n"}},
                        {NodeOf("AddV2", "next", {"i", "one:output:0"}), IntsNode("one", {}, {1}),
                         NodeOf("TensorListSetItem", "set", {"a", "i", "v"}, floats),
                         NodeOf("TensorListPushBack", "push", {"b", "v"}, floats),
                         NodeOf("AddV2", "twice", {"v", "v"})}));
  for (int32_t n : {1, 3}) {
    const auto made = RunGraph(g.bytes(), {{"n", Int(n)}, {"x", F32({2}, {3, 5})}},
                               std::vector<std::string>{"y", "z"});
    std::vector<float> expected;
    for (int32_t i = 0; i < n; ++i)
      for (float x : {3.f, 5.f}) expected.push_back(x * static_cast<float>(1 << i));
    EXPECT_EQ(made[0], expected);
    EXPECT_EQ(made[1], expected);
  }
}

}  // namespace
}  // namespace heddle::testing::tf
