// heddle run: runs a model once (or several times) and shows or writes its outputs.
#include <glog/logging.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>

#include "heddle/heddle.h"
#include "heddle/model_files.h"
#include "heddle/string_tensor.h"
#include "tools/commands.h"
#include "tools/engines/engine_choice.h"
#include "tools/json_output.h"
#include "tools/options.h"
#include "tools/plans/plan_json.h"
#include "tools/progress.h"
#include "tools/ranks.h"
#include "tools/values/values.h"
#include "tools/verbose.h"

namespace heddle::tools {
namespace {

struct RunCommand {
  ModelOptions model;
  FeedOptions feeds;
  EngineChoice engines;
  std::string out;
  std::string labels;
  std::string trace;
  int repeat = 1;
  bool check_nan_inf = false;
  bool json = false;
};

constexpr int64_t kValuesShown = 8, kRowsShown = 8;

// An output with its name; written to `files` when --out is given.
struct Output {
  std::string name;
  Value value;
  std::vector<std::string> files;
  std::string type;  // as heddle::OutputTypes says; of an array, that of its tensors
};

bool HasArgMax(const Tensor& t) {
  return t.rank() == 2 && IsFloat(t.dtype()) && t.numel() > 0 && t.dim(1) > 1;
}

std::string Label(const std::vector<std::string>& labels, int64_t index) {
  return index < static_cast<int64_t>(labels.size()) ? labels[index] : "(no label)";
}

// One tensor on the terminal: what it is, how it begins, its range, its arg-max.
void Print(const Tensor& given, std::string_view type, const std::vector<std::string>& labels) {
  if (!given.initialized()) {
    std::cout << "  holds nothing\n";
    return;
  }
  const Tensor tensor = given.Contiguous();
  std::cout << "  " << TypeText(tensor.dtype(), type) << " " << tensor.shape().ToString();
  if (tensor.has_lod()) std::cout << "  sequence offsets " << LodText(tensor.lod(), " | ");
  std::cout << "\n";
  if (tensor.numel() == 0) return;
  std::cout << "  values ";
  for (int64_t i = 0; i < std::min(tensor.numel(), kValuesShown); ++i)
    std::cout << " " << TextAt(tensor, i, type);
  std::cout << (tensor.numel() > kValuesShown ? " …\n" : "\n");
  if (tensor.dtype() != DType::kBool && !IsComplex(tensor.dtype())) {
    const Summary s = Summarize(tensor, type);
    std::cout << "  min " << s.min << "  max " << s.max << "  mean " << s.mean;
    if (s.nan > 0) std::cout << "  NaN: " << s.nan;
    if (s.inf > 0) std::cout << "  infinite: " << s.inf;
    std::cout << "\n";
  }
  if (!HasArgMax(tensor)) return;
  for (int64_t row = 0; row < std::min(tensor.dim(0), kRowsShown); ++row) {
    const int64_t best = ArgMax(tensor, row);
    std::cout << "  row " << row << ": largest at " << best << " ("
              << TextAt(tensor, row * tensor.dim(1) + best) << ")";
    if (!labels.empty()) std::cout << "  " << Label(labels, best);
    std::cout << "\n";
  }
  if (tensor.dim(0) > kRowsShown) std::cout << "  … " << tensor.dim(0) - kRowsShown << " more\n";
}

void Print(const StringTensor& strings) {
  std::cout << "  string " << strings.shape.ToString() << "\n";
  if (strings.elements.empty()) return;
  std::cout << "  values ";
  const size_t shown = std::min<size_t>(strings.elements.size(), kValuesShown);
  for (size_t i = 0; i < shown; ++i) std::cout << " " << Quoted(strings.elements[i]);
  std::cout << (strings.elements.size() > shown ? " …\n" : "\n");
}

void Print(const Output& output, const std::vector<std::string>& labels) {
  const Value& value = output.value;
  if (value.is_array()) {
    std::cout << "  array of " << value.array().size() << " tensors\n";
    for (const Tensor& t : value.array()) Print(t, output.type, labels);
  } else if (value.is_rows()) {
    std::cout << "  " << value.rows().rows.size() << " rows of " << value.rows().height << "\n";
    Print(value.rows().value, output.type, labels);
  } else if (value.is_tensor()) {
    Print(value.tensor(), output.type, labels);
  } else if (const auto strings = StringsIn(value)) {
    Print(*strings);
  } else if (const auto texts = StringListIn(value)) {
    std::cout << "  array of " << texts->size() << " tensors\n";
    for (const StringTensor& t : *texts) Print(t);
  }
}

// An element as a JSON number, an integer exactly.
Json JsonAt(const Tensor& tensor, int64_t i, std::string_view type) {
  if (tensor.dtype() == DType::kI64) {
    const int64_t x = tensor.data<int64_t>()[i];
    return type == "uint64" ? Json(static_cast<uint64_t>(x)) : Json(x);
  }
  const double x = NumberAt(tensor, i, type);
  const bool whole = IsInteger(tensor.dtype()) && !type.starts_with("float");
  return whole ? Json(static_cast<int64_t>(x)) : Json(x);
}

Json Describe(const Tensor& given, std::string_view type, const std::vector<std::string>& labels) {
  Json json;
  json["dtype"] = TypeText(given.dtype(), type);
  json["shape"] = std::vector<int64_t>(given.shape().begin(), given.shape().end());
  if (given.has_lod()) json["lod"] = given.lod();
  if (!given.initialized() || given.numel() == 0) return json;
  const Tensor tensor = given.Contiguous();
  Json first = Json::array();
  for (int64_t i = 0; i < std::min(tensor.numel(), kValuesShown); ++i)
    first.push_back(JsonAt(tensor, i, type));
  json["first"] = std::move(first);
  const Summary s = Summarize(tensor, type);
  json["min"] = s.min;
  json["max"] = s.max;
  json["mean"] = s.mean;
  json["nan"] = s.nan;
  json["inf"] = s.inf;
  if (!HasArgMax(tensor)) return json;
  for (int64_t row = 0; row < tensor.dim(0); ++row) {
    const int64_t best = ArgMax(tensor, row);
    json["argmax"].push_back(best);
    if (!labels.empty()) json["labels"].push_back(Label(labels, best));
  }
  return json;
}

Json Describe(const StringTensor& strings) {
  Json json;
  json["dtype"] = "string";
  json["shape"] = std::vector<int64_t>(strings.shape.begin(), strings.shape.end());
  const size_t shown = std::min<size_t>(strings.elements.size(), kValuesShown);
  for (size_t i = 0; i < shown; ++i) json["first"].push_back(strings.elements[i]);
  return json;
}

Json Describe(const Output& output, const std::vector<std::string>& labels) {
  Json json;
  json["name"] = output.name;
  if (output.value.is_array()) {
    json["array"] = Json::array();
    for (const Tensor& t : output.value.array())
      json["array"].push_back(Describe(t, output.type, labels));
  } else if (output.value.is_rows()) {
    json["height"] = output.value.rows().height;
    json["rows"] = output.value.rows().rows;
    json.update(Describe(output.value.rows().value, output.type, labels));
  } else if (output.value.is_tensor()) {
    json.update(Describe(output.value.tensor(), output.type, labels));
  } else if (const auto strings = StringsIn(output.value)) {
    json.update(Describe(*strings));
  } else if (const auto texts = StringListIn(output.value)) {
    json["array"] = Json::array();
    for (const StringTensor& t : *texts) json["array"].push_back(Describe(t));
  }
  if (!output.files.empty()) json["files"] = output.files;
  return json;
}

Result<std::vector<std::string>> ReadLabels(const std::string& path) {
  std::vector<std::string> labels;
  if (path.empty()) return labels;
  std::ifstream file(path);
  if (!file) return Status(StatusCode::kNotFound, path + ": no such file, or not readable");
  for (std::string line; std::getline(file, line);) labels.push_back(line);
  return labels;
}

// For a single run, preparing costs more than it saves. Repeated runs are planned as a single one
// is, since they are to show that its numbers hold; `bench` is there for speed.
CompileOptions Compile(const RunCommand& options, const Program& program) {
  CompileOptions compile = options.model.compile(program);
  compile.lean = options.model.lean.value_or(!compile.tune && compile.tuning_file.empty());
  return compile;
}

// Runs `options.repeat` times; every run must give the same bits.
Result<std::vector<Output>> RunAll(Executor& executor, const CompiledProgram& compiled,
                                   const std::vector<Feed>& feeds, const RunCommand& options,
                                   double* first_ms) {
  const std::vector<TensorInfo> infos = compiled.outputs();
  std::vector<Output> outputs;
  for (int run = 0; run < options.repeat; ++run) {
    const auto start = std::chrono::steady_clock::now();
    RunOptions run_options = options.model.run();
    run_options.check_nan_inf = options.check_nan_inf;
    RunReport report;
    if (LogsRuns()) {
      run_options.report = &report;
      run_options.trace = true;
    }
    HEDDLE_ASSIGN_OR_RETURN(std::vector<Value> values,
                            executor.RunValues(compiled, feeds, run_options));
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    if (LogsRuns()) LogRun(report);
    LOG(INFO) << "run " << run + 1 << ": " << took.count() << " ms";
    if (run == 0) *first_ms = took.count();
    for (size_t k = 0; k < values.size(); ++k) {
      if (run == 0) {
        const std::string name = k < infos.size() ? infos[k].name : "";
        outputs.push_back({name, std::move(values[k]), {}, ""});
        continue;
      }
      const std::string why = Difference(outputs[k].value, values[k]);
      if (!why.empty())
        return Status(StatusCode::kInternal,
                      "run " + std::to_string(run + 1) + " differs from the first in output " +
                          std::to_string(k) + " (" + outputs[k].name + "): " + why);
    }
  }
  return outputs;
}

// One more run, for the trace alone.
Status Trace(Executor& executor, const CompiledProgram& compiled, const std::vector<Feed>& feeds,
             const std::string& path) {
  RunReport report;
  HEDDLE_RETURN_IF_ERROR(
      executor.RunValues(compiled, feeds, {.report = &report, .trace = true}).status());
  return WriteTrace(path, report);
}

Status WriteOutputs(const std::string& directory, std::vector<Output>* outputs) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error)
    return Status(StatusCode::kInvalidArgument, directory + ": cannot be made: " + error.message());
  for (size_t k = 0; k < outputs->size(); ++k) {
    const std::string stem =
        (std::filesystem::path(directory) / ("out_" + std::to_string(k))).string();
    HEDDLE_ASSIGN_OR_RETURN((*outputs)[k].files,
                            WriteValue((*outputs)[k].value, stem, (*outputs)[k].type));
  }
  return Status::Ok();
}

void PrintOutputsText(const RunCommand& options, const std::vector<Output>& outputs,
                      const std::vector<std::string>& labels, double load_ms, double first_ms,
                      const OffloadReport& engines) {
  for (size_t k = 0; k < outputs.size(); ++k) {
    std::cout << "output " << k << ": " << outputs[k].name << "\n";
    if (options.out.empty()) Print(outputs[k], labels);
    for (const std::string& file : outputs[k].files) std::cout << "  " << file << "\n";
  }
  std::cout << std::fixed << std::setprecision(1) << "loaded in " << load_ms << " ms, ran in "
            << first_ms << " ms (first run)";
  if (options.repeat > 1) std::cout << "; " << options.repeat << " runs gave the same bits";
  std::cout << "\n";
  if (options.engines.any()) std::cout << engines.ToString();
}

void PrintOutputsJson(const RunCommand& options, const std::vector<Output>& outputs,
                      const std::vector<std::string>& labels, double load_ms, double first_ms,
                      const std::vector<PlaceMemory>& memory, const OffloadReport& engines) {
  Json json = NewJson("run");
  json["program"] = options.model.model;
  json["load_ms"] = load_ms;
  json["first_ms"] = first_ms;
  json["runs"] = options.repeat;
  json["outputs"] = Json::array();
  for (const Output& o : outputs) json["outputs"].push_back(Describe(o, labels));
  json["memory_use"] = PlacesJson(memory);
  if (options.engines.any()) json["engines"] = EnginesJson(engines);
  WriteJson(json);
}

// `types`: of the compiled program's outputs. The model's own copy of the program goes when this
// returns: a lean program has no use for it.
Result<CompiledProgram> LoadAndCompile(Executor& executor, const RunCommand& options,
                                       ProgramInputs* inputs, std::vector<std::string>* types,
                                       OffloadReport* engines) {
  std::optional<LimitScope> limits;  // none: trial runs of engines need no copies
  if (const auto deadline = options.model.run().deadline)
    limits.emplace(Limits{.deadline = deadline});
  HEDDLE_ASSIGN_OR_RETURN(Model model, options.model.Load(options.feeds));
  *inputs = TypedInputsOf(model.program);
  const Program program = model.program;
  const CompileOptions compile = Compile(options, program);
  if (options.engines.any()) {
    HEDDLE_ASSIGN_OR_RETURN(const auto feeds, MakeFeeds(*inputs, options.feeds));
    HEDDLE_ASSIGN_OR_RETURN(auto offloaded, ApplyEngines(options.engines, options.model, compile,
                                                         std::move(model), feeds));
    model = std::move(offloaded.model);
    *engines = std::move(offloaded.report);
  }
  HEDDLE_ASSIGN_OR_RETURN(CompiledProgram compiled, executor.Compile(model, compile));
  *types = OutputTypes(program, compiled.outputs());
  return compiled;
}

// Loads the model, runs it, and writes a trace if one is wanted.
Status Compute(const RunCommand& options, std::vector<Output>* outputs,
               std::vector<PlaceMemory>* memory, OffloadReport* engines, double* load_ms,
               double* first_ms) {
  const auto start = std::chrono::steady_clock::now();
  Executor executor(options.model.executor());  // before the model: its threads start meanwhile
  ProgramInputs inputs;
  std::vector<std::string> types;
  HEDDLE_ASSIGN_OR_RETURN(const CompiledProgram compiled,
                          LoadAndCompile(executor, options, &inputs, &types, engines));
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  *load_ms = took.count();
  LOG(INFO) << "loaded and compiled " << options.model.model << ": " << *load_ms << " ms";
  LogPasses(compiled.pass_report());
  HEDDLE_ASSIGN_OR_RETURN(const auto feeds, MakeFeeds(inputs, options.feeds));
  LogPlan(executor, compiled, feeds);
  HEDDLE_ASSIGN_OR_RETURN(*outputs, RunAll(executor, compiled, feeds, options, first_ms));
  for (size_t k = 0; k < std::min(outputs->size(), types.size()); ++k)
    (*outputs)[k].type = types[k];
  *memory = executor.MemoryUse();
  if (!options.trace.empty())
    HEDDLE_RETURN_IF_ERROR(Trace(executor, compiled, feeds, options.trace));
  if (const std::string caches = CachesText(options.model, compiled); !caches.empty())
    LOG(INFO) << caches;
  return Status::Ok();
}

Status RunModel(const RunCommand& given) {
  RunCommand options = given;
  HEDDLE_RETURN_IF_ERROR(FollowPlan(&options.model));
  options.engines.OpenCache();
  HEDDLE_ASSIGN_OR_RETURN(const auto labels, ReadLabels(options.labels));
  std::vector<Output> outputs;
  std::vector<PlaceMemory> memory;
  OffloadReport engines;
  double load_ms = 0, first_ms = 0;
  {
    Progress progress("running " + options.model.model);
    HEDDLE_RETURN_IF_ERROR(RunRanks(options.model.ranks, options, [&](int rank, RunCommand mine) {
      if (rank == 0) return Compute(mine, &outputs, &memory, &engines, &load_ms, &first_ms);
      std::vector<Output> others;
      std::vector<PlaceMemory> other_memory;
      OffloadReport other_engines;
      double load = 0, first = 0;
      if (!mine.trace.empty()) mine.trace = "/dev/null";  // the run takes place on all ranks
      return Compute(mine, &others, &other_memory, &other_engines, &load, &first);
    }));
  }
  if (!options.out.empty()) HEDDLE_RETURN_IF_ERROR(WriteOutputs(options.out, &outputs));
  if (options.json)
    PrintOutputsJson(options, outputs, labels, load_ms, first_ms, memory, engines);
  else
    PrintOutputsText(options, outputs, labels, load_ms, first_ms, engines);
  return Status::Ok();
}

}  // namespace

void AddRun(Command root, Action& chosen) {
  auto options = std::make_shared<RunCommand>();
  Command app = root.add_command("run", "run a model and show or write its outputs");
  AddModelOptions(app, &options->model);
  AddFeedOptions(app, &options->feeds);
  AddExecutionOptions(app, &options->model);
  AddFollowOption(app, &options->model);
  AddEngineOptions(app, &options->engines);
  AddLimitOptions(app, &options->model);
  AddRanksOption(app, &options->model, "each is fed the same, and the first one's outputs count");
  app.add_option("--out,--fetch-dir", options->out,
                 "write output k to DIR/out_<k>.npy instead of showing it")
      .type_name("DIR");
  app.add_option("--repeat", options->repeat,
                 "run R times; fail unless every run gives the same bits")
      .type_name("R")
      .positive()
      .show_default();
  app.add_option("--trace", options->trace,
                 "write when each instruction of one more run began and ended, for "
                 "chrome://tracing or ui.perfetto.dev")
      .type_name("FILE");
  app.add_flag("--check-nan-inf", options->check_nan_inf,
               "stop at the first operator that writes a NaN or an infinity, and name it");
  app.add_option("--labels", options->labels,
                 "a text file with one class name a line, shown for the largest value of a row")
      .type_name("FILE");
  app.add_flag("--json", options->json, "one JSON object instead of text");
  app.footer(
      "Examples:\n"
      "  heddle run examples/digits --feed x=examples/digits/input.npy\n"
      "  heddle run resnet50/ --random-feed --shape x=1,3,224,224 --threads 2\n"
      "  heddle run model.pdmodel --feed-npz inputs.npz --out results/ --repeat 3");
  app.on_chosen([options, &chosen] { chosen = [options] { return RunModel(*options); }; });
}

}  // namespace heddle::tools
