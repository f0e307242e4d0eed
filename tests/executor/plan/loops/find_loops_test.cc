// Loops in loops whose numbers of turns are constants, or fed: what the plan leaves out of them
// changes no result, also where a run is watched.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/support/plain_program.h"

namespace heddle::testing {
namespace {

// Loops to a depth of three, which carry `h` or variables of their own that begin as one outside
// and are copied back. Some look at their counters, at the outer variable meanwhile or at the inner
// one afterwards.
class NestedLoops {
 public:
  explicit NestedLoops(uint32_t seed) : rng_(seed) {
    auto& b = p_.builder();
    b.Feed("x", DType::kF32, {4}).Feed("n", DType::kI64, {1});
    p_.Var("h", {4}).Unary("assign", "x", "h");
    for (int k = 0; k < 4; ++k) p_.Fill("n" + std::to_string(k), {1}, float(k), DType::kI64);
    Loop("h", 1 + Pick(3));
    if (Pick(2)) Loop("h", 1 + Pick(2));
    b.Fetch("h");
  }
  Program Build() const { return p_.Build(); }
  PlainProgram::Numbers Evaluate(const std::vector<heddle::Feed>& feeds) const {
    return p_.Evaluate(ValuesOf(feeds)).at("h");
  }

 private:
  int Pick(int n) { return static_cast<int>(rng_() % static_cast<unsigned>(n)); }
  std::string Fresh(const std::string& stem) { return stem + std::to_string(names_++); }

  void Change(const std::string& v, const std::string& by) {
    const std::string t = Fresh("t"), u = Fresh("u");
    p_.Var(t, {4}).Scale(v, t, 0.5f, 0.25f);
    p_.Var(u, {4});
    if (by.empty())
      p_.Unary("tanh", t, u);
    else
      p_.Binary("elementwise_add", t, by, u);
    p_.Unary("assign", u, v);
  }

  void Loop(const std::string& outer, int depth) {
    const bool own = Pick(3) > 0;
    const std::string v = own ? Fresh("g") : outer;
    if (own) p_.Var(v, {4}).Unary("assign", outer, v);
    const std::string i = Fresh("i");
    const std::string limit = Pick(4) == 0 ? "n" : "n" + std::to_string(Pick(4));
    p_.Loop(
        i, limit,
        [&] {
          if (Pick(3) == 0) {
            const std::string f = Fresh("f");
            p_.Var(f, {1}).Cast(i, f, DType::kI64, DType::kF32);
            Change(v, f);
          }
          Change(v, Pick(4) == 0 ? outer : "");
          if (depth > 1) Loop(v, depth - 1);
          if (own && Pick(6) == 0) Change(outer, "");
          if (Pick(3) == 0) Change(v, "");
        },
        0, static_cast<float>(1 + Pick(2)));
    if (own) {
      if (Pick(5) == 0) Change(outer, v);
      p_.Unary("assign", v, outer);
      if (Pick(5) == 0) Change(outer, v);
    }
    if (Pick(5) == 0) {
      const std::string f = Fresh("f");
      p_.Var(f, {1}).Cast(i, f, DType::kI64, DType::kF32);
      Change(outer, f);
    }
  }

  std::mt19937 rng_;
  PlainProgram p_;
  int names_ = 0;
};

TEST(FindLoops, NestedLoopsGiveWhatAPlainEvaluationGives) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const NestedLoops nested(seed);
    const Program program = nested.Build();
    Executor executor({.threads = 1 + static_cast<int>(seed % 2), .poison = true});
    for (const int level : {0, 1}) {
      const auto compiled = MustCompile(executor, program, nullptr, {.opt_level = level});
      for (const int64_t n : {2, 0, 3}) {
        SCOPED_TRACE(std::to_string(seed) + " level " + std::to_string(level) + ", n " +
                     std::to_string(n));
        const std::vector<heddle::Feed> feeds = {{"x", RandomF32({4}, seed)}, {"n", I64({1}, {n})}};
        const auto plain = nested.Evaluate(feeds);
        ExpectPlain(MustRun(executor, compiled, feeds)[0], plain);
        const auto watched = executor.Run(compiled, feeds, {.check_nan_inf = true});
        ASSERT_TRUE(watched.ok()) << watched.status().ToString();
        ExpectPlain((*watched)[0], plain, "watched");
        RunReport report;
        const auto traced = executor.Run(compiled, feeds, {.report = &report, .trace = true});
        ASSERT_TRUE(traced.ok()) << traced.status().ToString();
        ExpectPlain((*traced)[0], plain, "traced");
      }
    }
  }
}

std::vector<std::string> OpsOf(Executor& executor, const Program& program, int block) {
  const auto compiled = MustCompile(executor, program, nullptr, {.opt_level = 0});
  const auto plan = executor.DescribePlan(compiled, {{"x", F32({4}, {1, 2, 3, 4})}});
  EXPECT_TRUE(plan.ok()) << plan.status().ToString();
  std::vector<std::string> ops;
  for (const auto& in : plan->instructions)
    if (in.block == block) ops.push_back(in.op);
  return ops;
}

// The inner loop's variable is the outer one, and nobody sets its counter.
TEST(FindLoops, AnInnerLoopOfConstantTurnsIsAllThatATurnRuns) {
  PlainProgram p;
  p.builder().Feed("x", DType::kF32, {4});
  p.Var("h", {4}).Unary("assign", "x", "h").Fill("n", {1}, 3, DType::kI64);
  p.Loop("i", "n", [&] {
    p.Var("g", {4}).Unary("assign", "h", "g");
    p.Loop("j", "n", [&] { p.Var("t", {4}).Unary("tanh", "g", "t").Unary("assign", "t", "g"); });
    p.Unary("assign", "g", "h");
  });
  p.builder().Fetch("h");
  Executor executor({.threads = 1, .poison = true});
  EXPECT_EQ(OpsOf(executor, p.Build(), 1),
            (std::vector<std::string>{"while", "increment", "less_than"}));
}

// Turns are counted only where the condition is one truth value; else the run says what it is.
TEST(FindLoops, ACounterIsNoCondition) {
  for (const DType dtype : {DType::kI64, DType::kI32, DType::kF32}) {
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {4}).Var("h", DType::kF32, {4}).Unary("assign", "x", "h");
    b.Var("c", dtype, {1}).Fill("c", {1}, 3, dtype);
    const int body = b.Block(0);
    b.In(body).Scale("h", "t", 2).Unary("assign", "t", "h").Increment("c", -1).In(0);
    b.Op("while", {{"X", {"h", "c"}}, {"Condition", {"c"}}},
         {{"Out", {"h", "c"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{body}}});
    b.Fetch("h");
    Executor executor({.threads = 1, .poison = true});
    const auto compiled = executor.Compile(b.Build(), nullptr, {.opt_level = 0});
    const Status status = compiled.ok()
                              ? executor.Run(*compiled, {{"x", F32({4}, {1, 2, 3, 4})}}).status()
                              : compiled.status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.ToString();
    EXPECT_THAT(status.message(), ::testing::HasSubstr("Condition"));
  }
}

}  // namespace
}  // namespace heddle::testing
