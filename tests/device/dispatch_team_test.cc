// Several devices, each fed by a thread of its own, while the caller's thread has the host's
// operators.
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <stop_token>
#include <thread>

#include "heddle/device.h"
#include "tests/support/program_builder.h"
#include "tests/support/test_ops.h"

namespace heddle::testing {
namespace {

[[maybe_unused]] const bool kInstalled = InstallTestOps();

ExecutorOptions Devices(int count, ExecutorOptions options = {}, bool lazy = false) {
  for (int k = 0; k < count; ++k) {
    auto device = NewEmulatedDevice({.number = k, .lazy = lazy});
    if (k == 0)
      options.device = std::move(device);
    else
      options.more_devices.push_back(std::move(device));
  }
  return options;
}

void Call(ProgramBuilder& b, const std::string& in, const std::string& out, int64_t id,
          const char* place, const char* stream = "DefaultStream") {
  b.Op("test_call", {{"X", {in}}}, {{"Out", {out}}},
       {{"id", id}, {"op_device", std::string(place)}, {"execution_stream", std::string(stream)}});
}

const std::vector<heddle::Feed> kFeeds = {{"x", F32({2}, {1, 2})}};

// Two kernels meet: the first one waits until the second one has come, or for `most`.
class Meeting {
 public:
  explicit Meeting(std::chrono::milliseconds most) : most_(most) {}
  Status Come() {
    std::unique_lock lock(mutex_);
    if (++here_ == 2) both_.notify_all();
    if (both_.wait_for(lock, most_, [&] { return here_ >= 2; })) return Status::Ok();
    return Status(StatusCode::kInternal, "nobody else came");
  }

 private:
  const std::chrono::milliseconds most_;
  std::mutex mutex_;
  std::condition_variable both_;
  int here_ = 0;
};

// `a` ends when `c`, which stands behind the other device's `b` in the plan, is executed too.
ProgramBuilder BehindTheOther() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2});
  Call(b, "x", "a", 1, "gpu:0", "s");
  Call(b, "a", "b", 0, "gpu:1");
  Call(b, "x", "c", 1, "gpu:0", "t");
  return std::move(b.Fetch("b").Fetch("c"));
}

TEST(DispatchTeam, ADeviceIsFedWhileAnotherWaits) {
  Executor team(Devices(2, {.threads = 1}));
  Executor alone(Devices(2, {.threads = 1, .device_threads = false}));
  const auto meets = [](Executor& executor, std::chrono::milliseconds most) {
    const CompiledProgram compiled =
        MustCompile(executor, BehindTheOther().Build(), nullptr, {.opt_level = 0});
    Meeting meeting(most);
    const ScopedHook hook([&](int64_t id) { return id == 1 ? meeting.Come() : Status::Ok(); });
    const auto out = executor.Run(compiled, kFeeds);
    if (out.ok()) {
      EXPECT_EQ(Floats((*out)[0]), (std::vector<float>{1, 2}));
      EXPECT_EQ(Floats((*out)[1]), (std::vector<float>{1, 2}));
    }
    return out.ok();
  };
  for (int run = 0; run < 5; ++run) EXPECT_TRUE(meets(team, std::chrono::seconds(20)));
  EXPECT_FALSE(meets(alone, std::chrono::milliseconds(200)))
      << "the plan's order does not ask for a second thread any more";
}

// The host's operator does not end before a kernel runs that stands behind it.
TEST(DispatchTeam, TasksOfTheHostGoOnMeanwhile) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2});
  Call(b, "x", "a", 1, "cpu");
  Call(b, "a", "b", 0, "gpu:0");
  Call(b, "x", "c", 1, "gpu:1");
  b.Fetch("b").Fetch("c");
  for (int threads : {2, 3}) {
    Executor executor(Devices(2, {.threads = threads, .host_task_ns = 0}));
    const CompiledProgram compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = 0});
    EXPECT_EQ(executor.Prepare(compiled, kFeeds)->host_tasks, 1);
    for (int run = 0; run < 5; ++run) {
      Meeting meeting(std::chrono::seconds(20));
      const ScopedHook hook([&](int64_t id) { return id == 1 ? meeting.Come() : Status::Ok(); });
      EXPECT_EQ(Floats(MustRun(executor, compiled, kFeeds)[0]), (std::vector<float>{1, 2}));
    }
  }
}

// Six chains over two devices and the host, with a sum of all.
ProgramBuilder Chains() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2});
  std::vector<std::string> ends;
  const char* const places[] = {"gpu:0", "gpu:1", "cpu"};
  for (int k = 0; k < 6; ++k) {
    std::string last = "x";
    for (int step = 0; step < 4; ++step) {
      const std::string out = "v" + std::to_string(k) + "_" + std::to_string(step);
      Call(b, last, out, 10 * k + step, places[(k + step) % 3]);
      last = out;
    }
    ends.push_back(last);
  }
  b.Op("sum", {{"X", ends}}, {{"Out", {"y"}}}, {{"op_device", std::string("gpu:1")}});
  return std::move(b.Fetch("y"));
}

TEST(DispatchTeam, EachThreadTellsWhatItDidForItsDevice) {
  for (const float task_ns : {1e30f, 0.f}) {
    const int threads = task_ns > 0 ? 1 : 2;
    Executor executor(Devices(2, {.threads = threads, .host_task_ns = task_ns}));
    const CompiledProgram compiled =
        MustCompile(executor, Chains().Build(), nullptr, {.opt_level = 0});
    RunReport report;
    const auto out = executor.Run(compiled, kFeeds, {.report = &report, .trace = true});
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    std::map<int, int> dispatched;
    for (const TraceSpan& s : report.spans) {
      if (!s.stream.empty()) continue;
      dispatched[s.thread] += s.kind == "dispatch";
    }
    EXPECT_EQ(dispatched[0], 0) << "the caller's puts nothing on streams";
    EXPECT_GT(dispatched[threads], 10);
    EXPECT_GT(dispatched[threads + 1], 10);
    // A thread's spans follow each other without a gap: it executes no instruction.
    for (const int t : {threads, threads + 1}) {
      double filled = 0;
      for (const TraceSpan& s : report.spans)
        if (s.stream.empty() && s.thread == t) filled += s.end_us - s.begin_us;
      EXPECT_NEAR(filled, report.run_us, 0.02 * report.run_us);
    }
  }
}

TEST(DispatchTeam, TheFirstErrorEndsAllThreads) {
  std::vector<std::shared_ptr<Device>> devices;
  for (int k = 0; k < 2; ++k) devices.push_back(NewEmulatedDevice({.number = k}));
  for (const float task_ns : {1e30f, 0.f}) {
    Executor executor({.threads = 2,
                       .device = devices[0],
                       .more_devices = {devices[1]},
                       .host_task_ns = task_ns});
    const CompiledProgram compiled =
        MustCompile(executor, Chains().Build(), nullptr, {.opt_level = 0});
    for (int round = 0; round < 48; ++round) {
      const int64_t bad = round % 6 * 10 + round / 6 % 4;
      {
        const ScopedHook hook([&](int64_t id) {
          return id == bad ? Status(StatusCode::kOutOfRange, "not this one") : Status::Ok();
        });
        const auto out = executor.Run(compiled, kFeeds);
        ASSERT_FALSE(out.ok());
        const std::string text = out.status().ToString();
        EXPECT_NE(text.find("not this one"), std::string::npos) << text;
        EXPECT_NE(text.find("test_call -> v" + std::to_string(bad / 10)), std::string::npos)
            << text;
      }
      EXPECT_EQ(Floats(MustRun(executor, compiled, kFeeds)[0]), (std::vector<float>{6, 12}));
    }
  }
  for (const auto& device : devices) {
    const EmulatedCounts left = CountsOf(*device);
    EXPECT_EQ(left.allocations + left.streams + left.events, 0);
  }
}

TEST(DispatchTeam, RunsThatAreCancelledOrLateEnd) {
  Executor executor(Devices(2, {.threads = 2, .host_task_ns = 0}));
  const CompiledProgram compiled =
      MustCompile(executor, Chains().Build(), nullptr, {.opt_level = 0});
  for (int round = 0; round < 20; ++round) {
    std::stop_source source;
    {
      const ScopedHook hook([&](int64_t) {
        source.request_stop();
        return Status::Ok();
      });
      const auto out = executor.Run(compiled, kFeeds, {.stop = source.get_token()});
      ASSERT_FALSE(out.ok());
      EXPECT_EQ(out.status().code(), StatusCode::kCancelled) << out.status().ToString();
    }
    {
      const auto late = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
      const ScopedHook hook([&](int64_t) {
        std::this_thread::sleep_for(std::chrono::milliseconds(4));
        return Status::Ok();
      });
      const auto out = executor.Run(compiled, kFeeds, {.deadline = late});
      ASSERT_FALSE(out.ok());
      EXPECT_EQ(out.status().code(), StatusCode::kDeadlineExceeded) << out.status().ToString();
    }
    EXPECT_EQ(Floats(MustRun(executor, compiled, kFeeds)[0]), (std::vector<float>{6, 12}));
  }
}

// The threads of this process.
std::ptrdiff_t CountThreads() {
  using Entries = std::filesystem::directory_iterator;
  return std::distance(Entries("/proc/self/task"), Entries());
}

// The executor has as many threads after the hundredth run as after the first, also when runs meet.
// The devices have none.
TEST(DispatchTeam, RunsMakeNoThreads) {
  Executor executor(Devices(2, {.threads = 1}, true));
  const CompiledProgram compiled =
      MustCompile(executor, Chains().Build(), nullptr, {.opt_level = 0});
  MustRun(executor, compiled, kFeeds);
  const std::ptrdiff_t first = CountThreads();
  EXPECT_GE(first, 3) << "one for each device, and this one";
  std::set<int> dispatchers;
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c)
    callers.emplace_back([&] {
      for (int run = 0; run < 25; ++run)
        EXPECT_EQ(Floats(MustRun(executor, compiled, kFeeds)[0]), (std::vector<float>{6, 12}));
    });
  for (std::thread& t : callers) t.join();
  // The system lists a thread that has been joined for a moment longer.
  for (int look = 0; look < 2000 && CountThreads() > first; ++look)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(CountThreads(), first);
  RunReport report;
  const auto out = executor.Run(compiled, kFeeds, {.report = &report, .trace = true});
  ASSERT_TRUE(out.ok());
  for (const TraceSpan& s : report.spans)
    if (s.stream.empty() && s.kind == "dispatch") dispatchers.insert(s.thread);
  EXPECT_EQ(dispatchers, (std::set<int>{1, 2})) << "the last run, alone, has the threads again";
}

}  // namespace
}  // namespace heddle::testing
