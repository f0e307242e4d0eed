// Loops that go on over reshapes: bits stay, and reshapes that others read stay views.
#include <gtest/gtest.h>

#include <map>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

struct ReshapedCase {
  ProgramBuilder b;
  std::vector<Feed> feeds;
  std::map<std::string, Shape> shapes;
  int next = 0;

  std::string In(const Shape& fed, const Shape& declared) {
    const std::string name = "in" + std::to_string(next++);
    shapes[name] = declared;
    b.Feed(name, DType::kF32, declared);
    feeds.push_back({name, RandomF32(fed, static_cast<uint32_t>(next))});
    return name;
  }
  std::string In(const Shape& shape) { return In(shape, shape); }
  std::string Var(const Shape& shape) {
    const std::string name = "v" + std::to_string(next++);
    shapes[name] = shape;
    b.Var(name, DType::kF32, shape);
    return name;
  }
  std::string Unary(const std::string& type, const std::string& x) {
    const std::string out = Var(shapes[x]);
    b.Op(type, {{"X", {x}}}, {{"Out", {out}}});
    return out;
  }
  std::string Binary(const std::string& type, const std::string& x, const std::string& y) {
    const std::string out = Var(shapes[x]);
    b.Op("elementwise_" + type, {{"X", {x}}, {"Y", {y}}}, {{"Out", {out}}},
         {{"axis", int64_t{-1}}});
    return out;
  }
  std::string Reshape(const std::string& x, const Ints& shape, const Shape& declared) {
    const std::string out = Var(declared), kept = Var(Shape());
    b.Op("reshape2", {{"X", {x}}}, {{"Out", {out}}, {"XShape", {kept}}}, {{"shape", shape}});
    return out;
  }
};

// The bits of level 0; at level 2 so many instructions.
void Expect(const ReshapedCase& c, int instructions) {
  ProgramBuilder b = c.b;
  const Program program = b.Build();
  Executor one({.threads = 1});
  auto plain = MustCompile(one, program, nullptr, {.opt_level = 0});
  const auto want = MustRun(one, plain, c.feeds);
  for (const int threads : {1, 2}) {
    for (const Schedule schedule : {Schedule::kAuto, Schedule::kLanes, Schedule::kParallel}) {
      Executor executor({.threads = threads});
      auto fused = MustCompile(executor, program, nullptr, {.opt_level = 2, .schedule = schedule});
      const auto got = MustRun(executor, fused, c.feeds);
      ASSERT_EQ(want.size(), got.size());
      for (size_t i = 0; i < want.size(); ++i) {
        EXPECT_EQ(want[i].shape(), got[i].shape());
        EXPECT_EQ(Bits(want[i]), Bits(got[i])) << i;
      }
      // From a queue a reshape is an instruction, which shares memory.
      if (instructions < 0 || schedule == Schedule::kParallel) continue;
      EXPECT_EQ(executor.Prepare(fused, c.feeds)->instructions, instructions)
          << *executor.PlanText(fused, c.feeds);
    }
  }
}

// tanh -> reshape -> + -> * -> - -> reshape -> square becomes one fused_elementwise.
TEST(FuseReshaped, AChainWithReshapesIsOneFusedLoop) {
  for (const int64_t n : {4, 5, 512, 2000}) {
    ReshapedCase c;
    const std::string a = c.Unary("tanh", c.In({n, 6}));
    const std::string b = c.Reshape(a, {-1, 3}, {2 * n, 3});
    const std::string d = c.Binary("mul", c.Binary("add", b, c.In({3})), c.In({2 * n, 1}));
    c.b.Fetch(c.Unary("square", c.Reshape(c.Binary("sub", d, b), {n, 3, 2}, {n, 3, 2})));
    Expect(c, 1);
  }
}

TEST(FuseReshaped, DimensionsMayBeOpen) {
  ReshapedCase c;
  const std::string a = c.Unary("relu", c.In({5, 4, 6}, {-1, 4, 6}));
  const std::string b = c.Reshape(a, {0, -1}, {-1, 24});
  c.b.Fetch(c.Binary("add", b, c.In({24})));
  Expect(c, 1);
}

// The reshaped value, of fewer elements than the result, is repeated.
TEST(FuseReshaped, AReshapedOperandMayBeRepeated) {
  ReshapedCase c;
  const std::string a = c.Unary("exp", c.In({8}));
  const std::string b = c.Unary("tanh", c.Reshape(a, {8, 1}, {8, 1}));
  c.b.Fetch(c.Binary("mul", c.In({8, 16}), b)).Fetch(a);
  Expect(c, -1);
}

// It is repeated along other elements before and after the reshape.
TEST(FuseReshaped, AnOperandMayBeRepeatedInTwoShapes) {
  ReshapedCase c;
  const std::string w = c.In({2, 1}), a = c.Binary("mul", c.In({3, 2, 4}), w);
  c.b.Fetch(c.Binary("add", c.Reshape(a, {4, 2, 3}, {4, 2, 3}), w));
  Expect(c, 1);
}

TEST(FuseReshaped, ManyInARow) {
  ReshapedCase c;
  std::string x = c.In({8, 8});
  for (int i = 0; i < 40; ++i) {
    const Shape to = i % 2 == 0 ? Shape{4, 16} : Shape{8, 8};
    x = c.Unary(i % 3 == 0 ? "tanh" : "abs",
                c.Reshape(c.Binary("add", x, c.In(c.shapes[x])), {to[0], to[1]}, to));
  }
  c.b.Fetch(x);
  Expect(c, 1);
}

TEST(FuseReshaped, WhatOthersReadStaysAView) {
  {
    SCOPED_TRACE("by another operator");
    ReshapedCase c;
    const std::string b = c.Reshape(c.Unary("tanh", c.In({4, 6})), {3, 8}, {3, 8});
    c.b.Fetch(c.Unary("square", b)).Fetch(c.Unary("softmax", b));
    Expect(c, 3);
  }
  {
    SCOPED_TRACE("of what another operator makes");
    ReshapedCase c;
    const std::string b = c.Reshape(c.Unary("softmax", c.In({4, 6})), {3, 8}, {3, 8});
    c.b.Fetch(c.Unary("square", b));
    Expect(c, 2);
  }
  {
    SCOPED_TRACE("fetched");
    ReshapedCase c;
    const std::string b = c.Reshape(c.Unary("tanh", c.In({4, 6})), {3, 8}, {3, 8});
    c.b.Fetch(c.Unary("square", b)).Fetch(b);
    Expect(c, -1);
  }
  {
    SCOPED_TRACE("its XShape is fetched");
    ReshapedCase c;
    const std::string b = c.Reshape(c.Unary("tanh", c.In({4, 6})), {3, 8}, {3, 8});
    const std::string kept = "v" + std::to_string(c.next - 1);
    c.b.Fetch(c.Unary("square", b)).Fetch(kept);
    Expect(c, -1);
  }
}

TEST(FuseReshaped, AShapeThatDoesNotFitIsAnError) {
  ReshapedCase c;
  const std::string b = c.Reshape(c.Unary("tanh", c.In({5, 6}, {-1, 6})), {4, 6}, {4, 6});
  c.b.Fetch(c.Unary("square", b));
  Executor executor({.threads = 1});
  auto fused = MustCompile(executor, c.b.Build(), nullptr, {.opt_level = 2});
  const auto result = executor.Run(fused, c.feeds);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("[5, 6]"), std::string::npos)
      << result.status().ToString();
}

}  // namespace
}  // namespace heddle::testing
