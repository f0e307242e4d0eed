// A product that reads the pieces of its operand where they lie, and when they are joined first.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

struct Joined {
  std::vector<int64_t> widths = {5, 16, 3};
  int64_t rows = 40, columns = 50;
  bool cube = false;  // pieces of three dimensions
  int64_t axis = -1;
  bool constant = true;  // the matrix is a parameter
  bool trans_x = false, trans_y = false, residual = false, overwritten = false, read_twice = false;
  double alpha = 1;
  std::string activation = "tanh";
  bool fetched = false;  // the joined tensor
  Precision precision = Precision::kFloat32;
};

std::vector<Tensor> Results(const Joined& j, int level, int threads, bool* fused) {
  ProgramBuilder b;
  std::vector<Feed> feeds;
  auto scope = std::make_shared<Scope>();
  std::vector<std::string> pieces;
  const auto of = [&](int64_t width, bool open) {
    Shape s = j.cube ? Shape{open ? -1 : 3, j.rows, width} : Shape{open ? -1 : j.rows, width};
    if (j.trans_x) s = Shape{width, j.rows};
    return s;
  };
  int64_t all = 0;
  for (size_t i = 0; i < j.widths.size(); ++i) {
    const std::string name = "x" + std::to_string(i), piece = "p" + std::to_string(i);
    b.Feed(name, DType::kF32, of(j.widths[i], true)).Var(piece, DType::kF32, of(j.widths[i], true));
    b.Scale(name, piece, 2);
    feeds.push_back({name, RandomF32(of(j.widths[i], false), static_cast<uint32_t>(i) + 1)});
    pieces.push_back(piece);
    all += j.widths[i];
  }
  const int64_t axis = j.trans_x ? 0 : j.axis;
  b.Var("c", DType::kF32, of(all, true));
  b.Op("concat", {{"X", pieces}}, {{"Out", {"c"}}}, {{"axis", axis}});
  if (j.overwritten) b.Scale("p0", "p0", 3);
  const Shape w = j.trans_y ? Shape{j.columns, all} : Shape{all, j.columns};
  const Tensor matrix = RandomF32(w, 7, 0.2f);
  if (j.constant) {
    b.Param("w", DType::kF32, w);
    scope->Set("w", Value(matrix));
  } else {
    b.Feed("w", DType::kF32, w);
    feeds.push_back({"w", matrix});
  }
  b.Param("b", DType::kF32, {j.columns});
  scope->Set("b", Value(RandomF32({j.columns}, 8)));
  Shape out = j.cube ? Shape{-1, j.rows, j.columns} : Shape{-1, j.columns};
  if (j.trans_x) out = {j.rows, j.columns};
  for (const char* v : {"m", "s", "r", "y"}) b.Var(v, DType::kF32, out);
  b.Op("matmul_v2", {{"X", {"c"}}, {"Y", {"w"}}}, {{"Out", {"m"}}},
       {{"trans_x", j.trans_x}, {"trans_y", j.trans_y}});
  std::string last = "m";
  if (j.alpha != 1) b.Scale(last, "ms", j.alpha), last = "ms";
  b.Var("ms", DType::kF32, out);
  b.Binary("elementwise_add", last, "b", "s");
  last = "s";
  if (j.residual) {
    b.Feed("q", DType::kF32, out);
    Shape now = out;
    if (now[0] < 0) now[0] = j.cube ? 3 : j.rows;
    feeds.push_back({"q", RandomF32(now, 9)});
    b.Binary("elementwise_add", last, "q", "r");
    last = "r";
  }
  if (!j.activation.empty()) b.Unary(j.activation, last, "y"), last = "y";
  b.Scale(last, "z", 0.5).Fetch("z");
  if (j.fetched) b.Fetch("c");
  if (j.read_twice) b.Scale("c", "c2", 1).Fetch("c2");
  if (j.overwritten) b.Scale("p0", "p", 1).Fetch("p");
  Executor executor({.threads = threads});
  auto compiled = MustCompile(
      executor, b.Build(), scope,
      {.opt_level = level, .passes = {.precision = level > 0 ? j.precision : Precision::kFloat32}});
  const auto plan = executor.PlanText(compiled, feeds);
  EXPECT_TRUE(plan.ok()) << plan.status().ToString();
  *fused = plan.ok() && plan->find("concat") == std::string::npos;
  return MustRun(executor, compiled, feeds);
}

// Whether there is no concat, after a check that results are those of level 0.
bool Fused(const std::function<void(Joined&)>& change = [](Joined&) {}) {
  Joined j;
  change(j);
  bool plain = false, fused = false;
  const auto want = Results(j, 0, 1, &plain);
  EXPECT_FALSE(plain);
  const float near = j.precision == Precision::kFloat32 ? 1e-5f : 0.05f;
  for (const int threads : {1, 3}) {
    const auto got = Results(j, 2, threads, &fused);
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ(got[i].shape(), want[i].shape());
      for (int64_t k = 0; k < want[i].numel(); ++k)
        EXPECT_NEAR(got[i].data<float>()[k], want[i].data<float>()[k], near) << k;
    }
  }
  return fused;
}

TEST(FuseConcat, PiecesOfAnyWidth) {
  EXPECT_TRUE(Fused());
  EXPECT_TRUE(Fused([](Joined& j) { j.widths = {1, 1}; }));
  EXPECT_TRUE(Fused([](Joined& j) { j.widths = {64, 64, 64, 64, 64}; }));
  EXPECT_TRUE(Fused([](Joined& j) { j.widths = std::vector<int64_t>(20, 7); }));
  EXPECT_TRUE(Fused([](Joined& j) { j.widths = {0, 30, 0, 40, 0}; }));
  EXPECT_TRUE(Fused([](Joined& j) { j.widths = {0, 0}; }));
  EXPECT_TRUE(Fused(
      [](Joined& j) { j.widths = std::vector<int64_t>(12, 256), j.rows = 32, j.columns = 64; }));
  EXPECT_TRUE(Fused([](Joined& j) { j.widths = {1000, 3000}, j.rows = 1, j.columns = 20; }));
}

// Of few columns or many: read where they lie, or joined.
TEST(FuseConcat, AnyNumberOfRowsAndColumns) {
  for (const int64_t rows : {0, 1, 14, 15, 29, 300})
    for (const int64_t columns : {1, 17, 32, 100})
      EXPECT_TRUE(Fused([&](Joined& j) {
        j.widths = {40, 90}, j.rows = rows, j.columns = columns;
      })) << rows
          << " x " << columns;
}

// Rows so far apart that they share places in caches, and more of them than stay near.
TEST(FuseConcat, PiecesThatAreJoinedFirst) {
  EXPECT_TRUE(Fused([](Joined& j) { j.widths = {512, 512}; }));
  EXPECT_TRUE(Fused([](Joined& j) { j.widths = {512, 100}, j.rows = 7; }));
  EXPECT_TRUE(Fused([](Joined& j) { j.widths = {300, 500}, j.rows = 200; }));
}

TEST(FuseConcat, WhatFollowsIsFused) {
  for (const std::string activation : {"", "relu", "sigmoid"})
    for (const bool residual : {false, true})
      EXPECT_TRUE(Fused([&](Joined& j) { j.activation = activation, j.residual = residual; }));
}

TEST(FuseConcat, ThreeDimensionsAndATransposedMatrix) {
  EXPECT_TRUE(Fused([](Joined& j) { j.cube = true; }));
  EXPECT_TRUE(Fused([](Joined& j) { j.cube = true, j.axis = 2, j.residual = true; }));
  EXPECT_TRUE(Fused([](Joined& j) { j.trans_y = true; }));
}

TEST(FuseConcat, LowerPrecision) {
  EXPECT_TRUE(Fused([](Joined& j) { j.widths = {60, 70}, j.precision = Precision::kInt8Weights; }));
  EXPECT_TRUE(Fused([](Joined& j) { j.widths = {60, 70}, j.precision = Precision::kBFloat16; }));
}

// Each case breaks one condition of the fusion.
TEST(FuseConcat, AConcatStaysIfTheProductCannotReadItsPieces) {
  EXPECT_FALSE(Fused([](Joined& j) { j.fetched = true; }));
  EXPECT_FALSE(Fused([](Joined& j) { j.read_twice = true; }));
  EXPECT_FALSE(Fused([](Joined& j) { j.overwritten = true; }));
  EXPECT_FALSE(Fused([](Joined& j) { j.constant = false; }));
  EXPECT_FALSE(Fused([](Joined& j) { j.trans_x = true; }));
  EXPECT_FALSE(Fused([](Joined& j) { j.alpha = 0.5; }));
}

// What is said of a product of these.
std::string ErrorOf(const Tensor& x, const Tensor& y) {
  ProgramBuilder b;
  b.Feed("x", x.dtype(), x.shape()).Feed("y", y.dtype(), y.shape());
  b.Param("w", DType::kF32, {6, 2});
  b.Op("fused_matmul", {{"X", {"x", "y"}}, {"Y", {"w"}}}, {{"Out", {"z"}}}).Fetch("z");
  auto scope = std::make_shared<Scope>();
  scope->Set("w", Value(RandomF32({6, 2}, 1)));
  Executor executor({.threads = 1});
  auto compiled = executor.Compile(b.Build(), scope, {});
  if (!compiled.ok()) return compiled.status().ToString();
  return executor.Run(*compiled, {{"x", x}, {"y", y}}).status().ToString();
}

TEST(FuseConcat, PiecesThatDoNotFitAreNamed) {
  using ::testing::HasSubstr;
  const Tensor x = RandomF32({4, 3}, 1);
  EXPECT_THAT(ErrorOf(x, RandomF32({5, 3}, 2)),
              HasSubstr("X [1] of shape [5, 3] cannot lie beside"));
  EXPECT_THAT(ErrorOf(x, RandomF32({4, 5}, 2)), HasSubstr("inner dimensions differ"));
  EXPECT_THAT(ErrorOf(x, RandomF32({3}, 2)), HasSubstr("cannot lie beside"));
  EXPECT_THAT(ErrorOf(x, I64({4, 3}, std::vector<int64_t>(12))), HasSubstr("X [1] is int64"));
}

}  // namespace
}  // namespace heddle::testing
