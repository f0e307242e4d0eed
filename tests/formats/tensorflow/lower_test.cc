// Small graphs are run and their numbers compared: what is looked at, in which order it runs, what
// variables hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>

#include "tests/formats/tensorflow/graph_bytes.h"

namespace heddle::testing::tf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

NamedValues VariableOf(const std::vector<int64_t>& dims) {
  return {{"dtype", TypeValue(kF)}, {"shape", ShapeValue(dims)}};
}

// y = relu(x + w)
Graph Small() {
  Graph g;
  g.Add("Relu", "y", {"sum:0"}).Add("AddV2", "sum", {"x", "w"});
  return g.Add(FloatsNode("w", {2}, {1, -2})).Add(PlaceholderNode("x"));
}

TEST(TensorflowGraph, NodesMayStandInAnyOrder) {
  EXPECT_THAT(RunGraph(Small(), {{"x", F32({2}, {1, 1})}}, "y"), ElementsAre(2, 0));
  EXPECT_THAT(RunGraph(Small(), {{"x:0", F32({2}, {1, 1})}}, "y:0"), ElementsAre(2, 0));
}

TEST(TensorflowGraph, WithoutAPartTheInputsAndResultsAreFound) {
  const auto model = ParseModel(Small().bytes(), "", "test.pb");
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  ASSERT_EQ(model->program.inputs().size(), 1u);
  EXPECT_EQ(model->program.inputs()[0].name, "x");
  ASSERT_EQ(model->program.outputs().size(), 1u);
  EXPECT_EQ(model->program.outputs()[0].name, "y");
}

TEST(TensorflowGraph, OnlyWhatLeadsToTheFetchesIsLookedAt) {
  Graph g = Small();
  g.Add("Frobnicate", "strange", {"y", "nobody", "^nothing"});
  g.Add("Relu", "cyclic", {"cyclic"});
  EXPECT_THAT(RunGraph(g, {{"x", F32({2}, {3, 3})}}, "y"), ElementsAre(4, 1));
  EXPECT_THAT(ErrorOf(g.bytes(), {.fetches = {"strange"}}), HasSubstr("nobody"));
}

TEST(TensorflowGraph, AnyTensorMayBeFedAndCutsWhatMadeIt) {
  Graph g = Small();
  g.Add("Frobnicate", "strange", {"x"}).Add("Relu", "z", {"strange:1"});
  EXPECT_THAT(RunGraph(g, {{"sum", F32({2}, {-5, 6})}}, "y"), ElementsAre(0, 6));
  EXPECT_THAT(RunGraph(g, {{"strange:1", F32({1}, {7})}}, "z"), ElementsAre(7));
  EXPECT_THAT(RunGraph(g, {{"x", F32({2}, {7, 8})}}, "x"), ElementsAre(7, 8));
}

TEST(TensorflowGraph, InputsThatAreNotFedAreNamed) {
  const auto model = LoadBytes(Small().bytes(), {.fetches = {"y"}});
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  EXPECT_EQ(model->program.inputs()[0].name, "x");
  const auto values = TryRun(*model, {});
  ASSERT_FALSE(values.ok());
  EXPECT_THAT(values.status().message(), HasSubstr("x"));
}

TEST(TensorflowGraph, ADefaultIsTakenUnlessItIsFed) {
  Graph g;
  g.Add(FloatsNode("d", {1}, {4})).Add("PlaceholderWithDefault", "x", {"d"});
  g.Add("Square", "y", {"x"});
  EXPECT_THAT(RunGraph(g, {}, "y"), ElementsAre(16));
  EXPECT_THAT(RunGraph(g, {{"x", F32({1}, {3})}}, "y"), ElementsAre(9));
}

// The order is that of control edges alone, through a NoOp too.
TEST(TensorflowGraph, VariablesAreReadAndWrittenInTheOrderOfEdges) {
  Graph g;
  g.Add(PlaceholderNode("x")).Add("VariableV2", "v", {}, VariableOf({1}));
  g.Add(FloatsNode("one", {1}, {1})).Add(FloatsNode("ten", {1}, {10}));
  g.Add("AssignAdd", "more", {"v", "one", "^before"});
  g.Add("Mul", "after", {"v", "ten", "^gate"}).Add("NoOp", "gate", {"^more"});
  g.Add("Mul", "before", {"v", "ten", "^set"}).Add("Assign", "set", {"v", "x"});
  const auto made =
      RunGraph(g.bytes(), {{"x", F32({1}, {5})}}, std::vector<std::string>{"before", "after"});
  EXPECT_THAT(made[0], ElementsAre(50));
  EXPECT_THAT(made[1], ElementsAre(60));
}

// A comparison's "T" is the type of what it compares.
TEST(TensorflowGraph, ComparisonsAreFedAsTruths) {
  Graph g;
  g.Add(PlaceholderNode("x")).Add("Less", "less", {"x", "x"}, {{"T", TypeValue(kF)}});
  g.Add("Select", "y", {"less", "x", "minus"}).Add("Neg", "minus", {"x"});
  EXPECT_THAT(RunGraph(g, {{"x", F32({1}, {5})}, {"less:0", Bool(true)}}, "y"), ElementsAre(5));
  EXPECT_THAT(RunGraph(g, {{"x", F32({1}, {5})}, {"less:0", Bool(false)}}, "y"), ElementsAre(-5));
}

// What is fetched has the value of its time; so has what reads a resource.
TEST(TensorflowGraph, ReadsAreSnapshots) {
  Graph g;
  g.Add(PlaceholderNode("x")).Add("VarHandleOp", "h", {}, VariableOf({1}));
  g.Add(FloatsNode("one", {1}, {1})).Add("AssignVariableOp", "set", {"h", "x"});
  g.Add("ReadVariableOp", "old", {"h", "^set"});
  g.Add("AssignAddVariableOp", "more", {"h", "one", "^old"});
  g.Add("ReadVariableOp", "new", {"h", "^more"}).Add("Sub", "diff", {"new", "old"});
  const auto made =
      RunGraph(g.bytes(), {{"x", F32({1}, {5})}}, std::vector<std::string>{"old", "new", "diff"});
  EXPECT_THAT(made[0], ElementsAre(5));
  EXPECT_THAT(made[1], ElementsAre(6));
  EXPECT_THAT(made[2], ElementsAre(1));
}

TEST(TensorflowGraph, TwoNodesOfOneNameAreOneVariable) {
  Graph g;
  NamedValues shared = VariableOf({1});
  shared.emplace_back("shared_name", TextValue("kept"));
  g.Add(PlaceholderNode("x"))
      .Add("VarHandleOp", "a", {}, shared)
      .Add("VarHandleOp", "b", {}, shared);
  g.Add("AssignVariableOp", "set", {"a", "x"}).Add("ReadVariableOp", "y", {"b", "^set"});
  EXPECT_THAT(RunGraph(g, {{"x", F32({1}, {5})}}, "y"), ElementsAre(5));
}

TEST(TensorflowGraph, VariablesAreAssignedBeforeTheyAreRead) {
  Graph g;
  g.Add("VariableV2", "v", {}, VariableOf({1})).Add("Relu", "y", {"v"});
  const auto model = LoadBytes(g.bytes(), {.fetches = {"y"}});
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const auto values = TryRun(*model, {});
  ASSERT_FALSE(values.ok());
  EXPECT_THAT(values.status().message(), HasSubstr("'v'"));
}

// Operators that are run for what they do: the variable lives in the scope.
TEST(TensorflowGraph, TargetsRunWithoutBeingFetched) {
  Graph g;
  g.Add("VariableV2", "v", {}, VariableOf({2})).Add(FloatsNode("start", {2}, {1, 2}));
  g.Add("Assign", "set", {"v", "start"}).Add("NoOp", "init", {"^set"});
  g.Add("AssignSub", "step", {"v", "start"}).Add("NoOp", "train", {"^step"});
  const auto init = LoadBytes(g.bytes(), {.targets = {"init"}});
  const auto train = LoadBytes(g.bytes(), {.targets = {"train"}});
  ASSERT_TRUE(init.ok() && train.ok());
  EXPECT_TRUE(init->program.outputs().empty());
  ASSERT_EQ(WrittenPersistables(init->program).size(), 1u);
  EXPECT_EQ(WrittenPersistables(init->program)[0].name, "v");
  auto variables = std::make_shared<Scope>();
  for (const Model* model : {&*init, &*train, &*train}) {
    auto scope = std::make_shared<Scope>(variables);
    for (const std::string& name : model->scope->Names())
      scope->Set(name, *model->scope->Find(name));
    ASSERT_TRUE(TryRun({model->program, scope}, {}).ok());
  }
  ASSERT_NE(variables->Find("v"), nullptr);
  EXPECT_THAT(Floats(variables->Find("v")->tensor()), ElementsAre(-1, -2));
}

// Names within a function say the output's argument, and attributes may be the call's.
TEST(TensorflowGraph, FunctionsAreCalled) {
  Graph g;
  const Message argument = Message().Bytes(9, "N");  // AttrValue.placeholder
  g.Add(PlaceholderNode("x"));
  Message call = FunctionValue("f");
  g.Add("PartitionedCall", "c", {"x", "x"}, {{"f", call}}).Add("Relu", "y", {"c:1"});
  g.Add("f", "old", {"x", "x"}).Add("Neg", "z", {"old"});
  g.Function(
      FunctionOf("f", {"a", "b"}, {{"first", "sum:z:0"}, {"second", "b"}},
                 {NodeOf("AddV2", "sum", {"a", "twice:0:0"}), NodeOf("Frobnicate", "unused", {"a"}),
                  NodeOf("AddV2", "twice", {"b", "b"})}));
  EXPECT_THAT(RunGraph(g, {{"x", F32({1}, {2})}}, "y"), ElementsAre(2));
  EXPECT_THAT(RunGraph(g, {{"x", F32({1}, {2})}}, "z"), ElementsAre(-6));
  EXPECT_THAT(RunGraph(g, {{"x", F32({1}, {2})}}, "c"), ElementsAre(6));
}

// A node that a function must run though none of its results needs it.
TEST(TensorflowGraph, FunctionsWriteVariables) {
  Graph g;
  g.Add(PlaceholderNode("x")).Add("VarHandleOp", "h", {}, VariableOf({1}));
  g.Add("StatefulPartitionedCall", "c", {"h", "x"}, {{"f", FunctionValue("f")}});
  g.Add("ReadVariableOp", "y", {"h", "^c"});
  g.Function(FunctionOf("f", {"h", "v"}, {{"same", "v"}},
                        {NodeOf("AssignVariableOp", "set", {"h", "v"})}, {"set"}));
  EXPECT_THAT(RunGraph(g, {{"x", F32({1}, {2})}}, "y"), ElementsAre(2));
}

Message SignatureOf(const std::string& key, const std::string& input, const std::string& output) {
  const auto value = [](const std::string& name, const std::string& tensor) {
    return Message().Bytes(1, name).Add(2, Message().Bytes(1, tensor).Int(2, kF));
  };
  return Message().Bytes(1, key).Add(
      2, Message().Add(1, value("in", input)).Add(2, value("out", output)));
}

std::string SavedModelOf(const Graph& g, const std::vector<Message>& signatures,
                         const std::string& tag = "serve") {
  Message meta;
  meta.Add(1, Message().Bytes(4, tag)).Add(2, g.message());
  for (const Message& signature : signatures) meta.Add(5, signature);
  return Message().Int(1, 1).Add(2, meta).bytes();
}

TEST(TensorflowGraph, SignaturesNameInputsAndOutputs) {
  const std::string bytes = SavedModelOf(
      Small(), {SignatureOf("serving_default", "x:0", "y:0"), SignatureOf("inner", "sum:0", "y:0"),
                SignatureOf("__saved_model_init_op", "x:0", "nothing")});
  EXPECT_THAT(RunGraph(bytes, {{"in", F32({2}, {1, 1})}}, std::vector<std::string>{"out"})[0],
              ElementsAre(2, 0));
  const auto inner = LoadBytes(bytes, {.signature = "inner"});
  ASSERT_TRUE(inner.ok()) << inner.status().ToString();
  EXPECT_EQ(inner->program.inputs()[0].name, "in");
  EXPECT_EQ(inner->program.outputs()[0].name, "out");
  EXPECT_EQ(inner->program.num_ops(), 1);
  EXPECT_THAT(ErrorOf(bytes, {.signature = "other"}),
              HasSubstr("no signature 'other'; there is serving_default, inner"));
  EXPECT_THAT(ErrorOf(SavedModelOf(Small(), {}), {.signature = "other"}),
              HasSubstr("no signature 'other'; the file has none"));
}

TEST(TensorflowGraph, PartsOfAFileAreDifferentPrograms) {
  const auto a = LoadBytes(Small().bytes(), {.fetches = {"y"}});
  const auto b = LoadBytes(Small().bytes(), {.fetches = {"sum"}});
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_NE(a->program.hash(), b->program.hash());
}

// With a seed, a session's first and second run give TensorFlow 2.21's numbers; without one, no two
// nodes give the same.
TEST(TensorflowGraph, RandomOperatorsGoOnFromRunToRun) {
  Graph g;
  g.Add(IntsNode("shape", {2}, {2, 3}));
  const NamedValues seeds = {{"dtype", TypeValue(kF)},
                             {"T", TypeValue(kI)},
                             {"seed", IntValue(7)},
                             {"seed2", IntValue(11)}};
  g.Add("RandomUniform", "seeded", {"shape"}, seeds);
  g.Add("RandomUniform", "a", {"shape"}, {{"dtype", TypeValue(kF)}, {"T", TypeValue(kI)}});
  g.Add("RandomUniform", "b", {"shape"}, {{"dtype", TypeValue(kF)}, {"T", TypeValue(kI)}});
  const std::vector<std::string> fetches = {"seeded", "a", "b"};
  const auto model = LoadBytes(g.bytes(), {.fetches = fetches});
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  Executor executor({.threads = 1});
  const auto compiled = MustCompile(executor, model->program, model->scope, {.fetches = fetches});
  const float want[2][6] = {{0.023186326026916504f, 0.0994875431060791f, 0.5691264867782593f,
                             0.5842281579971313f, 0.46582305431365967f, 0.27705931663513184f},
                            {0.850058913230896f, 0.6668697595596313f, 0.06361770629882812f,
                             0.352939248085022f, 0.12856221199035645f, 0.585092306137085f}};
  std::vector<std::vector<float>> seen;
  for (const auto& run : want) {
    const auto out = MustRun(executor, compiled, {});
    EXPECT_EQ(out[0].shape(), Shape({2, 3}));
    EXPECT_EQ(Floats(out[0]), std::vector<float>(run, run + 6));
    for (const size_t k : {1, 2}) {
      EXPECT_THAT(seen, ::testing::Not(::testing::Contains(Floats(out[k]))));
      seen.push_back(Floats(out[k]));
    }
  }
}

// Runs at once draw what runs one after the other draw, each number once.
TEST(TensorflowGraph, RandomOperatorsOfRunsAtOnceTakeTurns) {
  constexpr size_t kThreads = 8, kRuns = 25;
  Graph g;
  g.Add(IntsNode("shape", {1}, {3}));
  g.Add("RandomUniform", "draw", {"shape"},
        {{"dtype", TypeValue(kF)}, {"T", TypeValue(kI)}, {"seed", IntValue(5)}});
  using Draws = std::vector<std::vector<float>>;
  const auto drawn_by = [&](size_t threads, size_t runs) {
    const auto model = LoadBytes(g.bytes(), {.fetches = {"draw"}});
    EXPECT_TRUE(model.ok()) << model.status().ToString();
    Executor executor({.threads = 2});
    const auto compiled =
        MustCompile(executor, model->program, model->scope, {.fetches = {"draw"}});
    std::vector<Draws> draws(threads);
    std::vector<std::thread> team;
    for (Draws& mine : draws)
      team.emplace_back([&] {
        for (size_t i = 0; i < runs; ++i)
          mine.push_back(Floats(MustRun(executor, compiled, {})[0]));
      });
    for (std::thread& t : team) t.join();
    Draws all;
    for (const Draws& some : draws) all.insert(all.end(), some.begin(), some.end());
    std::sort(all.begin(), all.end());
    return all;
  };
  const Draws one_by_one = drawn_by(1, kThreads * kRuns);
  EXPECT_EQ(std::set(one_by_one.begin(), one_by_one.end()).size(), one_by_one.size());
  EXPECT_EQ(drawn_by(kThreads, kRuns), one_by_one);
}

}  // namespace
}  // namespace heddle::testing::tf
