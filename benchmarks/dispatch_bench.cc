// What an instruction costs besides its kernel, and how the time to make a plan grows.
//
// Programs of N operators on 8 floats, made in memory: a chain, in which every operator waits for
// the one before, and a DAG with two operands an operator. They run unoptimised (level 0), so that
// N operators are N instructions, on one thread.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/heddle.h"
#include "proto/framework.pb.h"

namespace heddle {
namespace {

constexpr int kWidth = 8;

class ProgramMaker {
 public:
  ProgramMaker() {
    block_ = program_.add_blocks();
    block_->set_idx(0);
    block_->set_parent_idx(-1);
  }
  void Tensor(const std::string& name) {
    proto::VarDesc* var = block_->add_vars();
    var->set_name(name);
    var->mutable_type()->set_type(proto::VarType::LOD_TENSOR);
    auto* tensor = var->mutable_type()->mutable_lod_tensor()->mutable_tensor();
    tensor->set_data_type(proto::VarType::FP32);
    tensor->add_dims(kWidth);
  }
  struct Argument {
    const char* slot;
    std::string var;
  };
  void Op(const char* type, std::initializer_list<Argument> inputs, const std::string& out) {
    proto::OpDesc* op = block_->add_ops();
    op->set_type(type);
    for (const Argument& in : inputs) {
      auto* slot = op->add_inputs();
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
  }
  std::string Bytes() const { return program_.SerializeAsString(); }

 private:
  proto::ProgramDesc program_;
  proto::BlockDesc* block_;
};

std::string Name(int64_t i) { return "v" + std::to_string(i); }

enum Form { kChain, kDag };

// Variable 0 is fed, operator i writes variable i, the last one is fetched.
std::string MakeProgram(Form form, int64_t n) {
  ProgramMaker maker;
  std::mt19937 random(1);
  maker.Tensor(Name(0));
  maker.Op("feed", {{"X", "feed"}}, Name(0));
  for (int64_t i = 1; i <= n; ++i) {
    maker.Tensor(Name(i));
    if (form == kChain) {
      maker.Op("relu", {{"X", Name(i - 1)}}, Name(i));
    } else {
      const int64_t other = i - 1 - static_cast<int64_t>(random() % std::min<int64_t>(i, 64));
      maker.Op("elementwise_max", {{"X", Name(i - 1)}, {"Y", Name(other)}}, Name(i));
    }
  }
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
BENCHMARK_CAPTURE(BM_Run, chain, kChain)->RangeMultiplier(10)->Range(100, 10000);
BENCHMARK_CAPTURE(BM_Run, dag, kDag)->RangeMultiplier(10)->Range(100, 10000);

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
    ->Range(100, 100000)
    ->Unit(benchmark::kMillisecond)
    ->Complexity();

// From the checked program to a plan ready to run, as PlanStats counts it. A plan of its own each
// time: a new executor has none to find.
void BM_Plan(benchmark::State& state, Form form, Schedule schedule, int threads) {
  const auto program = Program::Parse(MakeProgram(form, state.range(0)));
  if (!program.ok()) return state.SkipWithError(program.status().ToString().c_str());
  const std::vector<Feed> feeds = {{Name(0), Value(Input())}};
  CompileOptions options = kAsItIs;
  options.schedule = schedule;
  for (auto _ : state) {
    Executor executor({.threads = threads});
    const auto compiled = executor.Compile(*program, nullptr, options);
    if (!compiled.ok()) return state.SkipWithError(compiled.status().ToString().c_str());
    const auto stats = executor.Prepare(*compiled, feeds);
    if (!stats.ok()) return state.SkipWithError(stats.status().ToString().c_str());
    state.SetIterationTime(stats->build_ms * 1e-3);
  }
  state.SetComplexityN(state.range(0));
}
void Sizes(benchmark::internal::Benchmark* b) {
  b->RangeMultiplier(10)->Range(100, 100000)->UseManualTime()->Unit(benchmark::kMillisecond);
  b->Complexity();
}
BENCHMARK_CAPTURE(BM_Plan, chain_serial, kChain, Schedule::kSerial, 1)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Plan, dag_serial, kDag, Schedule::kSerial, 1)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Plan, dag_parallel, kDag, Schedule::kParallel, 2)->Apply(Sizes);

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
    ->Range(100, 100000)
    ->Unit(benchmark::kMillisecond)
    ->Complexity();

}  // namespace
}  // namespace heddle
