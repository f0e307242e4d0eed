// Items of lists in loops: of one known shape where all that is written has it, also through lists
// that are made of others; else found while running.
#include "executor/plan/shapes/array_items.h"

#include <gtest/gtest.h>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using Names = std::vector<std::string>;

Tensor Int(int32_t value) { return Tensor::Of(DType::kI32, Shape{1}, std::vector<int32_t>{value}); }

struct Loop {
  ProgramBuilder b = {};
  int body = 0;

  Loop() {
    b.Feed("x", DType::kF32, {-1, -1}).Feed("n", DType::kI32, {1});
    b.Fill("zero", {1}, 0, DType::kI32).Fill("one", {1}, 1, DType::kI32);
  }
  void Reserve(const std::string& list, const std::string& count) {
    b.Array(list).Op("list_reserve", {{"num_elements", {count}}}, {{"Out", {list}}});
  }
  void Get(const std::string& list, const std::string& at, const std::string& item) {
    b.Op("list_item", {{"list", {list}}, {"index", {at}}}, {{"Out", {item}}});
  }
  void Set(const std::string& list, const std::string& at, const std::string& item) {
    b.Op("list_set_item", {{"index", {at}}, {"item", {item}}}, {{"Out", {list}}});
  }
  void Begin() {
    b.Fill("i", {1}, 0, DType::kI32).Binary("less_than", "i", "n", "go");
    body = b.Block(0);
    b.In(body);
  }
  void End(Names reads, Names writes) {
    b.Increment("i").Binary("less_than", "i", "n", "go").In(0);
    for (const char* name : {"i", "n"}) reads.emplace_back(name);
    for (const char* name : {"i", "go"}) writes.emplace_back(name);
    b.Op("while", {{"X", reads}, {"Condition", {"go"}}}, {{"Out", writes}, {"StepScopes", {}}},
         {{"sub_block", BlockRef{body}}});
  }
  Names DynamicOps(const std::vector<heddle::Feed>& feeds, int block) {
    Executor executor({.threads = 1});
    const auto plan =
        executor.DescribePlan(MustCompile(executor, b.Build(), nullptr, {.opt_level = 0}), feeds);
    EXPECT_TRUE(plan.ok()) << plan.status().ToString();
    Names dynamic;
    for (const auto& in : plan->instructions)
      if (in.block == block && in.mode == "dynamic") dynamic.push_back(in.op);
    return dynamic;
  }
  std::vector<Tensor> Run(const std::vector<heddle::Feed>& feeds) {
    Executor executor({.threads = 1, .poison = true});
    auto compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = 0});
    auto first = MustRun(executor, compiled, feeds);
    const auto again = MustRun(executor, compiled, feeds);
    for (size_t i = 0; i < first.size(); ++i) EXPECT_EQ(Bits(first[i]), Bits(again[i]));
    return first;
  }
};

TEST(ArrayItems, ListsOfOneShapeAreStatic) {
  Loop l;
  l.b.Array("rows").Op("list_split", {{"tensor", {"x"}}}, {{"Out", {"rows"}}},
                       {{"keepdims", false}});
  l.Reserve("made", "n");
  l.b.Array("carried").Unary("assign", "made", "carried");
  l.Begin();
  l.Get("rows", "i", "row");
  l.b.Scale("row", "twice", 2);
  l.Set("carried", "i", "twice");
  l.End({"rows", "carried"}, {"carried"});
  l.b.Op("list_stack", {{"list", {"carried"}}, {"num_elements", {"n"}}}, {{"Out", {"y"}}});
  l.b.Fetch("y");
  const std::vector<heddle::Feed> feeds = {{"x", F32({3, 2}, {1, 2, 3, 4, 5, 6})}, {"n", Int(3)}};
  EXPECT_EQ(l.DynamicOps(feeds, l.body), Names());
  EXPECT_EQ(Floats(l.Run(feeds)[0]), (std::vector<float>{2, 4, 6, 8, 10, 12}));
}

// `b` begins each round as `a`, whose items are known only at the end of the round.
TEST(ArrayItems, ItemsArriveThroughOtherLists) {
  Loop l;
  l.b.Fill("two", {1}, 2, DType::kI32).Fill("row", {1, 2}, 7).Fill("long_row", {3}, 9);
  l.Reserve("a", "two");
  l.b.Array("b").Fill("out", {1}, 0);
  l.Begin();
  l.b.Unary("assign", "a", "b");
  l.Set("b", "zero", "long_row");
  l.Get("b", "one", "item");
  l.b.Unary("assign", "item", "out");
  l.Set("a", "one", "row");
  l.End({"a", "row", "long_row", "zero", "one"}, {"a", "out"});
  l.b.Scale("out", "y", 1).Fetch("y");
  const auto run = [&](int32_t n) { return l.Run({{"x", F32({1, 1}, {0})}, {"n", Int(n)}})[0]; };
  EXPECT_EQ(Floats(run(1)), (std::vector<float>{0, 0, 0}));  // it was never set
  EXPECT_EQ(run(2).shape(), (Shape{1, 2}));
  EXPECT_EQ(Floats(run(3)), (std::vector<float>{7, 7}));
}

// The item of the round before says nothing of one that was never set.
TEST(ArrayItems, AnItemWithoutAShapeIsAnErrorInEachRound) {
  Loop l;
  l.b.Fill("row", {1, 2}, 7).Fill("two", {1}, 2, DType::kI32);
  l.b.Array("list").Fill("out", {1}, 0);
  l.Begin();
  l.Reserve("list", "two");
  const int body = l.body, set = l.b.Block(body);
  l.b.Binary("less_than", "i", "one", "first");
  l.b.In(set);
  l.Set("list", "zero", "row");
  l.b.In(body).Op("conditional_block", {{"Cond", {"first"}}, {"Input", {"row", "zero"}}},
                  {{"Out", {"list"}}, {"Scope", {}}},
                  {{"sub_block", BlockRef{set}}, {"is_scalar_condition", true}});
  l.Get("list", "zero", "item");
  l.b.Unary("assign", "item", "out");
  l.End({"row", "zero", "one", "two", "list"}, {"list", "out"});
  l.b.Scale("out", "y", 1).Fetch("y");
  Executor executor({.threads = 1});
  auto compiled =
      MustCompile(executor, l.b.Build(), nullptr, {.opt_level = 0, .dynamic_bodies = true});
  const auto run = [&](int32_t n) {
    return executor.Run(compiled, {{"x", F32({1, 1}, {0})}, {"n", Int(n)}});
  };
  EXPECT_TRUE(run(1).ok()) << run(1).status().ToString();
  EXPECT_NE(run(2).status().ToString().find("was never set, and nothing says"), std::string::npos)
      << run(2).status().ToString();
}

TEST(ArrayItems, WhatNamesNoShapeTellsNothing) {
  Loop l;
  l.Reserve("list", "n");
  l.Set("list", "zero", "x");
  l.Get("list", "zero", "y");
  l.b.Fetch("y");
  const std::vector<heddle::Feed> feeds = {{"x", F32({1, 2}, {3, 4})}, {"n", Int(1)}};
  EXPECT_EQ(l.DynamicOps(feeds, 0), Names());
  EXPECT_EQ(Floats(l.Run(feeds)[0]), (std::vector<float>{3, 4}));
}

}  // namespace
}  // namespace heddle::testing
