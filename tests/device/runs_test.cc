// Programs with a device: the host's bits, wherever their operators run and whatever the streams'
// pace.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <set>
#include <thread>

#include "executor/compiled.h"
#include "executor/plan/device_plan.h"
#include "heddle/device.h"
#include "tests/support/files.h"
#include "tests/support/random_program.h"

namespace heddle::testing {
namespace {

constexpr EmulatedOptions kUneven = {
    .kernel_delay_ns = 1000, .copy_delay_ns = 1000, .jitter_ns = 60000, .seed = 3};

constexpr float kNoTasks =
    1e30f;  // as ExecutorOptions::host_task_ns; 0: whatever may be one is one

// What a run gives: fetches, then the parameters it has written.
struct Outcome {
  Status status;
  std::vector<std::string> bits;
  friend bool operator==(const Outcome& a, const Outcome& b) {
    return a.status.ok() == b.status.ok() && a.bits == b.bits;
  }
};

Outcome RunOnce(Executor& executor, const CompiledProgram& compiled, const RandomProgram& random) {
  Outcome outcome;
  auto out = executor.Run(compiled, random.Feeds());
  outcome.status = out.status();
  if (!out.ok()) return outcome;
  for (const Tensor& t : *out) outcome.bits.push_back(Bits(t));
  for (const std::string& name : random.parameters())
    outcome.bits.push_back(Bits(compiled.scope()->Find(name)->tensor()));
  return outcome;
}

CompiledProgram Compile(Executor& executor, const RandomProgram& random,
                        const CompileOptions& options) {
  auto program = Program::Parse(random.bytes(), "random");
  EXPECT_TRUE(program.ok()) << program.status().ToString();
  auto compiled = executor.Compile(*program, random.NewScope(), options);
  EXPECT_TRUE(compiled.ok()) << compiled.status().ToString();
  return *compiled;
}

// Two runs at each of some places, on fast, uneven and lazy devices.
void CheckMany(uint32_t first, int count, const RandomProgram::Options& options) {
  const EmulatedOptions kinds[] = {{}, kUneven, {.lazy = true}};
  Executor host({.threads = 2});
  for (const EmulatedOptions& kind : kinds) {
    for (const auto& [streams, task_ns] :
         {std::pair(1, kNoTasks), std::pair(3, kNoTasks), std::pair(1, 0.f), std::pair(3, 0.f)}) {
      auto device = NewEmulatedDevice(kind);
      {
        Executor executor({.threads = 2,
                           .device = device,
                           .device_streams = streams,
                           .host_task_ns = task_ns,
                           .poison = true});
        for (int k = 0; k < count; ++k) {
          const uint32_t seed = first + static_cast<uint32_t>(k);
          const RandomProgram random(seed, options);
          const CompileOptions places = {
              .opt_level = k % 2 * 2,
              .placement = k % 4 == 0 ? Placement::kDevice : Placement::kRandom,
              .placement_seed = seed};
          const CompiledProgram here = Compile(host, random, {.opt_level = k % 2 * 2});
          const CompiledProgram there = Compile(executor, random, places);
          for (int run = 0; run < 2; ++run) {
            const Outcome want = RunOnce(host, here, random);
            const Outcome got = RunOnce(executor, there, random);
            ASSERT_TRUE(got.status.ok()) << got.status.ToString() << " seed " << seed;
            ASSERT_EQ(got.bits, want.bits)
                << "seed " << seed << ", run " << run << ", " << streams << " streams\n"
                << *executor.PlanText(there, random.Feeds());
          }
        }
      }
      const EmulatedCounts left = CountsOf(*device);
      EXPECT_EQ(left.allocations + left.streams + left.events, 0);
      EXPECT_GT(left.kernels, 0);
      EXPECT_GT(left.copies, 0);
    }
  }
}

TEST(DeviceRuns, Flat) {
  CheckMany(1, 20, {.ops = 30, .control_flow = false, .parameters = false});
}
TEST(DeviceRuns, WithParameters) { CheckMany(1000, 20, {.ops = 25, .control_flow = false}); }
TEST(DeviceRuns, WithBlocks) { CheckMany(2000, 20, {.ops = 12}); }

// Delays that are drawn anew for each device: no wrong value, no hang.
TEST(DeviceRuns, WithManyDelays) {
  constexpr int kRunsEach = 10;
  const int devices = Repeats("HEDDLE_DELAY_RUNS", 200) / kRunsEach;
  Executor host({.threads = 1});
  for (int k = 0; k < devices; ++k) {
    const auto seed = static_cast<uint32_t>(5000 + k);
    const RandomProgram random(seed, {.ops = 12, .control_flow = k % 5 == 0});
    EmulatedOptions delays = kUneven;
    delays.seed = seed;
    Executor executor({.threads = 1 + k % 2,
                       .device = NewEmulatedDevice(delays),
                       .device_streams = 1 + k % 4,
                       .device_capture = k % 3 != 0,
                       .host_task_ns = k % 4 == 1 ? kNoTasks : 0});
    const CompiledProgram here = Compile(host, random, {});
    const CompiledProgram there =
        Compile(executor, random,
                {.opt_level = k % 2 * 2,
                 .placement = k % 4 == 0 ? Placement::kDevice : Placement::kRandom,
                 .placement_seed = seed});
    for (int run = 0; run < kRunsEach; ++run) {
      const Outcome want = RunOnce(host, here, random), got = RunOnce(executor, there, random);
      ASSERT_EQ(got == want, true)
          << "device " << k << ", run " << run << ": " << got.status.ToString();
    }
  }
}

TEST(DeviceRuns, OfSeveralThreadsAtOnce) {
  auto device = NewEmulatedDevice(kUneven);
  {
    Executor executor({.threads = 3, .device = device, .host_task_ns = 0});
    Executor host({.threads = 1});
    const RandomProgram random(7, {.ops = 30, .control_flow = false, .parameters = false});
    const Outcome want = RunOnce(host, Compile(host, random, {}), random);
    const CompiledProgram compiled =
        Compile(executor, random, {.placement = Placement::kRandom, .placement_seed = 4});
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int k = 0; k < 8; ++k) wrong += !(RunOnce(executor, compiled, random) == want);
      });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(wrong, 0);
  }
  EXPECT_EQ(CountsOf(*device).allocations, 0);
}

// Memory goes back to the device while runs go on, from a thread that has none.
TEST(DeviceRuns, WhileMemoryIsTrimmed) {
  for (const EmulatedOptions& kind : {kUneven, EmulatedOptions{.lazy = true}}) {
    Executor executor({.threads = 2, .device = NewEmulatedDevice(kind), .host_task_ns = 0});
    Executor host({.threads = 1});
    const RandomProgram random(7, {.ops = 30, .control_flow = false, .parameters = false});
    const Outcome want = RunOnce(host, Compile(host, random, {}), random);
    const CompiledProgram compiled = Compile(executor, random, {.opt_level = 0});
    std::atomic<bool> over{false};
    std::thread trimmer([&] {
      while (!over) executor.Trim();
    });
    for (int k = 0; k < 30; ++k) EXPECT_EQ(RunOnce(executor, compiled, random), want);
    over = true;
    trimmer.join();
  }
}

// A program whose results show any wrong value on the way: sums and multiples, and parameters that
// are read, then updated in place.
struct SumProgram {
  std::string bytes;
  std::vector<std::string> fetches;
};
SumProgram RandomSums(uint32_t seed, bool parameters) {
  constexpr int kOps = 14;
  std::mt19937 rng(seed);
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {4}).Feed("y", DType::kF32, {4}).Feed("rate", DType::kF32, {1});
  b.Param("p", DType::kF32, {4}).Param("q", DType::kF32, {4});
  std::vector<std::string> values = {"x", "y", "p", "q"};
  std::set<std::string> unread;
  const auto pick = [&] {
    const std::string& name = values[rng() % values.size()];
    unread.erase(name);
    return name;
  };
  for (int k = 0; k < kOps; ++k) {
    const std::string out = "v" + std::to_string(k);
    if (parameters && k % 5 == 4) {
      const std::string param = k % 2 == 0 ? "p" : "q";
      const std::string grad = values[4 + rng() % (values.size() - 4)];
      unread.erase(grad);
      b.Op("sgd", {{"Param", {param}}, {"Grad", {grad}}, {"LearningRate", {"rate"}}},
           {{"ParamOut", {param}}});
      continue;
    }
    if (rng() % 3 == 0) {
      b.Scale(pick(), out, 1.25 + 0.25 * k, k);  // no value stays as it was
    } else {
      // Sums in one memory come to the same in whatever order; what is scaled in between does not.
      const std::string first = pick();
      b.Binary("elementwise_add", first, pick(), "sum" + out);
      b.Scale("sum" + out, out, 1.25 + 0.25 * k, -k);
    }
    values.push_back(out);
    unread.insert(out);
  }
  SumProgram program;
  program.fetches.assign(unread.begin(), unread.end());
  program.bytes = b.Bytes();
  return program;
}

// With `spoil`, which is given the plan, operators of the host are tasks.
std::vector<std::string> RunSums(const SumProgram& sums, const std::shared_ptr<Device>& device,
                                 uint64_t seed, std::string* plan = nullptr,
                                 std::function<void(Plan&)> spoil = nullptr) {
  auto program = Program::Parse(sums.bytes, "sums");
  EXPECT_TRUE(program.ok()) << program.status().ToString();
  auto scope = std::make_shared<Scope>();
  scope->Set("p", F32({4}, {1, 2, 3, 4}));
  scope->Set("q", F32({4}, {50, 60, 70, 80}));
  Executor executor(
      {.threads = spoil ? 2 : 1, .device = device, .device_streams = 3, .host_task_ns = 0});
  auto compiled = executor.Compile(*program, scope,
                                   {.fetches = sums.fetches,
                                    .opt_level = 0,
                                    .placement = Placement::kRandom,
                                    .placement_seed = seed});
  EXPECT_TRUE(compiled.ok()) << compiled.status().ToString();
  const std::vector<heddle::Feed> feeds = {{"x", F32({4}, {5, 6, 7, 8})},
                                           {"y", F32({4}, {100, 200, 300, 400})},
                                           {"rate", F32({1}, {0.5f})}};
  compiled->impl()->spoil = std::move(spoil);
  if (plan != nullptr) *plan = *executor.PlanText(*compiled, feeds);
  auto out = executor.Run(*compiled, feeds);
  std::vector<std::string> bits;
  if (!out.ok()) return {out.status().ToString()};
  for (const Tensor& t : *out) bits.push_back(Bits(t));
  for (const char* name : {"p", "q"}) bits.push_back(Bits(scope->Find(name)->tensor()));
  return bits;
}

// Leaves out one wait of a run after the other, on a device that does nothing before it must, but
// for the stream that did not wait: each time the values show it.
TEST(DeviceRuns, EveryWaitIsNeeded) {
  int waits = 0;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const SumProgram sums = RandomSums(seed, seed % 2 == 1);
    auto whole = NewEmulatedDevice({.lazy = true});
    std::string plan;
    const auto want = RunSums(sums, whole, seed, &plan);
    ASSERT_EQ(want, RunSums(sums, nullptr, seed)) << "seed " << seed;
    const int64_t count = CountsOf(*whole).waits;
    for (int64_t k = 1; k <= count; ++k)
      EXPECT_NE(RunSums(sums, NewEmulatedDevice({.lazy = true, .ignore_wait = k}), seed), want)
          << "seed " << seed << " without wait " << k << "\n"
          << plan;
    waits += static_cast<int>(count);
  }
  EXPECT_GT(waits, 300);
}

// Tasks that come as late as they can: one thread dispatches as far as it may before it executes
// any, on a device that does nothing before it must.
TEST(DeviceRuns, WithTasksThatComeLate) {
  int waits = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const SumProgram sums = RandomSums(seed, seed % 2 == 1);
    std::string text;
    const auto got = RunSums(sums, NewEmulatedDevice({.lazy = true}), seed, &text, [&](Plan& plan) {
      auto device = std::make_shared<DevicePlan>(*plan.device);
      device->task_streams = 0;  // no other thread helps
      waits += static_cast<int>(device->task_waits.size());
      plan.device = std::move(device);
    });
    ASSERT_EQ(got, RunSums(sums, nullptr, seed)) << "seed " << seed << "\n" << text;
  }
  EXPECT_GT(waits, 300);
}

// --- faults ---

void CheckFaults(const RandomProgram& random, bool lost) {
  Executor host({.threads = 1});
  const CompileOptions options = {.placement = Placement::kRandom, .placement_seed = 9};
  const Outcome want = RunOnce(host, Compile(host, random, options), random);
  ASSERT_TRUE(want.status.ok());
  int failures = 0;
  for (int64_t call = 1;; ++call) {
    auto device = NewEmulatedDevice({.lazy = true, .fail_call = call, .lost = lost});
    bool reached = false;
    {
      Executor executor({.threads = 1, .device = device});
      const CompiledProgram compiled = Compile(executor, random, options);
      const Outcome got = RunOnce(executor, compiled, random);
      reached = CountsOf(*device).calls >= call;
      const std::string text = got.status.ToString();
      if (!got.status.ok()) {
        ++failures;
        EXPECT_NE(text.find("device"), std::string::npos) << text;
        EXPECT_NE(text.find(lost ? "can run nothing more" : "stays usable"), std::string::npos)
            << text;
      } else {
        EXPECT_EQ(got.bits, want.bits) << "call " << call;
      }
      if (reached) {
        const Outcome again = RunOnce(executor, compiled, random);
        EXPECT_EQ(again.status.ok(), !lost) << "call " << call;
        EXPECT_TRUE(lost || again == want) << again.status.ToString();
      }
    }
    const EmulatedCounts left = CountsOf(*device);
    EXPECT_EQ(left.allocations + left.streams + left.events, 0) << "call " << call;
    if (!reached) break;
  }
  EXPECT_GT(failures, 20);
}

TEST(DeviceFaults, AtEveryCall) {
  for (uint32_t seed : {21u, 22u, 23u})
    CheckFaults(RandomProgram(seed, {.ops = 14, .control_flow = false, .parameters = false}),
                false);
}
TEST(DeviceFaults, LostAtEveryCall) {
  CheckFaults(RandomProgram(21, {.ops = 14, .control_flow = false, .parameters = false}), true);
}

// The same with threads that run ahead, or behind.
TEST(DeviceFaults, AtEveryCallOfUnevenStreams) {
  const RandomProgram random(24, {.ops = 14, .control_flow = false, .parameters = false});
  for (int64_t call = 1; call < 120; call += 3) {
    EmulatedOptions options = kUneven;
    options.fail_call = call;
    auto device = NewEmulatedDevice(options);
    {
      Executor executor(
          {.threads = 2, .device = device, .host_task_ns = call % 2 == 0 ? kNoTasks : 0});
      const CompiledProgram compiled =
          Compile(executor, random, {.placement = Placement::kRandom, .placement_seed = 9});
      (void)RunOnce(executor, compiled, random);
      const Outcome again = RunOnce(executor, compiled, random);
      EXPECT_TRUE(again.status.ok() || CountsOf(*device).calls < 2 * call);
    }
    const EmulatedCounts left = CountsOf(*device);
    EXPECT_EQ(left.allocations + left.streams + left.events, 0) << "call " << call;
  }
}

TEST(DeviceFaults, AKernelsErrorNamesOperatorAndStream) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, 3}).Feed("i", DType::kI64, {1});
  b.Op("gather", {{"X", {"x"}}, {"Index", {"i"}}}, {{"Out", {"y"}}});
  b.Fetch("y");
  Executor executor({.threads = 1, .device = NewEmulatedDevice()});
  const CompiledProgram compiled = MustCompile(executor, b.Build());
  const Tensor x = F32({2, 3}, {1, 2, 3, 4, 5, 6});
  auto out = executor.Run(compiled, {{"x", x}, {"i", I64({1}, {7})}});
  ASSERT_FALSE(out.ok());
  const std::string text = out.status().ToString();
  EXPECT_NE(text.find("(gather -> y)"), std::string::npos) << text;
  EXPECT_NE(text.find("stream 'compute "), std::string::npos) << text;
  EXPECT_EQ(Floats(MustRun(executor, compiled, {{"x", x}, {"i", I64({1}, {1})}})[0]),
            (std::vector<float>{4, 5, 6}));
}

TEST(DeviceFaults, NotANumberIsFoundOnTheDevice) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2}).Unary("log", "x", "y").Unary("relu", "y", "z").Fetch("z");
  Executor executor({.threads = 1, .device = NewEmulatedDevice()});
  const CompiledProgram compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = 0});
  const auto run = [&](float second) {
    return executor.Run(compiled, {{"x", F32({2}, {1, second})}}, {.check_nan_inf = true});
  };
  EXPECT_TRUE(run(2).ok());
  auto out = run(-1);
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().code(), StatusCode::kOutOfRange);
  EXPECT_NE(out.status().ToString().find("(log -> y)"), std::string::npos);
}

TEST(DeviceFaults, OutOfMemoryNamesTheHolders) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {256, 1024});
  b.Scale("x", "large", 2).Scale("large", "larger", 3);
  b.Binary("elementwise_add", "large", "larger", "sum");
  b.Fetch("sum");
  Executor executor({.threads = 1, .device = NewEmulatedDevice({.memory_bytes = 3 << 19})});
  const CompiledProgram compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = 0});
  auto out = executor.Run(compiled, {{"x", F32({256, 1024}, std::vector<float>(256 * 1024, 1))}});
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().code(), StatusCode::kResourceExhausted);
  const std::string text = out.status().ToString();
  for (const char* part : {"'large'", "1048576 bytes are asked for", "'x' (1048576)"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
}

// --- places ---

TEST(DevicePlaces, OperatorsMayNameTheirs) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2});
  b.Op("relu", {{"X", {"x"}}}, {{"Out", {"a"}}}, {{"op_device", std::string("cpu")}});
  b.Op("relu", {{"X", {"a"}}}, {{"Out", {"y"}}}, {{"op_device", std::string("gpu:0")}});
  b.Fetch("y");
  for (Placement placement : {Placement::kDevice, Placement::kHost}) {
    Executor executor({.threads = 1, .device = NewEmulatedDevice()});
    const CompiledProgram compiled =
        MustCompile(executor, b.Build(), nullptr, {.opt_level = 0, .placement = placement});
    const std::vector<heddle::Feed> feeds = {{"x", F32({2}, {-1, 2})}};
    EXPECT_EQ(Floats(MustRun(executor, compiled, feeds)[0]), (std::vector<float>{0, 2}));
    auto stats = executor.Prepare(compiled, feeds);
    ASSERT_TRUE(stats.ok());
    EXPECT_EQ(stats->device_instructions, 1);
    EXPECT_EQ(stats->copies, 2);
  }
}

// One copy serves all readers; a value that both places have is not copied again.
TEST(DevicePlaces, OneCopyAValue) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2});
  for (int k = 0; k < 4; ++k) b.Scale("x", "y" + std::to_string(k), k);
  for (int k = 0; k < 4; ++k) b.Fetch("y" + std::to_string(k));
  Executor executor({.threads = 1, .device = NewEmulatedDevice()});
  const CompiledProgram compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = 0});
  auto stats = executor.Prepare(compiled, {{"x", F32({2}, {1, 2})}});
  ASSERT_TRUE(stats.ok());
  EXPECT_EQ(stats->device_instructions, 4);
  EXPECT_EQ(stats->copies, 1 + 4);
}

// Parameters are copied once, not in each run, and again when they are replaced.
TEST(DevicePlaces, ParametersStay) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2}).Param("w", DType::kF32, {2});
  b.Binary("elementwise_mul", "x", "w", "y").Fetch("y");
  auto scope = std::make_shared<Scope>();
  scope->Set("w", F32({2}, {3, 4}));
  auto device = NewEmulatedDevice();
  Executor executor({.threads = 1, .device = device});
  const CompiledProgram compiled = MustCompile(executor, b.Build(), scope);
  const std::vector<heddle::Feed> feeds = {{"x", F32({2}, {1, 2})}};
  EXPECT_EQ(Floats(MustRun(executor, compiled, feeds)[0]), (std::vector<float>{3, 8}));
  const int64_t first = CountsOf(*device).copies;
  EXPECT_EQ(Floats(MustRun(executor, compiled, feeds)[0]), (std::vector<float>{3, 8}));
  EXPECT_EQ(CountsOf(*device).copies - first, 2);
  scope->Set("w", F32({2}, {5, 6}));
  EXPECT_EQ(Floats(MustRun(executor, compiled, feeds)[0]), (std::vector<float>{5, 12}));
}

// ... and once on each device, when executors with different ones run the same program.
TEST(DevicePlaces, ParametersOfOneProgramOnTwoDevices) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2}).Param("w", DType::kF32, {2});
  b.Binary("elementwise_mul", "x", "w", "y").Fetch("y");
  auto scope = std::make_shared<Scope>();
  scope->Set("w", F32({2}, {3, 4}));
  Executor one({.threads = 1, .device = NewEmulatedDevice()});
  Executor other({.threads = 1, .device = NewEmulatedDevice()});
  const CompiledProgram compiled = MustCompile(one, b.Build(), scope);
  const std::vector<heddle::Feed> feeds = {{"x", F32({2}, {1, 2})}};
  EXPECT_EQ(Floats(MustRun(one, compiled, feeds)[0]), (std::vector<float>{3, 8}));
  EXPECT_EQ(Floats(MustRun(other, compiled, feeds)[0]), (std::vector<float>{3, 8}));
}

TEST(DevicePlaces, MemoryReport) {
  constexpr size_t kBytes = 1024 * sizeof(float);
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {1024}).Unary("relu", "x", "y").Unary("exp", "y", "z").Fetch("z");
  Executor executor({.threads = 1, .device = NewEmulatedDevice()});
  const CompiledProgram compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = 0});
  const auto report = executor.PlanMemory(compiled, {{"x", Tensor::Zeros(DType::kF32, {1024})}});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->schedule, "device");
  EXPECT_FALSE(report->decided);
  EXPECT_EQ(report->buffers, 3u);  // of x, y and z on the device
  EXPECT_EQ(report->naive_bytes, 3 * kBytes);
  EXPECT_EQ(report->bound_bytes, 2 * kBytes);
}

TEST(DevicePlaces, TrimGivesMemoryBack) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {1024}).Unary("relu", "x", "y").Fetch("y");
  auto device = NewEmulatedDevice();
  Executor executor({.threads = 1, .device = device});
  const CompiledProgram compiled = MustCompile(executor, b.Build());
  MustRun(executor, compiled, {{"x", Tensor::Zeros(DType::kF32, {1024})}});
  EXPECT_GT(CountsOf(*device).bytes, 0u);
  executor.Trim();
  EXPECT_EQ(CountsOf(*device).bytes, 0u);
}

}  // namespace
}  // namespace heddle::testing
