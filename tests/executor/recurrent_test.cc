// recurrent and its gradient, on products: state = out = x[t] * state.
#include <gtest/gtest.h>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using Rows = std::vector<float>;

ProgramBuilder Product(bool reverse) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1, 1}).Feed("start", DType::kF32, {1});
  const int step = b.Block(0);
  b.In(step).Var("x", DType::kF32, {1}).Var("before", DType::kF32, {1});
  b.Binary("elementwise_mul", "x", "before", "p");
  b.Unary("assign", "p", "state").Var("out", DType::kF32, {1}).Unary("assign", "p", "out").In(0);
  const auto attrs = [&](int block) {
    return Attrs{{"has_states", true},
                 {"ex_states", Strings{"before"}},
                 {"states", Strings{"state"}},
                 {"reverse", reverse},
                 {"sub_block", BlockRef{block}}};
  };
  b.Op("recurrent", {{"inputs", {"x"}}, {"initial_states", {"start"}}, {"parameters", {}}},
       {{"outputs", {"out"}}, {"step_scopes", {"steps"}}}, attrs(step));
  b.Fetch("out");

  b.Op("fill_any_like", {{"X", {"out"}}}, {{"Out", {"out@GRAD"}}}, {{"value", 1.0}});
  const int back = b.Block(0);
  b.desc().mutable_blocks(back)->set_forward_block_idx(step);
  b.In(back).Op("sum", {{"X", {"out@GRAD", "state@GRAD"}}}, {{"Out", {"p@GRAD"}}});
  b.Op("elementwise_mul_grad", {{"X", {"x"}}, {"Y", {"before"}}, {"Out@GRAD", {"p@GRAD"}}},
       {{"X@GRAD", {"x@GRAD"}}, {"Y@GRAD", {"before@GRAD"}}});
  b.Var("state@GRAD", DType::kF32, {1}).In(0);
  b.Op("recurrent_grad",
       {{"inputs", {"x"}},
        {"initial_states", {"start"}},
        {"parameters", {}},
        {"outputs", {"out"}},
        {"outputs@GRAD", {"out@GRAD"}},
        {"step_scopes", {"steps"}}},
       {{"inputs@GRAD", {"x@GRAD"}}, {"initial_states@GRAD", {"start@GRAD"}}}, attrs(back));
  b.Fetch("x@GRAD").Fetch("start@GRAD");
  return b;
}

class Recurrent : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, Recurrent, ::testing::Values(1, 2, 8));

TEST_P(Recurrent, ForwardAndBack) {
  Executor executor({.threads = GetParam()});
  auto compiled = MustCompile(executor, Product(false).Build());
  const auto run = [&](const Rows& x) {
    const auto n = static_cast<int64_t>(x.size());
    return MustRun(executor, compiled, {{"x", F32({n, 1}, x)}, {"start", F32({1}, {1})}});
  };
  for (int twice = 0; twice < 2; ++twice) {
    auto out = run({2, 3, 4});
    EXPECT_EQ(Floats(out[0]), (Rows{2, 6, 24}));
    EXPECT_EQ(Floats(out[1]), (Rows{16, 10, 6}));
    EXPECT_EQ(Floats(out[2]), (Rows{32}));
    out = run({5});
    EXPECT_EQ(Floats(out[1]), (Rows{1}));
    EXPECT_EQ(Floats(out[2]), (Rows{5}));
  }
}

TEST_P(Recurrent, StepsAndTheirGradientsAreStatic) {
  Executor executor({.threads = GetParam()});
  auto compiled = MustCompile(executor, Product(false).Build(), nullptr, {.opt_level = 0});
  const auto plan =
      executor.DescribePlan(compiled, {{"x", F32({3, 1}, {2, 3, 4})}, {"start", F32({1}, {1})}});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  int inside = 0;
  for (const auto& in : plan->instructions) {
    EXPECT_EQ(in.mode == "dynamic", in.op.starts_with("recurrent")) << in.op;
    inside += in.block > 0;
  }
  EXPECT_GE(inside, 5);
}

// The steps run from the last item to the first.
TEST_P(Recurrent, AReversedSequence) {
  Executor executor({.threads = GetParam()});
  auto compiled = MustCompile(executor, Product(true).Build());
  const auto out =
      MustRun(executor, compiled, {{"x", F32({3, 1}, {4, 3, 2})}, {"start", F32({1}, {1})}});
  EXPECT_EQ(Floats(out[0]), (Rows{24, 6, 2}));
  EXPECT_EQ(Floats(out[1]), (Rows{6, 10, 16}));
}

}  // namespace
}  // namespace heddle::testing
