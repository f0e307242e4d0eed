// Values of unknown size on a device: memory from tokens, which streams use one after another.
#include <gtest/gtest.h>

#include <map>

#include "heddle/device.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

// n numbers, and values of n elements computed one from the other. Two are copied out while others
// take their memory.
ProgramBuilder Chain() {
  ProgramBuilder b;
  b.Feed("n", DType::kI64, {1}).Feed("x", DType::kF32, {1});
  for (const char* name : {"a", "b", "c", "d", "e", "f", "h", "i", "j", "k", "l"})
    b.Var(name, DType::kF32, {-1});
  b.Var("g", DType::kI64, {-1});
  b.Op("fill_constant", {{"ShapeTensor", {"n"}}}, {{"Out", {"a"}}},
       {{"dtype", int64_t{5}}, {"value", 1.0}});
  b.Binary("elementwise_add", "a", "x", "b").Scale("b", "c", 2, 1);
  b.Binary("elementwise_add", "b", "c", "d").Scale("d", "e", 1.5f, -1).Scale("e", "f", 3, 2);
  b.Op("cast", {{"X", {"f"}}}, {{"Out", {"g"}}},
       {{"in_dtype", int64_t{5}}, {"out_dtype", int64_t{3}}});
  b.Op("cast", {{"X", {"g"}}}, {{"Out", {"h"}}},
       {{"in_dtype", int64_t{3}}, {"out_dtype", int64_t{5}}});
  b.Scale("h", "i", 0.5f, 7).Scale("i", "j", 4, 1).Scale("j", "k", 2, 9).Scale("k", "l", 0.25f, 1);
  b.Fetch("d").Fetch("i").Fetch("l");
  return b;
}

// The same by four branches, which streams take side by side.
ProgramBuilder Branches() {
  ProgramBuilder b;
  b.Feed("n", DType::kI64, {1}).Feed("x", DType::kF32, {1});
  b.Var("a", DType::kF32, {-1}).Var("b", DType::kF32, {-1}).Var("y", DType::kF32, {-1});
  b.Op("fill_constant", {{"ShapeTensor", {"n"}}}, {{"Out", {"a"}}},
       {{"dtype", int64_t{5}}, {"value", 1.0}});
  b.Binary("elementwise_add", "a", "x", "b");
  std::vector<std::string> ends;
  for (int c = 0; c < 4; ++c) {
    std::string at = "b";
    for (int k = 0; k < 5; ++k) {
      const std::string out = "v" + std::to_string(c) + "_" + std::to_string(k);
      b.Var(out, DType::kF32, {-1}).Scale(at, out, static_cast<float>(c + k) / 4, 1);
      at = out;
    }
    ends.push_back(at);
  }
  b.Op("sum", {{"X", ends}}, {{"Out", {"y"}}});
  b.Fetch("v1_2").Fetch("v2_4").Fetch("y");
  return b;
}
std::vector<heddle::Feed> Feeds(int64_t n, float x) {
  return {{"n", I64({1}, {n})}, {"x", F32({1}, {x})}};
}
std::vector<std::string> BitsOf(Executor& executor, const CompiledProgram& compiled, int64_t n,
                                float x) {
  auto out = executor.Run(compiled, Feeds(n, x));
  EXPECT_TRUE(out.ok()) << out.status().ToString();
  std::vector<std::string> bits;
  if (out.ok())
    for (const Tensor& t : *out) bits.push_back(Bits(t));
  return bits;
}

TEST(DeviceTokens, TheHostsBitsWhateverTheSizes) {
  constexpr EmulatedOptions kUneven = {
      .kernel_delay_ns = 1000, .copy_delay_ns = 1000, .jitter_ns = 60000, .seed = 3};
  for (const Program& program : {Chain().Build(), Branches().Build()}) {
    Executor host({.threads = 1});
    const CompiledProgram here = MustCompile(host, program, nullptr, {.opt_level = 0});
    for (const EmulatedOptions& kind : {EmulatedOptions{}, kUneven, EmulatedOptions{.lazy = true}})
      for (const int streams : {1, 3}) {
        auto device = NewEmulatedDevice(kind);
        {
          Executor executor({.threads = 1, .device = device, .device_streams = streams});
          const CompiledProgram there = MustCompile(executor, program, nullptr, {.opt_level = 0});
          float x = 0;
          for (const int64_t n : {4, 100, 100, 5000, 7, 5000, 20000, 1}) {
            ++x;
            EXPECT_EQ(BitsOf(executor, there, n, x), BitsOf(host, here, n, x)) << n;
          }
        }
        EXPECT_EQ(CountsOf(*device).allocations, 0);
      }
  }
}

// By place and dtype: ten floats and the integers of the cast on the device.
TEST(DeviceTokens, AreToldByTheReport) {
  Executor executor({.threads = 1, .device = NewEmulatedDevice()});
  const CompiledProgram compiled =
      MustCompile(executor, Chain().Build(), nullptr, {.opt_level = 0});
  auto report = executor.PlanMemory(compiled, Feeds(4, 1));
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  std::map<std::string, size_t> values;
  for (const MemoryReport::Tokens& t : report->tokens) values[t.place + " " + t.dtype] += t.values;
  EXPECT_EQ(values["device 0 int64"], 1u) << report->ToString();
  EXPECT_GE(values["device 0 float32"], 10u) << report->ToString();
  EXPECT_NE(report->ToString().find("values on device 0, float32"), std::string::npos);
}

// A slow copy to the host still reads a value when its memory is written again, since a thread of
// the host waits for the copy while another puts the next kernels on the device. The first run has
// no tokens.
TEST(DeviceTokens, WorkThatIsGivenABlockWaitsForWhoReadsIt) {
  ProgramBuilder b;
  b.Feed("n", DType::kI64, {1}).Feed("x", DType::kF32, {1});
  b.Var("v0", DType::kF32, {-1}).Var("a", DType::kF32, {-1});
  b.Op("fill_constant", {{"ShapeTensor", {"n"}}}, {{"Out", {"a"}}},
       {{"dtype", int64_t{5}}, {"value", 1.0}});
  b.Binary("elementwise_add", "a", "x", "v0");
  for (int k = 0; k < 8; ++k) {
    const std::string from = "v" + std::to_string(k), to = "v" + std::to_string(k + 1);
    const std::string here = "h" + std::to_string(k);
    b.Var(to, DType::kF32, {-1}).Var(here, DType::kF32, {-1}).Scale(from, to, 2, 1);
    b.Op("scale", {{"X", {from}}}, {{"Out", {here}}},
         {{"scale", 3.0f}, {"op_device", std::string("cpu")}});
    b.Fetch(here);
  }
  b.Fetch("v8");
  const Program program = b.Build();
  Executor host({.threads = 1});
  const CompiledProgram here = MustCompile(host, program, nullptr, {.opt_level = 0});
  for (const int streams : {1, 3}) {
    auto device = NewEmulatedDevice({.copy_delay_ns = 2000000});
    Executor executor(
        {.threads = 3, .device = device, .device_streams = streams, .host_task_ns = 0});
    const CompiledProgram there = MustCompile(executor, program, nullptr, {.opt_level = 0});
    int64_t first = 0;
    for (const float x : {1.f, 2.f, 3.f}) {
      EXPECT_EQ(BitsOf(executor, there, 1000, x), BitsOf(host, here, 1000, x)) << streams;
      if (first == 0) first = CountsOf(*device).waits;
    }
    EXPECT_GT(CountsOf(*device).waits, 3 * first) << streams;
  }
}

// Floats and integers take turns at no block: those of one kind make room for the other.
TEST(DeviceTokens, BlocksThatNobodyHasAreGivenUpWhereThereIsNoRoom) {
  constexpr int64_t kElements = 1 << 16;
  constexpr size_t kBytes = size_t{kElements} * sizeof(float);
  const auto runs = [](size_t room, int count) {
    Executor executor(
        {.threads = 1, .device = NewEmulatedDevice({.memory_bytes = room}), .device_streams = 1});
    const CompiledProgram compiled =
        MustCompile(executor, Chain().Build(), nullptr, {.opt_level = 0});
    int well = 0;
    while (well < count && executor.Run(compiled, Feeds(kElements, 1)).ok()) ++well;
    return well;
  };
  size_t room = kBytes;
  while (room < 20 * kBytes && runs(room, 1) == 0) room += kBytes / 4;
  EXPECT_EQ(runs(room, 4), 4) << room;
}

}  // namespace
}  // namespace heddle::testing
