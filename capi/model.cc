// Executors, models and runs of the C API.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <mutex>
#include <span>
#include <string_view>

#include "capi/handles.h"
#include "heddle/bounds.h"
#include "heddle/device.h"
#include "heddle/model_files.h"
#include "heddle/params.h"

namespace {

using heddle::CompileOptions;
using heddle::Feed;
using heddle::Status;
using heddle::StatusCode;
using heddle::capi::After;
using heddle::capi::CheckCount;
using heddle::capi::Guard;
using heddle::capi::InfoOf;
using heddle::capi::Invalid;
using heddle::capi::kNoInfo;
using heddle::capi::ReadOptions;

heddle_model_options UsualOptions() {
  heddle_model_options usual{};
  usual.size = sizeof(heddle_model_options);
  usual.opt_level = 2;
  return usual;
}

heddle::Result<CompileOptions> ToCompileOptions(const heddle_model_options* given) {
  heddle_model_options known = UsualOptions();
  HEDDLE_RETURN_IF_ERROR(ReadOptions(given, known));
  if (known.schedule < HEDDLE_SCHEDULE_AUTO || known.schedule > HEDDLE_SCHEDULE_LANES)
    return Invalid("options: " + std::to_string(known.schedule) + " is not a schedule");
  if (known.num_fetches > 0 && known.fetches == nullptr) return Invalid("options: fetches is NULL");
  HEDDLE_RETURN_IF_ERROR(
      CheckCount("options: num_fetches", known.num_fetches, sizeof(*known.fetches)));
  CompileOptions options;
  for (size_t i = 0; i < known.num_fetches; ++i) {
    if (known.fetches[i] == nullptr)
      return Invalid("options: fetches[" + std::to_string(i) + "] is NULL");
    options.fetches.emplace_back(known.fetches[i]);
  }
  options.opt_level = known.opt_level;
  options.schedule = static_cast<heddle::Schedule>(known.schedule);
  options.seed = known.seed;
  if (known.bf16 != 0 && known.int8_weights != 0)
    return Invalid("options: bf16 and int8_weights exclude each other");
  if (known.bf16 != 0) options.passes.precision = heddle::Precision::kBFloat16;
  if (known.int8_weights != 0) options.passes.precision = heddle::Precision::kInt8Weights;
  options.lean = known.lean != 0;
  options.outline = known.outline != 0;
  if (known.packed_weights != nullptr) options.packed_weights = known.packed_weights;
  if (known.force != nullptr) options.force = known.force;
  if (known.reuse_edges != 0 && known.no_reuse != 0)
    return Invalid("options: reuse_edges and no_reuse exclude each other");
  if (known.reuse_edges != 0) options.reuse = heddle::Reuse::kEdges;
  if (known.no_reuse != 0) options.reuse = heddle::Reuse::kNone;
  options.in_place = known.no_in_place == 0;
  if (known.num_max_shapes > 0 && known.max_shapes == nullptr)
    return Invalid("options: max_shapes is NULL");
  HEDDLE_RETURN_IF_ERROR(
      CheckCount("options: num_max_shapes", known.num_max_shapes, sizeof(*known.max_shapes)));
  for (size_t i = 0; i < known.num_max_shapes; ++i) {
    const heddle_max_shape& most = known.max_shapes[i];
    if (most.input == nullptr || (most.rank > 0 && most.dims == nullptr))
      return Invalid("options: max_shapes[" + std::to_string(i) + "] has a NULL");
    if (most.rank > heddle::Shape::kMaxRank)
      return Invalid("options: max_shapes[" + std::to_string(i) + "] has rank " +
                     std::to_string(most.rank) + ", at most " +
                     std::to_string(heddle::Shape::kMaxRank) + " are possible");
    options.max_shapes.emplace_back(most.input, heddle::Shape(std::span(most.dims, most.rank)));
  }
  return options;
}

Status Compile(std::shared_ptr<heddle::Executor> executor, heddle::Model model,
               const heddle_model_options* given, heddle_model** out) {
  HEDDLE_ASSIGN_OR_RETURN(const CompileOptions options, ToCompileOptions(given));
  HEDDLE_ASSIGN_OR_RETURN(heddle::CompiledProgram compiled, executor->Compile(model, options));
  std::vector<heddle::TensorInfo> parameters = model.program.persistables();
  auto input_types = InputTypes(model.program, compiled.inputs());
  auto output_types = OutputTypes(model.program, compiled.outputs());
  *out = new heddle_model{std::move(executor),   std::move(model),       std::move(compiled),
                          std::move(parameters), std::move(input_types), std::move(output_types)};
  return Status::Ok();
}

heddle::Result<std::vector<Feed>> ToFeeds(const heddle_model& model, const char* const* names,
                                          const heddle_tensor* const* inputs, size_t count) {
  const auto& declared = model.compiled.inputs();
  if (count > 0 && inputs == nullptr) return Invalid("inputs is NULL");
  HEDDLE_RETURN_IF_ERROR(CheckCount("num_inputs", count, sizeof(*inputs)));
  if (names == nullptr ? count != declared.size() : !declared.empty() && count > declared.size())
    return Invalid("the model has " + std::to_string(declared.size()) + " inputs, " +
                   std::to_string(count) + " were given");
  std::vector<Feed> feeds;
  feeds.reserve(declared.size());
  for (size_t i = 0; i < count; ++i) {
    if (inputs[i] == nullptr || (names != nullptr && names[i] == nullptr))
      return Invalid("input " + std::to_string(i) + " is NULL");
    feeds.push_back({names == nullptr ? declared[i].name : names[i], inputs[i]->tensor});
  }
  return feeds;
}

Status CheckRoom(const char* function, size_t expected, heddle_tensor** outputs, size_t given) {
  if (given == expected && (expected == 0 || outputs != nullptr)) return Status::Ok();
  if (given == expected) return Invalid(std::string(function) + ": outputs is NULL");
  return Invalid(std::string(function) + ": the model has " + std::to_string(expected) +
                 " outputs, room was given for " + std::to_string(given));
}

// All or nothing.
void HandOut(std::vector<heddle::Tensor>* results, heddle_tensor** outputs) {
  std::vector<std::unique_ptr<heddle_tensor>> handles;
  for (heddle::Tensor& t : *results)
    handles.push_back(std::make_unique<heddle_tensor>(heddle_tensor{std::move(t)}));
  for (size_t i = 0; i < handles.size(); ++i) outputs[i] = handles[i].release();
}

heddle::Result<heddle::RunOptions> ToRunOptions(const heddle_run_options* given) {
  heddle_run_options known{};
  HEDDLE_RETURN_IF_ERROR(ReadOptions(given, known));
  heddle::RunOptions options;
  if (!(known.deadline_ms >= 0)) return Invalid("options: deadline_ms is negative");
  if (known.deadline_ms > 0) options.deadline = After(known.deadline_ms);
  if (known.stop != nullptr) options.stop = known.stop->source.get_token();
  options.check_nan_inf = known.check_nan_inf != 0;
  options.wait_after_each = known.wait_after_each != 0;
  return options;
}

Status TakeRank(heddle_ranks* group, int rank, heddle::ExecutorOptions* options) {
  if (group == nullptr) return Status::Ok();
  const std::lock_guard lock(group->mutex);
  if (rank < 0 || static_cast<size_t>(rank) >= group->ranks.size())
    return Invalid("options: rank is " + std::to_string(rank) + ", the group has ranks 0 to " +
                   std::to_string(group->ranks.size() - 1));
  auto& taken = group->ranks[static_cast<size_t>(rank)];
  if (taken == nullptr)
    return Invalid("options: rank " + std::to_string(rank) + " is another executor's");
  options->communicator = std::move(taken);
  return Status::Ok();
}

const heddle::TensorInfo* FindParameter(const heddle_model& model, const char* name) {
  const auto& all = model.parameters;  // sorted by name
  const auto at = std::lower_bound(
      all.begin(), all.end(), name,
      [](const heddle::TensorInfo& p, const char* wanted) { return p.name < wanted; });
  return at != all.end() && at->name == name ? &*at : nullptr;
}

}  // namespace

heddle_error* heddle_executor_new(const heddle_executor_options* given,
                                  heddle_executor** executor) {
  return Guard([&]() -> Status {
    if (executor == nullptr) return Invalid("heddle_executor_new: executor is NULL");
    heddle_executor_options known{};
    HEDDLE_RETURN_IF_ERROR(ReadOptions(given, known));
    if (known.threads < 0 || known.plan_cache_capacity < 0 || known.runs_at_once < 0)
      return Invalid("options: threads, plan_cache_capacity and runs_at_once must not be negative");
    heddle::ExecutorOptions options;
    options.threads = known.threads;
    options.runs_at_once = known.runs_at_once;
    if (known.plan_cache_capacity > 0) options.plan_cache_capacity = known.plan_cache_capacity;
    options.memory_limit = known.memory_limit;
    if (known.place != nullptr) {
      HEDDLE_ASSIGN_OR_RETURN(auto devices, heddle::OpenDevices(known.place));
      options.SetDevices(std::move(devices));
    }
    if (known.kernel_creator != nullptr)
      options.kernel_creator = heddle::capi::ToKernelCreator(*known.kernel_creator);
    HEDDLE_RETURN_IF_ERROR(CheckOptions(options));
    HEDDLE_RETURN_IF_ERROR(TakeRank(known.ranks, known.rank, &options));
    *executor = new heddle_executor{std::make_shared<heddle::Executor>(options)};
    return Status::Ok();
  });
}

int heddle_executor_threads(const heddle_executor* executor) {
  return executor == nullptr ? 0 : executor->executor->threads();
}

void heddle_executor_trim(heddle_executor* executor) {
  if (executor != nullptr) executor->executor->Trim();
}

size_t heddle_executor_num_places(const heddle_executor* executor) {
  if (executor == nullptr) return 0;
  size_t places = 0;
  heddle_error_free(Guard([&] {
    places = executor->executor->MemoryUse().size();
    return Status::Ok();
  }));
  return places;
}

heddle_error* heddle_executor_memory(const heddle_executor* executor, size_t index,
                                     heddle_place_memory* memory) {
  return Guard([&]() -> Status {
    if (executor == nullptr || memory == nullptr)
      return Invalid("heddle_executor_memory: executor or memory is NULL");
    if (memory->size < sizeof(heddle_place_memory))
      return Invalid("heddle_executor_memory: memory->size is less than that of the struct");
    const auto places = executor->executor->MemoryUse();
    if (index >= places.size())
      return Status(StatusCode::kOutOfRange, "heddle_executor_memory: there are " +
                                                 std::to_string(places.size()) + " places");
    const heddle::PlaceMemory& place = places[index];
    std::snprintf(memory->place, sizeof(memory->place), "%s", place.place.c_str());
    memory->allocated_bytes = place.allocated_bytes;
    memory->reserved_bytes = place.reserved_bytes;
    memory->peak_bytes = place.peak_bytes;
    return Status::Ok();
  });
}

void heddle_executor_reset_memory_peaks(heddle_executor* executor) {
  if (executor != nullptr) executor->executor->ResetMemoryPeaks();
}

void heddle_executor_free(heddle_executor* executor) { delete executor; }

void heddle_model_options_init_size(heddle_model_options* options, size_t size) {
  if (options == nullptr || size < sizeof(options->size)) return;
  const size_t known = std::min(size, sizeof(heddle_model_options));
  const heddle_model_options usual = UsualOptions();
  auto* const to = reinterpret_cast<std::byte*>(options);
  std::copy_n(reinterpret_cast<const std::byte*>(&usual), known, to);
  std::fill(to + known, to + size, std::byte{0});  // fields of a later version
  options->size = size;
}

// Programs that were compiled before there was heddle_model_options_init_size call this one. It
// writes the fields that the structure had then.
void(heddle_model_options_init)(heddle_model_options* options) {
  constexpr size_t kKnown = offsetof(heddle_model_options, no_in_place) + sizeof(int);
  heddle_model_options_init_size(options, kKnown);
}

heddle_error* heddle_model_load(heddle_executor* executor, const char* path, const char* params,
                                const heddle_model_options* options, heddle_model** model) {
  return Guard([&]() -> Status {
    if (executor == nullptr || path == nullptr || model == nullptr)
      return Invalid("heddle_model_load: executor, path or model is NULL");
    HEDDLE_ASSIGN_OR_RETURN(heddle::Model loaded,
                            heddle::LoadModel(path, params == nullptr ? "" : params));
    return Compile(executor->executor, std::move(loaded), options, model);
  });
}

heddle_error* heddle_model_load_part(heddle_executor* executor, const char* path,
                                     const char* params, const heddle_program_part* given,
                                     const heddle_model_options* options, heddle_model** model) {
  return Guard([&]() -> Status {
    if (executor == nullptr || path == nullptr || model == nullptr)
      return Invalid("heddle_model_load_part: executor, path or model is NULL");
    heddle::ProgramPart part;
    if (given != nullptr) {
      if (given->size < sizeof(heddle_program_part))
        return Invalid("heddle_model_load_part: part->size is less than that of the struct");
      if (given->signature != nullptr) part.signature = given->signature;
      const auto take = [](const char* const* names, size_t n, const char* what,
                           std::vector<std::string>* to) {
        HEDDLE_RETURN_IF_ERROR(
            CheckCount("heddle_model_load_part: part->num_" + std::string(what), n, sizeof *names));
        for (size_t i = 0; i < n; ++i) {
          if (names == nullptr || names[i] == nullptr)
            return Invalid("heddle_model_load_part: part->" + std::string(what) + " has NULL at " +
                           std::to_string(i));
          to->emplace_back(names[i]);
        }
        return Status::Ok();
      };
      HEDDLE_RETURN_IF_ERROR(take(given->feeds, given->num_feeds, "feeds", &part.feeds));
      HEDDLE_RETURN_IF_ERROR(take(given->fetches, given->num_fetches, "fetches", &part.fetches));
    }
    HEDDLE_ASSIGN_OR_RETURN(heddle::Model loaded,
                            heddle::LoadModel(path, params == nullptr ? "" : params, part));
    return Compile(executor->executor, std::move(loaded), options, model);
  });
}

heddle_error* heddle_model_parse(heddle_executor* executor, const void* program, size_t bytes,
                                 const char* params, const heddle_model_options* options,
                                 heddle_model** model) {
  return Guard([&]() -> Status {
    if (executor == nullptr || program == nullptr || model == nullptr)
      return Invalid("heddle_model_parse: executor, program or model is NULL");
    HEDDLE_RETURN_IF_ERROR(CheckCount("heddle_model_parse: bytes", bytes, 1));
    const std::string_view text(static_cast<const char*>(program), bytes);
    HEDDLE_ASSIGN_OR_RETURN(heddle::Model parsed, heddle::ParseModel(text, {}));
    if (params != nullptr)
      HEDDLE_RETURN_IF_ERROR(heddle::LoadParameters(parsed.program, params, *parsed.scope));
    return Compile(executor->executor, std::move(parsed), options, model);
  });
}

heddle_error* heddle_model_parse_all(heddle_executor* executor, const void* program, size_t bytes,
                                     const void* params, size_t params_bytes,
                                     const heddle_model_options* options, heddle_model** model) {
  return Guard([&]() -> Status {
    if (executor == nullptr || program == nullptr || model == nullptr)
      return Invalid("heddle_model_parse_all: executor, program or model is NULL");
    if (params == nullptr && params_bytes > 0)
      return Invalid("heddle_model_parse_all: params is NULL");
    HEDDLE_RETURN_IF_ERROR(CheckCount("heddle_model_parse_all: bytes", bytes, 1));
    HEDDLE_RETURN_IF_ERROR(CheckCount("heddle_model_parse_all: params_bytes", params_bytes, 1));
    HEDDLE_ASSIGN_OR_RETURN(heddle::Model parsed,
                            heddle::ParseModel({static_cast<const char*>(program), bytes},
                                               {static_cast<const char*>(params), params_bytes}));
    return Compile(executor->executor, std::move(parsed), options, model);
  });
}

heddle_error* heddle_model_compile(const heddle_model* model, const heddle_model_options* options,
                                   heddle_model** other) {
  return Guard([&]() -> Status {
    if (model == nullptr || other == nullptr)
      return Invalid("heddle_model_compile: a handle is NULL");
    return Compile(model->executor, model->model, options, other);
  });
}

size_t heddle_model_num_inputs(const heddle_model* model) {
  return model == nullptr ? 0 : model->compiled.inputs().size();
}
size_t heddle_model_num_outputs(const heddle_model* model) {
  return model == nullptr ? 0 : model->compiled.outputs().size();
}
heddle_info heddle_model_input(const heddle_model* model, size_t index) {
  return model == nullptr ? kNoInfo : InfoOf(model->compiled.inputs(), index);
}
heddle_info heddle_model_output(const heddle_model* model, size_t index) {
  return model == nullptr ? kNoInfo : InfoOf(model->compiled.outputs(), index);
}

const char* heddle_model_input_type(const heddle_model* model, size_t index) {
  const bool there = model != nullptr && index < model->input_types.size();
  return there ? model->input_types[index].c_str() : "";
}
const char* heddle_model_output_type(const heddle_model* model, size_t index) {
  const bool there = model != nullptr && index < model->output_types.size();
  return there ? model->output_types[index].c_str() : "";
}

heddle_error* heddle_model_run(heddle_model* model, const heddle_run_options* given,
                               const char* const* names, const heddle_tensor* const* inputs,
                               size_t num_inputs, heddle_tensor** outputs, size_t num_outputs) {
  return Guard([&]() -> Status {
    if (model == nullptr) return Invalid("heddle_model_run: model is NULL");
    HEDDLE_RETURN_IF_ERROR(
        CheckRoom("heddle_model_run", model->compiled.outputs().size(), outputs, num_outputs));
    HEDDLE_ASSIGN_OR_RETURN(const heddle::RunOptions options, ToRunOptions(given));
    HEDDLE_ASSIGN_OR_RETURN(const auto feeds, ToFeeds(*model, names, inputs, num_inputs));
    HEDDLE_ASSIGN_OR_RETURN(auto results, model->executor->Run(model->compiled, feeds, options));
    HandOut(&results, outputs);
    return Status::Ok();
  });
}

heddle_error* heddle_model_start(heddle_model* model, const heddle_run_options* given,
                                 const char* const* names, const heddle_tensor* const* inputs,
                                 size_t num_inputs, void (*on_done)(void*), void* argument,
                                 heddle_run** run) {
  return Guard([&]() -> Status {
    if (model == nullptr || run == nullptr) return Invalid("heddle_model_start: a handle is NULL");
    HEDDLE_ASSIGN_OR_RETURN(const heddle::RunOptions options, ToRunOptions(given));
    HEDDLE_ASSIGN_OR_RETURN(auto feeds, ToFeeds(*model, names, inputs, num_inputs));
    heddle::AsyncRun::Callback callback;
    if (on_done != nullptr) callback = [=](const heddle::AsyncRun&) { on_done(argument); };
    *run = new heddle_run{
        model->executor, model->compiled.outputs(),
        heddle::AsyncRun::Start(model->compiled, std::move(feeds), options, std::move(callback))};
    return Status::Ok();
  });
}

int heddle_run_done(const heddle_run* run) { return run != nullptr && run->run.done() ? 1 : 0; }

heddle_error* heddle_run_wait(const heddle_run* run, double timeout_ms, int* done) {
  return Guard([&]() -> Status {
    if (run == nullptr) return Invalid("heddle_run_wait: run is NULL");
    bool ended = true;
    if (std::isnan(timeout_ms)) return Invalid("heddle_run_wait: timeout_ms is not a number");
    if (timeout_ms >= 0) {
      ended = run->run.WaitUntil(After(timeout_ms));
    } else {
      run->run.Wait();
    }
    if (done != nullptr) *done = ended ? 1 : 0;
    return Status::Ok();
  });
}

void heddle_run_cancel(heddle_run* run) {
  if (run == nullptr) return;
  // Without memory for the status the run goes on.
  heddle_error_free(Guard([&]() -> Status {
    run->run.Cancel();
    return Status::Ok();
  }));
}

heddle_error* heddle_run_outputs(heddle_run* run, heddle_tensor** outputs, size_t num_outputs) {
  return Guard([&]() -> Status {
    if (run == nullptr) return Invalid("heddle_run_outputs: run is NULL");
    HEDDLE_RETURN_IF_ERROR(
        CheckRoom("heddle_run_outputs", run->outputs.size(), outputs, num_outputs));
    HEDDLE_ASSIGN_OR_RETURN(const auto values, run->run.Take());
    std::vector<heddle::Tensor> results;
    for (size_t i = 0; i < values.size(); ++i) {
      if (!values[i].is_tensor())
        return Invalid("output '" + run->outputs[i].name + "' is not a plain tensor");
      results.push_back(values[i].tensor());
    }
    HandOut(&results, outputs);
    return Status::Ok();
  });
}

void heddle_run_free(heddle_run* run) { delete run; }

heddle_error* heddle_model_prepare(heddle_model* model, const char* const* names,
                                   const heddle_tensor* const* inputs, size_t num_inputs) {
  return Guard([&]() -> Status {
    if (model == nullptr) return Invalid("heddle_model_prepare: model is NULL");
    HEDDLE_ASSIGN_OR_RETURN(const auto feeds, ToFeeds(*model, names, inputs, num_inputs));
    return model->executor->Prepare(model->compiled, feeds).status();
  });
}

heddle_error* heddle_model_plan(heddle_model* model, const char* const* names,
                                const heddle_tensor* const* inputs, size_t num_inputs,
                                heddle_text** text) {
  return Guard([&]() -> Status {
    if (model == nullptr || text == nullptr) return Invalid("heddle_model_plan: a handle is NULL");
    HEDDLE_ASSIGN_OR_RETURN(const auto feeds, ToFeeds(*model, names, inputs, num_inputs));
    HEDDLE_ASSIGN_OR_RETURN(std::string plan, model->executor->PlanText(model->compiled, feeds));
    *text = new heddle_text{std::move(plan)};
    return Status::Ok();
  });
}

heddle_error* heddle_model_parameter(const heddle_model* model, const char* name,
                                     heddle_tensor** tensor) {
  return Guard([&]() -> Status {
    if (model == nullptr || name == nullptr || tensor == nullptr)
      return Invalid("heddle_model_parameter: a handle is NULL");
    if (FindParameter(*model, name) == nullptr)
      return Status(StatusCode::kNotFound,
                    "the model has no parameter '" + std::string(name) + "'");
    HEDDLE_ASSIGN_OR_RETURN(const auto writes, heddle::HoldWrites(*model->model.scope));
    HEDDLE_ASSIGN_OR_RETURN(const heddle::Value* const value,
                            heddle::FindVariable(*model->model.scope, name));
    if (value == nullptr || !value->is_tensor() || !value->tensor().initialized())
      return Status(StatusCode::kNotFound, "parameter '" + std::string(name) + "' has no value");
    *tensor = new heddle_tensor{value->tensor(), true};
    return Status::Ok();
  });
}

heddle_error* heddle_model_set_parameter(heddle_model* model, const char* name,
                                         const heddle_tensor* tensor) {
  return Guard([&]() -> Status {
    if (model == nullptr || name == nullptr || tensor == nullptr)
      return Invalid("heddle_model_set_parameter: a handle is NULL");
    const heddle::TensorInfo* declared = FindParameter(*model, name);
    if (declared == nullptr)
      return Status(StatusCode::kNotFound,
                    "the model has no parameter '" + std::string(name) + "'");
    const heddle::Tensor& given = tensor->tensor;
    bool fits = given.dtype() == declared->dtype && given.rank() == declared->shape.rank();
    for (int i = 0; fits && i < given.rank(); ++i)
      fits = declared->shape[i] < 0 || declared->shape[i] == given.shape()[i];
    if (!fits)
      return Invalid("parameter '" + declared->name + "' is declared " +
                     std::string(Name(declared->dtype)) + declared->shape.ToString() + ", given " +
                     std::string(Name(given.dtype())) + given.shape().ToString());
    // A copy: what the caller does with the memory later must not change the model.
    heddle::Tensor copy = given.Clone();
    if (!copy.initialized())
      return Status(StatusCode::kResourceExhausted,
                    "no memory for parameter '" + declared->name + "'");
    // Not while a run writes to the scope, or a plan is made of the parameters.
    HEDDLE_ASSIGN_OR_RETURN(const auto writes, heddle::HoldWrites(*model->model.scope));
    model->model.scope->Set(declared->name, std::move(copy));
    return Status::Ok();
  });
}

size_t heddle_model_num_parameters(const heddle_model* model) {
  return model == nullptr ? 0 : model->parameters.size();
}
heddle_info heddle_model_parameter_info(const heddle_model* model, size_t index) {
  return model == nullptr ? kNoInfo : InfoOf(model->parameters, index);
}

heddle_error* heddle_model_save_parameters(const heddle_model* model, const char* path) {
  return Guard([&]() -> Status {
    if (model == nullptr || path == nullptr)
      return Invalid("heddle_model_save_parameters: model or path is NULL");
    return heddle::SaveParameters(model->model.program, *model->model.scope, path);
  });
}

void heddle_model_free(heddle_model* model) { delete model; }

heddle_error* heddle_stop_new(heddle_stop** stop) {
  return Guard([&]() -> Status {
    if (stop == nullptr) return Invalid("heddle_stop_new: stop is NULL");
    *stop = new heddle_stop;
    return Status::Ok();
  });
}

void heddle_stop_request(heddle_stop* stop) {
  if (stop != nullptr) stop->source.request_stop();
}

void heddle_stop_free(heddle_stop* stop) { delete stop; }
