#include "tools/options.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <tuple>

#include "gradient/tuning/tuning.h"
#include "heddle/device.h"
#include "heddle/model_files.h"
#include "heddle/passes/pass_library.h"
#include "tools/values/durable.h"
#include "tools/values/names.h"
#include "tools/values/npy.h"

namespace heddle::tools {
namespace {

// In the user's directory for what can be made again; empty (nothing is kept) when there is none.
std::string DefaultTuningFile() {
  namespace fs = std::filesystem;
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  fs::path dir;
  if (cache != nullptr && *cache == '/')
    dir = cache;
  else if (home != nullptr && *home == '/')
    dir = fs::path(home) / ".cache";
  else
    return "";
  std::error_code error;
  fs::create_directories(dir / "heddle", error);
  return error ? "" : dir / "heddle" / "tuning";
}

Status CheckFetches(const Program& program, const std::vector<std::string>& fetches) {
  for (const std::string& fetch : fetches) {
    std::vector<std::string> known;
    for (const auto& infos : {program.outputs(), program.written(), program.inputs()})
      for (const TensorInfo& info : infos) known.push_back(info.name);
    if (program.variable(fetch) || std::find(known.begin(), known.end(), fetch) != known.end())
      continue;
    return Status(StatusCode::kNotFound, "cannot fetch '" + fetch +
                                             "': the program has no such variable" +
                                             DidYouMean(fetch, known));
  }
  return Status::Ok();
}

// `status`, of a load that did not find what `part` names, with the name that may have been meant.
Status WithNearName(const Status& status, const std::string& model, const ProgramPart& part) {
  if (status.code() != StatusCode::kNotFound || (part.feeds.empty() && part.fetches.empty()) ||
      IsPipe(model))
    return status;
  const auto file = FindProgramFile(model);
  if (!file.ok()) return status;
  const auto program = LoadProgram(*file, {.signature = part.signature});
  if (!program.ok()) return status;
  for (const auto& [kind, names, infos] :
       {std::tuple("input '", &part.feeds, InputsOf(*program)),
        std::tuple("output '", &part.fetches, program->outputs())}) {
    std::vector<std::string> known;
    for (const TensorInfo& info : infos) known.push_back(info.name);
    for (const std::string& name : *names)
      if (status.message().find(kind + name + "': ") != std::string::npos)
        return Status(status.code(), status.message() + DidYouMean(name, known));
  }
  return status;
}

}  // namespace

std::string CachesText(const ModelOptions& options, const CompiledProgram& compiled) {
  std::ostringstream text;
  if (options.tune || !options.tuning_file.empty()) {
    const TuningReport report = compiled.tuning_report();
    for (const std::string& warning : report.warnings) std::cerr << "heddle: " << warning << "\n";
    text << "tuning: " << report.measured << " kernels measured (" << report.changed
         << " not as usual), " << report.kept << " known";
  }
  if (!options.packed_weights.empty()) {
    const PackedWeightsReport report = compiled.packed_weights_report();
    for (const std::string& warning : report.warnings) std::cerr << "heddle: " << warning << "\n";
    text << (text.view().empty() ? "" : "; ") << "packed weights: " << report.found << " found, "
         << report.made << " made";
  }
  return text.str();
}

std::string CheckPlace(const std::string& text) {
  const auto devices = OpenDevices(text);
  return devices.ok() ? "" : devices.status().message();
}

ExecutorOptions ModelOptions::executor() const {
  ExecutorOptions options;
  options.threads = threads;
  options.runs_at_once = runs_at_once;
  options.memory_limit = memory_limit;
  options.communicator = communicator;
  options.SetDevices(*OpenDevices(place, {.tf32 = tf32}));  // as CheckPlace has done
  return options;
}

RunOptions ModelOptions::run() const {
  RunOptions options;
  constexpr double kLongestMs = 1e12;  // the clock counts nanoseconds in 64 bits
  if (deadline_ms > 0)
    options.deadline =
        std::chrono::steady_clock::now() +
        std::chrono::duration_cast<std::chrono::steady_clock::duration>(
            std::chrono::duration<double, std::milli>(std::min(deadline_ms, kLongestMs)));
  options.wait_after_each = wait_after_each;
  return options;
}

void AddRanksOption(Command app, ModelOptions* options, const std::string& does) {
  app.add_option("--ranks", options->ranks,
                 "run the program as a group of N ranks, whose communication operators exchange "
                 "values: " +
                     does)
      .type_name("N")
      .in_range(1, 64);
}

void AddLimitOptions(Command app, ModelOptions* options, const std::string& run) {
  app.add_flag("--wait-after-each", options->wait_after_each,
               "one instruction after another, each waited for before the next one starts");
  app.add_option("--memory-limit", options->memory_limit,
                 "fail when temporaries and outputs would take more at once")
      .type_name("BYTES")
      .positive();
  app.add_option("--deadline-ms", options->deadline_ms, "give up a " + run + " that takes longer")
      .type_name("MS")
      .positive();
}

namespace {

// Adds the adapters of a file to the weights.
Status Adapt(const std::string& path, Scope* scope) {
  HEDDLE_ASSIGN_OR_RETURN(const NamedTensors arrays, ReadNpz(path));
  const auto adapters = gradient::AdaptersOf(arrays);
  const Status status =
      adapters.ok() ? gradient::MergeAdapters(*adapters, scope) : adapters.status();
  return status.ok() ? status : Status(status.code(), path + ": " + status.message());
}

}  // namespace

Result<Model> ModelOptions::Load() const { return Load({}); }

Result<Model> ModelOptions::Load(const FeedOptions& feeds) const {
  ProgramPart part;
  part.signature = signature;
  part.fetches = fetches;
  HEDDLE_ASSIGN_OR_RETURN(part.feeds, FeedNames(model, signature, feeds.files));
  auto loaded = LoadModel(model, params, part);
  if (!loaded.ok()) return WithNearName(loaded.status(), model, part);
  HEDDLE_RETURN_IF_ERROR(CheckFetches(loaded->program, fetches));
  if (!adapter.empty()) HEDDLE_RETURN_IF_ERROR(Adapt(adapter, loaded->scope.get()));
  return loaded;
}

CompileOptions ModelOptions::compile(const Program& program) const {
  CompileOptions options = compile();
  if (fetches.empty() && program.outputs().empty())
    for (const TensorInfo& result : program.results()) options.fetches.push_back(result.name);
  return options;
}

CompileOptions ModelOptions::compile() const {
  CompileOptions options;
  if (random_places >= 0) {
    options.placement = Placement::kRandom;
    options.placement_seed = static_cast<uint64_t>(random_places);
  }
  options.fetches = fetches;
  options.opt_level = opt_level;
  options.passes = passes;
  options.tune = tune;
  options.tuning_file = tune && tuning_file.empty() ? DefaultTuningFile() : tuning_file;
  options.packed_weights = packed_weights;
  options.force = force;
  options.machine = machine;
  options.follow = follow;
  if (serial) options.schedule = Schedule::kSerial;
  if (parallel) options.schedule = Schedule::kParallel;
  if (lanes) options.schedule = Schedule::kLanes;
  options.lean = lean.value_or(false);
  options.outline = outline;
  options.reuse = reuse;
  options.in_place = in_place;
  for (const std::string& pair : max_shapes) {
    auto [input, shape] = SplitShape(pair);
    options.max_shapes.emplace_back(std::move(input), shape);
  }
  return options;
}

void AddModelOptions(Command app, ModelOptions* options) {
  app.add_option(
         "MODEL", options->model,
         "a program file (.pdmodel, .json of Paddle 3, .onnx, or a TensorFlow .pb, .pbtxt or "
         ".meta), or a directory with one (model.pdmodel, inference.pdmodel, inference.json, "
         "__model__, saved_model.pb, checkpoint)")
      .required()
      .type_name("");
  app.add_option("--params", options->params,
                 "parameters: a combined file, or a directory with one file each "
                 "[the .pdiparams beside the model]")
      .type_name("FILE");
  app.add_option("--adapter", options->adapter,
                 "adapters of `heddle train --save-adapter`, which are added to the weights")
      .type_name("FILE.npz");
  app.add_option("--signature", options->signature,
                 "inputs and outputs of a TensorFlow SavedModel [serving_default]")
      .type_name("KEY");
  app.add_option("--fetch", options->fetches,
                 "variable to return; may be repeated [the model's outputs, or its loss, or what "
                 "nobody reads]")
      .type_name("NAME")
      .one_value_each();
}

void AddPassOptions(Command app, PassOptions* options) {
  app.add_option("--disable-pass", options->disable, "a pass not to run; may be repeated")
      .type_name("NAME")
      .one_value_each();
  app.add_option("--only-pass", options->only, "run no other passes; may be repeated")
      .type_name("NAME")
      .one_value_each();
  const auto libraries = std::make_shared<std::vector<std::string>>();
  app.add_option(
         "--pass", *libraries,
         "a library of passes to run as well (docs/passes.md), by its path; may be repeated")
      .type_name("LIBRARY")
      .one_value_each()
      .check([options, libraries](const std::string& path) {
        auto passes = LoadPasses(path);
        if (!passes.ok()) return std::string(passes.status().message());
        for (CustomPass& pass : *passes) options->custom.push_back(std::move(pass));
        return std::string();
      });
  app.add_flag("--verify-passes", options->check_unchanged,
               "also check that passes which say so have changed nothing");
  app.add_option("--dump-passes", options->dump_dir,
                 "write the program there before and after what changes it")
      .type_name("DIR")
      .existing_directory();
  app.add_option("--dump-filter", options->dump_filter, "only after passes whose names match")
      .type_name("REGEX");
  app.add_flag("--dump-dot", options->dump_dot, "with --dump-passes: for Graphviz as well");
}

void AddExecutionOptions(Command app, ModelOptions* options) {
  app.add_option("--threads", options->threads, "threads to use; 0 = as many as there are CPUs")
      .type_name("N")
      .in_range(0, kMostThreads)
      .show_default();
  app.add_option("--runs-at-once", options->runs_at_once,
                 "of several clients, runs that may be under way; 1 = each with all threads; 0 = "
                 "one a thread, and with --threads 1 any number")
      .type_name("N")
      .in_range(0, 1024)
      .show_default();
  const Option serial = app.add_flag(
      "--serial", options->serial, "one instruction after another (kernels still use all threads)");
  const Option parallel =
      app.add_flag("--parallel", options->parallel,
                   "independent instructions side by side, from a queue [found out by timing]")
          .excludes(serial);
  app.add_flag("--lanes", options->lanes,
               "side by side, each thread's instructions decided ahead of time")
      .excludes(serial)
      .excludes(parallel);
  app.add_choice(
         "--reuse", {{"ordered", 0}, {"edges", 1}, {"none", 2}},
         [options](int reuse) { options->reuse = static_cast<Reuse>(reuse); },
         "edges: in lanes, instructions also wait so that temporaries share memory, while the "
         "longest path grows by 5 % at most; none: each has memory of its own to the end of a run")
      .type_name("ordered|edges|none")
      .show_default("ordered");
  app.add_flag(
      "--no-in-place", [options] { options->in_place = false; },
      "operators compute no output in the memory of an input that is not needed any more");
  const Option lean = app.add_flag(
      "--lean", [options] { options->lean = true; },
      "prefer little memory and a quick start to speed: no copies of parameters larger than these, "
      "little generated code [run: yes, unless with --tune or --tuning-file; else no]");
  app.add_flag(
         "--no-lean", [options] { options->lean = false; }, "the contrary")
      .excludes(lean);
  app.add_flag("--outline", options->outline,
               "equal layers are planned once and called: planning takes less time and memory");
  AddPairs(app, "--max-shape", &options->max_shapes, "NAME=32,3,224,224",
           "largest shape of an input: runs up to it have their temporaries in one block",
           CheckShape);
  app.add_option("--opt", options->opt_level,
                 "0 = run the program as it is, 1 = clean-ups, 2 = also fusion and layouts")
      .type_name("LEVEL")
      .in_range(0, kMostOptLevel)
      .show_default();
  app.add_choice(
         "--precision",
         {{"f32", static_cast<int>(Precision::kFloat32)},
          {"bf16", static_cast<int>(Precision::kBFloat16)},
          {"int8", static_cast<int>(Precision::kInt8Weights)},
          {"int8-products", static_cast<int>(Precision::kInt8Products)}},
         [options](int precision) {
           options->passes.precision = static_cast<Precision>(precision);
         },
         "bf16: products and convolutions with constant weights round what they multiply to "
         "bfloat16, where the processor is faster that way; int8: constant matrices are held as "
         "integers of 8 bits; int8-products: as bf16, and two pointwise convolutions in sequence "
         "multiply integers of 8 bits")
      .type_name("f32|bf16|int8|int8-products")
      .show_default("f32");
  app.add_option(
         "--place", options->place,
         "device to run on; several, as emulated:0,emulated:1, for operators that name them")
      .type_name("PLACE")
      .check(CheckPlace)
      .show_default();
  app.add_flag(
      "--tf32", options->tf32,
      "with --place cuda: products take their factors in TF32, which has ten bits of fraction");
  app.add_option("--random-places", options->random_places,
                 "with a device: each operator there or on the host, drawn from SEED")
      .type_name("SEED")
      .not_negative();
  app.add_flag("--tune", options->tune,
               "measure which kernels are the fastest here, where the tuning file does not say it");
  app.add_option("--tuning-file", options->tuning_file,
                 "choices that were measured; without --tune they are only used "
                 "[heddle/tuning in the user's cache directory]")
      .type_name("FILE");
  app.add_option("--packed-weights", options->packed_weights,
                 "file that keeps weights as kernels want them, made when absent: a quicker start")
      .type_name("FILE");
  app.add_option("--force", options->force,
                 "implementations that kernels must have, as in conv=direct,gemm=panels; several "
                 "for a family, as in conv=winograd:direct, are tried in this order")
      .type_name("FAMILY=NAME");
  AddPassOptions(app, &options->passes);
}

void AddFollowOption(Command app, ModelOptions* options) {
  app.add_option("--plan", options->plan,
                 "what `heddle plan --json` printed for this model and these shapes: run as it "
                 "says, under its options")
      .type_name("FILE.json");
}

Status WriteTrace(const std::string& path, const RunReport& report) {
  return WriteDurable(path, report.ToChromeTrace());
}

}  // namespace heddle::tools
