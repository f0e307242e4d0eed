// Channels last: channels that are dealt out anew stay last where they can, and results stay what
// they are.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

constexpr int64_t kChannels = 12, kSide = 9;

Tensor Values(const Shape& shape, float seed) {
  std::vector<float> v(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < v.size(); ++i) v[i] = std::sin(static_cast<float>(i) * seed);
  return F32(shape, v);
}

struct Shuffle {
  Ints split{-1, 3, 4, kSide, kSide}, axis{0, 2, 1, 3, 4}, merged{-1, kChannels, kSide, kSide};
  std::string fetch_too = "";  // a variable in the middle
  bool read_twice = false;     // another reader of one
  int64_t batch = 2;
};

// conv -> reshape -> transpose -> reshape -> conv
Program Build(const Shuffle& s) {
  const Shape image{-1, kChannels, kSide, kSide};
  ProgramBuilder b;
  b.Feed("x", DType::kF32, image);
  for (const char* w : {"w1", "w2"}) b.Param(w, DType::kF32, {kChannels, kChannels, 3, 3});
  auto convolve = [&](const std::string& x, const std::string& w, const std::string& y) {
    b.Var(y, DType::kF32, image);
    b.Op("conv2d", {{"Input", {x}}, {"Filter", {w}}}, {{"Output", {y}}},
         {{"strides", Ints{1, 1}}, {"paddings", Ints{1, 1}}, {"dilations", Ints{1, 1}}});
  };
  auto reshape = [&](const std::string& x, const std::string& y, const Ints& shape) {
    b.Var(y, DType::kF32, Shape(std::span(shape)));
    b.Op("reshape2", {{"X", {x}}}, {{"Out", {y}}, {"XShape", {y + ".x"}}}, {{"shape", shape}});
  };
  convolve("x", "w1", "a");
  reshape("a", "s", s.split);
  Shape moved;
  for (int64_t d : s.axis) moved.push_back(s.split[static_cast<size_t>(d)]);
  b.Var("t", DType::kF32, moved);
  b.Op("transpose2", {{"X", {"s"}}}, {{"Out", {"t"}}, {"XShape", {"t.x"}}}, {{"axis", s.axis}});
  reshape("t", "m", s.merged);
  convolve("m", "w2", "y");
  b.Fetch("y");
  if (!s.fetch_too.empty()) b.Fetch(s.fetch_too);
  if (s.read_twice) b.Scale("t", "again", 2).Fetch("again");
  return b.Build();
}

// conv -> lrn -> conv; the lrn's sums are an output, too, where they are fetched.
Program BuildNormalised(bool fetch_sums) {
  const Shape image{-1, kChannels, kSide, kSide};
  ProgramBuilder b;
  b.Feed("x", DType::kF32, image);
  for (const char* w : {"w1", "w2"}) b.Param(w, DType::kF32, {kChannels, kChannels, 3, 3});
  for (const char* v : {"a", "n", "sums", "y"}) b.Var(v, DType::kF32, image);
  const auto convolve = [&](const char* x, const char* w, const char* y) {
    b.Op("conv2d", {{"Input", {x}}, {"Filter", {w}}}, {{"Output", {y}}},
         {{"strides", Ints{1, 1}}, {"paddings", Ints{1, 1}}, {"dilations", Ints{1, 1}}});
  };
  convolve("x", "w1", "a");
  b.Op("lrn", {{"X", {"a"}}}, {{"Out", {"n"}}, {"MidOut", {"sums"}}},
       {{"alpha", 0.5}, {"beta", 0.75}, {"n", int64_t{5}}});
  convolve("n", "w2", "y");
  b.Fetch("y");
  if (fetch_sums) b.Fetch("sums");
  return b.Build();
}

// conv -> mean over rows and columns, times the convolution's result -> conv
Program BuildGated(const Ints& dims, bool keep) {
  const Shape image{-1, kChannels, kSide, kSide};
  ProgramBuilder b;
  b.Feed("x", DType::kF32, image);
  for (const char* w : {"w1", "w2"}) b.Param(w, DType::kF32, {kChannels, kChannels, 3, 3});
  for (const char* v : {"a", "s", "y"}) b.Var(v, DType::kF32, image);
  const auto convolve = [&](const char* x, const char* w, const char* y) {
    b.Op("conv2d", {{"Input", {x}}, {"Filter", {w}}}, {{"Output", {y}}},
         {{"strides", Ints{1, 1}}, {"paddings", Ints{1, 1}}, {"dilations", Ints{1, 1}}});
  };
  convolve("x", "w1", "a");
  b.Var("m", DType::kF32, keep ? Shape{-1, kChannels, 1, 1} : Shape{-1, kChannels});
  b.Op("reduce_mean", {{"X", {"a"}}}, {{"Out", {"m"}}}, {{"dim", dims}, {"keep_dim", keep}});
  b.Op("elementwise_mul", {{"X", {"a"}}, {"Y", {"m"}}}, {{"Out", {"s"}}},
       {{"axis", keep ? int64_t{-1} : int64_t{0}}});
  convolve("s", "w2", "y");
  return b.Fetch("y").Build();
}

std::shared_ptr<Scope> Parameters() {
  auto scope = std::make_shared<Scope>();
  scope->Set("w1", Value(Values({kChannels, kChannels, 3, 3}, 1.7f)));
  scope->Set("w2", Value(Values({kChannels, kChannels, 3, 3}, 2.3f)));
  return scope;
}

// The number of instructions at level 2, after a check that results are those of level 0.
int InstructionsOf(const Program& program, const std::vector<Feed>& feeds) {
  const auto scope = Parameters();
  std::vector<Tensor> out[2];
  int instructions = 0;
  for (const int level : {0, 2}) {
    Executor executor({.threads = 2});
    auto compiled = MustCompile(executor, program, scope, {.opt_level = level});
    out[level / 2] = MustRun(executor, compiled, feeds);
    const auto stats = executor.Prepare(compiled, feeds);
    EXPECT_TRUE(stats.ok()) << stats.status().ToString();
    if (stats.ok()) instructions = stats->instructions;
  }
  EXPECT_EQ(out[0].size(), out[1].size());
  for (size_t i = 0; i < out[0].size(); ++i) {
    EXPECT_EQ(out[0][i].shape(), out[1][i].shape());
    const auto a = Floats(out[0][i]), b = Floats(out[1][i]);
    for (size_t k = 0; k < a.size(); ++k)
      if (std::abs(a[k] - b[k]) > 1e-4 * (1 + std::abs(a[k]))) {
        ADD_FAILURE() << "output " << i << ", element " << k << ": " << a[k] << " and " << b[k];
        break;
      }
  }
  return instructions;
}

int InstructionsOf(const Program& program, int64_t batch) {
  return InstructionsOf(program, {{"x", Values({batch, kChannels, kSide, kSide}, 0.7f)}});
}

int Instructions(const Shuffle& s) { return InstructionsOf(Build(s), s.batch); }

// In and out of channels last, two convolutions, and one transpose between them.
constexpr int kStays = 5, kLeaves = 7;

TEST(ChannelShuffle, StaysLast) {
  EXPECT_EQ(kStays, Instructions({}));
  EXPECT_EQ(kStays, Instructions({.split = {0, 2, 6, kSide, kSide}, .batch = 1}));
}

TEST(ChannelShuffle, OtherTransposesAreNotTouched) {
  EXPECT_EQ(kLeaves, Instructions({.axis = {0, 2, 1, 4, 3}}));
  EXPECT_EQ(kLeaves, Instructions({.split = {-1, 3, 12, 3, kSide}, .axis = {0, 2, 1, 3, 4}}));
}

TEST(ChannelShuffle, WhatOthersSeeKeepsItsShape) {
  EXPECT_LT(kStays, Instructions({.fetch_too = "s"}));
  EXPECT_LT(kStays, Instructions({.fetch_too = "t"}));
  EXPECT_LT(kStays, Instructions({.read_twice = true}));
  // The result in both layouts.
  EXPECT_EQ(kStays + 1, Instructions({.fetch_too = "m"}));
}

// transpose -> conv -> transpose back
int InstructionsOfTransposed(const Shape& from, const Ints& axis, const Ints& back) {
  Shape image;
  for (const int64_t d : axis) image.push_back(from[static_cast<int>(d < 0 ? d + from.rank() : d)]);
  ProgramBuilder b;
  b.Feed("x", DType::kF32, from).Param("w1", DType::kF32, {kChannels, kChannels, 3, 3});
  b.Var("t", DType::kF32, image).Var("c", DType::kF32, image).Var("y", DType::kF32, from);
  b.Op("transpose2", {{"X", {"x"}}}, {{"Out", {"t"}}, {"XShape", {"t.x"}}}, {{"axis", axis}});
  b.Op("conv2d", {{"Input", {"t"}}, {"Filter", {"w1"}}}, {{"Output", {"c"}}},
       {{"strides", Ints{1, 1}}, {"paddings", Ints{1, 1}}, {"dilations", Ints{1, 1}}});
  b.Op("transpose2", {{"X", {"c"}}}, {{"Out", {"y"}}, {"XShape", {"y.x"}}}, {{"axis", back}});
  return InstructionsOf(b.Fetch("y").Build(), {{"x", Values(from, 0.7f)}});
}

// The last transpose becomes a name for the result, which counts as an instruction.
TEST(ChannelsLast, OneConvolutionIsEnoughWhereATransposePutChannelsSecond) {
  EXPECT_EQ(2, InstructionsOfTransposed({2, kSide, 5, kChannels}, {0, 3, 1, 2}, {0, 2, 3, 1}));
  EXPECT_EQ(2, InstructionsOfTransposed({2, kSide, kChannels, 1}, {0, 2, 1, 3}, {0, 2, 1, 3}));
  EXPECT_EQ(3, InstructionsOfTransposed({2, kSide, kChannels, 5}, {0, 2, 1, 3}, {0, 2, 1, 3}));
  EXPECT_EQ(2, InstructionsOfTransposed({2, kSide, 5, kChannels}, {0, -1, 1, 2}, {0, 2, 3, 1}));
  EXPECT_EQ(2, InstructionsOfTransposed({2, kSide, kChannels, 1}, {0, -2, 1, 3}, {0, 2, 1, 3}));
  EXPECT_EQ(3, InstructionsOfTransposed({2, kSide, kChannels, 5}, {0, -2, 1, 3}, {0, 2, 1, 3}));
}

// Axes that are no permutation are an error of the operator at every level.
TEST(ChannelsLast, AxesOfTransposesMayBeWrong) {
  const Shape image{2, kChannels, kSide, kSide};
  for (const Ints& axis :
       {Ints{}, Ints{0}, Ints{0, 9, 1, 2}, Ints{0, -9, 1, 2}, Ints{0, 3, 1, 2, 4}})
    for (const int level : {0, 2}) {
      ProgramBuilder b;
      b.Feed("x", DType::kF32, {2, kSide, kSide, kChannels}).Var("t", DType::kF32, image);
      b.Param("w1", DType::kF32, {kChannels, kChannels, 3, 3}).Var("y", DType::kF32, image);
      b.Op("transpose2", {{"X", {"x"}}}, {{"Out", {"t"}}, {"XShape", {"t.x"}}}, {{"axis", axis}});
      b.Op("conv2d", {{"Input", {"t"}}, {"Filter", {"w1"}}}, {{"Output", {"y"}}});
      const auto program = b.Fetch("y").TryBuild();
      if (!program.ok()) continue;
      Executor executor;
      const auto compiled = executor.Compile(*program, Parameters(), {.opt_level = level});
      if (!compiled.ok()) continue;
      EXPECT_FALSE(executor.Run(*compiled, {{"x", Values({2, kSide, kSide, kChannels}, 1)}}).ok())
          << axis.size() << " axes, level " << level;
    }
}

TEST(ChannelsLast, MeansOfImagesStayLast) {
  EXPECT_EQ(6, InstructionsOf(BuildGated({2, 3}, true), 2));
  EXPECT_EQ(6, InstructionsOf(BuildGated({-1, -2}, true), 3));
  EXPECT_LT(6, InstructionsOf(BuildGated({2, 3}, false), 2));
}

TEST(ChannelsLast, ResponseNormalisationStaysLastUnlessItsSumsAreRead) {
  EXPECT_EQ(5, InstructionsOf(BuildNormalised(false), 2));
  EXPECT_LT(5, InstructionsOf(BuildNormalised(true), 2));
}

// for (i = 0; i < 3; ++i) h = conv(relu(conv(h))) + h, where h begins as x * 0.5; with `overwrite`,
// h becomes x * 2 between the convolutions.
Program BuildLoop(bool overwrite) {
  const Shape image{-1, kChannels, kSide, kSide};
  ProgramBuilder b;
  b.Feed("x", DType::kF32, image);
  for (const char* w : {"w1", "w2"}) b.Param(w, DType::kF32, {kChannels, kChannels, 3, 3});
  for (const char* v : {"h", "y"}) b.Var(v, DType::kF32, image);
  b.Scale("x", "h", 0.5);
  b.Fill("i", {1}, 0, DType::kI64).Fill("n", {1}, 3, DType::kI64).Var("go", DType::kBool, {1});
  b.Binary("less_than", "i", "n", "go");
  const int body = b.Block(0);
  b.In(body);
  for (const char* v : {"a", "r", "c", "s", "z"}) b.Var(v, DType::kF32, image);
  const auto convolve = [&](const char* x, const char* w, const char* y) {
    b.Op("conv2d", {{"Input", {x}}, {"Filter", {w}}}, {{"Output", {y}}},
         {{"strides", Ints{1, 1}}, {"paddings", Ints{1, 1}}, {"dilations", Ints{1, 1}}});
  };
  convolve("h", "w1", "a");
  b.Unary("relu", "a", "r");
  if (overwrite) b.Scale("x", "h", 2);
  convolve("r", "w2", "c");
  b.Binary("elementwise_add", "c", "h", "s").Scale("s", "z", 0.05).Unary("assign", "z", "h");
  b.Increment("i").Binary("less_than", "i", "n", "go").In(0);
  b.Op("while", {{"X", {"h", "x", "i", "n"}}, {"Condition", {"go"}}},
       {{"Out", {"h", "i", "go"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{body}}});
  b.Scale("h", "y", 1).Fetch("y");
  return b.Build();
}

TEST(ChannelsLast, WhatALoopCarriesHasATwinUntilItIsWritten) {
  for (const bool overwrite : {false, true}) {
    const Program program = BuildLoop(overwrite);
    InstructionsOf(program, 2);
    Executor executor;
    const auto compiled = MustCompile(executor, program, Parameters(), {.opt_level = 2});
    const auto plan =
        executor.DescribePlan(compiled, {{"x", Values({2, kChannels, kSide, kSide}, 0.7f)}});
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    int last = 0, transposes = 0;
    for (const auto& in : plan->instructions) transposes += in.block == 1 && in.op == "transpose2";
    EXPECT_EQ(transposes, overwrite ? 3 : 0);  // see carry_layout
    for (const auto& in : plan->instructions)
      for (const auto& [name, value] : in.attributes)
        last += in.block == 1 && name == "data_format" && value == AttributeValue("NHWC");
    EXPECT_EQ(last, 2);
  }
}

}  // namespace
}  // namespace heddle::testing
