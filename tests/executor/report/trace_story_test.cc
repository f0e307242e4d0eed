// Reports of traced runs: events and spans that fill the run's time, and the memory alive.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "heddle/device.h"
#include "tests/support/program_builder.h"
#include "tests/support/test_ops.h"

namespace heddle::testing {
namespace {

[[maybe_unused]] const bool kInstalled = InstallTestOps();

constexpr int64_t kSide = 4096;  // floats of a value: 16 KiB

// Chains of element-wise work side by side, joined in the end.
ProgramBuilder Chains(int chains, int length) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {kSide});
  std::string sum;
  for (int c = 0; c < chains; ++c) {
    std::string at = "x";
    for (int i = 0; i < length; ++i) {
      const std::string next = "c" + std::to_string(c) + "_" + std::to_string(i);
      b.Unary(i % 2 == 0 ? "tanh" : "sigmoid", at, next);
      at = next;
    }
    if (sum.empty()) {
      sum = at;
      continue;
    }
    b.Binary("elementwise_add", sum, at, "s" + std::to_string(c));
    sum = "s" + std::to_string(c);
  }
  return std::move(b.Scale(sum, "y", 2).Fetch("y"));
}

std::vector<Feed> FeedsOf(int64_t size = kSide) { return {{"x", RandomF32({size}, 1)}}; }

// The share of [0, run_us] that the thread's events of block 0 and the spans beside them cover; -1
// where two of them overlap.
double Filled(const RunReport& report, int thread, const std::string& stream = "") {
  std::vector<std::pair<double, double>> parts;
  for (const TraceEvent& e : report.events)
    if (e.block == 0 && e.thread == thread && e.stream == stream)
      parts.emplace_back(e.begin_us, e.end_us);
  for (const TraceSpan& s : report.spans)
    if (s.thread == thread && s.stream == stream && s.kind != "infer_shape" && s.kind != "compute")
      parts.emplace_back(s.begin_us, s.end_us);
  std::sort(parts.begin(), parts.end());
  double filled = 0, last = 0;
  for (const auto& [begin, end] : parts) {
    if (begin < last - 0.05) return -1;  // the resolution of the device's clock
    filled += end - std::max(begin, last);
    last = std::max(last, end);
  }
  return filled / report.run_us;
}

class Trace : public ::testing::TestWithParam<Schedule> {
 protected:
  RunReport Traced(Executor& executor, const CompiledProgram& compiled,
                   const std::vector<Feed>& feeds) {
    RunReport report;
    const auto out = executor.Run(compiled, feeds, {.report = &report, .trace = true});
    EXPECT_TRUE(out.ok()) << out.status().ToString();
    return report;
  }
};
INSTANTIATE_TEST_SUITE_P(Ways, Trace,
                         ::testing::Values(Schedule::kSerial, Schedule::kParallel,
                                           Schedule::kLanes),
                         [](const auto& info) { return ScheduleName(info.param); });

TEST_P(Trace, EventsAndSpansFillTheTimeOfEachThread) {
  Executor executor({.threads = 2});
  const auto compiled = MustCompile(executor, Chains(3, 20).Build(), nullptr,
                                    {.opt_level = 0, .schedule = GetParam()});
  const int threads = GetParam() == Schedule::kSerial ? 1 : 2;
  // A thread that the system stops between two parts leaves a gap: not in all runs.
  std::vector<double> most(static_cast<size_t>(threads), 0);
  for (int k = 0; k < 10; ++k) {
    const RunReport report = Traced(executor, compiled, FeedsOf());
    ASSERT_EQ(report.threads, threads);
    for (int t = 0; t < threads; ++t) {
      const double filled = Filled(report, t);
      EXPECT_GE(filled, 0) << "thread " << t;
      EXPECT_LE(filled, 1.02) << "thread " << t;
      most[static_cast<size_t>(t)] = std::max(most[static_cast<size_t>(t)], filled);
    }
  }
  for (int t = 0; t < threads; ++t) EXPECT_GE(most[static_cast<size_t>(t)], 0.98) << "thread " << t;
}

// Ways in which threads wait for each other.
class TraceOfThreads : public Trace {};
INSTANTIATE_TEST_SUITE_P(Ways, TraceOfThreads,
                         ::testing::Values(Schedule::kParallel, Schedule::kLanes),
                         [](const auto& info) { return ScheduleName(info.param); });

TEST_P(TraceOfThreads, WaitsSayWhatIsWaitedFor) {
  // A long call at the end of one branch: who has the other one waits.
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {4});
  for (int k = 0; k < 2; ++k) {
    std::string at = "x";
    for (int i = 0; i < 20; ++i) {
      const std::string next = "b" + std::to_string(k) + "_" + std::to_string(i);
      b.Op("test_call", {{"X", {at}}}, {{"Out", {next}}}, {{"id", 20 * k + i}});
      at = next;
    }
  }
  b.Binary("elementwise_add", "b0_19", "b1_19", "y").Fetch("y");
  // It begins to count when the other branch is done, for which it waits a while.
  std::atomic<bool> other_done = false;
  const ScopedHook hook([&](int64_t id) {
    if (id == 39) other_done = true;
    if (id != 19) return Status::Ok();
    for (int ms = 0; ms < 200 && !other_done; ++ms)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return Status::Ok();
  });
  Executor executor({.threads = 2});
  const auto compiled =
      MustCompile(executor, b.Build(), nullptr, {.opt_level = 0, .schedule = GetParam()});
  bool waited = false;
  for (int k = 0; k < 20 && !waited; ++k) {
    other_done = false;
    const RunReport report = Traced(executor, compiled, {{"x", F32({4}, {1, 2, 3, 4})}});
    for (const TraceSpan& s : report.spans)
      waited = waited || (s.kind.starts_with("wait_") && s.of.starts_with("test_call -> b0_") &&
                          s.idle() && s.end_us - s.begin_us > 5000);
  }
  EXPECT_TRUE(waited);
}

TEST_P(Trace, ShapesFoundWhileRunningHaveSpansOfTheirOwn) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1});
  b.Op("where_index", {{"Condition", {"x"}}}, {{"Out", {"at"}}});
  b.Op("cast", {{"X", {"at"}}}, {{"Out", {"f"}}}, {{"in_dtype", 3}, {"out_dtype", 5}});
  b.Unary("tanh", "f", "y").Fetch("y");
  Executor executor({.threads = 2});
  const auto compiled =
      MustCompile(executor, b.Build(), nullptr, {.opt_level = 0, .schedule = GetParam()});
  const RunReport report = Traced(executor, compiled, {{"x", F32({6}, {1, 0, 2, 0, 0, 3})}});
  std::map<std::string, const TraceEvent*> events;
  for (const TraceEvent& e : report.events) events[e.op + " -> " + e.output] = &e;
  int inferred = 0, computed = 0, released = 0;
  for (const TraceSpan& s : report.spans) {
    inferred += s.kind == "infer_shape";
    computed += s.kind == "compute";
    released += s.kind == "release";
    if (s.kind != "infer_shape" && s.kind != "compute") continue;
    ASSERT_TRUE(events.count(s.of)) << s.of;
    EXPECT_GE(s.begin_us, events[s.of]->begin_us);
    EXPECT_LE(s.end_us, events[s.of]->end_us + 1e-3);
  }
  EXPECT_GE(inferred, 2) << "cast and tanh have the shape of what where_index finds";
  EXPECT_EQ(computed, 3);
  EXPECT_GE(released, 2);
  // 3 indices of 8 bytes, then 3 floats, twice: pooled blocks are of 64 bytes.
  size_t most = 0;
  for (const MemorySample& m : report.memory) most = std::max(most, m.bytes);
  EXPECT_EQ(most, 128u) << "what is read and what is written, in place or not, at a time";
}

TEST_P(Trace, TheMemoryLineIsWhatIsAlive) {
  // a and b are alive together: neither may lie in the other one, as the parts of a concat may.
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {kSide});
  b.Op("tile", {{"X", {"x"}}}, {{"Out", {"a"}}}, {{"repeat_times", Ints{2}}});  // 32 KiB
  b.Op("tile", {{"X", {"a"}}}, {{"Out", {"b"}}}, {{"repeat_times", Ints{2}}});  // 64 KiB
  b.Op("reduce_sum", {{"X", {"b"}}}, {{"Out", {"c"}}},
       {{"dim", Ints{0}}, {"keep_dim", true}});  // 4 bytes
  b.Op("concat", {{"X", {"c", "x"}}}, {{"Out", {"y"}}}, {{"axis", 0}});
  b.Fetch("y");
  Executor executor({.threads = 2});
  const auto compiled =
      MustCompile(executor, b.Build(), nullptr, {.opt_level = 0, .schedule = GetParam()});
  const RunReport report = Traced(executor, compiled, FeedsOf());
  ASSERT_FALSE(report.memory.empty());
  double last = 0;
  size_t most = 0;
  for (const MemorySample& m : report.memory) {
    EXPECT_EQ(m.place, "cpu");
    EXPECT_GE(m.us, last);
    EXPECT_LE(m.us, report.run_us + 1);
    last = m.us;
    most = std::max(most, m.bytes);
  }
  constexpr size_t kFloat = 4;
  EXPECT_GE(most, (2 + 4) * kSide * kFloat);
  EXPECT_LE(most, (2 + 4) * kSide * kFloat + 1024) << "x is the caller's";
  const size_t left = report.memory[report.memory.size() - 1].bytes;
  EXPECT_GE(left, (kSide + 1) * kFloat) << "the output";
  EXPECT_LE(left, (kSide + 1) * kFloat * 5 / 4 + 64);
}

// A loop that puts a value a step into an array, with operators of the test before and behind.
ProgramBuilder Collected() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {kSide}).Feed("n", DType::kI64, {1}).Array("items");
  b.Fill("i", {1}, 0, DType::kI64).Binary("less_than", "i", "n", "go");
  const int body = b.Block(0);
  b.In(body).Op("cast", {{"X", {"i"}}}, {{"Out", {"f"}}},
                {{"in_dtype", int64_t{3}}, {"out_dtype", int64_t{5}}});
  b.Binary("elementwise_add", "x", "f", "u");
  b.Op("test_call", {{"X", {"u"}}}, {{"Out", {"v"}}}, {{"id", 1}});
  b.Op("write_to_array", {{"X", {"v"}}, {"I", {"i"}}}, {{"Out", {"items"}}});
  b.Increment("i").Binary("less_than", "i", "n", "go").In(0);
  b.Op("while", {{"X", {"x", "i", "n"}}, {"Condition", {"go"}}},
       {{"Out", {"i", "items"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{body}}});
  // It needs what the loop has counted: beside the loop it would take memory at any time.
  b.Op("cast", {{"X", {"i"}}}, {{"Out", {"count"}}},
       {{"in_dtype", int64_t{3}}, {"out_dtype", int64_t{5}}});
  b.Binary("elementwise_add", "x", "count", "z");
  b.Op("test_call", {{"X", {"z"}}}, {{"Out", {"y"}}}, {{"id", 2}});
  b.Unary("lod_array_length", "items", "length").Fetch("length").Fetch("y");
  return b;
}

// From call to call the line changes by as many bytes as the allocator's count.
TEST_P(Trace, WhatListsHoldIsInTheMemoryLine) {
  constexpr int64_t kSteps = 5;
  for (const bool dynamic : {false, true}) {
    Executor executor({.threads = 2});
    const auto compiled =
        MustCompile(executor, Collected().Build(), nullptr,
                    {.opt_level = 0, .schedule = GetParam(), .dynamic_bodies = dynamic});
    std::vector<size_t> held;
    const ScopedHook hook([&](int64_t id) {
      if (id == 1) held.push_back(executor.MemoryUse()[0].allocated_bytes);
      return Status::Ok();
    });
    auto feeds = FeedsOf();
    feeds.push_back({"n", I64({1}, {kSteps})});
    for (int run = 0; run < 3; ++run) {
      held.clear();
      const RunReport report = Traced(executor, compiled, feeds);
      ASSERT_EQ(held.size(), static_cast<size_t>(kSteps));
      std::vector<size_t> line;
      for (const TraceEvent& e : report.events) {
        if (e.op != "test_call" || e.block == 0) continue;
        size_t alive = 0;
        for (const MemorySample& m : report.memory)
          if (m.us <= e.begin_us) alive = m.bytes;
        line.push_back(alive);
      }
      ASSERT_EQ(line.size(), held.size());
      for (size_t k = 1; k < line.size(); ++k)
        EXPECT_EQ(line[k] - line[0], held[k] - held[0])
            << "step " << k << (dynamic ? ", dynamic" : "");
      EXPECT_GE(line.back() - line[0], (kSteps - 1) * kSide * 4u);
    }
  }
}

TEST_P(Trace, ChromeShowsEventsSpansAndMemory) {
  Executor executor({.threads = 2});
  const auto compiled = MustCompile(executor, Chains(2, 5).Build(), nullptr,
                                    {.opt_level = 0, .schedule = GetParam()});
  const RunReport report = Traced(executor, compiled, FeedsOf());
  const auto json = nlohmann::json::parse(report.ToChromeTrace());
  std::map<std::string, size_t> kinds;
  for (const auto& e : json["traceEvents"]) {
    ++kinds[e["ph"]];
    if (e["ph"] == "C") {
      EXPECT_EQ(e["name"], "memory cpu");
      EXPECT_TRUE(e["args"]["bytes"].is_number_unsigned());
    }
  }
  EXPECT_EQ(kinds["X"], report.events.size() + report.spans.size());
  EXPECT_EQ(kinds["C"], report.memory.size());
  EXPECT_GT(kinds["C"], 10u);
}

TEST_P(Trace, AReportOutlivesItsExecutor) {
  RunReport report;
  {
    Executor executor({.threads = 2});
    const auto compiled = MustCompile(executor, Chains(2, 5).Build(), nullptr,
                                      {.opt_level = 0, .schedule = GetParam()});
    report = Traced(executor, compiled, FeedsOf());
  }
  EXPECT_EQ(report.events.size(), 12u);
  EXPECT_FALSE(report.memory.empty());
}

TEST_P(TraceOfThreads, ARunThatWaitsAfterEachInstructionHasOneThread) {
  Executor executor({.threads = 2});
  const auto compiled = MustCompile(executor, Chains(3, 20).Build(), nullptr,
                                    {.opt_level = 0, .schedule = GetParam()});
  ASSERT_EQ(Traced(executor, compiled, FeedsOf()).threads, 2);
  RunReport report;
  const auto out = executor.Run(compiled, FeedsOf(),
                                {.report = &report, .trace = true, .wait_after_each = true});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ(report.threads, 1);
  EXPECT_EQ(report.dispatch, "serial");
  for (const TraceEvent& e : report.events) EXPECT_EQ(e.thread, 0);
  for (const TraceSpan& s : report.spans) EXPECT_EQ(s.thread, 0) << s.kind;
}

// Twenty calls one after another; the hook decides what becomes of them.
ProgramBuilder Calls() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {4});
  std::string at = "x";
  for (int i = 0; i < 20; ++i) {
    const std::string next = "c" + std::to_string(i);
    b.Op("test_call", {{"X", {at}}}, {{"Out", {next}}}, {{"id", i}});
    at = next;
  }
  return std::move(b.Fetch(at));
}

TEST_P(Trace, TellsOfARunThatFailedOrWasCancelled) {
  Executor executor({.threads = 2});
  const auto compiled =
      MustCompile(executor, Calls().Build(), nullptr, {.opt_level = 0, .schedule = GetParam()});
  std::stop_source stop;
  enum { kThrows, kFails, kCancels };
  for (int what : {kThrows, kFails, kCancels}) {
    const ScopedHook hook([&](int64_t id) -> Status {
      if (id != 10) return Status::Ok();
      if (what == kThrows) throw std::runtime_error("in the middle");
      if (what == kFails) return Status(StatusCode::kOutOfRange, "in the middle");
      stop.request_stop();
      return Status::Ok();
    });
    RunReport report;
    const auto out = executor.Run(compiled, {{"x", F32({4}, {1, 2, 3, 4})}},
                                  {.stop = stop.get_token(), .report = &report, .trace = true});
    ASSERT_FALSE(out.ok());
    // A call that throws has no event, one that fails has.
    EXPECT_EQ(report.events.size(), what == kThrows ? 10u : 11u) << what;
    double last = 0;
    for (const TraceEvent& e : report.events) {
      EXPECT_GE(e.begin_us, last);
      last = e.end_us;
      EXPECT_LE(last, report.run_us + 1);
    }
    size_t most = 0;
    for (const MemorySample& m : report.memory) most = std::max(most, m.bytes);
    EXPECT_GT(most, 0u);
    EXPECT_LT(most, 1u << 20);
    EXPECT_TRUE(nlohmann::json::accept(report.ToChromeTrace()));
  }
}

// Each run has a trace of its own; copies of one report are read by several threads, also when the
// executor is gone.
TEST_P(Trace, EightThreadsTraceAndReadAtOnce) {
  constexpr int kThreads = 8, kRuns = 10;
  std::vector<RunReport> reports(kThreads);
  const auto at_once = [](const std::function<void(int)>& fn) {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) threads.emplace_back(fn, t);
    for (std::thread& t : threads) t.join();
  };
  {
    Executor executor({.threads = 2});
    const auto compiled = MustCompile(executor, Chains(3, 10).Build(), nullptr,
                                      {.opt_level = 0, .schedule = GetParam()});
    at_once([&](int t) {
      for (int k = 0; k < kRuns; ++k) {
        reports[static_cast<size_t>(t)] = Traced(executor, compiled, FeedsOf());
        const RunReport& report = reports[static_cast<size_t>(t)];
        EXPECT_EQ(report.events.size(), 33u);
        for (int thread = 0; thread < report.threads; ++thread)
          EXPECT_NE(Filled(report, thread), -1) << "they overlap";
      }
    });
    reports[0] = Traced(executor, compiled, FeedsOf());
  }
  std::vector<std::string> told(kThreads);
  at_once([&](int t) {
    const RunReport copy = reports[0];
    told[static_cast<size_t>(t)] = copy.ToChromeTrace();
  });
  for (const std::string& text : told) EXPECT_EQ(text, told[0]);
  EXPECT_NE(told[0].find("memory cpu"), std::string::npos);
}

TEST(DeviceTraceSpans, AWaitForATaskNamesIt) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {4});
  b.Op("test_call", {{"X", {"x"}}}, {{"Out", {"a"}}},
       {{"id", 1}, {"op_device", std::string("cpu")}});
  b.Op("test_call", {{"X", {"x"}}}, {{"Out", {"b"}}},
       {{"id", 2}, {"op_device", std::string("cpu")}});
  b.Binary("elementwise_add", "a", "b", "y").Fetch("y");
  const ScopedHook hook([](int64_t id) {
    std::this_thread::sleep_for(std::chrono::milliseconds(id == 1 ? 30 : 0));
    return Status::Ok();
  });
  RunReport report;
  {
    Executor executor({.threads = 2, .device = NewEmulatedDevice(), .host_task_ns = 0});
    const auto compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = 0});
    const auto out =
        executor.Run(compiled, {{"x", F32({4}, {1, 2, 3, 4})}}, {.report = &report, .trace = true});
    ASSERT_TRUE(out.ok()) << out.status().ToString();
  }
  ASSERT_EQ(report.threads, 2);
  bool named = false;
  for (const TraceSpan& s : report.spans)
    named = named ||
            (s.kind == "wait_task" && s.of == "test_call -> a" && s.end_us - s.begin_us > 5000);
  EXPECT_TRUE(named) << report.ToChromeTrace();
}

TEST(DeviceTraceSpans, FillTheTimeOfHostAndStreams) {
  constexpr int64_t kKernelNs = 500000;
  const auto device = NewEmulatedDevice({.kernel_delay_ns = kKernelNs});
  Executor executor({.threads = 1, .device = device, .device_streams = 2});
  const auto compiled = MustCompile(executor, Chains(2, 3).Build(), nullptr, {.opt_level = 0});
  RunReport report;
  const auto out = executor.Run(compiled, FeedsOf(), {.report = &report, .trace = true});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_GE(Filled(report, 0), 0.98);
  EXPECT_LE(Filled(report, 0), 1.02);
  std::map<std::string, int> streams;
  for (const TraceEvent& e : report.events)
    if (!e.stream.empty()) ++streams[e.stream];
  ASSERT_GE(streams.size(), 3u);
  for (const auto& [stream, count] : streams) {
    EXPECT_GE(Filled(report, -1, stream), 0.98) << stream;
    EXPECT_LE(Filled(report, -1, stream), 1.02) << stream;
  }
  size_t most = 0, left = 1;
  for (const MemorySample& m : report.memory) {
    if (m.place != "emulated:0") continue;
    most = std::max(most, m.bytes);
    left = m.bytes;
  }
  EXPECT_GE(most, 3u * kSide * 4) << "x and a value of each chain";
  EXPECT_EQ(left, 0u);
  const std::vector<PlaceMemory> use = executor.MemoryUse();
  ASSERT_EQ(use.size(), 2u);
  EXPECT_EQ(use[1].place, "emulated:0");
  EXPECT_GE(use[1].peak_bytes, most);
  EXPECT_LE(use[1].reserved_bytes, CountsOf(*device).bytes);
}

TEST(MemoryUse, CountsWhatIsHeldAndTheMostSince) {
  Executor executor({.threads = 1});
  const auto compiled = MustCompile(executor, Chains(2, 3).Build(), nullptr, {.opt_level = 0});
  EXPECT_EQ(executor.MemoryUse()[0].peak_bytes, 0u);
  {
    auto out = MustRun(executor, compiled, FeedsOf());
    const PlaceMemory held = executor.MemoryUse()[0];
    EXPECT_EQ(held.place, "cpu");
    EXPECT_GE(held.allocated_bytes, kSide * 4u) << "the output";
    EXPECT_GE(held.reserved_bytes, held.allocated_bytes);
    EXPECT_GE(held.peak_bytes, held.allocated_bytes);
    out.clear();
    const PlaceMemory after = executor.MemoryUse()[0];
    EXPECT_LE(after.allocated_bytes + kSide * 4u, held.allocated_bytes);
    EXPECT_EQ(after.peak_bytes, held.peak_bytes);
    EXPECT_GE(after.reserved_bytes, held.allocated_bytes) << "kept for the next run";
  }
  executor.ResetMemoryPeaks();
  const PlaceMemory reset = executor.MemoryUse()[0];
  EXPECT_EQ(reset.peak_bytes, reset.allocated_bytes);
  MustRun(executor, compiled, FeedsOf());
  EXPECT_GT(executor.MemoryUse()[0].peak_bytes, reset.peak_bytes);
  executor.Trim();
  const PlaceMemory trimmed = executor.MemoryUse()[0];
  EXPECT_EQ(trimmed.reserved_bytes, trimmed.allocated_bytes);
}

}  // namespace
}  // namespace heddle::testing
