// Counters and conditions of loops are computed at the end of the body, without calls of kernels,
// and all results stay what they are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Tensor Whole(DType dtype, int64_t value) {
  if (dtype == DType::kI64) return I64({1}, {value});
  return Tensor::Of(DType::kI32, Shape{1}, std::vector<int32_t>{static_cast<int32_t>(value)});
}

struct Options {
  DType dtype = DType::kI64;
  std::string condition = "less_than";
  int64_t n = 5;
};

class ScalarTails : public ::testing::Test {
 protected:
  // i = 0; k = 0; while (i <condition> n) { `body` }, which changes i; fetches i, k and h, which
  // begins as x. Returns the operators in mode "scalar" of the body.
  std::vector<std::string> Run(const std::function<void(ProgramBuilder&)>& body,
                               const Options& o = {}) {
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {2}).Feed("n", o.dtype, {1});
    b.Scale("x", "h", 1).Fill("i", {1}, 0, o.dtype).Fill("k", {1}, 0, o.dtype);
    b.Fill("one", {1}, 1, o.dtype);
    b.Var("go", DType::kBool, {1}).Binary(o.condition, "i", "n", "go");
    const int block = b.Block(0);
    b.In(block);
    body(b);
    b.Binary(o.condition, "i", "n", "go").In(0);
    b.Op("while", {{"X", {"h", "x", "i", "k", "n", "one"}}, {"Condition", {"go"}}},
         {{"Out", {"h", "i", "k", "go"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{block}}});
    b.Var("h1", DType::kF32, {2}).Var("i1", o.dtype, {1}).Var("k1", o.dtype, {1});
    b.Scale("h", "h1", 1).Scale("i", "i1", 1).Scale("k", "k1", 1);
    for (const char* out : {"h1", "i1", "k1"}) b.Fetch(out);
    const Program program = b.Build();
    std::vector<std::string> scalars;
    for (const int level : {0, 2}) {
      for (const int64_t n : {int64_t{0}, int64_t{1}, o.n}) {
        const std::vector<Feed> feeds{{"x", F32({2}, {0.5f, -2})}, {"n", Whole(o.dtype, n)}};
        Executor executor({.threads = 2, .poison = true});
        const auto want = MustRun(
            executor,
            MustCompile(executor, program, nullptr, {.opt_level = 0, .dynamic_bodies = true}),
            feeds);
        for (const Schedule schedule : {Schedule::kSerial, Schedule::kParallel, Schedule::kLanes}) {
          const auto compiled =
              MustCompile(executor, program, nullptr, {.opt_level = level, .schedule = schedule});
          for (int again = 0; again < 2; ++again) {
            const auto got = MustRun(executor, compiled, feeds);
            for (size_t f = 0; f < want.size(); ++f)
              EXPECT_TRUE(SameBits(Value(want[f]), Value(got[f])))
                  << "output " << f << ", " << n << " turns";
          }
          const auto plan = executor.DescribePlan(compiled, feeds);
          EXPECT_TRUE(plan.ok()) << plan.status().ToString();
          if (!plan.ok() || schedule != Schedule::kSerial) continue;
          scalars.clear();
          for (const auto& in : plan->instructions)
            if (in.mode == "scalar") scalars.push_back(in.op);
        }
      }
    }
    return scalars;
  }
};

TEST_F(ScalarTails, OfEveryDtypeAndCondition) {
  for (const DType dtype : {DType::kI64, DType::kI32}) {
    for (const char* condition : {"less_than", "less_equal", "not_equal"}) {
      SCOPED_TRACE(std::string(condition) + " " + std::string(Name(dtype)));
      const int64_t n = 4;
      EXPECT_THAT(Run([](ProgramBuilder& b) { b.Scale("h", "h", 1.5).Increment("i"); },
                      {.dtype = dtype, .condition = condition, .n = n}),
                  ElementsAre("increment", condition));
    }
  }
}

// A counter's next value, made first, is computed last, unless somebody reads it before.
TEST_F(ScalarTails, CountersThatAreMadeFirst) {
  const auto next = [](ProgramBuilder& b) {
    b.Var("next", DType::kI64, {1}).Scale("i", "next", 1, 1);
  };
  EXPECT_THAT(Run([&](ProgramBuilder& b) {
                next(b);
                b.Scale("h", "h", 1.5).Unary("assign", "next", "i");
              }),
              ElementsAre("scale", "less_than"));
  // h is multiplied by the counter's next value: a cast reads it.
  EXPECT_THAT(Run([&](ProgramBuilder& b) {
                next(b);
                b.Var("f", DType::kF32, {1});
                b.Op("cast", {{"X", {"next"}}}, {{"Out", {"f"}}},
                     {{"in_dtype", int64_t{3}}, {"out_dtype", int64_t{5}}});
                b.Binary("elementwise_mul", "h", "f", "h").Unary("assign", "next", "i");
              }),
              ElementsAre("less_than"));
  // ... and by its value before.
  EXPECT_THAT(Run([&](ProgramBuilder& b) {
                next(b);
                b.Var("f", DType::kF32, {1});
                b.Op("cast", {{"X", {"i"}}}, {{"Out", {"f"}}},
                     {{"in_dtype", int64_t{3}}, {"out_dtype", int64_t{5}}});
                b.Binary("elementwise_add", "h", "f", "h").Unary("assign", "next", "i");
              }),
              ElementsAre("less_than"));
}

TEST_F(ScalarTails, SeveralCountersAndSums) {
  EXPECT_THAT(Run([](ProgramBuilder& b) {
                b.Binary("elementwise_add", "i", "one", "i");
                b.Scale("h", "h", 1.5).Binary("elementwise_sub", "k", "i", "k");
              }),
              ::testing::UnorderedElementsAre("elementwise_add", "elementwise_sub", "less_than"));
}

TEST_F(ScalarTails, SumsWrapAround) {
  EXPECT_THAT(Run(
                  [](ProgramBuilder& b) {
                    b.Scale("h", "h", 1.5).Increment("i");
                    b.Fill("large", {1}, 2147483647, DType::kI32);
                    b.Var("sum", DType::kI32, {1}).Binary("elementwise_add", "large", "i", "sum");
                    b.Unary("assign", "sum", "k");
                  },
                  {.dtype = DType::kI32}),
              ::testing::Contains("elementwise_add"));
}

// Neither a factor nor a fraction is a step, and several elements are no counter.
TEST_F(ScalarTails, OthersCallTheirKernels) {
  EXPECT_THAT(
      Run([](ProgramBuilder& b) { b.Scale("h", "h", 1.5).Scale("k", "k", 2, 1).Increment("i"); }),
      ElementsAre("increment", "less_than"));
  EXPECT_THAT(
      Run([](ProgramBuilder& b) { b.Scale("h", "h", 1.5).Scale("k", "k", 1, 0.5).Increment("i"); }),
      ElementsAre("increment", "less_than"));
}

// A trace and a report have all instructions.
TEST_F(ScalarTails, WhoWatchesSeesThem) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2}).Scale("x", "h", 1).Fill("i", {1}, 0, DType::kI64);
  b.Fill("n", {1}, 3, DType::kI64).Var("go", DType::kBool, {1}).Binary("less_than", "i", "n", "go");
  const int block = b.Block(0);
  b.In(block).Scale("h", "h", 2).Increment("i").Binary("less_than", "i", "n", "go").In(0);
  b.Op("while", {{"X", {"h", "i", "n"}}, {"Condition", {"go"}}},
       {{"Out", {"h", "i", "go"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{block}}});
  b.Var("y", DType::kF32, {2}).Scale("h", "y", 1).Fetch("y");
  Executor executor;
  const auto compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = 0});
  RunReport report;
  RunOptions options;
  options.report = &report;
  options.trace = true;
  const auto out = executor.Run(compiled, {{"x", F32({2}, {1, 3})}}, options);
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_THAT(Floats((*out)[0]), ElementsAre(8, 24));
  int times = 0;
  for (const auto& event : report.events)
    if (event.op == "increment" || (event.op == "less_than" && event.block == block))
      times += static_cast<int>(event.times);
  EXPECT_EQ(times, 6);
}

}  // namespace
}  // namespace heddle::testing
