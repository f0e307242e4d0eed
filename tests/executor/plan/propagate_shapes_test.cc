// Shapes of what sub-blocks compute: known before the run where they do not change, found while
// running where they do.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using Rows = std::vector<float>;

struct Way {
  int threads;
  Schedule schedule;
};

class Bodies : public ::testing::TestWithParam<Way> {
 protected:
  CompiledProgram Compile(const ProgramBuilder& b, bool dynamic = false) {
    return MustCompile(
        executor_, b.Build(), nullptr,
        {.opt_level = 0, .schedule = GetParam().schedule, .dynamic_bodies = dynamic});
  }
  // The modes of a block's instructions, by operator.
  std::vector<std::pair<std::string, std::string>> Modes(const CompiledProgram& compiled,
                                                         const std::vector<heddle::Feed>& feeds,
                                                         int block) {
    auto plan = executor_.DescribePlan(compiled, feeds);
    EXPECT_TRUE(plan.ok()) << plan.status().ToString();
    std::vector<std::pair<std::string, std::string>> modes;
    for (const auto& in : plan->instructions)
      if (in.block == block) modes.emplace_back(in.op, in.mode);
    return modes;
  }
  Executor executor_{{.threads = GetParam().threads, .poison = true}};
};
INSTANTIATE_TEST_SUITE_P(Ways, Bodies,
                         ::testing::Values(Way{1, Schedule::kSerial}, Way{2, Schedule::kParallel},
                                           Way{2, Schedule::kLanes}, Way{8, Schedule::kAuto}),
                         [](const auto& info) {
                           return ScheduleName(info.param.schedule) +
                                  std::to_string(info.param.threads);
                         });

// for (i = 0; i < n; ++i) { body }, with `body` between the two calls.
int BeginLoop(ProgramBuilder& b, const std::string& i = "i", const std::string& n = "n") {
  b.Fill(i, {1}, 0).Binary("less_than", i, n, "go_" + i);
  const int body = b.Block(b.current());
  b.In(body);
  return body;
}
void EndLoop(ProgramBuilder& b, int outer, int body, std::vector<std::string> reads,
             std::vector<std::string> writes, const std::string& i = "i",
             const std::string& n = "n") {
  b.Increment(i).Binary("less_than", i, n, "go_" + i).In(outer);
  for (const std::string& name : {i, n}) reads.push_back(name);
  for (const std::string& name : {i, "go_" + i}) writes.push_back(name);
  b.Op("while", {{"X", reads}, {"Condition", {"go_" + i}}}, {{"Out", writes}, {"StepScopes", {}}},
       {{"sub_block", BlockRef{body}}});
}

std::vector<heddle::Feed> Feeds(const Rows& x, float n) {
  return {{"x", F32({static_cast<int64_t>(x.size())}, x)}, {"n", F32({1}, {n})}};
}

TEST_P(Bodies, KnownShapesAreStatic) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Feed("n", DType::kF32, {1});
  b.Scale("x", "h", 1);
  const int body = BeginLoop(b);
  b.Scale("h", "t", 2).Binary("elementwise_add", "t", "x", "u").Unary("assign", "u", "h");
  EndLoop(b, 0, body, {"h", "x"}, {"h"});
  b.Scale("h", "y", 1).Fetch("y").Fetch("h");
  auto compiled = Compile(b);
  for (const auto& [op, mode] : Modes(compiled, Feeds({1, 2}, 1), body))
    EXPECT_NE(mode, "dynamic") << op;
  for (const float n : {3.f, 0.f, 1.f, 3.f}) {
    Rows h = {1, 2};
    for (int k = 0; k < static_cast<int>(n); ++k) h = {2 * h[0] + 1, 2 * h[1] + 2};
    const auto out = MustRun(executor_, compiled, Feeds({1, 2}, n));
    EXPECT_EQ(Floats(out[0]), h) << n;
    EXPECT_EQ(Floats(out[1]), h) << n;
  }
  auto as_before = Compile(b, true);
  for (const auto& [op, mode] : Modes(as_before, Feeds({1, 2}, 1), body))
    EXPECT_EQ(mode, "dynamic") << op;
  EXPECT_EQ(Floats(MustRun(executor_, as_before, Feeds({1, 2}, 2))[0]), (Rows{7, 14}));
}

TEST_P(Bodies, AShapeThatGrowsIsFoundWhileRunning) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Feed("n", DType::kF32, {1});
  b.Scale("x", "all", 1).Scale("x", "h", 1);
  const int body = BeginLoop(b);
  b.Scale("h", "t", 2).Unary("assign", "t", "h");
  b.Op("concat", {{"X", {"all", "h"}}}, {{"Out", {"more"}}}, {{"axis", int64_t{0}}});
  b.Unary("assign", "more", "all");
  EndLoop(b, 0, body, {"all", "h"}, {"all", "h"});
  b.Scale("all", "y", 1).Fetch("y").Fetch("h");
  auto compiled = Compile(b);
  int dynamic = 0, known = 0;
  for (const auto& [op, mode] : Modes(compiled, Feeds({1}, 1), body))
    ++(mode == "dynamic" ? dynamic : known);
  EXPECT_EQ(dynamic, 2) << "concat and the copy of what it makes";
  EXPECT_GE(known, 3);
  for (const float n : {2.f, 0.f, 3.f}) {
    Rows all = {1}, h = {1};
    for (int k = 0; k < static_cast<int>(n); ++k) {
      h[0] *= 2;
      all.push_back(h[0]);
    }
    const auto out = MustRun(executor_, compiled, Feeds({1}, n));
    EXPECT_EQ(Floats(out[0]), all);
    EXPECT_EQ(Floats(out[1]), h);
  }
}

// Each variable takes its shape from one that the body writes later, so that one analysis of the
// program finds one more of them to vary.
TEST_P(Bodies, AShapeThatPassesFromVariableToVariableLeavesOthersStatic) {
  constexpr int kPassed = 6;
  const auto name = [](int k) { return "h" + std::to_string(k); };
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Feed("n", DType::kF32, {1}).Scale("x", "s", 1);
  std::vector<std::string> carried = {"s"};
  for (int k = 0; k <= kPassed; ++k) {
    b.Scale("x", name(k), 1);
    carried.push_back(name(k));
  }
  const int body = BeginLoop(b);
  for (int k = kPassed; k > 0; --k) b.Unary("assign", name(k - 1), name(k));
  b.Op("concat", {{"X", {"h0", "x"}}}, {{"Out", {"more"}}}, {{"axis", int64_t{0}}});
  b.Unary("assign", "more", "h0").Scale("s", "t", 2).Unary("assign", "t", "s");
  std::vector<std::string> reads = carried;
  reads.emplace_back("x");
  EndLoop(b, 0, body, reads, carried);
  b.Scale(name(kPassed), "y", 1).Fetch("y").Fetch("s");
  auto compiled = Compile(b);
  for (const auto& [op, mode] : Modes(compiled, Feeds({1}, 1), body)) {
    if (op == "scale" || op == "increment" || op == "less_than") {
      EXPECT_NE(mode, "dynamic") << op;
    }
  }
  for (int n : {0, 1, kPassed, kPassed + 2}) {
    const auto out = MustRun(executor_, compiled, Feeds({1}, static_cast<float>(n)));
    EXPECT_EQ(Floats(out[0]), Rows(static_cast<size_t>(std::max(1, n - kPassed + 1)), 1)) << n;
    EXPECT_EQ(Floats(out[1])[0], std::ldexp(1.F, n)) << n;
  }
}

// Shapes that change in the first and in later iterations, in a loop within a loop.
TEST_P(Bodies, AnInnerLoopMayChangeWhatTheOuterOneAssumed) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Feed("n", DType::kF32, {1});
  b.Scale("x", "h", 1);
  const int outer = BeginLoop(b);
  b.Scale("h", "doubled", 2).Unary("assign", "doubled", "h");
  const int inner = BeginLoop(b, "j");
  b.Op("concat", {{"X", {"h", "x"}}}, {{"Out", {"more"}}}, {{"axis", int64_t{0}}});
  b.Unary("assign", "more", "h");
  EndLoop(b, outer, inner, {"h", "x"}, {"h"}, "j");
  EndLoop(b, 0, outer, {"h", "x"}, {"h"});
  b.Scale("h", "y", 1).Fetch("y");
  auto compiled = Compile(b);
  for (const int n : {2, 0, 3, 1}) {
    Rows h = {1, -1};
    for (int i = 0; i < n; ++i) {
      for (float& v : h) v *= 2;
      for (int j = 0; j < n; ++j) h.insert(h.end(), {1, -1});
    }
    EXPECT_EQ(Floats(MustRun(executor_, compiled, Feeds({1, -1}, static_cast<float>(n)))[0]), h);
  }
}

TEST_P(Bodies, WhatALoopWithoutTripsWritesIsMissing) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Feed("n", DType::kF32, {1});
  b.Var("late", DType::kF32, {-1});
  const int body = BeginLoop(b);
  b.Scale("x", "late", 3);
  EndLoop(b, 0, body, {"x"}, {"late"});
  b.Fetch("late");
  auto compiled = Compile(b);
  EXPECT_EQ(Floats(MustRun(executor_, compiled, Feeds({1, 2}, 2))[0]), (Rows{3, 6}));
  const auto none = executor_.Run(compiled, Feeds({1, 2}, 0));
  ASSERT_FALSE(none.ok()) << "nothing of the run before may be taken for a result";
  EXPECT_NE(none.status().ToString().find("late"), std::string::npos) << none.status().ToString();
  EXPECT_EQ(Floats(MustRun(executor_, compiled, Feeds({4}, 1))[0]), (Rows{12}));
}

// A variable that the operator does not work on in place, rewritten by its own reader.
TEST_P(Bodies, AVariableMayBeReplacedByAnOperatorThatReadsIt) {
  ProgramBuilder b;
  b.Feed("w", DType::kF32, {2, 2}).Feed("x", DType::kF32, {2, 2}).Feed("n", DType::kF32, {1});
  b.Scale("x", "h", 1);
  const int body = BeginLoop(b);
  b.Op("matmul_v2", {{"X", {"h"}}, {"Y", {"w"}}}, {{"Out", {"h"}}});
  EndLoop(b, 0, body, {"h", "w"}, {"h"});
  b.Scale("h", "y", 1).Fetch("y");
  auto compiled = Compile(b);
  const std::vector<heddle::Feed> feeds = {
      {"w", F32({2, 2}, {0, 1, 1, 1})}, {"x", F32({2, 2}, {1, 0, 0, 1})}, {"n", F32({1}, {6})}};
  for (const auto& [op, mode] : Modes(compiled, feeds, body)) EXPECT_NE(mode, "dynamic") << op;
  for (int k = 0; k < 2; ++k)
    EXPECT_EQ(Floats(MustRun(executor_, compiled, feeds)[0]), (Rows{5, 8, 8, 13}));
}

// A block that cannot run with these shapes is no error until it runs.
TEST_P(Bodies, AnUntakenBlockMayBeImpossible) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Feed("flag", DType::kBool, {1});
  b.Scale("x", "y", 2);
  const int taken = b.Block(0);
  b.In(taken).Reshape("x", "pairs", {2, 2}).Reshape("pairs", "flat", {-1});
  b.Unary("assign", "flat", "y").In(0);
  b.Op("conditional_block", {{"Cond", {"flag"}}, {"Input", {"x"}}}, {{"Out", {"y"}}, {"Scope", {}}},
       {{"sub_block", BlockRef{taken}}, {"is_scalar_condition", true}});
  b.Scale("y", "z", 1).Fetch("z");
  auto compiled = Compile(b);
  const Tensor three = F32({3}, {1, 2, 3}), four = F32({4}, {1, 2, 3, 4});
  for (int k = 0; k < 2; ++k) {
    EXPECT_EQ(Floats(MustRun(executor_, compiled, {{"x", three}, {"flag", Bool(false)}})[0]),
              (Rows{2, 4, 6}));
    const auto out = executor_.Run(compiled, {{"x", three}, {"flag", Bool(true)}});
    ASSERT_FALSE(out.ok());
    EXPECT_NE(out.status().ToString().find("reshape2"), std::string::npos)
        << out.status().ToString();
    EXPECT_EQ(Floats(MustRun(executor_, compiled, {{"x", four}, {"flag", Bool(true)}})[0]),
              (Rows{1, 2, 3, 4}));
  }
}

// x[i] while it is there: the loop fails when it goes on for too long.
TEST_P(Bodies, AnErrorInALoopLeavesTheExecutorUsable) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Feed("n", DType::kF32, {1});
  b.Fill("at", {1}, 0, DType::kI64).Fill("sum", {1}, 0);
  const int body = BeginLoop(b);
  b.Op("gather", {{"X", {"x"}}, {"Index", {"at"}}}, {{"Out", {"item"}}});
  b.Binary("elementwise_add", "sum", "item", "next").Unary("assign", "next", "sum");
  b.Increment("at");
  EndLoop(b, 0, body, {"x", "at", "sum"}, {"at", "sum"});
  b.Scale("sum", "y", 1).Fetch("y");
  auto compiled = Compile(b);
  for (int k = 0; k < 2; ++k) {
    EXPECT_EQ(Floats(MustRun(executor_, compiled, Feeds({1, 10, 100}, 3))[0]), (Rows{111}));
    const auto out = executor_.Run(compiled, Feeds({1, 10, 100}, 4));
    ASSERT_FALSE(out.ok());
    EXPECT_NE(out.status().ToString().find("gather"), std::string::npos) << out.status().ToString();
  }
}

TEST_P(Bodies, ALoopThatDoesNotEndIsEndedFromOutside) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Feed("n", DType::kF32, {1});
  b.Scale("x", "h", 1);
  const int body = BeginLoop(b);
  b.Scale("h", "t", -1).Unary("assign", "t", "h").Scale("i", "i", 0);
  EndLoop(b, 0, body, {"h"}, {"h"});
  b.Scale("h", "y", 1).Fetch("y");
  auto compiled = Compile(b);
  EXPECT_EQ(Floats(MustRun(executor_, compiled, Feeds({1}, 1))[0]), (Rows{-1}));
  const auto late =
      executor_.Run(compiled, Feeds({1}, 2),
                    {.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(20)});
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.status().code(), StatusCode::kDeadlineExceeded) << late.status().ToString();
  std::stop_source stop;
  std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stop.request_stop();
  });
  const auto cancelled = executor_.Run(compiled, Feeds({1}, 2), {.stop = stop.get_token()});
  ASSERT_FALSE(cancelled.ok());
  EXPECT_EQ(cancelled.status().code(), StatusCode::kCancelled);
  EXPECT_EQ(Floats(MustRun(executor_, compiled, Feeds({5}, 1))[0]), (Rows{-5}));
}

TEST_P(Bodies, RunsOfOneLoopKeepApart) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Feed("n", DType::kF32, {1});
  b.Scale("x", "h", 1);
  const int body = BeginLoop(b);
  b.Scale("h", "t", 1, 1).Binary("elementwise_add", "t", "x", "u").Unary("assign", "u", "h");
  EndLoop(b, 0, body, {"h", "x"}, {"h"});
  b.Scale("h", "y", 1).Fetch("y");
  auto compiled = Compile(b);
  std::vector<std::jthread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int k = 0; k < 50; ++k) {
        const auto x = static_cast<float>(t), n = static_cast<float>(k % 7);
        const auto out = executor_.Run(compiled, Feeds({x, -x}, n));
        wrong += !out.ok() || Floats((*out)[0]) != Rows{x + n * (1 + x), -x + n * (1 - x)};
      }
    });
  threads.clear();
  EXPECT_EQ(wrong.load(), 0);
}

// There are more ways through such blocks than anybody could go.
TEST_P(Bodies, BlocksThatShareBlocksAreVisitedOnce) {
  constexpr int kDepth = 40;
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2}).Feed("flag", DType::kBool, {1}).Scale("x", "s", 2);
  int block = 0;
  for (int k = 0; k < kDepth; ++k) {
    const int inner = b.Block(block);
    b.In(block);
    for (int twice = 0; twice < 2; ++twice)
      b.Op("conditional_block", {{"Cond", {"flag"}}, {"Input", {"s"}}},
           {{"Out", {"s"}}, {"Scope", {}}},
           {{"sub_block", BlockRef{inner}}, {"is_scalar_condition", true}});
    block = inner;
  }
  b.In(block).Scale("s", "s", 2).In(0).Scale("s", "y", 1).Fetch("y");
  EXPECT_EQ(b.Build().unwritten().size(), 2u);  // x and flag
  EXPECT_EQ(b.Build().results().size(), 1u);    // y
  auto compiled = Compile(b);
  EXPECT_EQ(
      Floats(MustRun(executor_, compiled, {{"x", F32({2}, {1, 2})}, {"flag", Bool(false)}})[0]),
      (Rows{2, 4}));
}

// items[0] = x; for i < n: items[i + 1] = 2 * items[i]
ProgramBuilder Doubling(const std::string& item) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Feed("n", DType::kF32, {1}).Array("items");
  b.Fill("at", {1}, 0, DType::kI64);
  b.Op("write_to_array", {{"X", {"x"}}, {"I", {"at"}}}, {{"Out", {"items"}}});
  const int body = BeginLoop(b);
  b.Op("read_from_array", {{"X", {"items"}}, {"I", {"at"}}}, {{"Out", {"t"}}});
  b.Scale("t", "u", 2).Increment("at");
  if (item != "u") b.Op("concat", {{"X", {"u", "u"}}}, {{"Out", {item}}}, {{"axis", int64_t{0}}});
  b.Op("write_to_array", {{"X", {item}}, {"I", {"at"}}}, {{"Out", {"items"}}});
  EndLoop(b, 0, body, {"items", "at"}, {"items", "at"});
  b.Op("read_from_array", {{"X", {"items"}}, {"I", {"at"}}}, {{"Out", {"y"}}});
  b.Unary("lod_array_length", "items", "length").Fetch("y").Fetch("length");
  return b;
}

TEST_P(Bodies, ItemsOfOneShapeAreStatic) {
  auto compiled = Compile(Doubling("u"));
  for (const int block : {0, 1})
    for (const auto& [op, mode] : Modes(compiled, Feeds({1, 2}, 1), block))
      EXPECT_EQ(mode == "dynamic", op == "while") << op << " in block " << block;
  for (const float n : {3.f, 0.f, 1.f}) {
    const auto out = MustRun(executor_, compiled, Feeds({1, 2}, n));
    const float factor = std::pow(2.f, n);
    EXPECT_EQ(Floats(out[0]), (Rows{factor, 2 * factor})) << n;
    EXPECT_EQ(out[1].data<int64_t>()[0], static_cast<int64_t>(n) + 1);
  }
}

TEST_P(Bodies, ItemsOfSeveralShapesAreFoundWhileRunning) {
  auto compiled = Compile(Doubling("twice"));
  for (const auto& [op, mode] : Modes(compiled, Feeds({1}, 1), 1)) {
    const bool of_item = op == "read_from_array" || op == "scale" || op == "concat";
    EXPECT_EQ(mode == "dynamic", of_item || op == "write_to_array") << op;
  }
  for (const float n : {2.f, 0.f, 3.f}) {
    const auto out = MustRun(executor_, compiled, Feeds({1}, n));
    const float times = std::pow(2.f, n);
    EXPECT_EQ(Floats(out[0]), Rows(static_cast<size_t>(times), times)) << n;
  }
}

TEST_P(Bodies, AnItemThatNobodyWroteIsAnError) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Feed("n", DType::kI64, {1}).Array("items");
  b.Fill("at", {1}, 0, DType::kI64);
  b.Op("write_to_array", {{"X", {"x"}}, {"I", {"at"}}}, {{"Out", {"items"}}});
  b.Op("read_from_array", {{"X", {"items"}}, {"I", {"n"}}}, {{"Out", {"y"}}});
  b.Fetch("y");
  auto compiled = Compile(b);
  const auto run = [&](int64_t n) {
    return executor_.Run(compiled, {{"x", F32({2}, {1, 2})}, {"n", I64({1}, {n})}});
  };
  const auto failed = run(1);
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.status().message().find("item 1 of a tensor array with 1 items"),
            std::string::npos)
      << failed.status().ToString();
  const auto out = run(0);
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ(Floats((*out)[0]), (Rows{1, 2}));
}

// state = x[t] * state; out[t] = state + 1, with states that grow or not.
ProgramBuilder Steps(bool grow) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1, 2}).Feed("start", DType::kF32, {2});
  const int step = b.Block(0);
  b.In(step).Var("x", DType::kF32, {2}).Var("out", DType::kF32, {2});
  if (grow) {
    b.Op("concat", {{"X", {"before", "x"}}}, {{"Out", {"state"}}}, {{"axis", int64_t{0}}});
    b.Op("reduce_sum", {{"X", {"state"}}}, {{"Out", {"out"}}},
         {{"dim", Ints{0}}, {"keep_dim", true}});
  } else {
    b.Binary("elementwise_mul", "x", "before", "state").Scale("state", "out", 1, 1);
  }
  b.In(0).Op("recurrent", {{"inputs", {"x"}}, {"initial_states", {"start"}}, {"parameters", {}}},
             {{"outputs", {"out"}}, {"step_scopes", {"steps"}}},
             {{"has_states", true},
              {"ex_states", Strings{"before"}},
              {"states", Strings{"state"}},
              {"is_train", false},
              {"sub_block", BlockRef{step}}});
  b.Scale("out", "y", 2).Fetch("y");
  return b;
}

TEST_P(Bodies, StepsOfOneShapeAreStatic) {
  auto compiled = Compile(Steps(false));
  const std::vector<heddle::Feed> feeds = {{"x", F32({3, 2}, {2, 3, 4, 5, 6, 7})},
                                           {"start", F32({2}, {1, 1})}};
  for (const int block : {0, 1})
    for (const auto& [op, mode] : Modes(compiled, feeds, block))
      EXPECT_EQ(mode == "dynamic", op == "recurrent") << op << " in block " << block;
  for (int twice = 0; twice < 2; ++twice)
    EXPECT_EQ(Floats(MustRun(executor_, compiled, feeds)[0]), (Rows{6, 8, 18, 32, 98, 212}));
}

// y = flag ? x x : x - 1, and x@GRAD of its sum. `by_shape`: the flag is whether x has less than
// three elements; otherwise it is fed.
ProgramBuilder Branches(bool by_shape = false) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1});
  if (by_shape) {
    b.Op("shape", {{"Input", {"x"}}}, {{"Out", {"n"}}}).Fill("three", {1}, 3, DType::kI32);
    b.Var("flag", DType::kBool, {1}).Binary("less_than", "n", "three", "flag");
  } else {
    b.Feed("flag", DType::kBool, {1});
  }
  b.Unary("logical_not", "flag", "no");
  const int square = b.Block(0), less = b.Block(0);
  const int back[] = {b.Block(square), b.Block(less)};
  b.Var("a", DType::kF32, {-1}).Var("b", DType::kF32, {-1});
  const auto branch = [&](const char* cond, int block, const char* out, const char* scope) {
    b.Op("conditional_block", {{"Cond", {cond}}, {"Input", {"x"}}},
         {{"Out", {out}}, {"Scope", {scope}}},
         {{"sub_block", BlockRef{block}}, {"is_scalar_condition", true}});
  };
  b.In(square).Binary("elementwise_mul", "x", "x", "t").Unary("assign", "t", "a");
  b.In(less).Scale("x", "u", 1, -1).Unary("assign", "u", "b").In(0);
  branch("flag", square, "a", "s0");
  branch("no", less, "b", "s1");
  b.Op("cast", {{"X", {"flag"}}}, {{"Out", {"mask"}}},
       {{"in_dtype", int64_t{0}}, {"out_dtype", int64_t{2}}});
  b.Op("select_input", {{"Mask", {"mask"}}, {"X", {"b", "a"}}}, {{"Out", {"y"}}});
  b.Scale("y", "z", 1).Fetch("z");

  b.Op("fill_any_like", {{"X", {"y"}}}, {{"Out", {"y@GRAD"}}}, {{"value", 1.0}});
  b.Op("select_output", {{"Mask", {"mask"}}, {"X", {"y@GRAD"}}}, {{"Out", {"b@GRAD", "a@GRAD"}}});
  b.desc().mutable_blocks(back[0])->set_forward_block_idx(square);
  b.desc().mutable_blocks(back[1])->set_forward_block_idx(less);
  b.In(back[0]).Var("x@GRAD", DType::kF32, {-1}).Unary("assign", "a@GRAD", "t@GRAD");
  b.Op("elementwise_mul_grad", {{"X", {"x"}}, {"Y", {"t"}}, {"Out@GRAD", {"t@GRAD"}}},
       {{"X@GRAD", {"x@GRAD"}}});  // t x
  b.In(back[1]).Var("x@GRAD", DType::kF32, {-1}).Scale("b@GRAD", "x@GRAD", 1).In(0);
  for (int i : {0, 1})
    b.Op("conditional_block_grad",
         {{"Cond", {i == 0 ? "flag" : "no"}},
          {"Input", {"x"}},
          {"Out", {i == 0 ? "a" : "b"}},
          {"Out@GRAD", {i == 0 ? "a@GRAD" : "b@GRAD"}},
          {"Scope", {i == 0 ? "s0" : "s1"}}},
         {{"Input@GRAD", {i == 0 ? "x@GRAD0" : "x@GRAD1"}}},
         {{"sub_block", BlockRef{back[i]}}, {"is_scalar_condition", true}});
  b.Op("sum", {{"X", {"x@GRAD0", "x@GRAD1"}}}, {{"Out", {"dx"}}});
  b.Fetch("dx");
  return b;
}

TEST_P(Bodies, BranchesAndTheirGradientsAreStatic) {
  auto compiled = Compile(Branches());
  const auto feeds = [](bool flag) {
    return std::vector<heddle::Feed>{{"x", F32({2}, {3, 4})}, {"flag", Bool(flag)}};
  };
  for (int block = 0; block < 5; ++block) {
    const auto modes = Modes(compiled, feeds(true), block);
    EXPECT_FALSE(modes.empty());
    for (const auto& [op, mode] : modes)
      EXPECT_EQ(mode == "dynamic", op.starts_with("conditional_block") || op == "select_output")
          << op << " in block " << block;
  }
  for (int twice = 0; twice < 2; ++twice) {
    auto out = MustRun(executor_, compiled, feeds(true));
    EXPECT_EQ(Floats(out[0]), (Rows{9, 16}));
    EXPECT_EQ(Floats(out[1]), (Rows{9, 16}));  // by t alone
    out = MustRun(executor_, compiled, feeds(false));
    EXPECT_EQ(Floats(out[0]), (Rows{2, 3}));
    EXPECT_EQ(Floats(out[1]), (Rows{1, 1}));
  }
}

// The gradients of a branch that no run of the plan takes are zeros, as they are without a plan.
TEST_P(Bodies, BranchesAndTheirGradientsAreDecidedByShapes) {
  ProgramBuilder b = Branches(true);
  b.Fetch("x@GRAD0").Fetch("x@GRAD1");
  auto compiled = Compile(b);
  for (int twice = 0; twice < 2; ++twice) {
    auto out = MustRun(executor_, compiled, {{"x", F32({2}, {3, 4})}});
    EXPECT_EQ(Floats(out[0]), (Rows{9, 16}));
    EXPECT_EQ(Floats(out[1]), (Rows{9, 16}));
    EXPECT_EQ(Floats(out[2]), (Rows{9, 16}));
    EXPECT_EQ(Floats(out[3]), (Rows{0, 0}));
    out = MustRun(executor_, compiled, {{"x", F32({3}, {3, 4, 5})}});
    EXPECT_EQ(Floats(out[0]), (Rows{2, 3, 4}));
    EXPECT_EQ(Floats(out[1]), (Rows{1, 1, 1}));
    EXPECT_EQ(Floats(out[2]), (Rows{0, 0, 0}));
    EXPECT_EQ(Floats(out[3]), (Rows{1, 1, 1}));
  }
}

// Only the branch that ran has a gradient: a block without one is not run on what memory held.
TEST_P(Bodies, ABranchWithoutAGradientIsAnError) {
  ProgramBuilder b = Branches();
  auto* ops = b.desc().mutable_blocks(0)->mutable_ops();
  for (auto& op : *ops)
    if (op.type() == "conditional_block_grad")
      for (auto& in : *op.mutable_inputs())
        if (in.parameter() == "Cond") in.set_arguments(0, "flag");
  auto compiled = Compile(b);
  const auto out = executor_.Run(compiled, {{"x", F32({2}, {3, 4})}, {"flag", Bool(true)}});
  ASSERT_FALSE(out.ok());
  EXPECT_NE(out.status().message().find("'Out@GRAD' [0] holds nothing"), std::string::npos)
      << out.status().ToString();
}

TEST_P(Bodies, StatesThatGrowAreFoundWhileRunning) {
  auto compiled = Compile(Steps(true));
  const std::vector<heddle::Feed> feeds = {{"x", F32({3, 2}, {2, 3, 4, 5, 6, 7})},
                                           {"start", F32({2}, {1, 1})}};
  for (const auto& [op, mode] : Modes(compiled, feeds, 1)) EXPECT_EQ(mode, "dynamic") << op;
  EXPECT_EQ(Floats(MustRun(executor_, compiled, feeds)[0]), (Rows{14, 32, 58}));
}

// A sum may give a variable of the scope another shape than it had (what Paddle's metrics do).
TEST_P(Bodies, AVariableOfTheScopeMayTakeAnotherShape) {
  ProgramBuilder b;
  b.Param("all", DType::kF32, {1}).Param("kept", DType::kF32, {1}).Feed("x", DType::kF32, {1, 1});
  b.Feed("one", DType::kF32, {1});
  b.Binary("elementwise_add", "all", "x", "all").Binary("elementwise_add", "kept", "one", "kept");
  b.Scale("all", "y", 2).Fetch("y").Fetch("kept");
  for (const int level : {0, 2}) {
    auto scope = std::make_shared<Scope>();
    scope->Set("all", F32({1}, {3}));
    scope->Set("kept", F32({1}, {1}));
    const auto compiled = MustCompile(executor_, b.Build(), scope,
                                      {.opt_level = level, .schedule = GetParam().schedule});
    for (const float times : {1.f, 2.f, 3.f}) {
      const auto out =
          MustRun(executor_, compiled, {{"x", F32({1, 1}, {4})}, {"one", F32({1}, {1})}});
      EXPECT_EQ(out[0].shape(), (Shape{1, 1})) << level;
      EXPECT_EQ(Floats(out[0]), (Rows{2 * (3 + 4 * times)})) << level;
      EXPECT_EQ(Floats(out[1]), (Rows{1 + times})) << level;
    }
    EXPECT_EQ(scope->Find("all")->tensor().shape(), (Shape{1, 1}));
  }
}

}  // namespace
}  // namespace heddle::testing
