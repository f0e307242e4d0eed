// scheduling_priority on the host: seen in the traces of runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

constexpr Schedule kSchedules[] = {Schedule::kAuto, Schedule::kSerial, Schedule::kParallel,
                                   Schedule::kLanes};
constexpr int kMany = 9;

int64_t PriorityOf(int k) { return (k * 5) % kMany - 4; }  // all different

// One operator, and many that wait for it alone; the k-th has PriorityOf(k) where `given`.
Program Fan(const Shape& shape, bool given) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, shape);
  b.Unary("tanh", "x", "t");
  for (int k = 0; k < kMany; ++k) {
    Attrs attrs = {{"scale", 1.5 + k}};
    if (given) attrs.emplace_back("scheduling_priority", PriorityOf(k));
    b.Op("scale", {{"X", {"t"}}}, {{"Out", {"y" + std::to_string(k)}}}, attrs);
  }
  for (int k = 0; k < kMany; ++k) b.Fetch("y" + std::to_string(k));
  return b.Build();
}

// The priorities of the fan's operators in the order in which they began.
std::vector<int64_t> Began(const RunReport& report) {
  std::vector<int64_t> began;
  for (const TraceEvent& e : report.events)
    if (e.op == "scale") began.push_back(PriorityOf(std::stoi(e.output.substr(1))));
  return began;
}

RunReport Trace(Executor& executor, const CompiledProgram& compiled, const Tensor& x,
                std::vector<Tensor>* out = nullptr) {
  RunReport report;
  auto result = executor.Run(compiled, {{"x", x}}, {.report = &report, .trace = true});
  EXPECT_TRUE(result.ok()) << result.status().ToString();
  if (out != nullptr && result.ok()) *out = *std::move(result);
  return report;
}

// Each operator stays one of its own, in a loop too.
CompileOptions Apart(CompileOptions options) {
  options.passes.disable = {"fuse_elementwise", "unroll_loops"};
  return options;
}

TEST(Priorities, OneThreadFollowsThemInEverySchedule) {
  const Tensor x = RandomF32({8}, 1);
  for (const int level : {0, 2})
    for (const Schedule schedule : kSchedules) {
      Executor executor({.threads = 1});
      const CompiledProgram compiled = MustCompile(
          executor, Fan({8}, true), nullptr, Apart({.opt_level = level, .schedule = schedule}));
      const std::vector<int64_t> began = Began(Trace(executor, compiled, x));
      ASSERT_EQ(began.size(), size_t{kMany});
      EXPECT_TRUE(std::is_sorted(began.begin(), began.end()))
          << ScheduleName(schedule) << " " << level;
    }
}

// What starts as the k-th may be one further on: two threads that have taken their operators begin
// them in any order.
TEST(Priorities, AQueueGivesThemToTwoThreads) {
  const Tensor x = RandomF32({64, 1024}, 1);
  for (const uint64_t seed : {0, 3, 4}) {
    Executor executor({.threads = 2});
    const CompiledProgram compiled =
        MustCompile(executor, Fan({64, 1024}, true), nullptr,
                    Apart({.schedule = Schedule::kParallel, .shuffle_seed = seed}));
    for (int run = 0; run < 20; ++run) {
      const std::vector<int64_t> began = Began(Trace(executor, compiled, x));
      ASSERT_EQ(began.size(), size_t{kMany});
      for (int at = 0; at < kMany; ++at)
        EXPECT_LE(std::abs(began[static_cast<size_t>(at)] - (at - kMany / 2)), 1) << at;
    }
  }
}

TEST(Priorities, EachLaneFollowsThem) {
  const Tensor x = RandomF32({64, 1024}, 1);
  Executor executor({.threads = 2});
  const CompiledProgram compiled =
      MustCompile(executor, Fan({64, 1024}, true), nullptr, {.schedule = Schedule::kLanes});
  const RunReport report = Trace(executor, compiled, x);
  std::map<int, std::vector<int64_t>> of_lane;
  for (const TraceEvent& e : report.events)
    if (e.op == "scale") of_lane[e.lane].push_back(PriorityOf(std::stoi(e.output.substr(1))));
  EXPECT_EQ(of_lane.size(), 2u);
  for (const auto& [lane, began] : of_lane)
    EXPECT_TRUE(std::is_sorted(began.begin(), began.end())) << lane;
}

TEST(Priorities, ChangeNoNumber) {
  const Tensor x = RandomF32({64, 64}, 2);
  std::vector<Tensor> expected, got;
  Executor executor({.threads = 2});
  Trace(executor, MustCompile(executor, Fan({64, 64}, false)), x, &expected);
  for (const Schedule schedule : kSchedules) {
    Trace(executor, MustCompile(executor, Fan({64, 64}, true), nullptr, {.schedule = schedule}), x,
          &got);
    for (size_t k = 0; k < expected.size(); ++k) EXPECT_EQ(Bits(got[k]), Bits(expected[k]));
  }
}

TEST(Priorities, EqualOnesLeaveThePlanAsItIs) {
  const auto program = [](bool given) {
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {4, 4});
    Attrs attrs;
    if (given) attrs.emplace_back("scheduling_priority", int64_t{0});
    b.Op("exp", {{"X", {"x"}}}, {{"Out", {"a"}}}, attrs);
    b.Op("softmax", {{"X", {"x"}}}, {{"Out", {"b"}}}, attrs);
    b.Op("tanh", {{"X", {"a"}}}, {{"Out", {"c"}}}, attrs);
    b.Fetch("c").Fetch("b");
    return b.Build();
  };
  for (const Schedule schedule : kSchedules) {
    Executor executor({.threads = 2});
    const auto text = [&](bool given) {
      return executor.PlanText(
          MustCompile(executor, program(given), nullptr, {.schedule = schedule}),
          {{"x", RandomF32({4, 4}, 1)}});
    };
    EXPECT_EQ(*text(true), *text(false)) << ScheduleName(schedule);
  }
}

// What a pass makes has the priority of what it replaces, and operators of different priorities
// stay apart.
TEST(Priorities, PassesKeepThem) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {16});
  for (const char* name : {"a", "b", "c", "d", "e"}) b.Var(name, DType::kF32, {16});
  const auto add = [&](const char* type, const char* in, const char* out, int64_t priority) {
    b.Op(type, {{"X", {in}}}, {{"Out", {out}}}, {{"scheduling_priority", priority}});
  };
  add("tanh", "x", "a", 2);
  add("exp", "a", "b", 2);  // fused with the one before
  add("exp", "x", "c", 1);
  add("sigmoid", "c", "d", -3);  // not fused with it
  add("exp", "x", "e", 4);       // not the same as c
  b.Fetch("b").Fetch("d").Fetch("e");
  Executor executor({.threads = 1});
  const RunReport report = Trace(executor, MustCompile(executor, b.Build()), RandomF32({16}, 3));
  std::string order;
  for (const TraceEvent& e : report.events) order += e.op + ">" + e.output + " ";
  EXPECT_EQ(order, "exp>c sigmoid>d fused_elementwise>b exp>e ");
}

TEST(Priorities, MergedProductsKeepTheirs) {
  ProgramBuilder b;
  auto scope = std::make_shared<Scope>();
  b.Feed("x", DType::kF32, {2, 16});
  for (const std::string n : {"a", "b"}) {
    b.Param("w" + n, DType::kF32, {16, 16}).Var(n, DType::kF32, {2, 16});
    scope->Set("w" + n, Value(RandomF32({16, 16}, 5)));
    b.Op("matmul_v2", {{"X", {"x"}}, {"Y", {"w" + n}}}, {{"Out", {n}}},
         {{"scheduling_priority", int64_t{2}}});
    b.Fetch(n);
  }
  b.Var("c", DType::kF32, {2, 16});
  b.Op("exp", {{"X", {"x"}}}, {{"Out", {"c"}}}, {{"scheduling_priority", int64_t{1}}});
  b.Fetch("c");
  Executor executor({.threads = 1});
  const RunReport report =
      Trace(executor, MustCompile(executor, b.Build(), scope), RandomF32({2, 16}, 3));
  std::string order;
  for (const TraceEvent& e : report.events) order += e.op + " ";
  EXPECT_EQ(order, "exp fused_products ");
}

// In the body of a loop, too.
TEST(Priorities, HoldInBodies) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {4});
  b.Fill("i", {1}, 0, DType::kI64).Fill("n", {1}, 3, DType::kI64);
  b.Binary("less_than", "i", "n", "cond");
  b.Op("assign", {{"X", {"x"}}}, {{"Out", {"s"}}});
  b.Op("assign", {{"X", {"x"}}}, {{"Out", {"t"}}});
  const int body = b.Block(0);
  b.Op("while", {{"X", {"x", "i", "n", "s", "t"}}, {"Condition", {"cond"}}},
       {{"Out", {"i", "cond", "s", "t"}}, {"StepScopes", {"scopes"}}},
       {{"sub_block", BlockRef{body}}});
  b.In(body);
  b.Op("tanh", {{"X", {"s"}}}, {{"Out", {"s"}}}, {{"scheduling_priority", int64_t{1}}});
  b.Op("sigmoid", {{"X", {"t"}}}, {{"Out", {"t"}}}, {{"scheduling_priority", int64_t{-1}}});
  b.Increment("i");
  b.Binary("less_than", "i", "n", "cond");
  b.In(0);
  b.Fetch("s").Fetch("t");
  Executor executor({.threads = 1});
  const RunReport report =
      Trace(executor, MustCompile(executor, b.Build(), nullptr, Apart({})), RandomF32({4}, 3));
  std::string order;
  for (const TraceEvent& e : report.events)
    if (e.op == "tanh" || e.op == "sigmoid") order += e.op + " ";
  EXPECT_EQ(order, "sigmoid tanh sigmoid tanh sigmoid tanh ");
}

}  // namespace
}  // namespace heddle::testing
