// Operators of the host that run beside the launches of a device, and beside each other.
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>

#include "heddle/device.h"
#include "tests/support/program_builder.h"
#include "tests/support/test_ops.h"

namespace heddle::testing {
namespace {

[[maybe_unused]] const bool kInstalled = InstallTestOps();

// Where operators wait for each other: whoever comes stays until `count` are there.
class Meeting {
 public:
  explicit Meeting(int count) : count_(count) {}
  Status Come() {
    std::unique_lock lock(mutex_);
    if (++here_ == count_) all_.notify_all();
    if (all_.wait_for(lock, std::chrono::seconds(20), [&] { return here_ >= count_; }))
      return Status::Ok();
    return Status(StatusCode::kInternal, "nobody else came");
  }

 private:
  const int count_;
  std::mutex mutex_;
  std::condition_variable all_;
  int here_ = 0;
};

void Call(ProgramBuilder& b, const std::string& in, const std::string& out, int64_t id,
          const char* place = "cpu", const char* stream = "DefaultStream") {
  b.Op("test_call", {{"X", {in}}}, {{"Out", {out}}},
       {{"id", id}, {"op_device", std::string(place)}, {"execution_stream", std::string(stream)}});
}

const std::vector<heddle::Feed> kFeeds = {{"x", F32({2}, {1, 2})}};

ExecutorOptions Options(int threads, std::shared_ptr<Device> device = NewEmulatedDevice()) {
  return {.threads = threads, .device = std::move(device), .host_task_ns = 0};
}

// Runs it twice, so that the second run may be one with captured kernels.
void ExpectRuns(Executor& executor, const ProgramBuilder& b, const std::vector<float>& want,
                std::function<void()> before_run, int tasks) {
  const CompiledProgram compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = 0});
  EXPECT_EQ(executor.Prepare(compiled, kFeeds)->host_tasks, tasks)
      << *executor.PlanText(compiled, kFeeds);
  for (int run = 0; run < 3; ++run) {
    before_run();
    auto out = executor.Run(compiled, kFeeds);
    ASSERT_TRUE(out.ok()) << out.status().ToString() << *executor.PlanText(compiled, kFeeds);
    EXPECT_EQ(Floats((*out)[0]), want);
  }
}

void FetchSum(ProgramBuilder& b, const std::string& left, const std::string& right) {
  b.Op("elementwise_add", {{"X", {left}}, {"Y", {right}}}, {{"Out", {"y"}}},
       {{"op_device", std::string("gpu")}});
  b.Fetch("y");
}

// Neither comes back before the other one is there.
TEST(DeviceTasks, TwoOfTheHostAtOnce) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2});
  Call(b, "x", "a", 1);
  Call(b, "x", "b", 2);
  FetchSum(b, "a", "b");
  std::unique_ptr<Meeting> meeting;
  ScopedHook hook([&](int64_t) { return meeting->Come(); });
  for (int threads : {2, 4}) {
    Executor executor(Options(threads));
    ExpectRuns(
        executor, b, {2, 4}, [&] { meeting = std::make_unique<Meeting>(2); }, 2);
  }
}

// The kernel is launched while the first operator is under way, though it needs what comes after
// that.
TEST(DeviceTasks, LaunchesGoOnBesideThem) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2});
  Call(b, "x", "a", 1);
  Call(b, "x", "b", 0);
  Call(b, "b", "c", 1, "gpu");
  FetchSum(b, "a", "c");
  std::unique_ptr<Meeting> meeting;
  ScopedHook hook([&](int64_t id) { return id == 1 ? meeting->Come() : Status::Ok(); });
  for (int threads : {2, 4}) {
    Executor executor(Options(threads));
    ExpectRuns(
        executor, b, {2, 4}, [&] { meeting = std::make_unique<Meeting>(2); }, 2);
  }
}

// An operator that waits for a kernel's result keeps nobody from launching another kernel, which
// the first one waits for.
TEST(DeviceTasks, WaitForTheDeviceBesideLaunches) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2});
  Call(b, "x", "a", 1, "gpu", "s");  // ends when d is computed
  Call(b, "a", "e", 0);              // waits for that
  Call(b, "x", "c", 0);
  Call(b, "c", "d", 1, "gpu", "t");
  FetchSum(b, "e", "d");
  std::unique_ptr<Meeting> meeting;
  ScopedHook hook([&](int64_t id) { return id == 1 ? meeting->Come() : Status::Ok(); });
  Executor executor(Options(2));
  ExpectRuns(
      executor, b, {2, 4}, [&] { meeting = std::make_unique<Meeting>(2); }, 2);
}

// With one thread there is nobody to hand anything over to.
TEST(DeviceTasks, NotWithOneThread) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2});
  Call(b, "x", "y", 1);
  b.Fetch("y");
  Executor executor(Options(1));
  ExpectRuns(
      executor, b, {1, 2}, [] {}, 0);
}

TEST(DeviceTasks, OnlyWhatTakesLongEnough) {
  for (int64_t n : {16, 1 << 20}) {
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {n});
    b.Op("relu", {{"X", {"x"}}}, {{"Out", {"a"}}}, {{"op_device", std::string("cpu")}});
    b.Scale("a", "y", 2).Fetch("y");
    Executor executor({.threads = 2, .device = NewEmulatedDevice()});
    const CompiledProgram compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = 0});
    const auto stats = executor.Prepare(compiled, {{"x", Tensor::Zeros(DType::kF32, {n})}});
    ASSERT_TRUE(stats.ok());
    EXPECT_EQ(stats->host_tasks, n > 16 ? 1 : 0);
  }
}

// Side effects come in the program's order, whatever else goes on.
TEST(DeviceTasks, SideEffectsKeepTheirOrder) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2});
  std::vector<int64_t> want;
  for (int64_t id = 0; id < 12; ++id) {
    const std::string n = std::to_string(id);
    Call(b, "x", "a" + n, -1);
    b.Op("test_effect", {{"X", {"a" + n}}}, {{"Out", {"y" + n}}},
         {{"id", id}, {"op_device", std::string(id % 3 == 0 ? "gpu" : "cpu")}});
    b.Fetch("y" + n);
    want.push_back(id);
  }
  std::mutex mutex;
  std::vector<int64_t> seen;
  ScopedHook hook([&](int64_t id) {
    std::lock_guard lock(mutex);
    if (id >= 0) seen.push_back(id);
    return Status::Ok();
  });
  Executor executor(Options(4, NewEmulatedDevice({.jitter_ns = 50000})));
  const CompiledProgram compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = 0});
  for (int run = 0; run < 20; ++run) {
    seen.clear();
    MustRun(executor, compiled, kFeeds);
    EXPECT_EQ(seen, want);
  }
}

// --- failures ---

ProgramBuilder Fan() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2});
  std::vector<std::string> ends;
  for (int k = 0; k < 6; ++k) {
    const std::string n = std::to_string(k);
    Call(b, "x", "a" + n, k);
    Call(b, "a" + n, "b" + n, 10 + k, k % 2 == 0 ? "gpu" : "cpu");
    ends.push_back("b" + n);
  }
  b.Op("sum", {{"X", ends}}, {{"Out", {"y"}}}, {{"op_device", std::string("gpu")}});
  b.Fetch("y");
  return b;
}

TEST(DeviceTasks, TheFirstErrorWinsAndNothingIsLeftBehind) {
  for (bool lazy : {false, true}) {
    auto device = NewEmulatedDevice({.lazy = lazy});
    {
      Executor executor(Options(3, device));
      const CompiledProgram compiled =
          MustCompile(executor, Fan().Build(), nullptr, {.opt_level = 0});
      for (int round = 0; round < 60; ++round) {
        const int64_t bad = std::vector<int64_t>{
            0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15}[static_cast<size_t>(round) % 12];
        {
          ScopedHook hook([&](int64_t id) -> Status {
            if (id != bad) return Status::Ok();
            if (round % 2 == 0) throw std::runtime_error("thrown");
            return Status(StatusCode::kOutOfRange, "returned");
          });
          auto out = executor.Run(compiled, kFeeds);
          ASSERT_FALSE(out.ok());
          const std::string text = out.status().ToString();
          EXPECT_NE(text.find(round % 2 == 0 ? "thrown" : "returned"), std::string::npos) << text;
          EXPECT_NE(text.find("test_call"), std::string::npos) << text;
        }
        EXPECT_EQ(Floats(MustRun(executor, compiled, kFeeds)[0]), (std::vector<float>{6, 12}));
      }
    }
    EXPECT_EQ(CountsOf(*device).allocations + CountsOf(*device).events, 0);
  }
}

TEST(DeviceTasks, CancelledRunsStopBetweenThem) {
  Executor executor(Options(3));
  const CompiledProgram compiled = MustCompile(executor, Fan().Build(), nullptr, {.opt_level = 0});
  for (int round = 0; round < 20; ++round) {
    std::stop_source source;
    {
      std::atomic<int> later{0};
      ScopedHook hook([&](int64_t id) {
        source.request_stop();
        later += id >= 10;
        return Status::Ok();
      });
      auto out = executor.Run(compiled, kFeeds, {.stop = source.get_token()});
      ASSERT_FALSE(out.ok());
      EXPECT_EQ(out.status().code(), StatusCode::kCancelled);
      EXPECT_EQ(later, 0);
    }
    EXPECT_EQ(Floats(MustRun(executor, compiled, kFeeds)[0]), (std::vector<float>{6, 12}));
  }
}

TEST(DeviceTasks, TracesTellWhoDidWhat) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2});
  Call(b, "x", "a", 1);
  Call(b, "x", "b", 2);
  FetchSum(b, "a", "b");
  Meeting meeting(2);
  ScopedHook hook([&](int64_t) { return meeting.Come(); });
  Executor executor(Options(2));
  const CompiledProgram compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = 0});
  RunReport report;
  ASSERT_TRUE(executor.Run(compiled, kFeeds, {.report = &report, .trace = true}).ok());
  std::vector<int> lanes;
  for (const TraceEvent& e : report.events)
    if (e.op == "test_call") lanes.push_back(e.lane);
  std::sort(lanes.begin(), lanes.end());
  EXPECT_EQ(lanes, (std::vector<int>{0, 1}));
}

}  // namespace
}  // namespace heddle::testing
