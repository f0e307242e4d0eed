#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "heddle/functions.h"

namespace heddle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = FunctionValue::Kind;

FunctionValue Int(int64_t i) {
  FunctionValue v;
  v.kind = Kind::kInt;
  v.i = i;
  return v;
}
FunctionValue Type(int64_t i) {
  FunctionValue v = Int(i);
  v.kind = Kind::kType;
  return v;
}
FunctionValue Text(Kind kind, std::string text) {
  FunctionValue v;
  v.kind = kind;
  v.text = std::move(text);
  return v;
}
FunctionValue Of(std::string attribute) { return Text(Kind::kPlaceholder, std::move(attribute)); }
FunctionValue Func(std::string name, std::vector<NamedFunctionValue> attributes = {}) {
  FunctionValue v = Text(Kind::kFunction, std::move(name));
  v.attributes = std::move(attributes);
  return v;
}
FunctionValue List(std::vector<FunctionValue> items) {
  FunctionValue v;
  v.kind = Kind::kList;
  v.items = std::move(items);
  return v;
}

// f(x: T, more: N*T) -> (y: T, rest: *Ts)
FunctionDefinition Example() {
  FunctionDefinition f;
  f.name = "f";
  f.arguments = {{.name = "x", .type_attribute = "T"},
                 {.name = "more", .type_attribute = "T", .number = "N"}};
  f.results = {{.name = "y", .type_attribute = "T", .from = "n:z:0"},
               {.name = "rest", .types = "Ts", .from = "m:output"}};
  f.attributes = {{"T", "type", {}, false}, {"N", "int", Int(2), false}, {"Ts", "list(type)", {}}};
  f.nodes = {{"n", "AddV2", {"x", "x"}, {}, {{"T", Of("T")}, {"k", Int(3)}}}};
  return f;
}

std::string ErrorOf(FunctionLibrary& library, const std::string& name,
                    const std::vector<NamedFunctionValue>& attributes = {}) {
  const auto handle = library.Instantiate(name, attributes);
  return handle.ok() ? "" : handle.status().message();
}

TEST(FunctionLibrary, InstancesHaveTypesAndDefaults) {
  FunctionLibrary library("test",
                          [](int type) { return std::string_view(type == 1 ? "float32" : ""); });
  ASSERT_TRUE(library.Add(Example()).ok());
  const auto handle = library.Instantiate("f", {{"T", Type(1)}, {"Ts", List({Type(3), Type(1)})}});
  ASSERT_TRUE(handle.ok()) << handle.status().ToString();
  const FunctionBody& body = library.Body(*handle);
  std::vector<std::pair<std::string, int>> ports;
  for (const auto* side : {&body.arguments, &body.results})
    for (const FunctionPort& p : *side) ports.emplace_back(p.name, p.type);
  EXPECT_THAT(ports,
              ElementsAre(std::pair("x", 1), std::pair("more:0", 1), std::pair("more:1", 1),
                          std::pair("y", 1), std::pair("rest:0", 3), std::pair("rest:1", 1)));
  EXPECT_THAT(body.argument_sizes, ElementsAre(1, 2));
  const auto of_node = body.AttributesOf(body.definition->nodes[0]);
  ASSERT_EQ(of_node.size(), 2u);
  EXPECT_EQ(of_node[0].value.kind, Kind::kType);
  EXPECT_EQ(of_node[0].value.i, 1);
  EXPECT_EQ(library.Signature("f"),
            "f(x: T, more: N*T) -> (y: T, rest: *Ts) {T: type, N: int = 2, Ts: list(type)}");
}

// Each attribute is found without a look at all others: in squares of their number this takes
// minutes.
TEST(FunctionLibrary, MayHaveManyAttributes) {
  constexpr int kMany = 20'000, kCalls = 20;
  FunctionDefinition f;
  f.name = "f";
  std::vector<NamedFunctionValue> given;
  for (int k = 0; k < kMany; ++k) {
    const std::string name = "a" + std::to_string(k);
    f.arguments.push_back({.name = "x" + std::to_string(k), .type_attribute = name});
    f.attributes.push_back({name, "type", {}, false});
    f.nodes.push_back(
        {"n" + std::to_string(k), "Identity", {f.arguments.back().name}, {}, {{"T", Of(name)}}});
    given.push_back({name, Type(k % 7 + 1)});
  }
  FunctionLibrary library;
  ASSERT_TRUE(library.Add(std::move(f)).ok());
  for (int call = 0; call < kCalls; ++call) {
    given.back().value = Type(call + 1);
    const auto handle = library.Instantiate("f", given);
    ASSERT_TRUE(handle.ok()) << handle.status().ToString();
    const FunctionBody& body = library.Body(*handle);
    for (const FunctionNode& node : body.definition->nodes)
      ASSERT_EQ(body.AttributesOf(node).size(), 1u);
    EXPECT_EQ(body.AttributesOf(body.definition->nodes.back())[0].value.i, call + 1);
    EXPECT_EQ(body.arguments[8].type, 2);
  }
}

TEST(FunctionLibrary, CallsOfEqualAttributesShareAnInstance) {
  FunctionLibrary library;
  ASSERT_TRUE(library.Add(Example()).ok());
  const auto make = [&](int64_t n, std::vector<NamedFunctionValue> more = {}) {
    more.push_back({"Ts", List({})});
    more.push_back({"T", Type(1)});
    if (n != 2) more.push_back({"N", Int(n)});
    return *library.Instantiate("f", more);
  };
  EXPECT_EQ(make(2), make(2, {{"N", Int(2)}}));
  EXPECT_EQ(make(2), make(2, {{"hint", Int(7)}}));
  EXPECT_NE(make(2), make(3));
  EXPECT_EQ(library.instances(), 2u);
}

TEST(FunctionLibrary, ErrorsNameFunctionNodeAndAttribute) {
  FunctionLibrary library;
  ASSERT_TRUE(library.Add(Example()).ok());
  EXPECT_FALSE(library.Add(Example()).ok());
  EXPECT_EQ(ErrorOf(library, "f", {{"Ts", List({})}}),
            "function 'f', node 'n' (AddV2): attribute 'T' is the function's 'T', which the call "
            "does not give and which has no default");
  EXPECT_EQ(ErrorOf(library, "f", {{"T", Type(1)}}),
            "function 'f', result 'rest': its type is the function's attribute 'Ts', which the "
            "call does not give and which has no default");
  EXPECT_EQ(ErrorOf(library, "f", {{"T", Int(1)}, {"Ts", List({})}}),
            "function 'f': attribute 'T' is int where its signature says type");
  EXPECT_EQ(ErrorOf(library, "f", {{"T", Type(1)}, {"Ts", List({Int(2)})}}),
            "function 'f': attribute 'Ts' is list where its signature says list(type)");
  EXPECT_EQ(ErrorOf(library, "f", {{"T", Type(1)}, {"N", Int(-1)}, {"Ts", List({})}}),
            "function 'f', 'more': attribute 'N' is no number of values");
  EXPECT_EQ(library.Instantiate("g", {}).status().code(), StatusCode::kNotFound);
}

// Which attributes a function has is also said by its nodes.
TEST(FunctionLibrary, NodesMayNameWhatTheSignatureDoesNot) {
  FunctionLibrary library;
  FunctionDefinition f;
  f.name = "f";
  f.nodes = {{"n", "Cast", {}, {}, {{"T", Of("To")}}}};
  ASSERT_TRUE(library.Add(f).ok());
  EXPECT_EQ(ErrorOf(library, "f"),
            "function 'f', node 'n' (Cast): attribute 'T' is the function's 'To', which the call "
            "does not give and the signature does not have");
  EXPECT_EQ(ErrorOf(library, "f", {{"To", Type(1)}}), "");
}

TEST(FunctionLibrary, RecursionIsOneSentence) {
  const auto calling = [](std::string name, std::vector<FunctionNode> nodes) {
    FunctionDefinition f;
    f.name = std::move(name);
    f.nodes = std::move(nodes);
    return f;
  };
  FunctionLibrary library;
  ASSERT_TRUE(library.Add(calling("self", {{"n", "self", {}, {}, {}}})).ok());
  ASSERT_TRUE(library.Add(calling("a", {{"n", "Call", {}, {}, {{"f", Func("b")}}}})).ok());
  ASSERT_TRUE(
      library.Add(calling("b", {{"n", "Case", {}, {}, {{"branches", List({Func("c")})}}}})).ok());
  ASSERT_TRUE(library.Add(calling("c", {{"n", "a", {}, {}, {}}})).ok());
  ASSERT_TRUE(library.Add(calling("outer", {{"n", "a", {}, {}, {}}})).ok());
  EXPECT_EQ(ErrorOf(library, "self"), "recursion is refused: function 'self' calls 'self'");
  for (const char* name : {"outer", "a", "outer"})
    EXPECT_EQ(ErrorOf(library, name),
              "recursion is refused: function 'a' calls 'b', which calls 'c', which calls 'a'");
  // A function that is handed to another instance of itself is no circle; to larger and larger
  // ones is one.
  ASSERT_TRUE(library.Add(calling("apply", {{"n", "Call", {}, {}, {{"f", Of("F")}}}})).ok());
  ASSERT_TRUE(library.Add(calling("leaf", {})).ok());
  EXPECT_EQ(ErrorOf(library, "apply", {{"F", Func("apply", {{"F", Func("leaf")}})}}), "");
  ASSERT_TRUE(library
                  .Add(calling("grows", {{"n",
                                          "Call",
                                          {},
                                          {},
                                          {{"g", Of("g")},
                                           {"f", Func("grows", {{"g", List({Of("g")})}})}}}}))
                  .ok());
  EXPECT_THAT(ErrorOf(library, "grows", {{"g", Int(1)}}), HasSubstr("more than 64 deep"));
}

// Functions that are added later count, too.
// A few functions of which each doubles what it is called with, or is called in two ways.
TEST(FunctionLibrary, WhatDoublesHasBounds) {
  constexpr int kDeep = 40;
  for (const bool values : {true, false}) {
    FunctionLibrary library;
    for (int k = 0; k < kDeep; ++k) {
      FunctionDefinition f;
      f.name = "f" + std::to_string(k);
      f.attributes = {{"v", "", Int(1), false}};
      const std::string next = "f" + std::to_string(k + 1);
      if (values)
        f.nodes = {{"n", next, {}, {}, {{"v", List({Of("v"), Of("v")})}}}};
      else
        for (int way = 0; way < 2; ++way)
          f.nodes.push_back(
              {"n" + std::to_string(way), next, {}, {}, {{"v", List({Int(way), Of("v")})}}});
      ASSERT_TRUE(library.Add(std::move(f)).ok());
    }
    ASSERT_TRUE(library.Add({.name = "f" + std::to_string(kDeep)}).ok());
    EXPECT_THAT(ErrorOf(library, "f0"),
                HasSubstr(values ? "the attributes of a call take more than 1048576 bytes"
                                 : "more than 65577 pairs of a function and the attributes"));
  }
  // That many functions that are there are no such case.
  FunctionLibrary many;
  FunctionDefinition all{.name = "all"};
  for (int k = 0; k < 70000; ++k) {
    const std::string name = "g" + std::to_string(k);
    ASSERT_TRUE(many.Add({.name = name}).ok());
    all.nodes.push_back({"n" + std::to_string(k), name, {}, {}, {}});
  }
  ASSERT_TRUE(many.Add(std::move(all)).ok());
  EXPECT_TRUE(many.Instantiate("all", {}).ok());
  FunctionLibrary library;
  FunctionDefinition wide{.name = "wide"};
  for (int k = 0; k < 2; ++k)
    wide.arguments.push_back({.name = "a" + std::to_string(k), .type = 1, .number = "N"});
  wide.attributes = {{"N", "int", {}, false}};
  ASSERT_TRUE(library.Add(std::move(wide)).ok());
  EXPECT_EQ(ErrorOf(library, "wide", {{"N", Int(1000)}}), "");
  EXPECT_THAT(ErrorOf(library, "wide", {{"N", Int(60000)}}),
              HasSubstr("has more than 65536 ports"));
}

TEST(FunctionLibrary, WhatAnExceptionEndsMayBeAskedForAgain) {
  FunctionLibrary library;
  ASSERT_TRUE(library.Add({.name = "f", .nodes = {{"n", "g"}}}).ok());
  int calls = 0;
  ASSERT_TRUE(library
                  .Add("g",
                       [&] {
                         if (++calls < 3) throw std::bad_alloc();
                         return FunctionDefinition{.name = "g"};
                       })
                  .ok());
  for (int k = 0; k < 2; ++k) EXPECT_THROW((void)library.Instantiate("f", {}), std::bad_alloc);
  EXPECT_EQ(ErrorOf(library, "f"), "");
}

TEST(FunctionLibrary, LaterFunctionsAreCalled) {
  FunctionLibrary library;
  FunctionDefinition f, g;
  f.name = "f";
  f.nodes = {{"n", "g", {}, {}, {}}};
  g.name = "g";
  g.nodes = {{"n", "f", {}, {}, {}}};
  ASSERT_TRUE(library.Add(f).ok());
  ASSERT_NE(library.Find("f"), nullptr);
  EXPECT_EQ(library.CallsOf("f"), 0u);
  ASSERT_TRUE(library.Add(g).ok());
  EXPECT_EQ(library.CallsOf("f"), 1u);
  EXPECT_EQ(ErrorOf(library, "f"), "recursion is refused: function 'f' calls 'g', which calls 'f'");
}

// A call graph has a circle that is reached, or it has none.
TEST(FunctionLibrary, RandomCallGraphs) {
  int circles = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const size_t count = 1 + random() % 7;
    std::vector<std::vector<size_t>> calls(count);
    FunctionLibrary library;
    std::vector<size_t> nodes_of(count);
    for (size_t k = 0; k < count; ++k) {
      FunctionDefinition f;
      f.name = "f" + std::to_string(k);
      for (size_t n = random() % 3; n > 0; --n) {
        // Mostly to later ones.
        const size_t to =
            random() % 4 != 0 ? std::min(k + 1 + random() % 3, count - 1) : random() % count;
        if (to == k && random() % 2 == 0) continue;
        calls[k].push_back(to);
        ++nodes_of[to];
        const std::string name = "f" + std::to_string(to);
        FunctionNode node{"n" + std::to_string(n), "Call", {}, {}, {}};
        if (random() % 2 == 0)
          node.op = name;
        else
          node.attributes = {{"f", random() % 2 == 0 ? Func(name) : List({Func(name)})}};
        f.nodes.push_back(std::move(node));
      }
      ASSERT_TRUE(library.Add(std::move(f)).ok());
    }
    // What each reaches by one call or more.
    std::vector<std::vector<bool>> reaches(count, std::vector<bool>(count));
    for (size_t round = 0; round < count; ++round)
      for (size_t k = 0; k < count; ++k)
        for (size_t to : calls[k]) {
          reaches[k][to] = true;
          for (size_t j = 0; j < count; ++j)
            if (reaches[to][j]) reaches[k][j] = true;
        }
    for (size_t k = 0; k < count; ++k) {
      bool circle = reaches[k][k];
      for (size_t j = 0; j < count; ++j) circle = circle || (reaches[k][j] && reaches[j][j]);
      circles += circle ? 1 : 0;
      const std::string error = ErrorOf(library, "f" + std::to_string(k));
      EXPECT_EQ(!error.empty(), circle) << "seed " << seed << ", f" << k << ": " << error;
      EXPECT_EQ(library.CallsOf("f" + std::to_string(k)), nodes_of[k]) << "seed " << seed;
    }
  }
  EXPECT_GT(circles, 100);
}

}  // namespace
}  // namespace heddle
