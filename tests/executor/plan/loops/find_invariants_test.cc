// What no iteration of a loop changes is computed by the first one alone.
#include <gtest/gtest.h>

#include <map>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using Rows = std::vector<float>;

class Invariants : public ::testing::TestWithParam<Schedule> {
 protected:
  struct Outcome {
    Status status;
    std::vector<Tensor> out;
    std::map<std::string, int64_t> times;  // by first output
  };
  Outcome Run(const ProgramBuilder& b, const std::vector<heddle::Feed>& feeds) {
    auto compiled =
        MustCompile(executor_, b.Build(), nullptr, {.opt_level = 0, .schedule = GetParam()});
    RunReport report;
    auto out = executor_.Run(compiled, feeds, {.report = &report, .trace = true});
    Outcome o{out.status(), {}, {}};
    if (out.ok()) o.out = *std::move(out);
    for (const TraceEvent& e : report.events) o.times[e.output] += e.times;
    return o;
  }
  Executor executor_{{.threads = 2, .poison = true}};
};
INSTANTIATE_TEST_SUITE_P(Ways, Invariants, ::testing::Values(Schedule::kSerial, Schedule::kLanes),
                         [](const auto& info) { return ScheduleName(info.param); });

void Begin(ProgramBuilder& b, const std::string& i, int* outer, int* body) {
  b.Fill(i, {1}, 0).Binary("less_than", i, "n", "go_" + i);
  *outer = b.current();
  *body = b.Block(*outer);
  b.In(*body);
}
void End(ProgramBuilder& b, const std::string& i, int outer, int body,
         std::vector<std::string> reads, std::vector<std::string> writes) {
  b.Increment(i).Binary("less_than", i, "n", "go_" + i).In(outer);
  for (const std::string& name : {i, std::string("n")}) reads.push_back(name);
  for (const std::string& name : {i, "go_" + i}) writes.push_back(name);
  b.Op("while", {{"X", reads}, {"Condition", {"go_" + i}}}, {{"Out", writes}, {"StepScopes", {}}},
       {{"sub_block", BlockRef{body}}});
}
std::vector<heddle::Feed> Feeds(const Rows& x, float n) {
  return {{"x", F32({static_cast<int64_t>(x.size())}, x)}, {"n", F32({1}, {n})}};
}

TEST_P(Invariants, AreComputedOnce) {
  ProgramBuilder b;
  int outer, body;
  b.Feed("x", DType::kF32, {-1}).Feed("n", DType::kF32, {1}).Scale("x", "h", 0);
  Begin(b, "i", &outer, &body);
  b.Unary("square", "x", "a").Scale("h", "g", 1, 1).Unary("exp", "g", "changes");
  b.Scale("a", "b", 2);  // of an invariant
  b.Binary("elementwise_add", "h", "b", "t").Unary("assign", "t", "h");
  End(b, "i", outer, body, {"x", "h"}, {"h"});
  b.Scale("h", "y", 1).Fetch("y");
  for (const float n : {4.f, 1.f, 0.f}) {
    Outcome o = Run(b, Feeds({1, 3}, n));
    ASSERT_TRUE(o.status.ok()) << o.status.ToString();
    EXPECT_EQ(Floats(o.out[0]), (Rows{2 * n, 18 * n}));
    EXPECT_EQ(o.times["a"], n > 0) << n;
    EXPECT_EQ(o.times["b"], n > 0) << n;
    EXPECT_EQ(o.times["g"], static_cast<int64_t>(n));
  }
}

// An inner loop begins again in each iteration of the outer one, whose variable it reads.
TEST_P(Invariants, OfAnInnerLoopAreComputedWheneverItBegins) {
  ProgramBuilder b;
  int outer, body, middle, inner;
  b.Feed("x", DType::kF32, {-1}).Feed("n", DType::kF32, {1}).Scale("x", "h", 0);
  Begin(b, "i", &outer, &body);
  Begin(b, "j", &middle, &inner);
  b.Binary("elementwise_mul", "x", "i", "a").Binary("elementwise_add", "h", "a", "t");
  b.Unary("assign", "t", "h");
  End(b, "j", middle, inner, {"x", "h", "i"}, {"h"});
  End(b, "i", outer, body, {"x", "h"}, {"h"});
  b.Scale("h", "y", 1).Fetch("y");
  Outcome o = Run(b, Feeds({1, 10}, 3));
  ASSERT_TRUE(o.status.ok()) << o.status.ToString();
  EXPECT_EQ(Floats(o.out[0]), (Rows{9, 90}));  // 3 * (0 + 1 + 2)
  EXPECT_EQ(o.times["a"], 3);
  EXPECT_EQ(o.times["t"], 9);
}

TEST_P(Invariants, WhatAnIterationWritesIsNone) {
  ProgramBuilder b;
  int outer, body;
  b.Feed("x", DType::kF32, {-1}).Feed("n", DType::kF32, {1}).Scale("x", "h", 1);
  Begin(b, "i", &outer, &body);
  b.Scale("h", "a", 2);  // the value before it is written, further down
  b.Unary("assign", "a", "h");
  End(b, "i", outer, body, {"h"}, {"h"});
  b.Scale("h", "y", 1).Fetch("y");
  Outcome o = Run(b, Feeds({1, 3}, 3));
  ASSERT_TRUE(o.status.ok()) << o.status.ToString();
  EXPECT_EQ(Floats(o.out[0]), (Rows{8, 24}));
}

// The invariant gather has an index out of range: an error only if an iteration runs it.
TEST_P(Invariants, ALoopWithoutIterationsDoesNotComputeThem) {
  ProgramBuilder b;
  int outer, body;
  b.Feed("x", DType::kF32, {-1}).Feed("n", DType::kF32, {1}).Feed("at", DType::kI64, {1});
  b.Scale("x", "h", 1);
  Begin(b, "i", &outer, &body);
  b.Op("gather", {{"X", {"x"}}, {"Index", {"at"}}}, {{"Out", {"item"}}}, {{"axis", int64_t{0}}});
  b.Binary("elementwise_add", "h", "item", "t").Unary("assign", "t", "h");
  End(b, "i", outer, body, {"x", "h", "at"}, {"h"});
  b.Scale("h", "y", 1).Fetch("y");
  for (const float n : {0.f, 2.f}) {
    std::vector<heddle::Feed> feeds = Feeds({1, 3}, n);
    feeds.push_back({"at", I64({1}, {5})});
    EXPECT_EQ(Run(b, feeds).status.ok(), n == 0) << n;
  }
}

}  // namespace
}  // namespace heddle::testing
