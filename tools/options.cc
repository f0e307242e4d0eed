#include "tools/options.h"

#include <glog/logging.h>

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "heddle/device.h"
#include "heddle/model_files.h"
#include "tools/training/durable.h"
#include "tools/values/npy.h"
#include "tools/values/sequences.h"
#include "tools/values/values.h"

namespace heddle::tools {
namespace {

// NAME=VALUE, both not empty.
std::string CheckPair(const std::string& text) {
  const size_t at = text.find('=');
  if (at == std::string::npos || at == 0 || at + 1 == text.size())
    return "'" + text + "' is not of the form NAME=VALUE";
  return "";
}

// "2,3,224" or "2x3x224"; "-" for a scalar. At most Shape::kMaxRank dimensions >= 0.
bool ParseShape(const std::string& text, Shape* shape) {
  *shape = Shape();
  if (text == "-") return true;
  const char* p = text.data();
  const char* end = p + text.size();
  while (true) {
    int64_t d = 0;
    const auto [next, error] = std::from_chars(p, end, d);
    if (error != std::errc() || d < 0 || shape->rank() == Shape::kMaxRank) return false;
    shape->push_back(d);
    if (next == end) return true;
    if (*next != ',' && *next != 'x') return false;
    p = next + 1;
  }
}

std::string CheckShape(const std::string& text) {
  const std::string why = CheckPair(text);
  if (!why.empty()) return why;
  Shape shape;
  if (ParseShape(text.substr(text.find('=') + 1), &shape)) return "";
  return "'" + text + "' is not of the form NAME=2,3,4";
}

// Every option of this kind takes one value each time it is given.
void AddPairs(Command app, const std::string& name, std::vector<std::string>* pairs,
              const std::string& type, const std::string& help,
              std::function<std::string(const std::string&)> check) {
  app.add_option(name, *pairs, help).type_name(type).one_value_each().check(std::move(check));
}

std::string InputNames(const std::vector<TensorInfo>& inputs) {
  if (inputs.empty()) return "the model has no inputs";
  std::string names;
  for (const TensorInfo& i : inputs) names += (names.empty() ? "" : ", ") + i.name;
  return "the model's inputs are: " + names;
}

// SplitMix64: one well-mixed number per step.
class Random {
 public:
  explicit Random(const std::string& name) {
    for (char c : name) state_ = (state_ ^ static_cast<uint8_t>(c)) * 0x100000001b3ull;  // FNV-1a
  }
  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  // In [-1, 1), exact in every float type of 8 bits of precision or more.
  float Unit() { return static_cast<float>(Next() >> 56) / 128.0f - 1.0f; }

 private:
  uint64_t state_ = 0xcbf29ce484222325ull;
};

uint16_t HalfBits(float x, DType dtype) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  if (dtype == DType::kBF16) return static_cast<uint16_t>(bits >> 16);
  if (x == 0) return 0;
  const uint32_t exponent = ((bits >> 23) & 255) - 127 + 15;  // Unit() is normal in float16
  return static_cast<uint16_t>((bits >> 16 & 0x8000) | exponent << 10 | (bits >> 13 & 0x3ff));
}

// Floats in [-1, 1); integers and bools 0 or 1, which are valid as an index, a class or a length of
// almost any model.
void FillRandom(const std::string& name, Tensor* tensor) {
  Random random(name);
  const DType dtype = tensor->dtype();
  const size_t size = SizeOf(dtype);
  auto* at = tensor->mutable_data<std::byte>();
  if (IsInteger(dtype)) {
    std::memset(at, 0, tensor->bytes());
    for (int64_t i = 0; i < tensor->numel(); ++i)
      at[i * size] = static_cast<std::byte>(random.Next() >> 63);
    return;
  }
  const bool wide = dtype == DType::kF64 || dtype == DType::kC128;
  const int64_t n = tensor->numel() * (IsComplex(dtype) ? 2 : 1);
  for (int64_t i = 0; i < n; ++i) {
    const float x = random.Unit();
    if (size == 2) {
      reinterpret_cast<uint16_t*>(at)[i] = HalfBits(x, dtype);
    } else if (wide) {
      reinterpret_cast<double*>(at)[i] = x;
    } else {
      reinterpret_cast<float*>(at)[i] = x;
    }
  }
}

Result<Tensor> RandomTensor(const TensorInfo& input, const Shape* shape) {
  Shape actual = shape ? *shape : input.shape;
  if (!actual.known_rank())
    return Status(StatusCode::kInvalidArgument, "the model does not say the rank of input '" +
                                                    input.name + "': give --shape " + input.name +
                                                    "=…");
  for (int i = 0; i < actual.rank(); ++i)
    if (actual[i] < 0) actual[i] = 1;
  const DType dtype = input.dtype == DType::kUnknown ? DType::kF32 : input.dtype;
  Tensor tensor = Tensor::Empty(dtype, actual);
  if (!tensor.initialized())
    return Status(StatusCode::kResourceExhausted,
                  "no memory for input '" + input.name + "' of shape " + actual.ToString());
  FillRandom(input.name, &tensor);
  return tensor;
}

// NAME=VALUE pairs as a map; a name that is no input, or given twice, is an error.
Result<std::map<std::string, std::string>> ByName(const std::vector<std::string>& pairs,
                                                  const std::string& option,
                                                  const std::vector<TensorInfo>& inputs) {
  std::map<std::string, std::string> map;
  for (const std::string& pair : pairs) {
    const size_t at = pair.find('=');
    const std::string name = pair.substr(0, at);
    const bool known = std::any_of(inputs.begin(), inputs.end(),
                                   [&](const TensorInfo& i) { return i.name == name; });
    if (!known)
      return Status(StatusCode::kInvalidArgument,
                    option + ": there is no input '" + name + "'; " + InputNames(inputs));
    if (!map.emplace(name, pair.substr(at + 1)).second)
      return Status(StatusCode::kInvalidArgument, option + ": input '" + name + "' is given twice");
  }
  return map;
}

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

}  // namespace

std::string CachesText(const ModelOptions& options, const CompiledProgram& compiled) {
  std::ostringstream text;
  if (options.tune || !options.tuning_file.empty()) {
    const TuningReport report = compiled.tuning_report();
    for (const std::string& warning : report.warnings) LOG(WARNING) << warning;
    text << "tuning: " << report.measured << " kernels measured (" << report.changed
         << " not as usual), " << report.kept << " known";
  }
  if (!options.packed_weights.empty()) {
    const PackedWeightsReport report = compiled.packed_weights_report();
    for (const std::string& warning : report.warnings) LOG(WARNING) << warning;
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

std::string CheckLod(const std::string& text) {
  const std::string why = CheckPair(text);
  if (!why.empty()) return why;
  const auto lod = ParseLod(text.substr(text.find('=') + 1));
  return lod.ok() ? CheckOffsets(*lod).message() : lod.status().message();
}

RunOptions ModelOptions::run() const {
  RunOptions options;
  if (deadline_ms > 0)
    options.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(deadline_ms);
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

std::vector<TensorInfo> InputsOf(const Program& program) {
  std::vector<TensorInfo> inputs = program.inputs();
  return inputs.empty() ? program.unwritten() : inputs;
}

Result<Model> ModelOptions::Load() const { return Load({}); }

Result<Model> ModelOptions::Load(const FeedOptions& feeds) const {
  ProgramPart part;
  part.signature = signature;
  part.fetches = fetches;
  for (const std::string& pair : feeds.files) part.feeds.push_back(pair.substr(0, pair.find('=')));
  return LoadModel(model, params, part);
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
  options.reuse = reuse;
  options.in_place = in_place;
  for (const std::string& pair : max_shapes) {
    const size_t at = pair.find('=');
    Shape shape;
    ParseShape(pair.substr(at + 1), &shape);  // as CheckShape has done
    options.max_shapes.emplace_back(pair.substr(0, at), shape);
  }
  return options;
}

void AddModelOptions(Command app, ModelOptions* options) {
  app.add_option("MODEL", options->model,
                 "a program file (.pdmodel, .json of Paddle 3, .onnx, or a TensorFlow .pb), or a "
                 "directory with one (model.pdmodel, inference.pdmodel, inference.json, "
                 "__model__, saved_model.pb)")
      .required()
      .type_name("");
  app.add_option("--params", options->params,
                 "parameters: a combined file, or a directory with one file each "
                 "[the .pdiparams beside the model]")
      .type_name("FILE");
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

void AddFeedOptions(Command app, FeedOptions* options) {
  AddPairs(app, "--feed", &options->files, "NAME=FILE.npy",
           "value of an input; once for each input", CheckPair);
  app.add_option("--feed-npz", options->npz, "values of inputs, under their names")
      .type_name("FILE.npz");
  app.add_flag(
      "--random-feed", options->random,
      "random values for the inputs without one: the same in every run; floats in [-1, 1), "
      "integers 0 or 1, open dimensions 1");
  AddPairs(app, "--shape", &options->shapes, "NAME=1,3,224,224", "shape of a random input",
           CheckShape);
  AddPairs(app, "--lod", &options->lods, "NAME=0,2,5",
           "sequence offsets of an input, levels separated by |", CheckLod);
}

namespace {

// An array for the input. Unsigned integers of 32 bits go to integers of 64, and to those of 32
// where these have all of them.
Result<Tensor> ReadFeed(const std::string& file, const TensorInfo& input) {
  std::string type;
  HEDDLE_ASSIGN_OR_RETURN(const Tensor read, ReadNpy(file, &type));
  if (type == "uint16") return input.dtype == DType::kI32 ? Widened(read, type) : read;
  if (type != "uint32") return read;
  if (input.dtype == DType::kI64) return Widened(read, type);
  for (int64_t i = 0; i < read.numel(); ++i)
    if (read.data<int32_t>()[i] < 0)
      return Status(StatusCode::kInvalidArgument,
                    file + ": holds " +
                        std::to_string(static_cast<uint32_t>(read.data<int32_t>()[i])) +
                        " as uint32, which input '" + input.name + "' (" +
                        std::string(Name(input.dtype)) + ") cannot hold");
  return read;
}

}  // namespace

Result<std::vector<Feed>> MakeFeeds(const std::vector<TensorInfo>& inputs,
                                    const FeedOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(const auto files, ByName(options.files, "--feed", inputs));
  HEDDLE_ASSIGN_OR_RETURN(const auto shapes, ByName(options.shapes, "--shape", inputs));
  HEDDLE_ASSIGN_OR_RETURN(const auto lods, ByName(options.lods, "--lod", inputs));
  std::map<std::string, Tensor> archive;
  if (!options.npz.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(NamedTensors arrays, ReadNpz(options.npz));
    HEDDLE_RETURN_IF_ERROR(AttachOffsets(options.npz, &arrays));
    for (auto& [name, tensor] : arrays) archive.emplace(name, std::move(tensor));
  }
  std::vector<Feed> feeds;
  for (const TensorInfo& input : inputs) {
    Tensor tensor;
    const auto shape = shapes.find(input.name);
    if (const auto file = files.find(input.name); file != files.end()) {
      HEDDLE_ASSIGN_OR_RETURN(tensor, ReadFeed(file->second, input));
    } else if (const auto member = archive.find(input.name); member != archive.end()) {
      tensor = member->second;
    } else if (options.random) {
      Shape wanted;
      if (shape != shapes.end()) ParseShape(shape->second, &wanted);
      HEDDLE_ASSIGN_OR_RETURN(tensor,
                              RandomTensor(input, shape != shapes.end() ? &wanted : nullptr));
    } else {
      return Status(StatusCode::kInvalidArgument,
                    "input '" + input.name + "' (" + std::string(Name(input.dtype)) + " " +
                        input.shape.ToString() + ") has no value: give --feed " + input.name +
                        "=FILE.npy, or --random-feed");
    }
    if (const auto lod = lods.find(input.name); lod != lods.end()) {
      HEDDLE_ASSIGN_OR_RETURN(LoD levels, ParseLod(lod->second));
      tensor.set_lod(std::move(levels));
    }
    feeds.push_back({input.name, Value(std::move(tensor))});
  }
  return feeds;
}

Status WriteTrace(const std::string& path, const RunReport& report) {
  return WriteDurable(path, report.ToChromeTrace());
}

}  // namespace heddle::tools
