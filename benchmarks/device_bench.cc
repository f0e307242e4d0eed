// How much of a device's time goes side by side. On the emulated device, whose kernels and copies
// take as long as they are told to, so that the machine hardly matters: two branches on one stream
// and on two; batches that are copied in, worked on and copied out one after another and in one
// run; operators of the host beside a kernel and beside each other, handed over to other threads
// and not.
#include <benchmark/benchmark.h>

#include <chrono>
#include <thread>

#include "heddle/device.h"
#include "tests/support/program_builder.h"
#include "tests/support/test_ops.h"

namespace heddle {
namespace {

using testing::F32;
using testing::ProgramBuilder;

// `branches` times: feed, `length` operators, fetch.
struct Work {
  Work(int branches, int length) {
    ProgramBuilder b;
    for (int k = 0; k < branches; ++k) {
      std::string at = "x" + std::to_string(k);
      b.Feed(at, DType::kF32, {4});
      feeds.push_back({at, F32({4}, {1, 2, 3, 4})});
      for (int i = 0; i < length; ++i) {
        const std::string out = "v" + std::to_string(k) + "_" + std::to_string(i);
        b.Scale(at, out, 1 + i);
        at = out;
      }
      b.Fetch(at);
    }
    program = b.Build();
  }
  std::vector<Feed> feeds;
  Program program;
};

void RunIt(benchmark::State& state, const Work& work, const EmulatedOptions& options, int streams) {
  Executor executor(
      {.threads = 1, .device = NewEmulatedDevice(options), .device_streams = streams});
  const CompiledProgram compiled =
      testing::MustCompile(executor, work.program, nullptr, {.opt_level = 0});
  (void)testing::MustRun(executor, compiled, work.feeds);
  for (auto _ : state) benchmark::DoNotOptimize(testing::MustRun(executor, compiled, work.feeds));
}

// Two branches of five kernels of 1 ms; the argument: streams.
void BM_TwoBranches(benchmark::State& state) {
  RunIt(state, Work(2, 5), {.kernel_delay_ns = 1000000}, static_cast<int>(state.range(0)));
}
BENCHMARK(BM_TwoBranches)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);

// Eight batches through three stages of 2 ms.
constexpr EmulatedOptions kStages = {.kernel_delay_ns = 2000000, .copy_delay_ns = 2000000};
void BM_BatchesAtOnce(benchmark::State& state) { RunIt(state, Work(8, 1), kStages, 1); }
BENCHMARK(BM_BatchesAtOnce)->UseRealTime()->Unit(benchmark::kMillisecond);

void BM_BatchesOneByOne(benchmark::State& state) {
  const Work work(1, 1);
  Executor executor({.threads = 1, .device = NewEmulatedDevice(kStages), .device_streams = 1});
  const CompiledProgram compiled =
      testing::MustCompile(executor, work.program, nullptr, {.opt_level = 0});
  for (auto _ : state)
    for (int k = 0; k < 8; ++k)
      benchmark::DoNotOptimize(testing::MustRun(executor, compiled, work.feeds));
}
BENCHMARK(BM_BatchesOneByOne)->UseRealTime()->Unit(benchmark::kMillisecond);

// Operators that take 5 ms, at the places of `places` ("h": the host, "d": the device), each from
// the feed by way of a small one on the host, and their sum on the device. One thread of the host
// after another, or, with the argument 1, two of them.
[[maybe_unused]] const bool kInstalled = testing::InstallTestOps();

void BesideEachOther(benchmark::State& state, const std::string& places) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {4});
  std::vector<std::string> ends;
  for (size_t k = 0; k < places.size(); ++k) {
    const std::string n = std::to_string(k);
    b.Op("relu", {{"X", {"x"}}}, {{"Out", {"a" + n}}}, {{"op_device", std::string("cpu")}});
    b.Op("test_call", {{"X", {"a" + n}}}, {{"Out", {"b" + n}}},
         {{"op_device", std::string(places[k] == 'h' ? "cpu" : "gpu")}});
    ends.push_back("b" + n);
  }
  b.Op("sum", {{"X", ends}}, {{"Out", {"y"}}}, {{"op_device", std::string("gpu")}});
  b.Fetch("y");
  const testing::ScopedHook hook([](int64_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return Status::Ok();
  });
  Executor executor({.threads = 2,
                     .device = NewEmulatedDevice(),
                     .host_task_ns = state.range(0) == 1 ? 0 : 1e30f});
  const CompiledProgram compiled =
      testing::MustCompile(executor, b.Build(), nullptr, {.opt_level = 0});
  const std::vector<Feed> feeds = {{"x", F32({4}, {1, 2, 3, 4})}};
  for (auto _ : state) benchmark::DoNotOptimize(testing::MustRun(executor, compiled, feeds));
}
void BM_HostBesideKernel(benchmark::State& state) { BesideEachOther(state, "hd"); }
void BM_TwoOfTheHost(benchmark::State& state) { BesideEachOther(state, "hh"); }
void BM_TwoOfTheHostBesideKernel(benchmark::State& state) { BesideEachOther(state, "hhd"); }
BENCHMARK(BM_HostBesideKernel)->Arg(0)->Arg(1)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(BM_TwoOfTheHost)->Arg(0)->Arg(1)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(BM_TwoOfTheHostBesideKernel)
    ->Arg(0)
    ->Arg(1)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace heddle
