// What an instruction costs besides its kernel, and how the time to make a plan grows.
//
// Programs of N operators on 8 floats, made in memory: a chain, in which every operator waits for
// the one before; a DAG with two operands an operator; a random program, in which operators take
// one to six operands, mostly recent ones, some from anywhere before; and one whose operators stand
// in conditional blocks of nine. They run unoptimised (level 0), so that N operators are N
// instructions, on one thread.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/kernel_context.h"
#include "core/op_registry.h"
#include "core/shape_context.h"
#include "heddle/heddle.h"
#include "proto/framework.pb.h"

namespace heddle {
namespace {

constexpr int kWidth = 8;

class ProgramMaker {
 public:
  ProgramMaker() { EnterBlock(-1); }
  // Operators go to a new block from here on; its number.
  int EnterBlock(int parent) {
    at_ = program_.blocks_size();
    proto::BlockDesc* block = program_.add_blocks();
    block->set_idx(at_);
    block->set_parent_idx(parent);
    return at_;
  }
  void ReturnTo(int block) { at_ = block; }
  // Variables stand in block 0, where every block sees them.
  void Tensor(const std::string& name, proto::VarType::Type dtype = proto::VarType::FP32) {
    proto::VarDesc* var = program_.mutable_blocks(0)->add_vars();
    var->set_name(name);
    var->mutable_type()->set_type(proto::VarType::LOD_TENSOR);
    auto* tensor = var->mutable_type()->mutable_lod_tensor()->mutable_tensor();
    tensor->set_data_type(dtype);
    tensor->add_dims(dtype == proto::VarType::BOOL ? 1 : kWidth);
  }
  struct Argument {
    const char* slot;
    std::string var;
  };
  // Arguments of one slot stand next to each other.
  proto::OpDesc* Op(const char* type, const std::vector<Argument>& inputs, const std::string& out) {
    proto::OpDesc* op = program_.mutable_blocks(at_)->add_ops();
    op->set_type(type);
    for (const Argument& in : inputs) {
      auto* slot = op->inputs_size() == 0 ? nullptr : op->mutable_inputs(op->inputs_size() - 1);
      if (slot == nullptr || slot->parameter() != in.slot) slot = op->add_inputs();
      slot->set_parameter(in.slot);
      slot->add_arguments(in.var);
    }
    auto* slot = op->add_outputs();
    slot->set_parameter("Out");
    slot->add_arguments(out);
    if (std::string_view(type) == "feed" || std::string_view(type) == "fetch") {
      auto* col = op->add_attrs();
      col->set_name("col");
      col->set_type(proto::INT);
      col->set_i(0);
    }
    return op;
  }
  // Runs `block` when `condition` holds.
  void If(const std::string& condition, int block) {
    proto::OpDesc* op = program_.mutable_blocks(at_)->add_ops();
    op->set_type("conditional_block");
    auto* slot = op->add_inputs();
    slot->set_parameter("Cond");
    slot->add_arguments(condition);
    auto* attr = op->add_attrs();
    attr->set_name("sub_block");
    attr->set_type(proto::BLOCK);
    attr->set_block_idx(block);
  }
  std::string Bytes() const { return program_.SerializeAsString(); }

 private:
  proto::ProgramDesc program_;
  int at_ = 0;
};

// An operator that does nothing: what is left is what an instruction costs.
void DefineNop(OpDef& op) {
  op.Doc("Nothing.").Input("X").Output("Out").InferShape([](ShapeContext& ctx) {
    ctx.SetOut("Out", ctx.InShape("X"), ctx.InDType("X"));
    return Status::Ok();
  });
  op.AnyKernel([](KernelContext&) { return Status::Ok(); });
}
const bool kInstalled = [] {
  RegisterOp("bench_nop", DefineNop);
  return true;
}();

std::string Name(int64_t i) { return "v" + std::to_string(i); }

enum Form { kChain, kDag, kRandom, kBlocks, kNop };
constexpr int kBlockLength = 10;  // with the operator that runs the block

// An earlier variable: one of the last 64, or, `far`, any one.
std::string Earlier(std::mt19937& random, int64_t i, bool far = false) {
  const auto most = static_cast<uint32_t>(far ? i : std::min<int64_t>(i, 64));
  return Name(i - 1 - static_cast<int64_t>(random() % most));
}

void RandomOp(ProgramMaker& maker, std::mt19937& random, int64_t i) {
  const unsigned kind = random() % 100;
  if (kind < 25) {
    maker.Op(kind < 15 ? "relu" : "scale", {{"X", Earlier(random, i)}}, Name(i));
  } else if (kind < 85) {
    const bool far = kind < 30;
    maker.Op("elementwise_max", {{"X", Earlier(random, i)}, {"Y", Earlier(random, i, far)}},
             Name(i));
  } else {
    std::vector<ProgramMaker::Argument> terms;
    for (unsigned k = 2 + random() % 5; k > 0; --k) terms.push_back({"X", Earlier(random, i)});
    maker.Op("sum", terms, Name(i));
  }
}

// Variable 0 is fed, operator i writes variable i, the last one is fetched.
std::string MakeProgram(Form form, int64_t n) {
  ProgramMaker maker;
  std::mt19937 random(1);
  maker.Tensor(Name(0));
  maker.Op("feed", {{"X", "feed"}}, Name(0));
  if (form == kBlocks) {
    maker.Tensor("taken", proto::VarType::BOOL);
    maker.Op("isfinite", {{"X", Name(0)}}, "taken");
  }
  for (int64_t i = 1; i <= n; ++i) {
    maker.Tensor(Name(i));
    if (form == kBlocks && i % kBlockLength == 1) {
      maker.ReturnTo(0);
      const int body = maker.EnterBlock(0);
      maker.ReturnTo(0);
      maker.If("taken", body);
      maker.ReturnTo(body);
    }
    if (form == kNop)
      maker.Op("bench_nop", {{"X", Name(i - 1)}}, Name(i));
    else if (form == kChain || form == kBlocks)
      maker.Op("relu", {{"X", Name(i - 1)}}, Name(i));
    else if (form == kDag)
      maker.Op("elementwise_max", {{"X", Name(i - 1)}, {"Y", Earlier(random, i)}}, Name(i));
    else
      RandomOp(maker, random, i);
  }
  maker.ReturnTo(0);
  maker.Op("fetch", {{"X", Name(n)}}, "fetch");
  return maker.Bytes();
}

const ExecutorOptions kOneThread{.threads = 1};
const CompileOptions kAsItIs{.fetches = {}, .opt_level = 0, .schedule = Schedule::kSerial};

Tensor Input() {
  Tensor x = Tensor::Zeros(DType::kF32, Shape{kWidth});
  std::fill_n(x.mutable_data<float>(), kWidth, 1.0f);
  return x;
}

// A whole Run, border included, divided by the instructions in it.
void BM_Run(benchmark::State& state, Form form) {
  const auto program = Program::Parse(MakeProgram(form, state.range(0)));
  if (!program.ok()) return state.SkipWithError(program.status().ToString().c_str());
  Executor executor(kOneThread);
  const auto compiled = executor.Compile(*program, nullptr, kAsItIs);
  if (!compiled.ok()) return state.SkipWithError(compiled.status().ToString().c_str());
  const std::vector<Feed> feeds = {{Name(0), Value(Input())}};
  const auto stats = executor.Prepare(*compiled, feeds);
  if (!stats.ok()) return state.SkipWithError(stats.status().ToString().c_str());
  for (auto _ : state) {
    auto outputs = executor.Run(*compiled, feeds);
    if (!outputs.ok()) return state.SkipWithError(outputs.status().ToString().c_str());
    benchmark::DoNotOptimize(outputs);
  }
  // Inverted, a rate is a time; Google Benchmark prints its unit prefix: "12.3n" = 12.3 ns.
  state.counters["s_per_instruction"] =
      benchmark::Counter(stats->instructions, benchmark::Counter::kIsIterationInvariantRate |
                                                  benchmark::Counter::kInvert);
  state.counters["instructions"] = stats->instructions;
}
BENCHMARK_CAPTURE(BM_Run, nop, kNop)->RangeMultiplier(10)->Range(100, 100000);
BENCHMARK_CAPTURE(BM_Run, chain, kChain)->RangeMultiplier(10)->Range(100, 100000);
BENCHMARK_CAPTURE(BM_Run, dag, kDag)->RangeMultiplier(10)->Range(100, 100000);
BENCHMARK_CAPTURE(BM_Run, random, kRandom)->RangeMultiplier(10)->Range(100, 100000);

constexpr int kInFlight = 64;

// Runs of one plan by so many callers, each of which waits for its own, and as many in flight that
// one thread has started. An iteration is kInFlight runs.
void BM_BlockingCallers(benchmark::State& state) {
  const auto program = Program::Parse(MakeProgram(kDag, state.range(0)));
  Executor executor({.threads = 2});
  const auto compiled = executor.Compile(*program, nullptr, kAsItIs);
  const std::vector<Feed> feeds = {{Name(0), Value(Input())}};
  std::barrier start(kInFlight + 1), end(kInFlight + 1);
  std::atomic<bool> stop{false};
  std::vector<std::jthread> callers;
  for (int c = 0; c < kInFlight; ++c)
    callers.emplace_back([&] {
      for (;;) {
        start.arrive_and_wait();
        if (stop.load()) return;
        benchmark::DoNotOptimize(executor.Run(*compiled, feeds));
        end.arrive_and_wait();
      }
    });
  for (auto _ : state) {
    start.arrive_and_wait();
    end.arrive_and_wait();
  }
  stop = true;
  start.arrive_and_wait();
  state.SetItemsProcessed(state.iterations() * kInFlight);
}
BENCHMARK(BM_BlockingCallers)->Arg(100)->Arg(1000)->UseRealTime();

void BM_AsyncRuns(benchmark::State& state) {
  const auto program = Program::Parse(MakeProgram(kDag, state.range(0)));
  Executor executor({.threads = 2});
  const auto compiled = executor.Compile(*program, nullptr, kAsItIs);
  const std::vector<Feed> feeds = {{Name(0), Value(Input())}};
  std::vector<AsyncRun> runs;
  for (auto _ : state) {
    for (int k = 0; k < kInFlight; ++k) runs.push_back(AsyncRun::Start(*compiled, feeds));
    for (AsyncRun& run : runs) benchmark::DoNotOptimize(run.Take());
    runs.clear();
  }
  state.SetItemsProcessed(state.iterations() * kInFlight);
}
BENCHMARK(BM_AsyncRuns)->Arg(100)->Arg(1000)->UseRealTime();

void BM_Parse(benchmark::State& state, Form form) {
  const std::string bytes = MakeProgram(form, state.range(0));
  for (auto _ : state) {
    auto program = Program::Parse(bytes);
    if (!program.ok()) return state.SkipWithError(program.status().ToString().c_str());
    benchmark::DoNotOptimize(program);
  }
  state.SetComplexityN(state.range(0));
}
BENCHMARK_CAPTURE(BM_Parse, dag, kDag)
    ->RangeMultiplier(10)
    ->Range(100, 1000000)
    ->Unit(benchmark::kMillisecond)
    ->MinTime(0.1)
    ->Complexity();

size_t HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

// From the checked program to a plan ready to run, as PlanStats counts it, and the stages of it. A
// plan of its own each time: a new executor has none to find.
void BM_Plan(benchmark::State& state, Form form, Schedule schedule, int threads) {
  const auto program = Program::Parse(MakeProgram(form, state.range(0)));
  if (!program.ok()) return state.SkipWithError(program.status().ToString().c_str());
  const std::vector<Feed> feeds = {{Name(0), Value(Input())}};
  CompileOptions options = kAsItIs;
  options.schedule = schedule;
  PlanStats last;
  size_t bytes = 0;
  for (auto _ : state) {
    Executor executor({.threads = threads});
    const auto compiled = executor.Compile(*program, nullptr, options);
    if (!compiled.ok()) return state.SkipWithError(compiled.status().ToString().c_str());
    const size_t before = HeapBytes();
    const auto stats = executor.Prepare(*compiled, feeds);
    if (!stats.ok()) return state.SkipWithError(stats.status().ToString().c_str());
    bytes = HeapBytes() - before;
    state.SetIterationTime(stats->build_ms * 1e-3);
    last = *stats;
  }
  for (const PlanStats::Stage& stage : last.stages) state.counters[stage.name] = stage.ms;
  if (last.dependencies_found > 0) {
    state.counters["edges_found"] = static_cast<double>(last.dependencies_found);
    state.counters["edges"] = static_cast<double>(last.dependencies);
  }
  state.counters["bytes_per_op"] = static_cast<double>(bytes) / static_cast<double>(state.range(0));
  state.SetComplexityN(state.range(0));
}
void Sizes(benchmark::internal::Benchmark* b) {
  b->RangeMultiplier(10)->Range(100, 1000000)->UseManualTime()->Unit(benchmark::kMillisecond);
  b->MinTime(0.1)->Complexity();
}
BENCHMARK_CAPTURE(BM_Plan, chain_serial, kChain, Schedule::kSerial, 1)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Plan, chain_parallel, kChain, Schedule::kParallel, 2)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Plan, dag_serial, kDag, Schedule::kSerial, 1)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Plan, dag_parallel, kDag, Schedule::kParallel, 2)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Plan, random_serial, kRandom, Schedule::kSerial, 1)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Plan, random_parallel, kRandom, Schedule::kParallel, 2)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Plan, blocks_serial, kBlocks, Schedule::kSerial, 1)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Plan, blocks_parallel, kBlocks, Schedule::kParallel, 2)->Apply(Sizes);

// Optimising at the default level: the passes' own growth.
void BM_Compile(benchmark::State& state, Form form) {
  const auto program = Program::Parse(MakeProgram(form, state.range(0)));
  if (!program.ok()) return state.SkipWithError(program.status().ToString().c_str());
  Executor executor(kOneThread);
  for (auto _ : state) {
    auto compiled = executor.Compile(*program, nullptr, CompileOptions{});
    if (!compiled.ok()) return state.SkipWithError(compiled.status().ToString().c_str());
    benchmark::DoNotOptimize(compiled);
  }
  state.SetComplexityN(state.range(0));
}
BENCHMARK_CAPTURE(BM_Compile, dag, kDag)
    ->RangeMultiplier(10)
    ->Range(100, 1000000)
    ->Unit(benchmark::kMillisecond)
    ->MinTime(0.1)
    ->Complexity();

}  // namespace
}  // namespace heddle
