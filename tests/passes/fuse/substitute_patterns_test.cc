// Patterns that fused operators declare.
#include "passes/fuse/substitute_patterns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "passes/pass_manager.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using passes::PassContext;
using ::testing::ElementsAre;

const Shape kImage = {1, 2, 4, 4};

// conv2d -> add -> relu, as y.
struct Chain : ProgramBuilder {
  Chain() {
    Feed("x", DType::kF32, kImage);
    Param("w", DType::kF32, {2, 2, 1, 1}).Param("bias", DType::kF32, {2});
    for (const char* name : {"c", "s", "y"}) Var(name, DType::kF32, kImage);
    Op("conv2d", {{"Input", {"x"}}, {"Filter", {"w"}}}, {{"Output", {"c"}}});
    Op("elementwise_add", {{"X", {"c"}}, {"Y", {"bias"}}}, {{"Out", {"s"}}},
       {{"axis", int64_t{1}}});
    Op("relu", {{"X", {"s"}}}, {{"Out", {"y"}}});
    Fetch("y");
  }
};

bool Always(const FuseMatch&, ir::Op*) { return true; }
bool Never(const FuseMatch&, ir::Op*) { return false; }

const FusePattern kShort = {
    .ops = {"conv2d", "elementwise_add"},
    .operands = {{"Input", 0, "Input"}, {"Filter", 0, "Filter"}, {"Bias", 1, "Y"}},
    .output = "Output",
    .fits = Always};
FusePattern Long() {
  FusePattern p = kShort;
  p.ops.push_back("relu");
  return p;
}

std::vector<std::string> After(const ProgramBuilder& b,
                               std::vector<std::pair<std::string, FusePattern>> patterns) {
  const Program built = b.Build();
  ir::Program program = built.ir();
  Scope source, folded;
  PassContext context(source, folded);
  for (const ir::Port& f : program.fetches) context.fetched.insert(f.var);
  const bool changed = passes::SubstitutePatterns(program, context, patterns);
  std::vector<std::string> types;
  for (const ir::Op& op : program.blocks[0].ops) types.push_back(op.type());
  EXPECT_EQ(changed, types.size() < built.ir().blocks[0].ops.size());
  return types;
}

TEST(SubstitutePatterns, TheFirstThatFitsIsTaken) {
  EXPECT_THAT(After(Chain(), {{"fused_conv2d", Long()}, {"fused_conv2d", kShort}}),
              ElementsAre("fused_conv2d"));
  FusePattern declines = Long();
  declines.fits = Never;
  EXPECT_THAT(After(Chain(), {{"fused_conv2d", declines}, {"fused_conv2d", kShort}}),
              ElementsAre("fused_conv2d", "relu"));
}

TEST(SubstitutePatterns, LongPatternsComeFirst) {
  size_t last = 100;
  for (const auto& [type, pattern] : FusePatterns()) {
    EXPECT_LE(pattern.ops.size(), last) << type;
    last = pattern.ops.size();
    EXPECT_TRUE(pattern.fits != nullptr) << type;
  }
  EXPECT_FALSE(FusePatterns().empty());
}

TEST(SubstitutePatterns, ASecondReaderOrAFetchBlocks) {
  Chain read;
  read.Var("other", DType::kF32, kImage).Unary("tanh", "s", "other").Fetch("other");
  EXPECT_THAT(After(read, {{"fused_conv2d", Long()}}),
              ElementsAre("conv2d", "elementwise_add", "relu", "tanh"));
  Chain fetched;
  fetched.Fetch("c");
  EXPECT_THAT(After(fetched, {{"fused_conv2d", Long()}}),
              ElementsAre("conv2d", "elementwise_add", "relu"));
}

TEST(SubstitutePatterns, WithoutAKernelOrASlotNothingHappens) {
  const std::vector<std::string> plain = {"conv2d", "elementwise_add", "relu"};
  EXPECT_EQ(After(Chain(), {{"no_such_operator", Long()}}), plain);
  FusePattern forgets = Long();
  forgets.operands.pop_back();
  EXPECT_EQ(After(Chain(), {{"fused_conv2d", forgets}}), plain);
  FusePattern wrong = Long();
  wrong.operands.back().slot = "NoSuchSlot";
  EXPECT_EQ(After(Chain(), {{"fused_conv2d", wrong}}), plain);
}

TEST(SubstitutePatterns, AnOperandWrittenInBetweenBlocks) {
  Chain b;
  b.Op("scale", {{"X", {"x"}}}, {{"Out", {"bias"}}});  // bias is written: it has two values
  EXPECT_THAT(After(b, {{"fused_conv2d", Long()}}),
              ElementsAre("conv2d", "elementwise_add", "relu", "scale"));
}

Tensor Random(const Shape& shape, uint32_t seed) { return RandomF32(shape, seed, 2); }

// layer_norm(x + y): whether level 2 makes one operator of it; results are compared with level 0.
bool Fused(const Shape& x, const Shape& y, const Shape& declared, int64_t begin = 2,
           bool affine = true) {
  ProgramBuilder b;
  auto scope = std::make_shared<Scope>();
  b.Feed("x", DType::kF32, declared)
      .Feed("y", DType::kF32, y.rank() == declared.rank() ? declared : y);
  const Shape width = {x.Product(static_cast<int>(begin), x.rank())};
  for (const char* name : {"scale", "bias"}) {
    b.Param(name, DType::kF32, width);
    scope->Set(name, Value(Random(width, name[0])));
  }
  b.Var("s", DType::kF32, declared).Var("z", DType::kF32, declared);
  b.Op("elementwise_add", {{"X", {"x"}}, {"Y", {"y"}}}, {{"Out", {"s"}}});
  Slots in = {{"X", {"s"}}};
  if (affine) in.insert(in.end(), {{"Scale", {"scale"}}, {"Bias", {"bias"}}});
  b.Op("layer_norm", in, {{"Y", {"z"}}}, {{"begin_norm_axis", begin}, {"epsilon", 1e-5}});
  b.Fetch("z");
  std::vector<float> results[2];
  int instructions[2] = {};
  for (int k : {0, 1}) {
    Executor executor({.threads = 2});
    const auto compiled = MustCompile(executor, b.Build(), scope, {.opt_level = 2 * k});
    const std::vector<heddle::Feed> feeds = {{"x", Random(x, 1)}, {"y", Random(y, 2)}};
    results[k] = Floats(MustRun(executor, compiled, feeds)[0]);
    instructions[k] = executor.Prepare(compiled, feeds)->instructions;
  }
  EXPECT_EQ(results[0].size(), results[1].size());
  for (size_t i = 0; i < results[0].size() && i < results[1].size(); ++i)
    EXPECT_NEAR(results[0][i], results[1][i], 1e-5 * (1 + std::abs(results[0][i])));
  return instructions[1] < instructions[0];
}

TEST(FusedLayerNorm, SumsOfEqualShapes) {
  EXPECT_TRUE(Fused({2, 5, 16}, {2, 5, 16}, {2, 5, 16}));
  EXPECT_TRUE(Fused({2, 5, 16}, {2, 5, 16}, {-1, -1, 16}, 2, false));
  EXPECT_TRUE(Fused({3, 2, 7}, {3, 2, 7}, {-1, 2, 7}, 1));
}

TEST(FusedLayerNorm, OpenDimensionsMayBroadcast) {
  EXPECT_TRUE(Fused({2, 5, 16}, {1, 5, 16}, {-1, -1, 16}));
  EXPECT_TRUE(Fused({1, 5, 16}, {4, 1, 16}, {-1, -1, 16}));
  EXPECT_TRUE(Fused({4, 1, 8}, {4, 6, 8}, {-1, -1, 8}));
}

TEST(FusedLayerNorm, WhatStays) {
  EXPECT_FALSE(Fused({2, 5, 16}, {16}, {2, 5, 16}));
  EXPECT_FALSE(Fused({2, 5, 16}, {2, 5, 16}, {2, 5, -1}));
}

}  // namespace
}  // namespace heddle::testing
