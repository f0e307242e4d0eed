// The reference engine: heddle's own kernels behind heddle/heddle_engine.h, and the engine to begin
// a new one with. A group becomes a program, operator by operator; a module is that program,
// compiled as it is, and is saved as that program. The header says what the functions of an engine
// have to do.
//
// Options: level, the optimisation level [0: the same bits as heddle at level 0].
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/heddle.h"
#include "heddle/heddle_engine.h"
#include "heddle/program_builder.h"

namespace {

using heddle::Result;
using heddle::Status;

struct ReferenceEngine {
  explicit ReferenceEngine(int threads)
      : executor({.threads = threads, .plan_cache_capacity = 1 << 16}) {}
  heddle::Executor executor;
  int level = 0;
  std::string fingerprint;
};
struct Module {
  heddle::Executor* executor;
  heddle::Program program;
  heddle::CompiledProgram compiled;
  std::vector<std::string> inputs;
};

int Say(const Status& status, int code, char* message, size_t room) {
  if (status.ok()) return HEDDLE_ENGINE_OK;
  std::snprintf(message, room, "%s", status.ToString().c_str());
  return code;
}

heddle::AttributeArgument ValueOf(const heddle_engine_attribute& a,
                                  const std::vector<heddle::Variable>& variables) {
  switch (a.kind) {
    case HEDDLE_ENGINE_INTEGER:
      return a.ints[0];
    case HEDDLE_ENGINE_BOOLEAN:
      return a.ints[0] != 0;
    case HEDDLE_ENGINE_REAL:
      return a.reals[0];
    case HEDDLE_ENGINE_TEXT:
      return std::string(a.texts[0]);
    case HEDDLE_ENGINE_INTEGERS:
      return std::vector<int64_t>(a.ints, a.ints + a.count);
    case HEDDLE_ENGINE_REALS:
      return std::vector<double>(a.reals, a.reals + a.count);
    case HEDDLE_ENGINE_TEXTS:
      return std::vector<std::string>(a.texts, a.texts + a.count);
    default: {
      std::vector<heddle::Variable> held;
      for (size_t i = 0; i < a.count; ++i) held.push_back(variables[a.values[i]]);
      return held;
    }
  }
}

heddle::Shape ShapeOf(int32_t rank, const int64_t* dims) {
  return rank < 0 ? heddle::Shape::Unknown()
                  : heddle::Shape(std::span(dims, static_cast<size_t>(rank)));
}

heddle::Tensor ContentsOf(const heddle_engine_value& v) {
  return heddle::Tensor::Wrap(const_cast<void*>(v.data), static_cast<heddle::DType>(v.dtype),
                              ShapeOf(v.rank, v.dims));
}

Result<Module> ModuleOf(ReferenceEngine& engine, const heddle_engine_group& group,
                        const heddle::Model& model) {
  HEDDLE_ASSIGN_OR_RETURN(auto compiled,
                          engine.executor.Compile(model, {.opt_level = engine.level}));
  Module module{&engine.executor, model.program, std::move(compiled), {}};
  for (size_t k = 0; k < group.num_inputs; ++k)
    module.inputs.emplace_back(group.values[group.inputs[k]]->name);
  return module;
}

Result<Module> Make(ReferenceEngine& engine, const heddle_engine_group& group) {
  heddle::ProgramBuilder b(group.symbol);
  std::vector<heddle::Variable> variables(group.num_values);
  for (size_t i = 0; i < group.num_values; ++i) {
    const heddle_engine_value& v = *group.values[i];
    if (v.data == nullptr) continue;
    HEDDLE_ASSIGN_OR_RETURN(variables[i], b.Parameter(v.name, ContentsOf(v)));
  }
  for (size_t k = 0; k < group.num_inputs; ++k) {
    const heddle_engine_value& v = *group.values[group.inputs[k]];
    HEDDLE_ASSIGN_OR_RETURN(
        variables[static_cast<size_t>(group.inputs[k])],
        b.Feed(v.name, static_cast<heddle::DType>(v.dtype), ShapeOf(v.rank, v.dims)));
  }
  for (size_t i = 0; i < group.num_operators; ++i) {
    const heddle_engine_operator& op = *group.operators[i];
    heddle::Operands operands;
    heddle::Attributes attributes;
    heddle::Targets targets;
    for (size_t s = 0; s < op.num_inputs; ++s) {
      auto& [slot, list] =
          operands.emplace_back(op.inputs[s]->name, std::vector<heddle::Variable>());
      for (size_t j = 0; j < op.inputs[s]->count; ++j)
        list.push_back(op.inputs[s]->values[j] < 0 ? heddle::Variable()
                                                   : variables[op.inputs[s]->values[j]]);
    }
    for (size_t a = 0; a < op.num_attributes; ++a)
      attributes.emplace_back(op.attributes[a]->name, ValueOf(*op.attributes[a], variables));
    // What is written again gets a new variable, which later operators read.
    for (size_t s = 0; s < op.num_outputs; ++s) {
      std::vector<std::string> names;
      for (size_t j = 0; j < op.outputs[s]->count; ++j) {
        const int32_t v = op.outputs[s]->values[j];
        if (v < 0) return Status(heddle::StatusCode::kUnimplemented, "an output is left out");
        names.emplace_back(group.values[v]->name);
        if (variables[static_cast<size_t>(v)]) names.back() += "@" + std::to_string(i);
      }
      targets.emplace_back(op.outputs[s]->name, names);
    }
    HEDDLE_ASSIGN_OR_RETURN(const auto written, b.Add(op.type, operands, attributes, targets));
    for (size_t s = 0; s < op.num_outputs; ++s)
      for (const auto& [slot, results] : written)
        for (size_t j = 0; slot == op.outputs[s]->name && j < results.size(); ++j)
          variables[static_cast<size_t>(op.outputs[s]->values[j])] = results[j];
  }
  for (size_t k = 0; k < group.num_outputs; ++k)
    HEDDLE_RETURN_IF_ERROR(b.Fetch(variables[static_cast<size_t>(group.outputs[k])]));
  HEDDLE_ASSIGN_OR_RETURN(const heddle::Model model, std::move(b).Finish());
  return ModuleOf(engine, group, model);
}

Result<Module> Restored(ReferenceEngine& engine, const heddle_engine_group& group,
                        std::string_view bytes) {
  HEDDLE_ASSIGN_OR_RETURN(const heddle::Program program, heddle::Program::Parse(bytes));
  auto scope = std::make_shared<heddle::Scope>();
  for (size_t i = 0; i < group.num_values; ++i)
    if (group.values[i]->data != nullptr)
      scope->Set(group.values[i]->name, ContentsOf(*group.values[i]));
  return ModuleOf(engine, group, {program, std::move(scope)});
}

int Open(const heddle_engine_settings* settings, void** engine, char* message, size_t room) {
  auto made = std::make_unique<ReferenceEngine>(settings->threads);
  for (size_t i = 0; i < settings->num_options; ++i) {
    const std::string key = settings->keys[i], text = settings->texts[i];
    if (key != "level" || text.size() != 1 || text < "0" || text > "2")
      return Say(Status(heddle::StatusCode::kInvalidArgument,
                        "there is one option, level, from 0 to 2, and not " + key + "=" + text),
                 HEDDLE_ENGINE_FAILED, message, room);
    made->level = text[0] - '0';
  }
  made->fingerprint =
      "heddle " + heddle::InspectHost().version + ", level " + std::to_string(made->level);
  *engine = made.release();
  return HEDDLE_ENGINE_OK;
}

int Compile(void* engine, const heddle_engine_group* const* groups,
            heddle_engine_compiled* const* compiled, size_t count, char*, size_t) {
  for (size_t k = 0; k < count; ++k) {
    auto module = Make(*static_cast<ReferenceEngine*>(engine), *groups[k]);
    compiled[k]->status =
        Say(module.status(), HEDDLE_ENGINE_REFUSED, compiled[k]->message, compiled[k]->room);
    if (module.ok()) compiled[k]->module = new Module(*std::move(module));
  }
  return HEDDLE_ENGINE_OK;
}

Status Compute(const Module& module, const heddle_engine_run& run) {
  std::vector<heddle::Feed> feeds;
  for (size_t k = 0; k < run.num_inputs; ++k) {
    const heddle_engine_tensor& t = *run.inputs[k];
    feeds.push_back({module.inputs[k], heddle::Tensor::Wrap(const_cast<void*>(t.data),
                                                            static_cast<heddle::DType>(t.dtype),
                                                            ShapeOf(t.rank, t.dims))});
  }
  // Asked at each look for interrupts: whether the run that this is part of is to end.
  heddle::HostCalls* asks = nullptr;
  heddle::HostCalls host([&] {
    asks->Request();
    return run.stopped(run.host) == 0 ? Status::Ok()
                                      : Status(heddle::StatusCode::kCancelled, "it was stopped");
  });
  asks = &host;
  host.Request();
  heddle::RunOptions options;
  options.host = &host;
  HEDDLE_ASSIGN_OR_RETURN(const auto outputs,
                          module.executor->Run(module.compiled, feeds, options));
  for (size_t k = 0; k < outputs.size(); ++k) {
    const heddle::Tensor t = outputs[k].Contiguous();
    void* to =
        run.output(run.host, k, static_cast<int32_t>(t.dtype()), t.rank(), t.shape().begin());
    if (to == nullptr) return Status(heddle::StatusCode::kInternal, "there is no such output");
    if (t.bytes() > 0) std::memcpy(to, t.raw(), t.bytes());
  }
  return Status::Ok();
}

int Run(void* module, const heddle_engine_run* run, char* message, size_t room) {
  const Status status = Compute(*static_cast<Module*>(module), *run);
  const bool stopped = status.code() == heddle::StatusCode::kCancelled;
  return Say(status, stopped ? HEDDLE_ENGINE_STOPPED : HEDDLE_ENGINE_FAILED, message, room);
}

int Save(void* module, void* host, int (*write)(void* host, const void* bytes, size_t count),
         char* message, size_t room) {
  const auto bytes = static_cast<Module*>(module)->program.Serialize();
  if (!bytes.ok()) return Say(bytes.status(), HEDDLE_ENGINE_REFUSED, message, room);
  return write(host, bytes->data(), bytes->size());
}

int Restore(void* engine, const heddle_engine_group* group, const void* bytes, size_t count,
            void** module, char* message, size_t room) {
  auto restored = Restored(*static_cast<ReferenceEngine*>(engine), *group,
                           {static_cast<const char*>(bytes), count});
  if (restored.ok()) *module = new Module(*std::move(restored));
  return Say(restored.status(), HEDDLE_ENGINE_FAILED, message, room);
}

const heddle_engine_table kTable = {
    sizeof(heddle_engine_table),
    HEDDLE_ENGINE_VERSION,
    HEDDLE_ENGINE_REENTRANT,
    "reference",
    Open,
    /*target=*/nullptr,
    /*takes=*/nullptr,
    Compile,
    Run,
    [](void* module) { delete static_cast<Module*>(module); },
    [](void* engine) { delete static_cast<ReferenceEngine*>(engine); },
    [](void* engine) -> const char* {
      return static_cast<ReferenceEngine*>(engine)->fingerprint.c_str();
    },
    Save,
    Restore,
    /*more_flags=*/nullptr,
    /*open_name=*/nullptr,
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const heddle_engine_table* heddle_engine_get(
    uint32_t) {
  return &kTable;
}
