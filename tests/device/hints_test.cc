// Streams, priorities and events that operators ask for by attributes.
#include <gtest/gtest.h>

#include <map>

#include "tests/support/forwarding_device.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

Attrs OnStream(const std::string& name, int64_t priority = 0) {
  return {{"execution_stream", name}, {"stream_priority", priority}};
}

// The stream that each operator was on, by its output.
std::map<std::string, std::string> StreamsOf(const ProgramBuilder& b, int streams) {
  Executor executor(
      {.threads = 1, .device = NewEmulatedDevice({.lazy = true}), .device_streams = streams});
  const CompiledProgram compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = 0});
  RunReport report;
  auto out = executor.Run(compiled, {{"x", F32({2}, {1, 2})}}, {.report = &report, .trace = true});
  EXPECT_TRUE(out.ok()) << out.status().ToString();
  std::map<std::string, std::string> found;
  for (const TraceEvent& e : report.events)
    if (e.op != "copy") found[e.output] = e.stream;
  return found;
}

TEST(DeviceHints, OperatorsOfOneNameShareAStream) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2});
  const char* const names[] = {"a", "b", "c", "a", "b", "c"};
  for (int k = 0; k < 6; ++k)
    b.Op("relu", {{"X", {"x"}}}, {{"Out", {"y" + std::to_string(k)}}}, OnStream(names[k]));
  for (int k = 0; k < 6; ++k) b.Fetch("y" + std::to_string(k));
  // More names than streams were asked for: they get theirs all the same.
  for (int streams : {1, 2, 4}) {
    auto on = StreamsOf(b, streams);
    for (int k = 0; k < 3; ++k)
      EXPECT_EQ(on["y" + std::to_string(k)], on["y" + std::to_string(k + 3)]);
    EXPECT_NE(on["y0"], on["y1"]);
    EXPECT_NE(on["y1"], on["y2"]);
    EXPECT_NE(on["y0"], on["y2"]);
  }
  ProgramBuilder plain;  // Paddle's word for no stream in particular
  plain.Feed("x", DType::kF32, {2});
  plain.Op("relu", {{"X", {"x"}}}, {{"Out", {"y0"}}}, OnStream("DefaultStream"));
  plain.Fetch("y0");
  EXPECT_EQ(StreamsOf(plain, 1)["y0"], "compute 0");
}

// A device that notes the priorities of streams.
class NotingDevice final : public ForwardingDevice {
 public:
  Result<std::unique_ptr<Stream>> NewStream(int priority) override {
    priorities.push_back(priority);
    return ForwardingDevice::NewStream(priority);
  }

  std::vector<int> priorities;
};

TEST(DeviceHints, StreamsGetTheirPriorities) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2});
  b.Op("relu", {{"X", {"x"}}}, {{"Out", {"a"}}}, OnStream("s", 0));
  b.Op("relu", {{"X", {"x"}}}, {{"Out", {"b"}}}, OnStream("t", -1));
  b.Fetch("a").Fetch("b");
  auto device = std::make_shared<NotingDevice>();
  Executor executor({.threads = 1, .device = device, .device_streams = 3});
  const CompiledProgram compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = 0});
  MustRun(executor, compiled, {{"x", F32({2}, {1, 2})}});
  EXPECT_EQ(device->priorities, (std::vector<int>{0, -1, 0, 0, 0}));  // and two for copies
}

// A device that does nothing before it must comes to the waiting operator's stream first.
TEST(DeviceHints, EventsMakeStreamsWait) {
  for (bool wait : {false, true}) {
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {2});
    Attrs recorder = OnStream("t"), waiter = OnStream("s");
    recorder.push_back({"event_to_record", std::string("e")});
    if (wait) waiter.push_back({"events_to_wait", Strings{"e", "never recorded"}});
    b.Op("relu", {{"X", {"x"}}}, {{"Out", {"a"}}}, OnStream("s"));
    b.Op("relu", {{"X", {"x"}}}, {{"Out", {"b"}}}, recorder);
    b.Op("relu", {{"X", {"a"}}}, {{"Out", {"c"}}}, waiter);
    b.Fetch("b").Fetch("c");
    Executor executor(
        {.threads = 1, .device = NewEmulatedDevice({.lazy = true}), .device_streams = 2});
    const CompiledProgram compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = 0});
    RunReport report;
    auto out =
        executor.Run(compiled, {{"x", F32({2}, {1, 2})}}, {.report = &report, .trace = true});
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    std::string order;
    for (const TraceEvent& e : report.events)
      if (e.op == "relu") order += e.output;
    EXPECT_EQ(order, wait ? "abc" : "acb");
  }
}

// Of what is ready, that of the least number goes first.
TEST(DeviceHints, PrioritiesOrderWhatIsReady) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2});
  const int64_t priorities[] = {3, -2, 0, 1, -2};
  for (int k = 0; k < 5; ++k)
    b.Op("relu", {{"X", {"x"}}}, {{"Out", {"y" + std::to_string(k)}}},
         {{"scheduling_priority", priorities[k]}});
  for (int k = 0; k < 5; ++k) b.Fetch("y" + std::to_string(k));
  Executor executor(
      {.threads = 1, .device = NewEmulatedDevice({.lazy = true}), .device_streams = 1});
  const CompiledProgram compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = 0});
  RunReport report;
  ASSERT_TRUE(
      executor.Run(compiled, {{"x", F32({2}, {1, 2})}}, {.report = &report, .trace = true}).ok());
  std::string order;
  for (const TraceEvent& e : report.events)
    if (e.op == "relu") order += e.output;
  EXPECT_EQ(order, "y1y4y2y3y0");
}

// With one unit, a stream of less priority goes first as soon as the unit is free; otherwise the
// streams go side by side.
TEST(EmulatedStreams, OfLessPriorityGoFirstWhereUnitsAreFew) {
  constexpr int64_t kDelayNs = 5'000'000;
  constexpr int kFills = 3;
  auto device = NewEmulatedDevice({.copy_delay_ns = kDelayNs, .units = 1});
  void* memory = *device->Allocate(64);
  {
    auto late = *device->NewStream(1), first = *device->NewStream(-1);
    std::vector<std::unique_ptr<Event>> late_ends, first_ends;
    const auto fill = [&](Stream& stream, std::vector<std::unique_ptr<Event>>* ends) {
      EXPECT_TRUE(stream.Fill(memory, 1, 64, 0).ok());
      ends->push_back(*device->NewEvent(true));
      EXPECT_TRUE(stream.Record(*ends->back()).ok());
    };
    for (int k = 0; k < kFills; ++k) fill(*late, &late_ends);
    for (int k = 0; k < kFills; ++k) fill(*first, &first_ends);
    ASSERT_TRUE(late->Synchronize().ok());
    ASSERT_TRUE(first->Synchronize().ok());
    // What was begun before the others came is not interrupted.
    EXPECT_GT(*late_ends[1]->NanosecondsSince(*first_ends.back()), 0);
    EXPECT_GE(*late_ends.back()->NanosecondsSince(*first_ends.back()), (kFills - 1) * kDelayNs);
  }
  device->Free(memory);
}

}  // namespace
}  // namespace heddle::testing
