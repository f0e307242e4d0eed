// Functions with signatures, attributes and several outputs, called by each other.
#include "heddle/functions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/formats/tensorflow/function_bytes.h"

namespace heddle::testing::tf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Fetching(const Graph& g, const std::string& fetch) {
  ProgramPart part;
  part.fetches = {fetch};
  return ErrorOf(g.bytes(), part);
}

TEST(TensorflowFunctions, MistakesAreOneError) {
  const auto calling = [](const NamedValues& given, const std::vector<Attribute>& declared) {
    Graph g;
    g.Add(PlaceholderNode("x"))
        .Add("PartitionedCall", "c", {"x"}, {{"f", FunctionValue("f", given)}});
    g.Function(
        DefinitionOf("f", {{"a", "", "", ""}}, {{"r", "", "", "n:activations:0"}}, declared,
                     {NodeOf("LeakyRelu", "n", {"a"},
                             {{"T", TypeValue(kF)}, {"alpha", PlaceholderValue("slope")}})}));
    return Fetching(g, "c");
  };
  EXPECT_EQ(calling({{"slope", FloatValue(1)}}, {{"slope", "float", {}}}), "");
  EXPECT_EQ(calling({}, {{"slope", "float", FloatValue(1)}}), "");
  EXPECT_THAT(calling({}, {{"slope", "float", {}}}),
              HasSubstr("op 1 (PartitionedCall 'c'): function 'f', node 'n' (LeakyRelu): attribute "
                        "'alpha' is the function's 'slope', which the call does not give and which "
                        "has no default"));
  EXPECT_THAT(calling({}, {}), HasSubstr("and the signature does not have"));
  EXPECT_THAT(calling({{"slope", IntValue(1)}}, {{"slope", "float", {}}}),
              HasSubstr("attribute 'slope' is int where its signature says float"));
}

TEST(TensorflowFunctions, TheTextFormHasDefaults) {
  const std::string text = R"(
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "y" op: "PartitionedCall" input: "x"
           attr { key: "f" value { func { name: "f" } } } }
    library {
      function {
        signature {
          name: "f"
          input_arg { name: "a" type: DT_FLOAT }
          output_arg { name: "r" type: DT_FLOAT }
          attr { name: "slope" type: "float" default_value { f: 0.25 }
                 description: "of what is less" }
          attr { name: "unused" type: "int" has_minimum: true minimum: 1 default_value { i: 2 } }
        }
        node_def {
          name: "n" op: "LeakyRelu" input: "a"
          attr { key: "T" value { type: DT_FLOAT } }
          attr { key: "alpha" value { placeholder: "slope" } }
        }
        ret { key: "r" value: "n:activations:0" }
      }
    }
    versions { producer: 1882 })";
  EXPECT_THAT(RunGraph(text, {{"x", F32({1}, {-4})}}, {"y"})[0], ElementsAre(-1));
}

TEST(TensorflowFunctions, OutputsOfCallsHaveTheNamesOfTheSignature) {
  Graph g;
  g.Add(PlaceholderNode("x")).Add("PartitionedCall", "c", {"x"}, {{"f", FunctionValue("outer")}});
  g.Function(FunctionOf("inner", {"a"}, {{"first", "n:y:0"}, {"second", "a"}, {"third", "t:y:0"}},
                        {NodeOf("Neg", "n", {"a"}), NodeOf("Tanh", "t", {"a"})}));
  g.Function(FunctionOf("outer", {"a"}, {{"r", "i:second:0"}, {"s", "i:first:0"}},
                        {NodeOf("inner", "i", {"a"})}));
  EXPECT_THAT(RunGraph(g, {{"x", F32({1}, {2})}}, "c"), ElementsAre(2));
  EXPECT_THAT(RunGraph(g, {{"x", F32({1}, {2})}}, "c:1"), ElementsAre(-2));
  Graph wrong = g;
  wrong.Add("PartitionedCall", "d", {"x"}, {{"f", FunctionValue("wrong")}});
  wrong.Function(FunctionOf("wrong", {"a"}, {{"r", "i:fourth:0"}}, {NodeOf("inner", "i", {"a"})}));
  EXPECT_THAT(Fetching(wrong, "d"), HasSubstr("function 'wrong': nothing makes its output 'r'"));
}

TEST(TensorflowFunctions, AFunctionThatIsHandedOnIsCalled) {
  Graph g;
  const auto apply = [](std::string_view f) {
    return FunctionValue("apply", {{"F", FunctionValue(f, {})}});
  };
  g.Add(PlaceholderNode("x"));
  g.Add("PartitionedCall", "c", {"x"}, {{"f", apply("neg")}});
  g.Add("PartitionedCall", "d", {"c"}, {{"f", FunctionValue("apply", {{"F", apply("twice")}})}});
  g.Function(DefinitionOf("apply", {{"a", "", "", ""}}, {{"r", "", "", "n:output:0"}},
                          {{"F", "func", {}}},
                          {NodeOf("PartitionedCall", "n", {"a"}, {{"f", PlaceholderValue("F")}})}));
  g.Function(FunctionOf("neg", {"a"}, {{"r", "n:y:0"}}, {NodeOf("Neg", "n", {"a"})}));
  g.Function(FunctionOf("twice", {"a"}, {{"r", "n:z:0"}}, {NodeOf("AddV2", "n", {"a", "a"})}));
  EXPECT_THAT(RunGraph(g, {{"x", F32({1}, {2})}}, "d"), ElementsAre(-4));
}

TEST(TensorflowFunctions, TheLibrarySaysSignaturesAndCalls) {
  Graph g;
  g.Add(PlaceholderNode("x")).Add("g", "c", {"x"}).Add("g", "d", {"c"});
  g.Function(DefinitionOf("g", {{"a", "T", "", ""}}, {{"r", "T", "", "n:z:0"}},
                          {{"T", "type", TypeValue(kF)}},
                          {NodeOf("f", "n", {"a", "a"}, {{"T", PlaceholderValue("T")}})}));
  g.Function(DefinitionOf(
      "f", {{"a", "T", "N", ""}}, {{"z", "T", "", "n:sum:0"}},
      {{"T", "type", {}}, {"N", "int", IntValue(2)}},
      {NodeOf("AddN", "n", {"a"}, {{"T", PlaceholderValue("T")}, {"N", PlaceholderValue("N")}})}));
  ProgramPart part;
  part.fetches = {"d"};
  const auto model = LoadBytes(g.bytes(), part);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  auto library = FunctionsOf(model->program);
  ASSERT_TRUE(library.ok());
  EXPECT_THAT(library->names(), ElementsAre("g", "f"));
  EXPECT_EQ(library->Signature("g"), "g(a: T) -> (r: T) {T: type = float32}");
  EXPECT_EQ(library->Signature("f"), "f(a: N*T) -> (z: T) {T: type, N: int = 2}");
  EXPECT_EQ(library->CallsOf("g"), 2u);
  EXPECT_EQ(library->CallsOf("f"), 1u);
  EXPECT_THAT(RunGraph(g, {{"x", F32({1}, {2})}}, "d"), ElementsAre(8));
}

}  // namespace
}  // namespace heddle::testing::tf
