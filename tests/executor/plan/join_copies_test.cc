// Copies into variables that a loop carries: gone where nobody needs the value before.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/support/plain_program.h"

namespace heddle::testing {
namespace {

using Rows = std::vector<float>;

class JoinCopies : public ::testing::Test {
 protected:
  // h = x; c = x; n times { `body` }, and the copies that are left in it.
  void Run(const std::function<void(ProgramBuilder&)>& body, int copies_left, int trips,
           const Rows& h, const Rows& c, const std::string& more = "c") {
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {-1}).Feed("n", DType::kF32, {1});
    b.Scale("x", "h", 1).Scale("x", "c", 1);
    b.Fill("i", {1}, 0).Binary("less_than", "i", "n", "go");
    const int block = b.Block(0);
    b.In(block);
    body(b);
    b.Increment("i").Binary("less_than", "i", "n", "go").In(0);
    b.Op("while", {{"X", {"h", "c", "x", "i", "n"}}, {"Condition", {"go"}}},
         {{"Out", {"h", more, "i", "go"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{block}}});
    b.Scale("h", "y", 1).Scale("c", "z", 1).Fetch("y").Fetch("z");
    auto compiled =
        MustCompile(executor_, b.Build(), nullptr, {.opt_level = 0, .schedule = Schedule::kSerial});
    const std::vector<heddle::Feed> feeds = {{"x", F32({2}, {1, 2})},
                                             {"n", F32({1}, {static_cast<float>(trips)})}};
    auto plan = executor_.DescribePlan(compiled, feeds);
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    int copies = 0;
    for (const auto& in : plan->instructions) copies += in.block == block && in.op == "assign";
    EXPECT_EQ(copies, copies_left);
    for (int k = 0; k < 2; ++k) {
      const auto out = MustRun(executor_, compiled, feeds);
      EXPECT_EQ(Floats(out[0]), h);
      EXPECT_EQ(Floats(out[1]), c);
    }
  }
  Executor executor_{{.threads = 1, .poison = true}};
};

TEST_F(JoinCopies, TheNextValueIsMadeInTheVariable) {
  Run([](ProgramBuilder& b) { b.Scale("h", "t", 2).Unary("assign", "t", "h"); }, 0, 3, {8, 16},
      {1, 2});
}

// t is made before h is read for the last time.
TEST_F(JoinCopies, TheValueBeforeIsStillRead) {
  Run(
      [](ProgramBuilder& b) {
        b.Scale("h", "t", 2).Binary("elementwise_add", "c", "h", "d");
        b.Unary("assign", "t", "h").Unary("assign", "d", "c");
      },
      1, 3, {8, 16}, {8, 16});
}

// An operator that cannot work where its operand lies.
TEST_F(JoinCopies, AnOperatorThatNeedsItsOperandWhole) {
  Run(
      [](ProgramBuilder& b) {
        b.Op("reverse", {{"X", {"h"}}}, {{"Out", {"t"}}}, {{"axis", Ints{0}}});
        b.Unary("assign", "t", "h");
      },
      1, 3, {2, 1}, {1, 2});
}

// The value lives on after the variable has changed again.
TEST_F(JoinCopies, TheValueIsReadLater) {
  Run(
      [](ProgramBuilder& b) {
        b.Scale("h", "t", 2).Unary("assign", "t", "h");
        b.Scale("h", "u", 1, 1).Unary("assign", "u", "h").Unary("assign", "t", "c");
      },
      1, 2, {7, 11}, {6, 10});
}

// The copy alone gives k its place.
TEST_F(JoinCopies, AVariableThatNobodyReads) {
  Run(
      [](ProgramBuilder& b) {
        b.In(0).Var("k", DType::kF32, {-1}).In(1);
        b.Scale("h", "t", 2).Unary("assign", "t", "k").Scale("t", "h", 1);
      },
      1, 3, {8, 16}, {1, 2}, "k");
}

// One value for two variables.
TEST_F(JoinCopies, OneValueForTwoVariables) {
  Run(
      [](ProgramBuilder& b) {
        b.Scale("h", "t", 2).Unary("assign", "t", "h").Unary("assign", "t", "c");
      },
      1, 2, {4, 8}, {4, 8});
}

// Variables that change places: the one that is made first needs a place of its own.
TEST_F(JoinCopies, VariablesThatChangePlaces) {
  Run(
      [](ProgramBuilder& b) {
        b.Scale("h", "t", 1).Scale("c", "u", -1);
        b.Unary("assign", "u", "h").Unary("assign", "t", "c");
      },
      1, 3, {1, 2}, {-1, -2});
}

// As Paddle writes loops: counter and condition are computed beside the variables, then copied.
TEST_F(JoinCopies, TheConditionIsMadeInItsVariable) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Feed("n", DType::kF32, {1}).Scale("x", "h", 1);
  b.Fill("i", {1}, 0).Binary("less_than", "i", "n", "go");
  const int body = b.Block(0);
  b.In(body).Scale("i", "next", 1, 1).Scale("h", "t", 2);
  b.Binary("less_than", "next", "n", "goes");
  b.Unary("assign", "next", "i").Unary("assign", "t", "h").Unary("assign", "goes", "go").In(0);
  b.Op("while", {{"X", {"h", "i", "n"}}, {"Condition", {"go"}}},
       {{"Out", {"h", "i", "go"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{body}}});
  b.Scale("h", "y", 1).Fetch("y");
  auto compiled =
      MustCompile(executor_, b.Build(), nullptr, {.opt_level = 0, .schedule = Schedule::kSerial});
  for (const float n : {0.f, 1.f, 5.f}) {
    const std::vector<heddle::Feed> feeds = {{"x", F32({2}, {1, 2})}, {"n", F32({1}, {n})}};
    const auto plan = executor_.DescribePlan(compiled, feeds);
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    for (const auto& in : plan->instructions)
      if (in.block == body) {
        EXPECT_EQ(in.mode, "static") << in.op;
      }
    for (const auto& in : plan->instructions) EXPECT_NE(in.op, "assign");
    const float times = std::pow(2.f, n);
    EXPECT_EQ(Floats(MustRun(executor_, compiled, feeds)[0]), (Rows{times, 2 * times}));
  }
}

// A turn makes a variable of its own, which several loops take over and copy back, or read.
class LoopsOfOneVariable {
 public:
  explicit LoopsOfOneVariable(uint32_t seed) : rng_(seed) {
    p_.builder().Feed("x", DType::kF32, {4});
    p_.Var("h", {4}).Unary("assign", "x", "h").Fill("n", {1}, 2, DType::kI64);
    p_.Loop("i", "n", [&] {
      p_.Var("t", {4}).Scale("h", "t", 0.5f, 0.25f).Var("o", {4}).Unary("assign", "t", "o");
      p_.Var("sum", {4}).Unary("assign", "x", "sum");
      for (int loops = 1 + Pick(4); loops > 0; --loops) Loop(Pick(3));
      p_.Unary("assign", Pick(3) == 0 ? "o" : "sum", "h");
    });
    p_.builder().Fetch("h");
  }
  Program Build() const { return p_.Build(); }
  PlainProgram::Numbers Evaluate(const std::vector<heddle::Feed>& feeds) const {
    return p_.Evaluate(ValuesOf(feeds)).at("h");
  }

 private:
  int Pick(int n) { return static_cast<int>(rng_() % static_cast<unsigned>(n)); }
  // `kind`: 0 only reads the variable, others carry one of their own.
  void Loop(int kind) {
    const std::string k = std::to_string(names_++);
    const std::string own = kind == 0 ? "sum" : "a" + k, made = "m" + k;
    if (kind != 0) p_.Var(own, {4}).Unary("assign", "o", own);
    p_.Loop("j" + k, "n", [&] {
      p_.Var(made, {4});
      if (kind == 0)
        p_.Binary("elementwise_add", "sum", "o", made);
      else
        p_.Scale(own, made, 0.75f, 0.5f);
      p_.Unary("assign", made, own);
    });
    if (kind != 0) p_.Unary("assign", own, "o");
  }

  std::mt19937 rng_;
  PlainProgram p_;
  int names_ = 0;
};

// However many loops take a variable over, one instruction is left that gives it its place.
TEST(JoinCopiesOfLoops, OneVariableBelongsToSeveralLoops) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const LoopsOfOneVariable loops(seed);
    const Program program = loops.Build();
    Executor executor({.threads = 1 + static_cast<int>(seed % 2), .poison = true});
    for (const int level : {0, 1}) {
      SCOPED_TRACE(std::to_string(seed) + " level " + std::to_string(level));
      const auto compiled = MustCompile(executor, program, nullptr, {.opt_level = level});
      const std::vector<heddle::Feed> feeds = {{"x", RandomF32({4}, seed)}};
      const auto out = executor.Run(compiled, feeds);
      ASSERT_TRUE(out.ok()) << out.status().ToString();
      ExpectPlain((*out)[0], loops.Evaluate(feeds));
    }
  }
}

}  // namespace
}  // namespace heddle::testing
