// Memory of values whose sizes are found while running: taken from tokens, not from the allocator.
#include "executor/run/run_tokens.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "executor/device/device_interpreter.h"
#include "executor/plan/plan_builder.h"
#include "executor/run/interpreter.h"
#include "executor/run/run_state.h"
#include "heddle/device.h"
#include "memory/pool_allocator.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using Rows = std::vector<float>;

class CountingAllocator final : public TensorAllocator {
 public:
  BufferRef Allocate(size_t bytes) override {
    ++calls;
    return pool.Allocate(bytes);
  }
  PoolAllocator pool;
  int calls = 0;
};

class OneThread final : public IntraOp {
 public:
  int threads() const override { return 1; }
  void ParallelFor(int64_t n, int64_t, FunctionRef<void(int64_t, int64_t)> fn) override {
    if (n > 0) fn(0, n);
  }
};

// n ones, and five values of n elements computed one from the other.
ProgramBuilder Chain() {
  ProgramBuilder b;
  b.Feed("n", DType::kI64, {1});
  b.Op("fill_constant", {{"ShapeTensor", {"n"}}}, {{"Out", {"a"}}},
       {{"dtype", int64_t{5}}, {"value", 1.0}});
  b.Scale("a", "b", 2).Binary("elementwise_add", "a", "b", "c").Unary("relu", "c", "d");
  b.Op("cumsum", {{"X", {"d"}}}, {{"Out", {"e"}}}, {{"axis", int64_t{0}}});
  b.Op("reduce_max", {{"X", {"e"}}}, {{"Out", {"m"}}}, {{"dim", Ints{0}}, {"keep_dim", true}});
  b.Fetch("m");
  return b;
}
constexpr int kChainValues = 5;  // besides what is fetched

// Six steps that each compute three values of n elements, the last of which is added up.
ProgramBuilder Loop() {
  ProgramBuilder b;
  b.Feed("n", DType::kI64, {1});
  b.Op("fill_constant", {{"ShapeTensor", {"n"}}}, {{"Out", {"sum"}}},
       {{"dtype", int64_t{5}}, {"value", 1.0}});
  b.Fill("i", {1}, 0).Fill("end", {1}, 6).Binary("less_than", "i", "end", "go");
  const int body = b.Block(0);
  b.In(body)
      .Scale("sum", "u", 1, 1)
      .Unary("relu", "u", "v")
      .Binary("elementwise_add", "u", "v", "w");
  b.Op("assign", {{"X", {"w"}}}, {{"Out", {"sum"}}});
  b.Increment("i").Binary("less_than", "i", "end", "go").In(0);
  b.Op("while", {{"X", {"sum", "i", "end"}}, {"Condition", {"go"}}},
       {{"Out", {"sum", "i", "go"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{body}}});
  b.Op("reduce_max", {{"X", {"sum"}}}, {{"Out", {"m"}}}, {{"dim", Ints{0}}, {"keep_dim", true}});
  b.Fetch("m");
  return b;
}

// Runs of a plan whose calls of the allocator are counted.
class CountedRuns {
 public:
  // `device`: its plan is one for that, with all operators on the host.
  CountedRuns(const ProgramBuilder& b, bool tokens, const std::shared_ptr<Device>& device = nullptr)
      : program_(b.Build()), scope_(new Scope) {
    services_.allocator = &allocator_;
    services_.intra = &intra_;
    PlanRequest request;
    request.program = program_.impl();
    request.scope = request.root_scope = scope_;
    request.packs = std::make_shared<PackCache>();
    services_.packs = request.packs.get();
    request.feeds = {{"n", Value::Kind::kTensor, DType::kI64, {1}}};
    request.fetches = {program_.ir().Find(0, "m")};
    request.services = &services_;
    request.tokens = tokens;
    if (device != nullptr) {
      request.dispatch = Dispatch::kDevice;
      request.devices = {device.get()};
      request.placement = Placement::kHost;
      devices_.push_back(std::make_unique<DeviceRuntime>(device, 1, false));
    }
    auto plan = BuildPlan(request);
    EXPECT_TRUE(plan.ok()) << plan.status().ToString();
    run_ = std::make_unique<RunState>(*plan, services_);
  }
  // The calls; `result`: what is fetched.
  int Calls(int64_t n, float* result = nullptr) {
    allocator_.calls = 0;
    const Value feed(I64({1}, {n}));
    run_->UseArenas(intra_, nullptr);
    run_->Begin({&feed}, {});
    const Status status = devices_.empty() ? Interpreter::RunOnOneThread(*run_)
                                           : DeviceInterpreter::Run(*run_, devices_, nullptr,
                                                                    nullptr, arena_, arena_);
    EXPECT_TRUE(status.ok()) << status.ToString();
    std::vector<Value> out;
    EXPECT_TRUE(run_->Fetch(1, 1, {}, &out).ok());
    if (result != nullptr) *result = Floats(out[0].tensor())[0];
    run_->End();
    return allocator_.calls;
  }
  size_t held() const { return allocator_.pool.bytes_in_use(); }

 private:
  CountingAllocator allocator_;
  OneThread intra_;
  HostPool pool_{1};
  KernelArena arena_{1, true, pool_};
  DeviceRuntimes devices_;
  Program program_;
  std::shared_ptr<Scope> scope_;
  Services services_;
  std::unique_ptr<RunState> run_;
};

TEST(RunTokens, SteadyRunsCallTheAllocatorForWhatIsFetchedOnly) {
  CountedRuns with(Chain(), true), without(Chain(), false);
  for (int64_t n : {1000, 100, 3000}) {
    float result = 0;
    without.Calls(n);
    EXPECT_EQ(without.Calls(n), kChainValues + 1);
    with.Calls(n);  // sizes are seen
    with.Calls(n);  // tokens take their blocks
    for (int i = 0; i < 3; ++i) EXPECT_EQ(with.Calls(n, &result), 1) << n;
    EXPECT_EQ(result, 3 * static_cast<float>(n));
  }
}

TEST(RunTokens, ServeTheHostBesideADevice) {
  const auto device = NewEmulatedDevice();
  CountedRuns with(Chain(), true, device), without(Chain(), false, device);
  without.Calls(1000);
  EXPECT_EQ(without.Calls(1000), kChainValues + 1);
  float result = 0;
  with.Calls(1000);
  with.Calls(1000);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(with.Calls(1000, &result), 1);
  EXPECT_EQ(result, 3000);
}

TEST(RunTokens, StepsOfALoopDoNotCallTheAllocator) {
  CountedRuns with(Loop(), true), without(Loop(), false);
  float result = 0;
  // Small values stay from step to step in any case, and so does what `sum` had before.
  constexpr int64_t kMany = 10000;
  without.Calls(kMany);
  const int before = without.Calls(kMany);
  EXPECT_GE(before, 2 * 6);
  with.Calls(kMany);
  with.Calls(kMany);
  EXPECT_LE(with.Calls(kMany, &result), before - 2 * 6);
  EXPECT_EQ(result, 190);  // 2 (x + 1), six times, from 1
}

TEST(RunTokens, LargeBlocksAreSharedAndGoBackAfterTheRun) {
  CountedRuns with(Chain(), true);
  constexpr int64_t kLarge = 100000;
  with.Calls(kLarge);
  EXPECT_EQ(with.held(), 0u);
  // Two are enough where each value is computed from the one before, or two before.
  EXPECT_LE(with.Calls(kLarge), 3 + 1);
  EXPECT_EQ(with.held(), 0u);
}

// Smaller values are in the blocks of the largest; larger ones make the blocks grow.
TEST(RunTokens, SizesMayGrowAndShrink) {
  CountedRuns with(Chain(), true);
  for (int64_t n : {10, 4000, 1, 4000, 200000, 10, 100, 200000, 5}) {
    float result = 0;
    with.Calls(n, &result);
    EXPECT_EQ(result, 3 * static_cast<float>(n));
  }
  with.Calls(5);
  EXPECT_LE(with.Calls(5), 3 + 1);
}

// ---- with the executor, memory poisoned ----

struct Setting {
  int threads;
  Schedule schedule;
};
class Tokens : public ::testing::TestWithParam<Setting> {
 protected:
  CompiledProgram Compile(const ProgramBuilder& b) {
    return MustCompile(executor_, b.Build(), nullptr,
                       {.opt_level = 0, .schedule = GetParam().schedule, .shuffle_seed = 5});
  }
  Executor executor_{{.threads = GetParam().threads, .poison = true}};
};
INSTANTIATE_TEST_SUITE_P(
    Ways, Tokens,
    ::testing::Values(Setting{1, Schedule::kSerial}, Setting{2, Schedule::kParallel},
                      Setting{4, Schedule::kParallel}, Setting{2, Schedule::kLanes},
                      Setting{3, Schedule::kLanes}),
    [](const auto& info) {
      return ScheduleName(info.param.schedule) + std::to_string(info.param.threads);
    });

// Branches of values with n, 2 n and 3 n elements, that a queue may compute in any order. Each
// value of a branch is read by the next one and by the one after that.
ProgramBuilder Branches() {
  ProgramBuilder b;
  b.Feed("n", DType::kI64, {1});
  b.Op("fill_constant", {{"ShapeTensor", {"n"}}}, {{"Out", {"one"}}},
       {{"dtype", int64_t{5}}, {"value", 1.0}});
  std::vector<std::string> ends;
  for (int k = 1; k <= 6; ++k) {
    const std::string p = "p" + std::to_string(k) + "_";
    b.Op("concat", {{"X", std::vector<std::string>(static_cast<size_t>((k + 1) / 2), "one")}},
         {{"Out", {p + "0"}}}, {{"axis", int64_t{0}}});
    b.Scale(p + "0", p + "1", k);
    for (int i = 2; i < 8; ++i) {
      const auto name = [&](int j) { return p + std::to_string(j); };
      b.Binary("elementwise_add", name(i - 1), name(i - 2), name(i));
    }
    ends.push_back(p + "7");
  }
  b.Op("concat", {{"X", ends}}, {{"Out", {"all"}}}, {{"axis", int64_t{0}}});
  b.Fetch("all").Fetch("p3_4");
  return b;
}

TEST_P(Tokens, BranchesOfChangingSizes) {
  auto compiled = Compile(Branches());
  for (const int64_t n : {7, 5000, 1, 300, 40000, 40000, 3, 12000, 40000, 50000, 7}) {
    const auto out = MustRun(executor_, compiled, {{"n", I64({1}, {n})}});
    const auto count = static_cast<size_t>(n);
    Rows all;  // Fibonacci's way from 1 and k: 8 + 13 k
    for (int k = 1; k <= 6; ++k)
      all.resize(all.size() + count * static_cast<size_t>((k + 1) / 2),
                 static_cast<float>(8 + 13 * k));
    ASSERT_EQ(Floats(out[0]), all) << n;
    ASSERT_EQ(Floats(out[1]), Rows(2 * count, 2 + 3 * 3)) << n;
  }
  EXPECT_EQ(executor_.plans_built(), 1);
}

// What a caller keeps is never written to again, though it was computed in a loop.
TEST_P(Tokens, KeptArraysStayWhole) {
  ProgramBuilder b;
  b.Feed("n", DType::kI64, {1}).Array("list");
  b.Op("fill_constant", {{"ShapeTensor", {"n"}}}, {{"Out", {"x"}}},
       {{"dtype", int64_t{5}}, {"value", 0.0}});
  b.Fill("i", {1}, 0, DType::kI64)
      .Fill("end", {1}, 5, DType::kI64)
      .Binary("less_than", "i", "end", "go");
  const int body = b.Block(0);
  b.In(body).Scale("x", "y", 1, 1).Scale("y", "z", 10);
  b.Op("write_to_array", {{"X", {"z"}}, {"I", {"i"}}}, {{"Out", {"list"}}});
  b.Op("assign", {{"X", {"y"}}}, {{"Out", {"x"}}});
  b.Increment("i").Binary("less_than", "i", "end", "go").In(0);
  b.Op("while", {{"X", {"x", "i", "end"}}, {"Condition", {"go"}}},
       {{"Out", {"x", "i", "go", "list"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{body}}});
  b.Fetch("list");
  auto compiled = Compile(b);
  std::vector<std::pair<int64_t, Value>> kept;
  for (const int64_t n : {4, 4, 900, 20, 30000, 900, 4}) {
    auto out = executor_.RunValues(compiled, {{"n", I64({1}, {n})}});
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    kept.emplace_back(n, (*out)[0]);
  }
  for (const auto& [n, list] : kept) {
    ASSERT_EQ(list.array().size(), 5u);
    for (size_t i = 0; i < 5; ++i)
      ASSERT_EQ(Floats(list.array()[i]),
                Rows(static_cast<size_t>(n), 10 * static_cast<float>(i + 1)));
  }
}

}  // namespace
}  // namespace heddle::testing
