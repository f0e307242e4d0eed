// Runs whose kernels are captured once and replayed from then on.
#include <gtest/gtest.h>

#include "heddle/device.h"
#include "tests/support/program_builder.h"
#include "tests/support/random_program.h"

namespace heddle::testing {
namespace {

// Two branches that meet, and a parameter.
Program Branches() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {4}).Param("w", DType::kF32, {4});
  b.Scale("x", "a", 2);
  b.Scale("x", "b", 3, 1);
  b.Binary("elementwise_mul", "a", "w", "c");
  b.Unary("relu", "b", "d");
  b.Binary("elementwise_add", "c", "d", "y");
  b.Fetch("y");
  return b.Build();
}
std::vector<float> Expected(const std::vector<float>& x, float w) {
  std::vector<float> y;
  for (float v : x) y.push_back(2 * v * w + std::max(0.0f, 3 * v + 1));
  return y;
}

struct Ran {
  std::vector<float> y;
  std::string dispatch;
};
Ran RunOnce(Executor& executor, const CompiledProgram& compiled, const std::vector<float>& x,
            RunOptions options = {}) {
  RunReport report;
  options.report = &report;
  auto out = executor.Run(compiled, {{"x", F32({4}, x)}}, options);
  EXPECT_TRUE(out.ok()) << out.status().ToString();
  return {out.ok() ? Floats((*out)[0]) : std::vector<float>(), report.dispatch};
}

TEST(DeviceCapture, TheSecondRunCapturesAndLaterOnesReplay) {
  for (const EmulatedOptions& kind : {EmulatedOptions{}, EmulatedOptions{.lazy = true}}) {
    auto device = NewEmulatedDevice(kind);
    {
      Executor executor({.threads = 1, .device = device, .device_streams = 3});
      auto scope = std::make_shared<Scope>();
      scope->Set("w", F32({4}, {2, 2, 2, 2}));
      const CompiledProgram compiled = MustCompile(executor, Branches(), scope, {.opt_level = 0});
      for (int run = 0; run < 5; ++run) {
        const std::vector<float> x = {1.0f * static_cast<float>(run), -2, 0.5f, 100};
        const Ran ran = RunOnce(executor, compiled, x);
        EXPECT_EQ(ran.y, Expected(x, 2));
        EXPECT_EQ(ran.dispatch, run == 0 ? "device" : "graph");
      }
      EXPECT_EQ(CountsOf(*device).replays, 4);
      EXPECT_EQ(CountsOf(*device).graphs, 1);
      EXPECT_EQ(CountsOf(*device).kernels, 5 * 5);
      // What a graph cannot have: a look at each value.
      EXPECT_EQ(RunOnce(executor, compiled, {1, 2, 3, 4}, {.check_nan_inf = true}).dispatch,
                "device");
      EXPECT_EQ(RunOnce(executor, compiled, {1, 2, 3, 4}).y, Expected({1, 2, 3, 4}, 2));
    }
    const EmulatedCounts left = CountsOf(*device);
    EXPECT_EQ(left.allocations + left.streams + left.events + left.graphs, 0);
  }
}

// Another program needs a larger block of memory: the graph's operands lie elsewhere then.
TEST(DeviceCapture, AGraphIsMadeAnewWhenItsMemoryMoves) {
  auto device = NewEmulatedDevice();
  Executor executor({.threads = 1, .device = device});
  auto scope = std::make_shared<Scope>();
  scope->Set("w", F32({4}, {2, 2, 2, 2}));
  const CompiledProgram compiled = MustCompile(executor, Branches(), scope, {.opt_level = 0});
  ProgramBuilder large;
  large.Feed("x", DType::kF32, {10000}).Scale("x", "a", 2);
  large.Binary("elementwise_add", "a", "x", "y").Fetch("y");
  const CompiledProgram other = MustCompile(executor, large.Build(), nullptr, {.opt_level = 0});
  const std::vector<heddle::Feed> feeds = {{"x", F32({10000}, std::vector<float>(10000, 1))}};
  for (int run = 0; run < 6; ++run) {
    const auto n = static_cast<float>(run);
    EXPECT_EQ(RunOnce(executor, compiled, {n, 2, 3, 4}).y, Expected({n, 2, 3, 4}, 2));
    if (run == 3) {
      EXPECT_EQ(Floats(MustRun(executor, other, feeds)[0]), std::vector<float>(10000, 3));
    }
  }
  EXPECT_EQ(CountsOf(*device).replays, 5);
}

// With a parameter that was replaced there is another plan, and so another graph.
TEST(DeviceCapture, ReplacedParametersAreSeen) {
  auto device = NewEmulatedDevice();
  Executor executor({.threads = 1, .device = device});
  auto scope = std::make_shared<Scope>();
  scope->Set("w", F32({4}, {2, 2, 2, 2}));
  const CompiledProgram compiled = MustCompile(executor, Branches(), scope, {.opt_level = 0});
  const std::vector<float> x = {1, 2, 3, 4};
  for (int run = 0; run < 3; ++run) EXPECT_EQ(RunOnce(executor, compiled, x).y, Expected(x, 2));
  scope->Set("w", F32({4}, {7, 7, 7, 7}));
  for (int run = 0; run < 3; ++run) EXPECT_EQ(RunOnce(executor, compiled, x).y, Expected(x, 7));
}

TEST(DeviceCapture, CanBeSwitchedOff) {
  Executor executor({.threads = 1, .device = NewEmulatedDevice(), .device_capture = false});
  auto scope = std::make_shared<Scope>();
  scope->Set("w", F32({4}, {2, 2, 2, 2}));
  const CompiledProgram compiled = MustCompile(executor, Branches(), scope, {.opt_level = 0});
  for (int run = 0; run < 3; ++run)
    EXPECT_EQ(RunOnce(executor, compiled, {1, 2, 3, 4}).dispatch, "device");
}

// A parameter that each run updates on the device, and one for the mean of what it was.
TEST(DeviceCapture, UpdatesOfParametersAreReplayed) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2}).Feed("rate", DType::kF32, {1}).Param("p", DType::kF32, {2});
  b.Scale("x", "g", 2);
  b.Op("sgd", {{"Param", {"p"}}, {"Grad", {"g"}}, {"LearningRate", {"rate"}}},
       {{"ParamOut", {"p"}}});
  b.Scale("p", "y", 1, 1).Fetch("y");
  auto scope = std::make_shared<Scope>();
  scope->Set("p", F32({2}, {10, 20}));
  Executor executor({.threads = 1, .device = NewEmulatedDevice({.lazy = true})});
  const CompiledProgram compiled = MustCompile(executor, b.Build(), scope, {.opt_level = 0});
  for (int run = 1; run <= 4; ++run) {
    RunReport report;
    auto out = executor.Run(compiled, {{"x", F32({2}, {1, 2})}, {"rate", F32({1}, {0.5f})}},
                            {.report = &report});
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    const auto n = static_cast<float>(run);
    EXPECT_EQ(Floats((*out)[0]), (std::vector<float>{11 - n, 21 - 2 * n}));
    EXPECT_EQ(report.dispatch, run == 1 ? "device" : "graph");
  }
  EXPECT_EQ(Floats(scope->Find("p")->tensor()), (std::vector<float>{6, 12}));
}

std::string WhyNot(const Program& program, const std::vector<heddle::Feed>& feeds) {
  Executor executor({.threads = 1, .device = NewEmulatedDevice()});
  const CompiledProgram compiled = MustCompile(executor, program, nullptr, {.opt_level = 0});
  auto stats = executor.Prepare(compiled, feeds);
  EXPECT_TRUE(stats.ok()) << stats.status().ToString();
  std::vector<Tensor> first = MustRun(executor, compiled, feeds);
  RunReport report;
  EXPECT_TRUE(executor.Run(compiled, feeds, {.report = &report}).ok());
  EXPECT_EQ(report.dispatch, stats->no_capture.empty() ? "graph" : "device");
  return stats->no_capture;
}

TEST(DeviceCapture, PlansSayWhyTheyAreNotCaptured) {
  const Tensor x = F32({2}, {-1, 2});
  ProgramBuilder host;
  host.Feed("x", DType::kF32, {2}).Scale("x", "a", 2);
  host.Op("relu", {{"X", {"a"}}}, {{"Out", {"b"}}}, {{"op_device", std::string("cpu")}});
  host.Scale("b", "y", 3).Fetch("y");
  EXPECT_EQ(WhyNot(host.Build(), {{"x", x}}),
            "scale needs what the host does with earlier results of the device");

  ProgramBuilder around;  // the host's part comes before and after
  around.Feed("x", DType::kF32, {2});
  around.Op("relu", {{"X", {"x"}}}, {{"Out", {"a"}}}, {{"op_device", std::string("cpu")}});
  around.Scale("a", "a2", 2).Scale("a2", "b", 3);
  around.Op("relu", {{"X", {"b"}}}, {{"Out", {"y"}}}, {{"op_device", std::string("cpu")}});
  around.Fetch("y");
  EXPECT_EQ(WhyNot(around.Build(), {{"x", x}}), "");

  ProgramBuilder copies;  // pipelines better than it replays
  copies.Feed("x", DType::kF32, {2}).Scale("x", "y", 2).Fetch("y");
  EXPECT_EQ(WhyNot(copies.Build(), {{"x", x}}), "there are few kernels for its copies");

  ProgramBuilder dynamic;  // the number of what is found is not known
  dynamic.Feed("x", DType::kF32, {2});
  dynamic.Op("where_index", {{"Condition", {"x"}}}, {{"Out", {"i"}}});
  dynamic.Op("cast", {{"X", {"i"}}}, {{"Out", {"y"}}}, {{"out_dtype", int64_t{5}}});
  dynamic.Fetch("y");
  EXPECT_NE(WhyNot(dynamic.Build(), {{"x", x}}).find("infers its shapes as it runs"),
            std::string::npos);
}

// The second and third run of a program, with a fault at each call of the device.
TEST(DeviceCapture, FaultsAtEveryCall) {
  const RandomProgram random(31, {.ops = 12, .control_flow = false, .parameters = false});
  Executor host({.threads = 1});
  const auto compile = [&](Executor& executor) {
    return MustCompile(executor, *Program::Parse(random.bytes(), "random"), random.NewScope(),
                       {.opt_level = 0});
  };
  std::vector<std::string> want;
  for (const Tensor& t : MustRun(host, compile(host), random.Feeds())) want.push_back(Bits(t));
  int failures = 0, graphs = 0, absorbed = 0;
  for (bool lost : {false, true}) {
    bool reached = true;
    for (int64_t call = 1; reached; ++call) {
      auto device = NewEmulatedDevice({.lazy = true, .fail_call = call, .lost = lost});
      {
        Executor executor({.threads = 1, .device = device});
        const CompiledProgram compiled = compile(executor);
        bool failed = false;
        for (int run = 0; run < 4; ++run) {
          RunReport report;
          auto out = executor.Run(compiled, random.Feeds(), {.report = &report});
          if (!out.ok()) {
            EXPECT_NE(out.status().ToString().find(lost ? "can run nothing more" : "stays usable"),
                      std::string::npos)
                << out.status().ToString();
            EXPECT_TRUE(lost || !failed) << "a second failure";
            failed = true;
            ++failures;
            continue;
          }
          graphs += report.dispatch == "graph";
          for (size_t k = 0; k < want.size(); ++k) EXPECT_EQ(Bits((*out)[k]), want[k]);
        }
        reached = CountsOf(*device).calls >= call;
        absorbed += reached && !failed;
      }
      const EmulatedCounts left = CountsOf(*device);
      EXPECT_EQ(left.allocations + left.streams + left.events + left.graphs, 0) << "call " << call;
    }
  }
  EXPECT_GT(failures, 40);
  EXPECT_GT(graphs, 40);
  EXPECT_GT(absorbed, 2);  // no memory in one piece, or none that is pinned; a capture refused
}

}  // namespace
}  // namespace heddle::testing
