// An engine that takes its groups as ONNX alone: it reads them with heddle's own reader and runs
// what that makes, as it is.
//
// Options: folder, where each group's model is written, as GROUP.onnx.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heddle/heddle.h"
#include "heddle/heddle_engine.h"
#include "heddle/model_files.h"

namespace {

using heddle::Result;
using heddle::Status;

struct WordsEngine {
  explicit WordsEngine(int threads) : executor({.threads = threads}) {}
  heddle::Executor executor;
  std::string folder;
};
struct WordsModule {
  heddle::Executor* executor;
  heddle::CompiledProgram compiled;
  std::vector<std::string> inputs;
};

int Say(const Status& status, int code, char* message, size_t room) {
  if (status.ok()) return HEDDLE_ENGINE_OK;
  std::snprintf(message, room, "%s", status.ToString().c_str());
  return code;
}

int Open(const heddle_engine_settings* settings, void** engine, char*, size_t) {
  auto made = std::make_unique<WordsEngine>(settings->threads);
  for (size_t i = 0; i < settings->num_options; ++i) made->folder = settings->texts[i];
  *engine = made.release();
  return HEDDLE_ENGINE_OK;
}

int Takes(void*, const heddle_engine_group* group, char* message, size_t room) {
  if (group->onnx != nullptr) return HEDDLE_ENGINE_OK;
  std::snprintf(message, room, "it is not given as ONNX");
  return HEDDLE_ENGINE_REFUSED;
}

Result<WordsModule> Make(WordsEngine& engine, const heddle_engine_group& group) {
  if (group.onnx == nullptr)
    return Status(heddle::StatusCode::kUnimplemented, "it is not given as ONNX");
  const std::string_view bytes(static_cast<const char*>(group.onnx), group.onnx_bytes);
  if (!engine.folder.empty())
    std::ofstream(engine.folder + "/" + group.symbol + ".onnx", std::ios::binary) << bytes;
  HEDDLE_ASSIGN_OR_RETURN(const heddle::Model model, heddle::ParseModel(bytes, "", "group.onnx"));
  heddle::CompileOptions options{.opt_level = 0};
  for (size_t k = 0; k < group.num_outputs; ++k)
    options.fetches.emplace_back(group.values[group.outputs[k]]->name);
  HEDDLE_ASSIGN_OR_RETURN(auto compiled, engine.executor.Compile(model, options));
  WordsModule module{&engine.executor, std::move(compiled), {}};
  for (size_t k = 0; k < group.num_inputs; ++k)
    module.inputs.emplace_back(group.values[group.inputs[k]]->name);
  return module;
}

int Compile(void* engine, const heddle_engine_group* const* groups,
            heddle_engine_compiled* const* compiled, size_t count, char*, size_t) {
  for (size_t k = 0; k < count; ++k) {
    auto module = Make(*static_cast<WordsEngine*>(engine), *groups[k]);
    compiled[k]->status =
        Say(module.status(), HEDDLE_ENGINE_REFUSED, compiled[k]->message, compiled[k]->room);
    if (module.ok()) compiled[k]->module = new WordsModule(*std::move(module));
  }
  return HEDDLE_ENGINE_OK;
}

Status Compute(const WordsModule& module, const heddle_engine_run& run) {
  std::vector<heddle::Feed> feeds;
  for (size_t k = 0; k < run.num_inputs; ++k) {
    const heddle_engine_tensor& t = *run.inputs[k];
    feeds.push_back(
        {module.inputs[k],
         heddle::Tensor::Wrap(const_cast<void*>(t.data), static_cast<heddle::DType>(t.dtype),
                              heddle::Shape(std::span(t.dims, static_cast<size_t>(t.rank))))});
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto outputs, module.executor->Run(module.compiled, feeds));
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
  return Say(Compute(*static_cast<WordsModule*>(module), *run), HEDDLE_ENGINE_FAILED, message,
             room);
}

const heddle_engine_table kTable = {
    sizeof(heddle_engine_table),
    HEDDLE_ENGINE_VERSION,
    HEDDLE_ENGINE_REENTRANT | HEDDLE_ENGINE_WANTS_ONNX,
    "words",
    Open,
    /*target=*/nullptr,
    Takes,
    Compile,
    Run,
    [](void* module) { delete static_cast<WordsModule*>(module); },
    [](void* engine) { delete static_cast<WordsEngine*>(engine); },
    /*fingerprint=*/nullptr,
    /*save=*/nullptr,
    /*restore=*/nullptr,
    /*more_flags=*/nullptr,
    /*open_name=*/nullptr,
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const heddle_engine_table* heddle_engine_get(
    uint32_t) {
  return &kTable;
}
