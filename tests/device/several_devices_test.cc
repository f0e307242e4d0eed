// Programs with several devices: the host's bits, wherever their operators run.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "device/kinds.h"
#include "heddle/device.h"
#include "tests/support/random_program.h"

namespace heddle::testing {
namespace {

constexpr EmulatedOptions kUneven = {
    .kernel_delay_ns = 1000, .copy_delay_ns = 1000, .jitter_ns = 60000, .seed = 3};

ExecutorOptions Devices(int count, EmulatedOptions kind, ExecutorOptions options = {}) {
  for (int k = 0; k < count; ++k) {
    kind.number = k;
    kind.seed += 1;
    if (k == 0)
      options.device = NewEmulatedDevice(kind);
    else
      options.more_devices.push_back(NewEmulatedDevice(kind));
  }
  return options;
}

ProgramBuilder TwoStages() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {4});
  const auto on = [](const char* place) {
    return std::pair<std::string, AttrValue>("op_device", std::string(place));
  };
  b.Op("relu", {{"X", {"x"}}}, {{"Out", {"a"}}}, {on("gpu:0")});
  b.Op("tanh", {{"X", {"a"}}}, {{"Out", {"b"}}}, {on("gpu:1")});
  b.Op("sigmoid", {{"X", {"b"}}}, {{"Out", {"c"}}}, {on("cpu")});
  b.Op("elementwise_add", {{"X", {"c"}}, {"Y", {"a"}}}, {{"Out", {"y"}}}, {on("gpu:1")});
  return std::move(b.Fetch("y"));
}

TEST(SeveralDevices, OperatorsRunWhereTheySay) {
  const std::vector<heddle::Feed> feeds = {{"x", F32({4}, {-1, 0, 1, 2})}};
  Executor host({.threads = 1});
  const auto want = MustRun(host, MustCompile(host, TwoStages().Build()), feeds);
  for (const auto& [level, peers] : {std::pair{0, true}, {2, true}, {2, false}}) {
    Executor executor(Devices(2, {.peers = peers}, {.threads = 1}));
    const CompiledProgram compiled =
        MustCompile(executor, TwoStages().Build(), nullptr, {.opt_level = level});
    for (int run = 0; run < 3; ++run)
      EXPECT_EQ(Bits(MustRun(executor, compiled, feeds)[0]), Bits(want[0]));
    const auto plan = executor.DescribePlan(compiled, feeds);
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(plan->places, (std::vector<std::string>{"cpu", "emulated:0", "emulated:1"}));
    std::map<std::string, std::string> place;
    std::set<std::string> streams;
    int copies = 0;
    for (const auto& in : plan->instructions) {
      if (!in.stream.empty()) streams.insert(in.stream);
      copies += in.op == "copy";
      if (in.op == "copy" || in.outputs[0] < 0) continue;
      place[plan->slots[static_cast<size_t>(in.outputs[0])].variable] = in.place;
      EXPECT_EQ(plan->slots[static_cast<size_t>(in.outputs[0])].place, in.place);
    }
    EXPECT_EQ(place["a"], "emulated:0");
    EXPECT_EQ(place["b"], "emulated:1");
    EXPECT_EQ(place["c"], "cpu");
    EXPECT_EQ(place["y"], "emulated:1");
    // x in; a across, or out and in; b out; c in; y out.
    EXPECT_EQ(copies, peers ? 5 : 6);
    EXPECT_EQ(plan->copies, copies);
    EXPECT_EQ(plan->peer_copies, peers ? 1 : 0);
    EXPECT_TRUE(streams.count("0: compute 0") && streams.count("1: compute 0"));
    const auto use = executor.MemoryUse();
    ASSERT_EQ(use.size(), 3u);
    EXPECT_EQ(use[2].place, "emulated:1");
    EXPECT_GT(use[1].peak_bytes, 0u);
    EXPECT_GT(use[2].peak_bytes, 0u);
  }
}

// The value goes from memory to memory: the host has no slot for it, in no run, traced or not.
TEST(SeveralDevices, ValuesGoStraightToPeers) {
  const auto first = NewEmulatedDevice();
  const auto second = NewEmulatedDevice({.number = 1, .lazy = true});
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {4});
  b.Op("relu", {{"X", {"x"}}}, {{"Out", {"a"}}}, {{"op_device", std::string("gpu:0")}});
  b.Op("tanh", {{"X", {"a"}}}, {{"Out", {"b"}}}, {{"op_device", std::string("gpu:1")}});
  b.Op("sigmoid", {{"X", {"a"}}}, {{"Out", {"y"}}}, {{"op_device", std::string("gpu:1")}});
  b.Fetch("b").Fetch("y");
  const std::vector<heddle::Feed> feeds = {{"x", F32({4}, {-1, 0, 1, 2})}};
  Executor host({.threads = 1});
  const auto want = MustRun(host, MustCompile(host, b.Build()), feeds);
  Executor executor({.threads = 1, .device = first, .more_devices = {second}});
  const CompiledProgram compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = 0});
  for (int64_t run = 1; run <= 3; ++run) {
    const auto out = MustRun(executor, compiled, feeds);
    EXPECT_EQ(Bits(out[0]), Bits(want[0]));
    EXPECT_EQ(Bits(out[1]), Bits(want[1]));
    EXPECT_EQ(CountsOf(*second).peer_copies, run) << "one for both readers";
    EXPECT_EQ(CountsOf(*first).copies, run) << "x, and nothing comes out";
  }
  RunReport report;
  ASSERT_TRUE(executor.Run(compiled, feeds, {.report = &report, .trace = true}).ok());
  int traced = 0;
  for (const TraceEvent& e : report.events) traced += e.implementation == "peer";
  EXPECT_EQ(traced, 1);
  const auto plan = executor.DescribePlan(compiled, feeds);
  ASSERT_TRUE(plan.ok());
  for (const auto& in : plan->instructions) {
    if (in.implementation != "peer") continue;
    EXPECT_EQ(in.op, "copy");
    EXPECT_EQ(in.place, "emulated:1");
    EXPECT_EQ(in.stream, "1: copies in");
    EXPECT_EQ(plan->slots[static_cast<size_t>(in.inputs[0])].place, "emulated:0");
    EXPECT_EQ(in.why, "straight from emulated:0, whose memory the device reads");
  }
  EXPECT_EQ(executor.Prepare(compiled, feeds)->peer_copies, 1);
}

TEST(SeveralDevices, AMissingOneIsRefused) {
  Executor executor(Devices(2, {}, {.threads = 1}));
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {4});
  b.Op("relu", {{"X", {"x"}}}, {{"Out", {"y"}}}, {{"op_device", std::string("gpu:2")}});
  b.Fetch("y");
  const CompiledProgram compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = 0});
  const auto out = executor.Run(compiled, {{"x", F32({4}, {1, 2, 3, 4})}});
  ASSERT_FALSE(out.ok());
  for (const char* part : {"relu -> y", "'gpu:2'", "has 2 devices"})
    EXPECT_NE(out.status().ToString().find(part), std::string::npos) << out.status().ToString();
}

// Fetches and written parameters, over random programs, mixes of places and paces of devices.
TEST(SeveralDevices, GiveTheHostsBits) {
  const EmulatedOptions kinds[] = {{}, kUneven, {.lazy = true}, {.peers = false, .lazy = true}};
  Executor host({.threads = 2});
  for (const EmulatedOptions& kind : kinds)
    for (const int devices : {2, 3})
      for (const float task_ns : {1e30f, 0.f}) {
        Executor executor(Devices(
            devices, kind,
            {.threads = 2, .device_streams = devices, .host_task_ns = task_ns, .poison = true}));
        for (int k = 0; k < 12; ++k) {
          const auto seed = static_cast<uint32_t>(7000 + k);
          const RandomProgram random(seed, {.ops = 20, .control_flow = k % 3 == 0});
          auto program = Program::Parse(random.bytes(), "random");
          ASSERT_TRUE(program.ok());
          const auto here = host.Compile(*program, random.NewScope(), {.opt_level = k % 2 * 2});
          const auto there = executor.Compile(
              *program, random.NewScope(),
              {.opt_level = k % 2 * 2, .placement = Placement::kRandom, .placement_seed = seed});
          ASSERT_TRUE(here.ok() && there.ok());
          for (int run = 0; run < 2; ++run) {
            const auto want = host.Run(*here, random.Feeds());
            const auto got = executor.Run(*there, random.Feeds());
            ASSERT_EQ(want.ok(), got.ok()) << got.status().ToString() << " seed " << seed;
            if (!want.ok()) continue;
            for (size_t i = 0; i < want->size(); ++i)
              ASSERT_EQ(Bits((*got)[i]), Bits((*want)[i]))
                  << "seed " << seed << ", output " << i << "\n"
                  << *executor.PlanText(*there, random.Feeds());
            for (const std::string& name : random.parameters())
              ASSERT_EQ(Bits(there->scope()->Find(name)->tensor()),
                        Bits(here->scope()->Find(name)->tensor()))
                  << "seed " << seed << ", " << name;
          }
        }
      }
}

// Each call of one of the two fails, once or for good. A failure says on which of them; the
// executor stays usable unless a device is lost; nothing is left behind on either.
TEST(SeveralDevices, AFaultNamesItsDevice) {
  const std::vector<heddle::Feed> feeds = {{"x", F32({4}, {-1, 0, 1, 2})}};
  const std::string names[] = {"'emulated'", "'emulated:1'"};
  for (const int faulty : {0, 1})
    for (const bool lost : {false, true}) {
      int failed = 0;
      bool reached = true;
      for (int64_t call = 1; reached; ++call) {
        SCOPED_TRACE(names[faulty] + ", call " + std::to_string(call) + (lost ? ", lost" : ""));
        std::vector<std::shared_ptr<Device>> devices;
        for (int k = 0; k < 2; ++k)
          devices.push_back(NewEmulatedDevice(
              {.number = k, .lazy = true, .fail_call = k == faulty ? call : 0, .lost = lost}));
        {
          Executor executor({.threads = 1, .device = devices[0], .more_devices = {devices[1]}});
          const CompiledProgram compiled =
              MustCompile(executor, TwoStages().Build(), nullptr, {.opt_level = 0});
          int errors = 0;
          for (int run = 0; run < 3; ++run) {
            const auto out = executor.Run(compiled, feeds);
            if (out.ok()) continue;
            ++errors;
            EXPECT_NE(out.status().ToString().find(names[faulty]), std::string::npos)
                << out.status().ToString();
          }
          failed += errors > 0;
          reached = CountsOf(*devices[static_cast<size_t>(faulty)]).calls >= call;
          EXPECT_LE(errors, lost ? 3 : 1);
          if (reached) {
            EXPECT_EQ(executor.Run(compiled, feeds).ok(), !lost);
          }
        }
        for (const auto& device : devices) {
          const EmulatedCounts left = CountsOf(*device);
          EXPECT_EQ(left.allocations + left.streams + left.events, 0);
        }
      }
      EXPECT_GE(failed, 10);
    }
}

TEST(SeveralDevices, NamesOfDevices) {
  EXPECT_TRUE(OpenDevice("emulated").ok());
  EXPECT_TRUE(OpenDevice("emulated:3").ok());
  for (const char* name :
       {"emulated:", "emulated:x", "emulated:-1", "emulated:16", "tpu", "tpu:0"}) {
    const auto device = OpenDevice(name);
    ASSERT_FALSE(device.ok()) << name;
    EXPECT_NE(device.status().message().find(name), std::string::npos);
  }
}

TEST(SeveralDevices, AnUnknownKindIsToldWhichThereAre) {
  const auto device = OpenDevice("moon");
  ASSERT_FALSE(device.ok());
  EXPECT_GE(DeviceKinds().size(), 2u);
  for (const DeviceKind& kind : DeviceKinds())
    EXPECT_NE(device.status().message().find(kind.name), std::string::npos) << kind.name;
}

TEST(SeveralDevices, NotMoreThanThirtyOne) {
  const std::vector<heddle::Feed> feeds = {{"x", F32({4}, {-1, 0, 1, 2})}};
  Executor host({.threads = 1});
  const auto want = MustRun(host, MustCompile(host, TwoStages().Build()), feeds);
  for (const int count : {31, 32}) {
    Executor executor(Devices(count, {.memory_bytes = 1 << 20, .lazy = true}, {.threads = 1}));
    const CompiledProgram compiled =
        MustCompile(executor, TwoStages().Build(), nullptr, {.opt_level = 0});
    const auto out = executor.Run(compiled, feeds);
    if (out.ok()) {
      EXPECT_EQ(count, 31);
      EXPECT_EQ(Bits((*out)[0]), Bits(want[0]));
    } else {
      EXPECT_EQ(count, 32);
      EXPECT_NE(out.status().ToString().find("has 32 devices"), std::string::npos)
          << out.status().ToString();
    }
  }
}

TEST(SeveralDevices, ListsOfNames) {
  EXPECT_TRUE(OpenDevices("cpu")->empty());
  const auto two = OpenDevices("emulated:1,emulated");
  ASSERT_TRUE(two.ok()) << two.status().ToString();
  ExecutorOptions options;
  options.SetDevices(*two);
  EXPECT_EQ(options.device, two->at(0));
  EXPECT_EQ(options.more_devices, std::vector{two->at(1)});
  options.SetDevices({});
  EXPECT_EQ(options.device, nullptr);
  EXPECT_TRUE(options.more_devices.empty());
  for (const char* list : {"", ",", "emulated,", ",emulated", "emulated,cpu", "emulated,,emulated"})
    EXPECT_FALSE(OpenDevices(list).ok()) << list;
}

// Each operator is waited for before the next one is put anywhere: in time they do not overlap.
TEST(SeveralDevices, WaitAfterEachLeavesNothingSideBySide) {
  Executor executor(Devices(2, {.kernel_delay_ns = 300000}, {.threads = 1}));
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {4});
  for (int k = 0; k < 4; ++k) {
    b.Op("tanh", {{"X", {"x"}}}, {{"Out", {"y" + std::to_string(k)}}},
         {{"op_device", "gpu:" + std::to_string(k % 2)}});
    b.Fetch("y" + std::to_string(k));
  }
  const CompiledProgram compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = 0});
  const auto overlaps = [&](bool each) {
    RunReport report;
    const auto out = executor.Run(compiled, {{"x", F32({4}, {1, 2, 3, 4})}},
                                  {.report = &report, .trace = true, .wait_after_each = each});
    EXPECT_TRUE(out.ok()) << out.status().ToString();
    int count = 0;
    double last = 0;
    for (const TraceEvent& e : report.events) {
      count += e.begin_us + 1 < last;
      last = std::max(last, e.end_us);
    }
    return count;
  };
  EXPECT_GT(overlaps(false), 0);
  EXPECT_EQ(overlaps(true), 0);
}

}  // namespace
}  // namespace heddle::testing
