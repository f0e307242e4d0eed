// Control edges: order between operators that exchange no data, in programs, passes and runs.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "core/programs/ir.h"
#include "heddle/device.h"
#include "passes/ir_text.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

constexpr Schedule kSchedules[] = {Schedule::kAuto, Schedule::kSerial, Schedule::kParallel,
                                   Schedule::kLanes};

// When each operator ran, by its outputs' name.
std::map<std::string, TraceEvent> Trace(Executor& executor, const CompiledProgram& compiled,
                                        const std::vector<heddle::Feed>& feeds) {
  RunReport report;
  auto out = executor.RunValues(compiled, feeds, {.report = &report, .trace = true});
  EXPECT_TRUE(out.ok()) << out.status().ToString();
  std::map<std::string, TraceEvent> events;
  for (const TraceEvent& e : report.events) events[e.output] = e;
  return events;
}

// `late` waits for `early`, which takes longer and stands before it.
Program Two(bool edge) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {64, 4096}).Feed("z", DType::kF32, {2});
  Attrs marks, after;
  if (edge) {
    marks = {{"control_marks", Ints{5}}};
    after = {{"control_after", Ints{5}}};
  }
  b.Op("tanh", {{"X", {"x"}}}, {{"Out", {"early"}}}, marks);
  b.Op("softmax", {{"X", {"z"}}}, {{"Out", {"late"}}}, after);
  b.Fetch("late").Fetch("early");
  return b.Build();
}

std::vector<heddle::Feed> TwoFeeds() {
  return {{"x", RandomF32({64, 4096}, 1)}, {"z", F32({2}, {1, 2})}};
}

TEST(ControlEdges, HoldInEverySchedule) {
  for (const int level : {0, 2})
    for (const Schedule schedule : kSchedules)
      for (const uint64_t seed : {0, 3, 8}) {
        Executor executor({.threads = 2});
        const CompiledProgram compiled =
            MustCompile(executor, Two(true), nullptr,
                        {.opt_level = level, .schedule = schedule, .shuffle_seed = seed});
        for (int run = 0; run < 5; ++run) {
          const auto events = Trace(executor, compiled, TwoFeeds());
          ASSERT_EQ(events.size(), 2u);
          EXPECT_GE(events.at("late").begin_us, events.at("early").end_us)
              << ScheduleName(schedule) << level;
        }
      }
}

TEST(ControlEdges, AreDependenciesOfThePlan) {
  Executor executor({.threads = 2});
  for (const bool edge : {false, true}) {
    auto plan = executor.DescribePlan(
        MustCompile(executor, Two(edge), nullptr, {.schedule = Schedule::kParallel}), TwoFeeds());
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    EXPECT_EQ(plan->dependencies.size(), edge ? 1u : 0u);
  }
}

TEST(ControlEdges, HoldOnStreams) {
  for (const bool edge : {false, true}) {
    // Nothing is executed before it must: the host asks for `late` first.
    Executor executor(
        {.threads = 1, .device = NewEmulatedDevice({.lazy = true}), .device_streams = 2});
    const CompiledProgram compiled = MustCompile(executor, Two(edge));
    RunReport report;
    ASSERT_TRUE(executor.Run(compiled, TwoFeeds(), {.report = &report, .trace = true}).ok());
    std::string order;
    for (const TraceEvent& e : report.events)
      if (e.op == "tanh" || e.op == "softmax") order += e.op + " ";
    EXPECT_TRUE(!edge || order == "tanh softmax ") << order;
  }
}

std::string ErrorOf(const ProgramBuilder& b) {
  auto program = b.TryBuild();
  return program.ok() ? "" : program.status().ToString();
}

TEST(ControlEdges, ThatAreBrokenAreRefused) {
  const auto program = [](const Attrs& first, const Attrs& second) {
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {2});
    b.Op("tanh", {{"X", {"x"}}}, {{"Out", {"a"}}}, first);
    b.Op("exp", {{"X", {"x"}}}, {{"Out", {"b"}}}, second);
    b.Fetch("a").Fetch("b");
    return ErrorOf(b);
  };
  EXPECT_EQ(program({{"control_marks", Ints{1}}}, {{"control_after", Ints{1}}}), "");
  EXPECT_NE(program({}, {{"control_after", Ints{1}}})
                .find("op 2 (exp) waits for mark 1, which no earlier operator of its block bears"),
            std::string::npos);
  EXPECT_NE(program({{"control_after", Ints{1}}}, {{"control_marks", Ints{1}}}).find("op 1 (tanh)"),
            std::string::npos);
  EXPECT_NE(program({{"control_marks", Ints{1}}}, {{"control_marks", Ints{1}}})
                .find("bears mark 1, and so does an operator before it"),
            std::string::npos);
}

// A chain of element-wise operators becomes one, which has the edges of all of them.
TEST(ControlEdges, AreThoseOfWhatIsFused) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {64, 4096}).Feed("z", DType::kF32, {2});
  for (const char* name : {"a", "b", "c"}) b.Var(name, DType::kF32, {64, 4096});
  b.Op("softmax", {{"X", {"x"}}}, {{"Out", {"before"}}}, {{"control_marks", Ints{1}}});
  b.Op("exp", {{"X", {"x"}}}, {{"Out", {"a"}}}, {{"control_marks", Ints{2}}});
  b.Op("tanh", {{"X", {"a"}}}, {{"Out", {"b"}}},
       {{"control_marks", Ints{3}}, {"control_after", Ints{1, 2}}});
  b.Op("sigmoid", {{"X", {"b"}}}, {{"Out", {"c"}}});
  b.Op("softmax", {{"X", {"z"}}}, {{"Out", {"behind"}}}, {{"control_after", Ints{3}}});
  b.Fetch("before").Fetch("c").Fetch("behind");
  Executor executor({.threads = 2});
  for (const Schedule schedule : kSchedules) {
    const CompiledProgram compiled = MustCompile(
        executor, b.Build(), nullptr, {.schedule = schedule, .passes = {.verify = true}});
    const auto events = Trace(executor, compiled, TwoFeeds());
    ASSERT_EQ(events.size(), 3u) << ScheduleName(schedule);
    EXPECT_EQ(events.at("c").op, "fused_elementwise");
    EXPECT_GE(events.at("c").begin_us, events.at("before").end_us);
    EXPECT_GE(events.at("behind").begin_us, events.at("c").end_us);
  }
}

// An edge from inside a chain to outside and back forbids to make the chain one.
TEST(ControlEdges, KeepApartWhatOthersComeBetween) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {16});
  for (const char* name : {"a", "b"}) b.Var(name, DType::kF32, {16});
  b.Op("exp", {{"X", {"x"}}}, {{"Out", {"a"}}}, {{"control_marks", Ints{1}}});
  b.Op("softmax", {{"X", {"x"}}}, {{"Out", {"between"}}},
       {{"control_marks", Ints{2}}, {"control_after", Ints{1}}});
  b.Op("tanh", {{"X", {"a"}}}, {{"Out", {"b"}}}, {{"control_after", Ints{2}}});
  b.Fetch("between").Fetch("b");
  Executor executor({.threads = 1});
  const auto events =
      Trace(executor, MustCompile(executor, b.Build()), {{"x", RandomF32({16}, 1)}});
  ASSERT_EQ(events.size(), 3u);
  EXPECT_GE(events.at("between").begin_us, events.at("a").end_us);
  EXPECT_GE(events.at("b").begin_us, events.at("between").end_us);
}

// Operators that passes would drop, merge, compute ahead or make views of stay, where others wait
// for them.
TEST(ControlEdges, KeepOperatorsThatOthersWaitFor) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {4});
  b.Op("fill_constant", {}, {{"Out", {"known"}}},
       {{"shape", Ints{4}}, {"value", 1.0}, {"dtype", int64_t{5}}, {"control_marks", Ints{1}}});
  b.Op("exp", {{"X", {"x"}}}, {{"Out", {"unread"}}},
       {{"control_marks", Ints{2}}, {"control_after", Ints{1}}});
  b.Op("reshape2", {{"X", {"x"}}}, {{"Out", {"view"}}},
       {{"shape", Ints{2, 2}}, {"control_marks", Ints{3}}, {"control_after", Ints{2}}});
  b.Op("exp", {{"X", {"x"}}}, {{"Out", {"again"}}},
       {{"control_marks", Ints{4}}, {"control_after", Ints{3}}});
  b.Op("softmax", {{"X", {"x"}}}, {{"Out", {"y"}}}, {{"control_after", Ints{4}}});
  b.Op("tanh", {{"X", {"view"}}}, {{"Out", {"z"}}});
  b.Fetch("y").Fetch("z");
  for (const int level : {0, 1, 2}) {
    Executor executor({.threads = 1});
    const auto events = Trace(
        executor,
        MustCompile(executor, b.Build(), nullptr, {.opt_level = level, .passes = {.verify = true}}),
        {{"x", RandomF32({4}, 1)}});
    double last = 0;
    for (const char* name : {"known", "unread", "view", "again", "y"}) {
      ASSERT_EQ(events.count(name), 1u) << name << " at level " << level;
      EXPECT_GE(events.at(name).begin_us, last) << name;
      last = events.at(name).end_us;
    }
  }
}

TEST(ControlEdges, StandInTheProgramsTextAndFile) {
  const Program program = Two(true);
  const std::string text = ir::ToText(program.ir());
  EXPECT_NE(text.find("tanh(X=[x]) mark 5"), std::string::npos) << text;
  EXPECT_NE(text.find("softmax(X=[z]) after 5"), std::string::npos) << text;
  EXPECT_NE(ir::Fingerprint(program.ir()), ir::Fingerprint(Two(false).ir()));
}

TEST(ControlEdges, ComeFromTheBuilder) {
  heddle::ProgramBuilder b;
  const heddle::Variable x = *b.Feed("x", DType::kF32, {2});
  const int64_t mark = b.MarkNext();
  const heddle::Variable first = *b.Apply("tanh", {{"X", {x}}});
  b.NextAfter({mark});
  const heddle::Variable second = *b.Apply("softmax", {{"X", {x}}});
  ASSERT_TRUE(b.Fetch(second).ok());
  ASSERT_TRUE(b.Fetch(first).ok());
  auto model = std::move(b).Finish();
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const std::string text = ir::ToText(model->program.ir());
  EXPECT_NE(text.find("mark 1"), std::string::npos) << text;
  EXPECT_NE(text.find("after 1"), std::string::npos) << text;
  // And by way of the file.
  auto bytes = model->program.Serialize();
  ASSERT_TRUE(bytes.ok()) << bytes.status().ToString();
  auto again = Program::Parse(*bytes, "again");
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  EXPECT_NE(ir::ToText(again->ir()).find("after 1"), std::string::npos);
}

// Random programs with random edges: every edge holds, and the numbers are those without edges.
TEST(ControlEdges, HoldInRandomPrograms) {
  constexpr int kOps = 24;
  const char* const kTypes[] = {"tanh", "exp", "softmax", "sigmoid", "relu"};
  for (uint64_t seed = 1; seed < 25; ++seed) {
    std::mt19937_64 random(seed);
    ProgramBuilder with, without;
    std::vector<std::vector<int>> waits(kOps);
    for (ProgramBuilder* b : {&with, &without}) b->Feed("v0", DType::kF32, {8});
    for (int i = 0; i < kOps; ++i) {
      const std::string in = "v" + std::to_string(random() % static_cast<uint64_t>(i + 1));
      const std::string out = "v" + std::to_string(i + 1), type = kTypes[random() % 5];
      Ints after;
      for (int j = 0; j < i; ++j)
        if (random() % 8 == 0) {
          after.push_back(j);
          waits[static_cast<size_t>(i)].push_back(j);
        }
      for (ProgramBuilder* b : {&with, &without}) {
        b->Var(out, DType::kF32, {8});
        Attrs attrs;
        if (b == &with) attrs = {{"control_marks", Ints{i}}, {"control_after", after}};
        b->Op(type, {{"X", {in}}}, {{"Out", {out}}}, attrs);
      }
    }
    for (ProgramBuilder* b : {&with, &without})
      for (int i = 0; i < kOps; i += 3) b->Fetch("v" + std::to_string(i + 1));
    const std::vector<heddle::Feed> feeds = {{"v0", RandomF32({8}, static_cast<uint32_t>(seed))}};
    Executor plain({.threads = 1});
    const auto expected = MustRun(plain, MustCompile(plain, without.Build()), feeds);
    for (const int level : {0, 2})
      for (const Schedule schedule : kSchedules) {
        Executor executor({.threads = 2});
        const CompiledProgram compiled =
            MustCompile(executor, with.Build(), nullptr,
                        {.opt_level = level, .schedule = schedule, .passes = {.verify = true}});
        const auto got = MustRun(executor, compiled, feeds);
        for (size_t k = 0; k < got.size(); ++k) EXPECT_EQ(Bits(got[k]), Bits(expected[k]));
        const auto events = Trace(executor, compiled, feeds);
        if (level == 0) {
          ASSERT_EQ(events.size(), size_t{kOps});
        }
        for (int i = 0; i < kOps; ++i)
          for (const int j : waits[static_cast<size_t>(i)]) {
            const auto late = events.find("v" + std::to_string(i + 1));
            const auto early = events.find("v" + std::to_string(j + 1));
            if (late == events.end() || early == events.end()) continue;  // joined with others
            EXPECT_GE(late->second.begin_us, early->second.end_us)
                << seed << ": " << j << " before " << i << ", " << ScheduleName(schedule);
          }
      }
  }
}

}  // namespace
}  // namespace heddle::testing
