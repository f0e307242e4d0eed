// carry_layout: transposes at both ends of a loop's body are executed once, outside, where the loop
// can carry the transposed variable; results keep their bits.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

const Shape kShape{3, 3, 3}, kTurned = kShape;  // so that each transpose fits

// for (i = 0; i < n; ++i) h = turn_back(tanh(turn(h)) + turn(h)), where h begins as x * 0.5; the
// members say what differs.
struct Loop {
  Ints back = {1, 2, 0};    // the inverse of {2, 0, 1}
  bool reads_h = false;     // the body also reads h as it is
  bool reads_next = false;  // ... and the next value, as it is
  bool late = false;        // ... and the transposed h behind the assignment
  bool overwrites = false;  // what is to be assigned changes behind its transpose
  bool fetches_h = false;
  bool outside = false;  // the body works on one transposed variable, which is read behind it
  int inner = 0;         // so many loops around it
  ProgramBuilder b = {};

  Program Build() {
    b.Feed("x", DType::kF32, kShape).Feed("n", DType::kI64, {1});
    b.Var("h", DType::kF32, kShape).Scale("x", "h", 0.5);
    if (outside) b.Var("t", DType::kF32, kTurned).Scale("x", "t", 3);
    Nest(inner);
    b.Var("y", DType::kF32, kShape).Scale("h", "y", 1).Fetch("y");
    if (outside) b.Var("z", DType::kF32, kTurned).Scale("t", "z", 1).Fetch("z");
    if (fetches_h) b.Fetch("h");
    return b.Build();
  }
  // A loop of n iterations around `depth` others.
  void Nest(int depth) {
    const std::string i = "i" + std::to_string(depth), go = "go" + std::to_string(depth);
    b.Var(i, DType::kI64, {1}).Fill(i, {1}, 0, DType::kI64);
    b.Var(go, DType::kBool, {1}).Binary("less_than", i, "n", go);
    const int outside = b.current(), body = b.Block(outside);
    b.In(body);
    if (depth > 0)
      Nest(depth - 1);
    else
      Body();
    b.Increment(i).Binary("less_than", i, "n", go).In(outside);
    b.Op("while", {{"X", {"h", i, "n"}}, {"Condition", {go}}},
         {{"Out", {"h", i, go}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{body}}});
  }
  void Body() {
    if (outside) {
      Turn("h", "t", {2, 0, 1});
      b.Unary("tanh", "t", "t");
      return Turn("t", "h", {1, 2, 0});
    }
    for (const char* v : {"t", "a", "s"}) b.Var(v, DType::kF32, kTurned);
    for (const char* v : {"next", "k"}) b.Var(v, DType::kF32, kShape);
    Turn("h", "t", {2, 0, 1});
    b.Unary("tanh", "t", "a").Binary("elementwise_add", "a", "t", "s");
    Turn("s", "next", back);
    if (reads_h) b.Binary("elementwise_add", "next", "h", "next");
    if (reads_next) b.Scale("next", "k", 0.5);
    if (overwrites) b.Scale("s", "s", 0.25);
    b.Unary("assign", "next", "h");
    if (overwrites || late) {
      b.Var("more", DType::kF32, kShape);
      Turn(late ? "t" : "s", "more", {1, 2, 0});
      b.Binary("elementwise_add", "h", "more", "k").Unary("assign", "k", late ? "k" : "h");
    }
  }
  void Turn(const char* from, const char* to, const Ints& axis) {
    b.Op("transpose2", {{"X", {from}}}, {{"Out", {to}}}, {{"axis", axis}});
  }
};

// The number of transposes inside of loops with the pass, which keeps results.
int TransposesInside(Loop loop) {
  const Program program = loop.Build();
  CompileOptions with{.opt_level = 2};
  with.passes.only = {"carry_layout"};
  int inside = -1;
  for (const int64_t turns : {0, 1, 3}) {
    const std::vector<Feed> feeds{{"x", RandomF32(kShape, 3)}, {"n", I64({1}, {turns})}};
    Executor executor;
    const auto want =
        MustRun(executor, MustCompile(executor, program, nullptr, {.opt_level = 0}), feeds);
    const auto compiled = MustCompile(executor, program, nullptr, with);
    const auto got = MustRun(executor, compiled, feeds);
    EXPECT_EQ(want.size(), got.size());
    for (size_t k = 0; k < want.size() && k < got.size(); ++k)
      EXPECT_EQ(Floats(want[k]), Floats(got[k])) << turns << " turns, output " << k;
    const auto plan = executor.DescribePlan(compiled, feeds);
    EXPECT_TRUE(plan.ok()) << plan.status().ToString();
    if (plan.ok())
      inside = static_cast<int>(
          std::count_if(plan->instructions.begin(), plan->instructions.end(),
                        [](const auto& in) { return in.block > 0 && in.op == "transpose2"; }));
  }
  return inside;
}

TEST(CarryLayout, TheLoopCarriesTheTransposedVariable) {
  EXPECT_EQ(TransposesInside({}), 0);
  EXPECT_EQ(TransposesInside({.fetches_h = true}), 0);
  EXPECT_EQ(TransposesInside({.reads_next = true}), 1);
}

TEST(CarryLayout, OutOfSeveralLoops) { EXPECT_EQ(TransposesInside({.inner = 2}), 0); }

TEST(CarryLayout, OtherBodiesStay) {
  EXPECT_EQ(TransposesInside({.back = {2, 0, 1}}), 2);
  EXPECT_EQ(TransposesInside({.reads_h = true}), 2);
  EXPECT_EQ(TransposesInside({.late = true}), 3);
  EXPECT_EQ(TransposesInside({.overwrites = true}), 3);
  for (const int inner : {0, 1}) EXPECT_EQ(TransposesInside({.outside = true, .inner = inner}), 2);
}

}  // namespace
}  // namespace heddle::testing
