// What the passes cost: programs of 1,000 to 100,000 operators through the whole pipeline. Wanted:
// 10,000 operators in 250 ms at level 2, 100,000 in 3 s; common subexpressions of 10,000 in 50 ms.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>

#include "core/op_registry.h"
#include "passes/pass_manager.h"

namespace heddle {
namespace {

using ir::VarId;

// Adds operators of the kinds that passes look at: products with biases and activations, chains of
// element-wise operators, copies, transposes, what is computed twice, what nobody reads.
class Builder {
 public:
  explicit Builder(Scope* scope) : scope_(*scope) {
    program->blocks.emplace_back();
    last_ = Var("x", {8, 16});
    program->feeds.push_back({last_, 0});
  }

  std::shared_ptr<ir::Program> Make(size_t ops) {
    auto& list = program->blocks[0].ops;
    while (list.size() < ops) {
      const VarId start = last_;
      Op("matmul_v2", {{"X", start}, {"Y", Param({16, 16})}});
      Op("elementwise_add", {{"X", last_}, {"Y", Param({16})}});
      Op("relu", {{"X", last_}});
      const VarId branch = last_;
      Op("tanh", {{"X", branch}});
      const VarId first = last_;
      Op("tanh", {{"X", branch}});  // again
      Op("elementwise_add", {{"X", first}, {"Y", last_}});
      Op("assign", {{"X", last_}});
      const VarId sum = last_;
      Op("sigmoid", {{"X", sum}});  // for nobody
      last_ = sum;
      Transpose({16, 8});
      Transpose({8, 16});
      Op("scale", {{"X", last_}});
      Op("sigmoid", {{"X", last_}});
    }
    program->fetches.push_back({last_, 0});
    return program;
  }

  std::shared_ptr<ir::Program> program = std::make_shared<ir::Program>();

 private:
  VarId Var(const std::string& stem, const Shape& shape, bool persistable = false) {
    ir::Var var;
    var.name = stem + std::to_string(program->vars.size());
    var.dtype = DType::kF32;
    var.shape = shape;
    var.persistable = persistable;
    return program->AddVar(std::move(var));
  }
  VarId Param(const Shape& shape) {
    const VarId v = Var("w", shape, true);
    scope_.Set(program->vars[v].name, Tensor::Zeros(DType::kF32, shape));
    return v;
  }
  void Op(const char* type, const std::vector<std::pair<const char*, VarId>>& inputs,
          const Shape& shape = {8, 16}) {
    ir::Op op = ir::MakeOp(*FindOp(type));
    for (const auto& [slot, v] : inputs) op.inputs[op.def->FindInput(slot)] = {v};
    last_ = Var("v", shape);
    op.outputs[op.def->FindOutput("Out")] = {last_};
    program->blocks[0].ops.push_back(std::move(op));
  }
  void Transpose(const Shape& to) {
    Op("transpose2", {{"X", last_}}, to);
    ir::Op& op = program->blocks[0].ops.back();
    op.attrs[op.def->FindAttr("axis")] = Ints{1, 0};
  }

  Scope& scope_;
  VarId last_ = 0;
};

void Run(benchmark::State& state, const OptimizeOptions& options) {
  auto scope = std::make_shared<Scope>();
  const auto program = Builder(scope.get()).Make(static_cast<size_t>(state.range(0)));
  size_t after = 0;
  for (auto _ : state) {
    auto optimized = passes::Optimize(program, scope, options);
    if (!optimized.ok()) {
      std::fprintf(stderr, "%s\n", optimized.status().ToString().c_str());
      std::abort();
    }
    after = optimized->program->blocks[0].ops.size();
  }
  state.counters["operators"] = static_cast<double>(program->blocks[0].ops.size());
  state.counters["after"] = static_cast<double>(after);
}

void BM_Pipeline(benchmark::State& state) {
  Run(state, {static_cast<int>(state.range(1)), {}, {}});
}
BENCHMARK(BM_Pipeline)->ArgsProduct({{1000, 10000, 100000}, {1, 2}})->Unit(benchmark::kMillisecond);

void BM_Cse(benchmark::State& state) {
  PassOptions passes;
  passes.only = {"cse"};
  Run(state, {1, {}, passes});
}
BENCHMARK(BM_Cse)->Arg(1000)->Arg(10000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace heddle
