// Loops and branches whose blocks a device executes.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <thread>

#include "executor/compiled.h"
#include "executor/plan/device_plan.h"
#include "heddle/device.h"
#include "tests/support/files.h"
#include "tests/support/program_builder.h"
#include "tests/support/random_program.h"

namespace heddle::testing {
namespace {

using Kind = DeviceStep::Kind;

constexpr EmulatedOptions kUneven = {
    .kernel_delay_ns = 1000, .copy_delay_ns = 1000, .jitter_ns = 60000, .seed = 3};

// for (i = 0; i < n; ++i) body(); then the variables that `read` and `written` name are operands.
void For(ProgramBuilder& b, const std::string& i, const std::string& n,
         std::vector<std::string> read, std::vector<std::string> written,
         const std::function<void()>& body) {
  const std::string go = "go_" + i;
  const int outer = b.current();
  b.Fill(i, {1}, 0).Binary("less_than", i, n, go);
  const int block = b.Block(outer);
  b.In(block);
  body();
  b.In(block).Increment(i).Binary("less_than", i, n, go).In(outer);
  for (auto* list : {&read, &written}) list->push_back(i);
  read.push_back(n);
  written.push_back(go);
  b.Op("while", {{"X", read}, {"Condition", {go}}}, {{"Out", written}, {"StepScopes", {}}},
       {{"sub_block", BlockRef{block}}, {"is_test", true}});
}

void If(ProgramBuilder& b, const std::string& flag, const std::vector<std::string>& read,
        const std::vector<std::string>& written, const std::function<void()>& body) {
  const int outer = b.current(), block = b.Block(outer);
  b.In(block);
  body();
  b.In(outer).Op("conditional_block", {{"Cond", {flag}}, {"Input", read}},
                 {{"Out", written}, {"Scope", {}}},
                 {{"sub_block", BlockRef{block}}, {"is_scalar_condition", true}});
}

// Two variables that a loop carries, one of which it reads through a branch that joins another, and
// the counter. No value is the same in two turns.
ProgramBuilder TwoCarried() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {4}).Feed("y", DType::kF32, {4}).Feed("n", DType::kF32, {1});
  b.Scale("x", "p", 1, 1).Scale("y", "q", 2, -1);
  For(b, "i", "n", {"p", "q", "x"}, {"p", "q"}, [&] {
    b.Scale("p", "a", 1.25f, 0.5f).Scale("q", "c", 0.75f, 2).Scale("x", "d", 1, -3);
    b.Binary("elementwise_add", "a", "c", "p").Binary("elementwise_sub", "d", "c", "q");
    b.Binary("elementwise_add", "q", "i", "q");
  });
  b.Binary("elementwise_mul", "p", "q", "z").Fetch("z").Fetch("p").Fetch("i");
  return b;
}
std::vector<heddle::Feed> TwoCarriedFeeds(float n) {
  return {
      {"x", F32({4}, {1, -2, 3, 0.5f})}, {"y", F32({4}, {10, 20, 30, 40})}, {"n", F32({1}, {n})}};
}

// The device computes the condition: while any element of p is below n.
ProgramBuilder UntilLarge() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {4}).Feed("n", DType::kF32, {1});
  b.Scale("x", "p", 1, 1);
  b.Op("reduce_min", {{"X", {"p"}}}, {{"Out", {"least"}}}, {{"reduce_all", true}});
  b.Binary("less_than", "least", "n", "go");
  const int body = b.Block(0);
  b.In(body).Scale("p", "a", 1.5f, 1).Binary("elementwise_add", "a", "x", "p");
  b.Op("reduce_min", {{"X", {"p"}}}, {{"Out", {"low"}}}, {{"reduce_all", true}});
  b.Binary("less_than", "low", "n", "go").In(0);
  b.Op("while", {{"X", {"p", "x", "n"}}, {"Condition", {"go"}}},
       {{"Out", {"p", "go"}}, {"StepScopes", {}}},
       {{"sub_block", BlockRef{body}}, {"is_test", true}});
  b.Scale("p", "y", 2).Fetch("y");
  return b;
}

// Sums that a loop in a loop adds up, with a branch inside that is taken now and then.
ProgramBuilder Nested() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {4}).Feed("n", DType::kF32, {1}).Feed("m", DType::kF32, {1});
  b.Scale("x", "sum", 0.25f);
  For(b, "i", "n", {"sum", "x", "m"}, {"sum"}, [&] {
    b.Scale("sum", "before", 1.5f);
    For(b, "j", "m", {"sum", "x", "i", "before"}, {"sum"}, [&] {
      b.Binary("less_than", "i", "j", "smaller");
      If(b, "smaller", {"sum", "x"}, {"sum"},
         [&] { b.Scale("x", "twice", 2, 1).Binary("elementwise_add", "sum", "twice", "sum"); });
      b.Scale("before", "half", 0.5f).Binary("elementwise_add", "sum", "half", "sum");
      b.Binary("elementwise_add", "sum", "j", "sum");
    });
  });
  b.Scale("sum", "y", 3).Fetch("y").Fetch("sum").Fetch("i");
  return b;
}

// The device computes, in each turn of a loop, whether a branch is taken: while p is less than m.
ProgramBuilder BranchInside() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {4}).Feed("n", DType::kF32, {1}).Feed("m", DType::kF32, {1});
  b.Scale("x", "p", 1, 1);
  For(b, "i", "n", {"p", "x", "m"}, {"p"}, [&] {
    b.Op("reduce_min", {{"X", {"p"}}}, {{"Out", {"least"}}}, {{"reduce_all", true}});
    b.Binary("less_than", "least", "m", "less");
    If(b, "less", {"p", "x"}, {"p"},
       [&] { b.Scale("p", "a", 1.5f).Binary("elementwise_add", "a", "x", "p"); });
    b.Scale("p", "c", 0.25f, 0.25f).Binary("elementwise_add", "c", "i", "p");
  });
  b.Scale("p", "y", 2).Fetch("y");
  return b;
}

std::vector<std::string> BitsOf(const Result<std::vector<Tensor>>& out) {
  EXPECT_TRUE(out.ok()) << out.status().ToString();
  std::vector<std::string> bits;
  if (out.ok())
    for (const Tensor& t : *out) bits.push_back(Bits(t));
  return bits;
}

struct Seen {
  int bodies = 0;                                        // blocks that the device executes
  int host = 0, launches = 0, copies = 0, captured = 0;  // in them
  std::string text;
};
Seen PlanOf(Executor& executor, const CompiledProgram& compiled,
            const std::vector<heddle::Feed>& feeds) {
  Seen seen;
  compiled.impl()->spoil = [&](Plan& plan) {
    for (size_t b = 1; b < plan.device->sections.size(); ++b) {
      const DevicePlan::Section& section = plan.device->sections[b];
      seen.bodies += section.end > section.begin;
      seen.captured += section.captured;
      for (uint32_t i = section.begin; i < section.end; ++i) {
        const Kind kind = plan.device->steps[i].kind;
        seen.host += kind == Kind::kHost;
        seen.launches += kind == Kind::kLaunch;
        seen.copies += kind == Kind::kCopyIn || kind == Kind::kCopyOut;
      }
    }
  };
  auto text = executor.PlanText(compiled, feeds);
  EXPECT_TRUE(text.ok()) << text.status().ToString();
  if (text.ok()) seen.text = *text;
  return seen;
}

// The host's bits on devices of all paces, with and without captures, tasks beside.
void CheckAlike(const ProgramBuilder& b, const std::vector<std::vector<heddle::Feed>>& several,
                int bodies) {
  Executor host({.threads = 1});
  const CompiledProgram here = MustCompile(host, b.Build(), nullptr, {.opt_level = 0});
  for (const EmulatedOptions& kind : {EmulatedOptions{}, kUneven, EmulatedOptions{.lazy = true}})
    for (int streams : {1, 3})
      for (const bool capture : {false, true})
        for (const int threads : {1, 2}) {
          auto device = NewEmulatedDevice(kind);
          {
            Executor executor({.threads = threads,
                               .device = device,
                               .device_streams = streams,
                               .device_capture = capture,
                               .host_task_ns = 0,
                               .poison = true});
            const CompiledProgram there =
                MustCompile(executor, b.Build(), nullptr, {.opt_level = 0});
            const Seen seen = PlanOf(executor, there, several[0]);
            EXPECT_EQ(seen.bodies, bodies) << seen.text;
            for (int run = 0; run < 2; ++run)
              for (const auto& feeds : several)
                ASSERT_EQ(BitsOf(executor.Run(there, feeds)), BitsOf(host.Run(here, feeds)))
                    << streams << " streams, capture " << capture << ", run " << run << "\n"
                    << seen.text;
          }
          const EmulatedCounts left = CountsOf(*device);
          EXPECT_EQ(left.allocations + left.streams + left.events + left.graphs, 0);
          EXPECT_EQ(left.replays > 0, capture);
        }
}

TEST(DeviceBodies, ALoopHasTheHostsBits) {
  CheckAlike(TwoCarried(), {TwoCarriedFeeds(0), TwoCarriedFeeds(1), TwoCarriedFeeds(7)}, 1);
}

TEST(DeviceBodies, TheDeviceMayComputeTheCondition) {
  const auto feeds = [](float n) {
    return std::vector<heddle::Feed>{{"x", F32({4}, {1, 2, 3, 4})}, {"n", F32({1}, {n})}};
  };
  CheckAlike(UntilLarge(), {feeds(-5), feeds(3), feeds(1e6f)}, 1);
}

TEST(DeviceBodies, TheDeviceMayComputeABranchsCondition) {
  const auto feeds = [](float n) {
    return std::vector<heddle::Feed>{
        {"x", F32({4}, {1, 1, 1, 1})}, {"n", F32({1}, {n})}, {"m", F32({1}, {3})}};
  };
  CheckAlike(BranchInside(), {feeds(0), feeds(1), feeds(6)}, 2);
}

TEST(DeviceBodies, LoopsAndBranchesInsideEachOther) {
  const auto feeds = [](float n, float m) {
    return std::vector<heddle::Feed>{
        {"x", F32({4}, {1, 2, -3, 4})}, {"n", F32({1}, {n})}, {"m", F32({1}, {m})}};
  };
  CheckAlike(Nested(), {feeds(3, 4), feeds(0, 5), feeds(5, 0), feeds(1, 1)}, 3);
}

// Nothing but the kernels is in a body whose counter the host has: no copy, and the counter's two
// operators on the host.
TEST(DeviceBodies, ValuesStayWhereTheyAre) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {4}).Feed("n", DType::kF32, {1}).Scale("x", "p", 1);
  For(b, "i", "n", {"p"}, {"p"}, [&] { b.Scale("p", "a", 2).Unary("relu", "a", "p"); });
  b.Fetch("p");
  auto device = NewEmulatedDevice();
  Executor executor({.threads = 1, .device = device});
  const CompiledProgram compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = 0});
  const auto run = [&](float n) {
    const EmulatedCounts before = CountsOf(*device);
    EXPECT_EQ(Floats(MustRun(executor, compiled,
                             {{"x", F32({4}, {1, 2, -3, 4})}, {"n", F32({1}, {n})}})[0])[0],
              std::pow(2.0f, n));
    const EmulatedCounts after = CountsOf(*device);
    return std::pair(after.kernels - before.kernels, after.copies - before.copies);
  };
  const Seen seen =
      PlanOf(executor, compiled, {{"x", F32({4}, {1, 2, -3, 4})}, {"n", F32({1}, {3})}});
  EXPECT_EQ(seen.host, 2) << seen.text;
  EXPECT_EQ(seen.launches, 2) << seen.text;
  EXPECT_EQ(seen.copies, 0) << seen.text;
  const auto [kernels3, copies3] = run(3);
  const auto [kernels20, copies20] = run(20);
  EXPECT_EQ(kernels20 - kernels3, 17 * 2);
  EXPECT_EQ(copies20, copies3);
}

// A turn's temporaries lie where those of the turn before lay: a long loop takes no more memory.
TEST(DeviceBodies, TurnsUseTheSameMemory) {
  auto device = NewEmulatedDevice();
  Executor executor({.threads = 1, .device = device});
  const CompiledProgram compiled =
      MustCompile(executor, TwoCarried().Build(), nullptr, {.opt_level = 0});
  MustRun(executor, compiled, TwoCarriedFeeds(2));
  const int64_t allocations = CountsOf(*device).allocations;
  MustRun(executor, compiled, TwoCarriedFeeds(500));
  EXPECT_EQ(CountsOf(*device).allocations, allocations);
}

// The waits of a run, each by the step that waits and its place there, in the order in which the
// run comes to them. The host's waits for a turn before the last one are those of no step: it does
// so where it holds what copies read, and waits for nothing else in a turn.
class WaitsOfARun {
 public:
  // `turns`: how many times an operator runs the block, asked each time that a run comes to it.
  WaitsOfARun(const DevicePlan& plan, const Plan& whole, std::function<int(int)> turns)
      : plan_(plan), whole_(whole), turns_(std::move(turns)), runs_(plan.sections.size(), 0) {
    Walk(0);
  }
  using Wait = std::pair<uint32_t, uint32_t>;
  const std::vector<Wait>& list() const { return list_; }

 private:
  void Walk(int block) {
    const DevicePlan::Section& section = plan_.sections[static_cast<size_t>(block)];
    bool copies = false, awaits = false;
    for (uint32_t i = section.begin; i < section.end; ++i) {
      copies = copies || plan_.steps[i].kind == Kind::kCopyIn;
      awaits = awaits || plan_.steps[i].kind == Kind::kAwait;
    }
    if (block > 0 && runs_[static_cast<size_t>(block)]++ >= 2 && copies && !awaits)
      list_.emplace_back(~0u, block);
    for (uint32_t i = section.begin; i < section.end; ++i) {
      const DeviceStep& step = plan_.steps[i];
      for (uint32_t w = step.wait_begin; w < step.wait_end; ++w)
        list_.emplace_back(i, w - step.wait_begin);
      if (step.kind != Kind::kBlocks) continue;
      const Instruction& in = whole_.blocks[step.block].instructions[step.at];
      const int inner =
          whole_.program->blocks[step.block].ops[static_cast<size_t>(in.ir_op)].SubBlocks()[0];
      for (int turn = turns_(inner); turn > 0; --turn) Walk(inner);
    }
  }

  const DevicePlan& plan_;
  const Plan& whole_;
  const std::function<int(int)> turns_;
  std::vector<int> runs_;
  std::vector<Wait> list_;
};

// Leaves out one wait after the other, as DeviceRuns.EveryWaitIsNeeded does. A step of a body waits
// in each turn, and in some turn the values show that it did not: in the last one nobody may need
// what it has made for the next, and a condition is the same in all turns but the last.
TEST(DeviceBodies, EveryWaitIsNeeded) {
  int waits = 0;
  const auto check = [&](const ProgramBuilder& b, const std::vector<heddle::Feed>& feeds,
                         const std::function<int(int)>& turns) {
    std::vector<WaitsOfARun::Wait> list;
    std::string text;
    const auto run = [&](const std::shared_ptr<Device>& device) {
      Executor executor(
          {.threads = 1, .device = device, .device_streams = 3, .device_capture = false});
      const CompiledProgram compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = 0});
      if (device != nullptr && list.empty())
        compiled.impl()->spoil = [&](Plan& plan) {
          list = WaitsOfARun(*plan.device, plan, turns).list();
        };
      if (device != nullptr && text.empty()) text = *executor.PlanText(compiled, feeds);
      auto out = executor.Run(compiled, feeds);
      std::vector<std::string> bits;
      if (!out.ok()) return std::vector<std::string>{out.status().ToString()};
      for (const Tensor& t : *out) bits.push_back(Bits(t));
      return bits;
    };
    auto whole = NewEmulatedDevice({.lazy = true});
    const auto want = run(whole);
    ASSERT_EQ(want, run(nullptr));
    ASSERT_EQ(CountsOf(*whole).waits, static_cast<int64_t>(list.size()));
    std::map<WaitsOfARun::Wait, int> shown;
    for (size_t k = 0; k < list.size(); ++k)
      shown[list[k]] +=
          run(NewEmulatedDevice({.lazy = true, .ignore_wait = static_cast<int64_t>(k) + 1})) !=
          want;
    for (const auto& [wait, times] : shown)
      EXPECT_GT(times, 0) << "without wait " << wait.second << " of step "
                          << static_cast<int>(wait.first) << "\n"
                          << text;
    waits += static_cast<int>(shown.size());
  };
  check(TwoCarried(), TwoCarriedFeeds(4), [](int) { return 4; });
  check(UntilLarge(), {{"x", F32({4}, {1, 2, 3, 4})}, {"n", F32({1}, {100})}},
        [](int) { return 8; });
  int turn = 0;
  check(BranchInside(), {{"x", F32({4}, {1, 1, 1, 1})}, {"n", F32({1}, {4})}, {"m", F32({1}, {3})}},
        [&](int block) { return block == 1 ? 4 : ++turn <= 3; });
  EXPECT_GT(waits, 15);
}

// --- failures ---

// Rows are picked further and further down, until there is none.
TEST(DeviceBodies, AnErrorInsideNamesItsOperator) {
  ProgramBuilder b;
  b.Feed("table", DType::kF32, {4, 2}).Feed("at", DType::kI64, {2}).Feed("n", DType::kF32, {1});
  b.Scale("at", "row", 1).Op("gather", {{"X", {"table"}}, {"Index", {"at"}}}, {{"Out", {"y"}}});
  For(b, "i", "n", {"row", "table"}, {"row", "y"}, [&] {
    b.Scale("row", "next", 1, 1).Scale("next", "row", 1);
    b.Op("gather", {{"X", {"table"}}, {"Index", {"row"}}}, {{"Out", {"picked"}}});
    b.Scale("picked", "y", 1);
  });
  b.Fetch("y");
  for (const bool capture : {false, true})
    for (const EmulatedOptions& kind : {kUneven, EmulatedOptions{.lazy = true}}) {
      auto device = NewEmulatedDevice(kind);
      Executor executor({.threads = 1, .device = device, .device_capture = capture});
      const CompiledProgram compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = 0});
      const auto feeds = [&](float n) {
        return std::vector<heddle::Feed>{{"table", F32({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8})},
                                         {"at", I64({2}, {0, 1})},
                                         {"n", F32({1}, {n})}};
      };
      EXPECT_EQ(PlanOf(executor, compiled, feeds(1)).bodies, 1);
      for (int run = 0; run < 3; ++run) {
        auto out = executor.Run(compiled, feeds(5));
        ASSERT_FALSE(out.ok());
        const std::string text = out.status().ToString();
        for (const char* part : {"OUT_OF_RANGE", "block 1, op 2 (gather -> picked)",
                                 "stream 'compute ", "on device 'emulated'", "stays usable"})
          EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
        EXPECT_EQ(Floats(MustRun(executor, compiled, feeds(2))[0]),
                  (std::vector<float>{5, 6, 7, 8}));
      }
    }
}

TEST(DeviceBodies, NotANumberIsFoundInside) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {4}).Feed("n", DType::kF32, {1}).Scale("x", "p", 1);
  For(b, "i", "n", {"p"}, {"p"}, [&] { b.Unary("log", "p", "a").Scale("a", "p", 1); });
  b.Fetch("p");
  Executor executor({.threads = 1, .device = NewEmulatedDevice()});
  const CompiledProgram compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = 0});
  const auto run = [&](float n) {
    return executor.Run(compiled, {{"x", F32({4}, {0.5f, 2, 3, 4})}, {"n", F32({1}, {n})}},
                        {.check_nan_inf = true});
  };
  EXPECT_TRUE(run(1).ok());
  auto out = run(2);
  ASSERT_FALSE(out.ok());
  EXPECT_NE(out.status().ToString().find("block 1, op 0 (log -> a)"), std::string::npos)
      << out.status().ToString();
}

// Between two turns a run ends when it is cancelled or has no time left; the next one is whole.
TEST(DeviceBodies, ALoopEndsWhenItIsTold) {
  for (const bool on_device : {false, true}) {
    const ProgramBuilder b = on_device ? UntilLarge() : TwoCarried();
    Executor executor({.threads = 1, .device = NewEmulatedDevice()});
    const CompiledProgram compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = 0});
    const auto feeds = [&](float n) {
      auto all = TwoCarriedFeeds(n);
      if (on_device) all.erase(all.begin() + 1);
      return all;
    };
    // p never grows: its least element is negative.
    const auto endless = feeds(1e30f);
    EXPECT_EQ(
        executor
            .Run(compiled, endless,
                 {.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(20)})
            .status()
            .code(),
        StatusCode::kDeadlineExceeded);
    std::stop_source stop;
    std::thread canceller([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      stop.request_stop();
    });
    EXPECT_EQ(executor.Run(compiled, endless, {.stop = stop.get_token()}).status().code(),
              StatusCode::kCancelled);
    canceller.join();
    EXPECT_TRUE(executor.Run(compiled, feeds(-9)).ok());
  }
}

// A fault at each call of the device: one error, nothing left behind, and usable or lost as it
// says.
TEST(DeviceBodies, FaultsAtEveryCall) {
  Executor host({.threads = 1});
  const auto feeds = TwoCarriedFeeds(4);
  const auto want =
      BitsOf(host.Run(MustCompile(host, TwoCarried().Build(), nullptr, {.opt_level = 0}), feeds));
  for (const bool lost : {false, true}) {
    int failures = 0;
    for (int64_t call = 1;; ++call) {
      auto device = NewEmulatedDevice({.lazy = call % 2 == 0, .fail_call = call, .lost = lost});
      bool reached = false;
      {
        Executor executor({.threads = 1, .device = device});
        const CompiledProgram compiled =
            MustCompile(executor, TwoCarried().Build(), nullptr, {.opt_level = 0});
        for (int run = 0; run < 2; ++run) {
          const bool before = CountsOf(*device).calls >= call;
          auto out = executor.Run(compiled, feeds);
          reached = CountsOf(*device).calls >= call;
          EXPECT_TRUE(out.ok() || !before || lost) << out.status().ToString();
          if (out.ok()) {
            EXPECT_EQ(BitsOf(out), want) << "call " << call;
            continue;
          }
          ++failures;
          const std::string text = out.status().ToString();
          EXPECT_NE(text.find(lost ? "can run nothing more" : "stays usable"), std::string::npos)
              << text;
        }
      }
      const EmulatedCounts left = CountsOf(*device);
      EXPECT_EQ(left.allocations + left.streams + left.events + left.graphs, 0) << "call " << call;
      if (!reached) break;
    }
    EXPECT_GT(failures, 30);
  }
}

// Random programs have such blocks, too, at random places and on the device alone.
TEST(DeviceBodies, OfRandomPrograms) {
  int bodies = 0, captured = 0;
  const auto count = static_cast<uint32_t>(Repeats("HEDDLE_PLACE_SEEDS", 60));
  for (uint32_t seed = 7500; seed < 7500 + count; ++seed) {
    const RandomProgram random(seed, {.ops = 14, .parameters = false});
    Executor host({.threads = 1});
    Executor executor(
        {.threads = 1, .device = NewEmulatedDevice({.lazy = seed % 2 == 0}), .device_streams = 3});
    auto program = Program::Parse(random.bytes(), "random");
    ASSERT_TRUE(program.ok());
    auto here = host.Compile(*program, random.NewScope(), {.opt_level = 0});
    auto there =
        executor.Compile(*program, random.NewScope(),
                         {.opt_level = static_cast<int>(seed % 2) * 2,
                          .placement = seed % 3 == 0 ? Placement::kRandom : Placement::kDevice,
                          .placement_seed = seed});
    ASSERT_TRUE(there.ok()) << there.status().ToString() << ", seed " << seed;
    const Seen seen = PlanOf(executor, *there, random.Feeds());
    bodies += seen.bodies;
    captured += seen.captured;
    for (int run = 0; run < 3; ++run)
      ASSERT_EQ(BitsOf(executor.Run(*there, random.Feeds())),
                BitsOf(host.Run(*here, random.Feeds())))
          << "seed " << seed << ", run " << run << "\n"
          << seen.text;
  }
  EXPECT_GT(bodies, 20);
  EXPECT_GT(captured, 10);
}

}  // namespace
}  // namespace heddle::testing
