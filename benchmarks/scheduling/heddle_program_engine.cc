// heddle through its public path: a Program with an operator for each task, compiled, planned and
// run by an Executor. What it takes beyond the bare scheduler is finding the plan, binding
// operands, checking for interruptions and fetching one output.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/scheduling/engine.h"
#include "core/kernel_context.h"
#include "core/op_registry.h"
#include "core/shape_context.h"
#include "heddle/heddle.h"
#include "proto/framework.pb.h"

namespace heddle::bench {
namespace {

// An operator that calls the task whose address is in its attribute, and gives out one float that
// nobody writes.
void DefineTask(OpDef& op) {
  op.Doc("Calls a task.").Input("X", kList | kOptional).Output("Out").Attr("task", 0);
  op.InferShape([](ShapeContext& ctx) {
    ctx.SetOut("Out", Shape{1}, DType::kF32);
    return Status::Ok();
  });
  op.AnyKernel([](KernelContext& ctx) {
    (*reinterpret_cast<const Task*>(ctx.Int("task")))();
    return Status::Ok();
  });
}

std::string Name(uint32_t task) { return "t" + std::to_string(task); }

constexpr const char* kStart = "start";  // what tasks without predecessors read: it is fed

void AddVariable(proto::BlockDesc* block, const std::string& name) {
  proto::VarDesc* var = block->add_vars();
  var->set_name(name);
  var->mutable_type()->set_type(proto::VarType::LOD_TENSOR);
  auto* tensor = var->mutable_type()->mutable_lod_tensor()->mutable_tensor();
  tensor->set_data_type(proto::VarType::FP32);
  tensor->add_dims(1);
}

proto::OpDesc* AddOperator(proto::BlockDesc* block, const char* type,
                           const std::vector<std::string>& inputs, const std::string& output) {
  proto::OpDesc* op = block->add_ops();
  op->set_type(type);
  auto* in = op->add_inputs();
  in->set_parameter("X");
  for (const std::string& name : inputs) in->add_arguments(name);
  auto* out = op->add_outputs();
  out->set_parameter("Out");
  out->add_arguments(output);
  return op;
}

std::string MakeProgram(const Graph& graph, std::span<const Task> tasks) {
  proto::ProgramDesc program;
  proto::BlockDesc* block = program.add_blocks();
  block->set_idx(0);
  block->set_parent_idx(-1);
  AddVariable(block, kStart);
  auto* column = AddOperator(block, "feed", {"feed"}, kStart)->add_attrs();
  column->set_name("col");
  column->set_type(proto::INT);
  column->set_i(0);
  for (uint32_t v = 0; v < graph.size(); ++v) {
    AddVariable(block, Name(v));
    std::vector<std::string> inputs;
    for (uint32_t p : graph.Predecessors(v)) inputs.push_back(Name(p));
    if (inputs.empty()) inputs.push_back(kStart);
    auto* attr = AddOperator(block, "bench_task", inputs, Name(v))->add_attrs();
    attr->set_name("task");
    attr->set_type(proto::LONG);
    attr->set_l(static_cast<int64_t>(reinterpret_cast<uintptr_t>(&tasks[v])));
  }
  return program.SerializeAsString();
}

template <typename T>
T Must(Result<T> result) {
  if (result.ok()) return *std::move(result);
  std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
  std::abort();
}

class ProgramEngine final : public Engine {
 public:
  explicit ProgramEngine(int workers) : executor_({.threads = workers}) {}

  void Build(const Graph& graph, std::span<const Task> tasks, std::span<const float>) override {
    const Program program = Must(Program::Parse(MakeProgram(graph, tasks)));
    CompileOptions options;
    options.opt_level = 0;
    options.fetches = {Name(graph.size() - 1)};
    compiled_.emplace(Must(executor_.Compile(program, nullptr, options)));
    Must(executor_.Prepare(*compiled_, feeds_));
    report_.settled = false;
  }
  void Run() override {
    if (report_.settled)
      Must(executor_.RunValues(*compiled_, feeds_));
    else
      Must(executor_.RunValues(*compiled_, feeds_, {.report = &report_}));
  }
  bool Settled() const override { return report_.settled; }

 private:
  Executor executor_;
  const std::vector<Feed> feeds_ = {{kStart, Value(Tensor::Zeros(DType::kF32, Shape{1}))}};
  std::optional<CompiledProgram> compiled_;
  RunReport report_;
};

const bool kRegistered = [] {
  RegisterOp("bench_task", DefineTask);
  return RegisterEngine(
      {.name = "heddle_program", .kind = EngineKind::kHeddle, .make = [](int workers) {
         return std::make_unique<ProgramEngine>(workers);
       }});
}();

}  // namespace
}  // namespace heddle::bench
