// heddle train: runs a startup program, then a main program step after step.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>

#include "heddle/heddle.h"
#include "heddle/model_files.h"
#include "heddle/variables_bundle.h"
#include "tools/commands.h"
#include "tools/json_output.h"
#include "tools/options.h"
#include "tools/ranks.h"
#include "tools/training/fine_tune.h"
#include "tools/training/stop_signal.h"
#include "tools/training/train_data.h"
#include "tools/training/train_output.h"
#include "tools/values/durable.h"
#include "tools/values/names.h"
#include "tools/values/npy.h"
#include "tools/values/values.h"
#include "training/checkpoint.h"
#include "training/fetch_stacks.h"

namespace heddle::tools {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

struct Options {
  ModelOptions model;  // threads, schedule, fetches
  std::string startup, main;
  std::vector<std::string> init_ops, train_ops;  // of a graph that holds both programs
  std::vector<std::string> init, sets;
  DataOptions data;
  int64_t steps = 0, epochs = 0;
  std::string out, save, metrics, infer, exported;
  std::string checkpoint;
  int64_t every = 100;
  int keep = 3;
  int64_t log_every = 0;
  bool resume = false, json = false, quiet = false, check_nan_inf = false;
  FineTuneFlags tune;
};

// Ends the name of a file with TensorFlow's variables.
constexpr std::string_view kIndex = ".index";

Status Wrong(const std::string& why) { return Status(StatusCode::kInvalidArgument, why); }

class Trainer {
 public:
  // One of `ranks`.
  Trainer(const Options& options, int rank, int ranks)
      : options_(options),
        rank_(rank),
        ranks_(ranks),
        executor_(options.model.executor()),
        generator_(options.data.batches.seed) {}

  Status Run();

 private:
  Status LoadPrograms();
  Status Open();
  Status OpenCheckpoints(std::vector<std::string>* warnings);
  Status Resume(const training::TrainState& state);
  Status Begin();
  Status Compile();
  Status Steps(TrainProgress& progress);
  Status Step(TrainProgress& progress);
  Status CheckSavable() const;
  Status Checkpoint();
  Status Finish();
  Status Export() const;
  Status SaveArrays() const;
  Status Report(int signal);

  // Steps that the data last for.
  int64_t StepsPerEpoch() const { return data_.steps_per_epoch() / ranks_; }
  // Ranks keep together: the first one decides, and the others' runs end with its.
  bool Stopped() const { return rank_ == 0 && StopSignal() != 0; }

  const Options& options_;
  const int rank_, ranks_;
  Executor executor_;
  Generator generator_;
  Program startup_, main_, infer_;
  std::string main_file_;
  // Variables that the programs write; each program has its constants in a scope of its own.
  std::shared_ptr<Scope> variables_ = std::make_shared<Scope>();
  std::shared_ptr<Scope> scope_ = std::make_shared<Scope>(variables_);
  std::optional<CompiledProgram> compiled_;
  std::vector<std::string> fetches_;
  training::Batches data_;
  StepValues sets_;
  training::CheckpointDirectory checkpoints_;
  training::FetchStacks stacks_{{}};
  MetricsFile metrics_;
  std::vector<Metric> last_;  // of the last step
  int64_t first_ = 0, done_ = 0, steps_ = 0;
  int64_t saved_ = -1;  // step of the newest checkpoint
  Clock::time_point start_;
};

// Two files, or two parts of one.
Status Trainer::LoadPrograms() {
  ProgramPart main;
  main.targets = options_.train_ops;
  main.fetches = options_.model.fetches;
  HEDDLE_ASSIGN_OR_RETURN(main.feeds, FeedNames(options_.main, "", options_.data.feeds));
  if (options_.init_ops.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(startup_, Program::Load(options_.startup));
  } else {
    ProgramPart init;
    init.targets = options_.init_ops;
    HEDDLE_ASSIGN_OR_RETURN(const std::string file, FindProgramFile(options_.main));
    HEDDLE_ASSIGN_OR_RETURN(startup_, LoadProgram(file, init));
  }
  HEDDLE_ASSIGN_OR_RETURN(main_file_, FindProgramFile(options_.main));
  if (options_.train_ops.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(main_, Program::Load(main_file_));
    return Status::Ok();
  }
  HEDDLE_ASSIGN_OR_RETURN(main_, LoadProgram(main_file_, main));
  return LoadParameters(main_, main_file_, *scope_);
}

// Everything that can be wrong before the first step is found here.
Status Trainer::Open() {
  HEDDLE_RETURN_IF_ERROR(LoadPrograms());
  if (!options_.infer.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(infer_, Program::Load(options_.infer));
  }
  HEDDLE_ASSIGN_OR_RETURN(data_, OpenTrainData(options_.data, TypedInputsOf(main_)));
  steps_ = options_.steps;
  if (options_.epochs > 0 && StepsPerEpoch() == 0)
    return Wrong("--epochs needs --data or --feed: without them an epoch has no length");
  if (options_.epochs > 0) steps_ = options_.epochs * StepsPerEpoch();
  HEDDLE_ASSIGN_OR_RETURN(sets_, StepValues::Open(options_.sets, main_, steps_));
  fetches_ = options_.model.fetches;
  if (fetches_.empty())
    for (const TensorInfo& output : main_.outputs()) fetches_.push_back(output.name);
  if (fetches_.empty() && !main_.loss().empty()) fetches_.push_back(main_.loss());
  stacks_ = training::FetchStacks(options_.out.empty() ? std::vector<std::string>() : fetches_);
  return Status::Ok();
}

Status Trainer::OpenCheckpoints(std::vector<std::string>* warnings) {
  if (options_.checkpoint.empty()) return Status::Ok();
  HEDDLE_RETURN_IF_ERROR(checkpoints_.Open(options_.checkpoint, options_.keep));
  if (!options_.resume) {
    if (checkpoints_.Steps().empty()) return Status::Ok();
    return Wrong(options_.checkpoint + ": holds checkpoints (the newest after step " +
                 std::to_string(checkpoints_.Steps().back()) +
                 "); give --resume to go on from there, or another directory");
  }
  training::TrainState job;
  job.program = main_.hash();
  job.data = data_.Describe();
  HEDDLE_ASSIGN_OR_RETURN(const auto state, checkpoints_.LoadNewest(job, main_, *scope_, warnings));
  if (!state) return Status::Ok();
  return Resume(*state);
}

Status Trainer::Resume(const training::TrainState& state) {
  const std::string path = checkpoints_.PathOf(state.step);
  if (state.step > steps_)
    return Wrong(path + ": " + std::to_string(state.step) +
                 " steps are done there, more than the " + std::to_string(steps_) + " asked for");
  HEDDLE_RETURN_IF_ERROR(generator_.SetState(state.generator));
  if (!options_.out.empty()) HEDDLE_RETURN_IF_ERROR(stacks_.Restore(state.fetched));
  first_ = done_ = saved_ = state.step;
  return Status::Ok();
}

// Parameters of a job that begins: the startup program's, then those of --init.
Status Trainer::Begin() {
  auto scope = std::make_shared<Scope>(variables_);
  if (!options_.init_ops.empty())
    HEDDLE_RETURN_IF_ERROR(LoadParameters(startup_, main_file_, *scope));
  HEDDLE_ASSIGN_OR_RETURN(const CompiledProgram compiled, executor_.Compile(startup_, scope));
  const auto run = executor_.RunValues(compiled, {}, {.generator = &generator_});
  if (!run.ok()) return run.status();
  for (const std::string& path : options_.init)
    HEDDLE_RETURN_IF_ERROR(LoadParameters(main_, path, *scope_));
  return Status::Ok();
}

Status Trainer::Compile() {
  CompileOptions compile = options_.model.compile();
  compile.fetches = fetches_;
  HEDDLE_ASSIGN_OR_RETURN(compiled_, executor_.Compile(main_, scope_, compile));
  if (options_.metrics.empty()) return Status::Ok();
  return metrics_.Open(options_.metrics, fetches_, first_);
}

Status Trainer::Step(TrainProgress& progress) {
  HEDDLE_RETURN_IF_ERROR(sets_.Apply(done_, *scope_));
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<Feed> feeds, data_.Step(done_ * ranks_ + rank_));
  RunOptions run = options_.model.run();
  run.generator = &generator_;
  run.check_nan_inf = options_.check_nan_inf;
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<Value> values,
                          executor_.RunValues(*compiled_, feeds, run));
  HEDDLE_RETURN_IF_ERROR(stacks_.Add(done_, values));
  ++done_;
  last_ = MetricsOf(fetches_, values);
  const int64_t per_epoch = StepsPerEpoch();
  const std::chrono::duration<double> passed = Clock::now() - start_;
  metrics_.Add(done_, per_epoch > 0 ? (done_ - 1) / per_epoch + 1 : 1, passed.count(), last_);
  progress.Step(done_, last_);
  return Status::Ok();
}

Status Trainer::Steps(TrainProgress& progress) {
  while (done_ < steps_ && !Stopped()) {
    const Status status = Step(progress);
    if (!status.ok()) {
      const Status told(status.code(),
                        "in step " + std::to_string(done_) + ": " + status.message());
      return status.location() ? told.At(*status.location()) : told;
    }
    if (done_ == first_ + 1) HEDDLE_RETURN_IF_ERROR(CheckSavable());
    if (!options_.checkpoint.empty() && done_ % options_.every == 0)
      HEDDLE_RETURN_IF_ERROR(Checkpoint());
  }
  return Status::Ok();
}

// Better now than after hours.
Status Trainer::CheckSavable() const {
  const auto check = [this](const Program& program, const std::string& option) {
    for (const TensorInfo& info : program.persistables()) {
      const Value* value = scope_->Find(info.name);
      if (value == nullptr || !value->initialized())
        return Status(StatusCode::kNotFound, "variable '" + info.name +
                                                 "' has no value after the first step; " + option +
                                                 " could not save it");
    }
    return Status::Ok();
  };
  if (!options_.checkpoint.empty()) HEDDLE_RETURN_IF_ERROR(check(main_, "--checkpoint"));
  if (!options_.save.empty()) HEDDLE_RETURN_IF_ERROR(check(main_, "--save"));
  if (!options_.infer.empty()) HEDDLE_RETURN_IF_ERROR(check(infer_, "--infer"));
  return Status::Ok();
}

Status Trainer::Checkpoint() {
  // After no step there is nothing to go on from.
  if (options_.checkpoint.empty() || saved_ == done_ || done_ == 0) return Status::Ok();
  // Whoever resumes from this checkpoint wants the metrics of all steps before it.
  HEDDLE_RETURN_IF_ERROR(metrics_.Flush());
  training::TrainState state;
  state.step = done_;
  state.program = main_.hash();
  state.seed = options_.data.batches.seed;
  state.generator = generator_.State();
  state.data = data_.Describe();
  HEDDLE_ASSIGN_OR_RETURN(state.fetched, stacks_.Stacked());
  HEDDLE_RETURN_IF_ERROR(checkpoints_.Save(main_, *scope_, state));
  saved_ = done_;
  return Status::Ok();
}

// A model for `heddle run`.
Status Trainer::Export() const {
  const fs::path directory = options_.exported;
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) return Wrong(directory.string() + ": cannot be made: " + error.message());
  HEDDLE_RETURN_IF_ERROR(SaveParameters(infer_, *scope_, (directory / "model.pdiparams").string()));
  std::ifstream file(options_.infer, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return WriteDurable((directory / "model.pdmodel").string(), bytes);
}

// The variables that the programs keep from run to run, by name.
Status Trainer::SaveArrays() const {
  std::map<std::string, Tensor> sorted;
  for (const Program* program : {&startup_, &main_}) {
    for (const TensorInfo& info : WrittenPersistables(*program)) {
      // The positions of random operators in their sequences are no variables of the graph.
      if (info.name.ends_with("@state")) continue;
      const Value* value = scope_->Find(info.name);
      if (value == nullptr || !value->is_tensor() || !value->initialized())
        return Status(StatusCode::kNotFound, "variable '" + info.name + "' has no value to save");
      sorted[info.name] = value->tensor();
    }
  }
  const NamedTensors arrays(sorted.begin(), sorted.end());
  if (options_.save.ends_with(kIndex))
    return SaveVariablesBundle(options_.save.substr(0, options_.save.size() - kIndex.size()),
                               arrays);
  HEDDLE_ASSIGN_OR_RETURN(const std::string bytes, PackNpz(arrays));
  return WriteDurable(options_.save, bytes);
}

Status Trainer::Finish() {
  HEDDLE_RETURN_IF_ERROR(Checkpoint());
  HEDDLE_RETURN_IF_ERROR(metrics_.Flush());
  if (!options_.out.empty()) HEDDLE_RETURN_IF_ERROR(stacks_.Write(options_.out));
  if (options_.save.ends_with(".npz") || options_.save.ends_with(kIndex))
    HEDDLE_RETURN_IF_ERROR(SaveArrays());
  else if (options_.save.ends_with('/'))
    HEDDLE_RETURN_IF_ERROR(SaveParametersSeparately(main_, *scope_, options_.save));
  else if (!options_.save.empty())
    HEDDLE_RETURN_IF_ERROR(SaveParameters(main_, *scope_, options_.save));
  if (!options_.infer.empty()) HEDDLE_RETURN_IF_ERROR(Export());
  return Status::Ok();
}

Status Trainer::Report(int signal) {
  const std::chrono::duration<double> took = Clock::now() - start_;
  if (options_.json) {
    Json json = NewJson("train");
    json["program"] = options_.main;
    json["steps"] = done_;
    json["resumed_from"] = first_;
    json["seconds"] = took.count();
    json["steps_per_s"] = static_cast<double>(done_ - first_) / std::max(took.count(), 1e-9);
    json["threads"] = executor_.threads();
    for (const Metric& m : last_)
      if (!m.text.empty()) json["last"][m.name] = std::strtod(m.text.c_str(), nullptr);
    if (saved_ >= 0) json["checkpoint"] = checkpoints_.PathOf(saved_);
    if (!options_.save.empty()) json["save"] = options_.save;
    json["stopped"] = signal != 0;
    WriteJson(json);
  }
  if (signal == 0) return Status::Ok();
  std::string text = std::string(signal == SIGINT ? "SIGINT" : "SIGTERM") + " after step " +
                     std::to_string(done_) + " of " + std::to_string(steps_);
  if (!options_.checkpoint.empty()) text += "; go on with --resume";
  return Status(StatusCode::kCancelled, text);
}

Status Trainer::Run() {
  CatchStopSignals();
  HEDDLE_RETURN_IF_ERROR(Open());
  std::vector<std::string> warnings;
  HEDDLE_RETURN_IF_ERROR(OpenCheckpoints(&warnings));
  if (first_ == 0) HEDDLE_RETURN_IF_ERROR(Begin());
  HEDDLE_RETURN_IF_ERROR(Compile());
  start_ = Clock::now();
  {
    TrainProgress progress(options_.quiet, first_, steps_, StepsPerEpoch(), options_.log_every);
    for (const std::string& warning : warnings) progress.Say("heddle: " + warning);
    if (first_ > 0) progress.Say("resumed after step " + std::to_string(first_));
    HEDDLE_RETURN_IF_ERROR(Steps(progress));
  }
  const int signal = done_ < steps_ ? StopSignal() : 0;
  HEDDLE_RETURN_IF_ERROR(Finish());
  return Report(signal);
}

Status Tune(const Options& options) {
  if (options.model.ranks > 1 || !options.infer.empty() || !options.sets.empty())
    return Status(StatusCode::kUnimplemented, "--forward together with --ranks, --infer or --set");
  FineTuneFlags tune = options.tune;
  tune.model = options.model;
  tune.data = options.data;
  tune.init = options.init;
  tune.steps = options.steps;
  tune.epochs = options.epochs;
  tune.log_every = options.log_every;
  tune.out = options.out;
  tune.save = options.save;
  tune.metrics = options.metrics;
  tune.exported = options.exported;
  tune.checkpoint = options.checkpoint;
  tune.every = options.every;
  tune.keep = options.keep;
  tune.resume = options.resume;
  tune.json = options.json;
  tune.quiet = options.quiet;
  tune.check_nan_inf = options.check_nan_inf;
  return FineTune(tune);
}

// Each rank trains on its own batches; the parameters are the same on all, so that the first one's
// are kept and told.
Status Train(const Options& options) {
  if (!options.tune.forward.empty()) return Tune(options);
  if (options.model.ranks > 1 && !options.checkpoint.empty())
    return Status(StatusCode::kUnimplemented, "--checkpoint is for one rank; without --ranks");
  return RunRanks(options.model.ranks, options, [](int rank, Options mine) {
    if (rank > 0) {
      mine.out = mine.save = mine.metrics = mine.infer = mine.exported = "";
      mine.quiet = true;
      mine.json = false;
    }
    return Trainer(mine, rank, std::max(1, mine.model.ranks)).Run();
  });
}

std::string CheckMetrics(const std::string& text) {
  if (text.ends_with(".csv") || text.ends_with(".jsonl")) return "";
  return "'" + text + "' ends neither with .csv nor with .jsonl";
}

// Which options belong together.
std::string WhyWrong(const Options& o) {
  if (!o.tune.forward.empty()) {
    if (!o.main.empty()) return "--forward excludes --main";
    if (const std::string why = WhyNotPrepared(o.tune.prepare, !o.tune.losses.empty());
        !why.empty())
      return why;
    if (o.tune.prepare.head > 0 && !o.tune.prepare.save_adapter.empty() && o.exported.empty())
      return "--save-adapter does not hold the new head of --head: --export keeps it";
    if (o.tune.rate < 0 && o.tune.rates.empty()) return "--forward requires --lr or --lr-schedule";
    return "";
  }
  if (!o.exported.empty() && o.infer.empty()) return "--export requires --infer";
  return "";
}

void AddFiles(Command app, Options* o) {
  Command begin = app.add_choice_of_options("beginning");
  Option startup = begin.add_option("--startup", o->startup, "program that makes the parameters")
                       .type_name("FILE");
  AddFineTuning(app, begin, &o->tune);
  Option init =
      begin
          .add_option(
              "--init-op", o->init_ops,
              "operator of a TensorFlow graph, --main, that makes the variables; may be repeated")
          .type_name("NAME")
          .one_value_each();
  Option main =
      app.add_option("--main", o->main, "program of one step, or a TensorFlow graph that holds all")
          .type_name("FILE");
  startup.needs(main);
  init.needs(main);
  app.add_option("--train-op", o->train_ops,
                 "operator of that graph that a step runs; may be repeated")
      .type_name("NAME")
      .one_value_each();
  app.add_option(
         "--init", o->init,
         "parameters to begin with instead of the startup program's: a combined file of all "
         "persistable variables, a directory of single files, or a .pdparams or .pdopt; may "
         "be repeated")
      .type_name("FILE")
      .one_value_each();
  app.add_option("--fetch", o->model.fetches,
                 "variable to follow; may be repeated [the program's outputs, or its loss]")
      .type_name("NAME")
      .one_value_each();
  app.add_option("--out", o->out, "write fetch k of all steps, stacked, to DIR/out_<k>.npy")
      .type_name("DIR");
  app.add_option(
         "--save", o->save,
         "write all persistable variables at the end; a name that ends with / gets one file "
         "each; FILE.npz and FILE.index (TensorFlow's form, as in a SavedModel) have the variables "
         "that training writes")
      .type_name("FILE.pdiparams");
  Option infer = app.add_option("--infer", o->infer, "inference program for --export")
                     .type_name("MODEL.pdmodel");
  Option exported =
      app.add_option("--export", o->exported,
                     "write that program with the trained parameters, or the model of --forward in "
                     "its own format: a model for `heddle run`")
          .type_name("DIR");
  infer.needs(exported);
  app.add_option("--metrics", o->metrics, "a line per step, as CSV or as JSON lines")
      .type_name("FILE.csv|FILE.jsonl")
      .check(CheckMetrics);
}

void AddData(Command app, Options* o) {
  app.add_option("--feed", o->data.feeds,
                 "an input's batches, stacked along the first axis; step s takes batch s mod their "
                 "number")
      .type_name("NAME=FILE.npy")
      .one_value_each()
      .check(CheckPair);
  app.add_option("--lod", o->data.lods,
                 "sequence offsets of each batch of a --feed, levels separated by |")
      .type_name("NAME=0,2,5")
      .one_value_each()
      .check(CheckLod);
  app.add_option("--set", o->sets, "row s is put into a persistable variable before step s")
      .type_name("NAME=FILE.npy")
      .one_value_each()
      .check(CheckPair);
  app.add_option("--data", o->data.shards,
                 "arrays named as the inputs, their first axis stacking batches or, with "
                 "--batch-size, samples; may be several files")
      .type_name("FILE.npz");
  app.add_option("--unpack-limit", o->data.unpack_limit,
                 "bytes that the arrays of a file of --data may have in all; 0 = 256 MiB, or 100 "
                 "times the file's")
      .type_name("BYTES");
  app.add_option("--batch-size", o->data.batches.batch_size, "samples of --data in a batch")
      .type_name("B")
      .positive();
  app.add_flag("--shuffle", o->data.batches.shuffle, "take --data in another order in every epoch");
  app.add_flag("--drop-last", o->data.batches.drop_last,
               "leave out the samples of a file that fill no batch [a smaller batch]");
  app.add_option("--data-memory", o->data.memory_mb,
                 "files of --data that are larger together are kept in memory one at a time")
      .type_name("MB")
      .show_default();
  app.add_option("--seed", o->data.batches.seed,
                 "of --shuffle and of operators without a seed of their own")
      .type_name("S")
      .show_default();
  Command length = app.add_choice_of_options("length");
  length.add_option("--steps", o->steps, "train until N steps are done").type_name("N").positive();
  length.add_option("--epochs", o->epochs, "train until the data were seen E times")
      .type_name("E")
      .positive();
}

void AddCheckpoints(Command app, Options* o) {
  const Option checkpoint = app.add_option("--checkpoint", o->checkpoint,
                                           "keep checkpoints there, from which --resume goes on")
                                .type_name("DIR");
  app.add_option("--every", o->every, "steps between checkpoints")
      .type_name("K")
      .positive()
      .show_default();
  app.add_option("--keep", o->keep, "checkpoints to keep").type_name("M").positive().show_default();
  app.add_flag("--resume", o->resume, "go on from the newest checkpoint; begin where there is none")
      .needs(checkpoint);
  app.add_option("--log-every", o->log_every, "steps between lines where there is no terminal")
      .type_name("K")
      .positive();
  app.add_flag("--check-nan-inf", o->check_nan_inf,
               "stop at the first operator that writes a NaN or an infinity, and name it");
  app.add_flag("--quiet", o->quiet, "no progress on stderr");
  app.add_flag("--json", o->json, "a summary as one JSON object on stdout");
}

}  // namespace

void AddTrain(Command root, Action& chosen) {
  auto options = std::make_shared<Options>();
  Command app = root.add_command("train", "train a model, or go on with training it");
  AddFiles(app, options.get());
  AddData(app, options.get());
  AddCheckpoints(app, options.get());
  AddExecutionOptions(app, &options->model);
  AddLimitOptions(app, &options->model, "step");
  AddRanksOption(
      app, &options->model,
      "rank r of N takes batch s N + r in step s; what is saved and told is the first's");
  app.footer(
      "Examples:\n"
      "  heddle train --startup startup.pdmodel --main main.pdmodel --data train.npz\n"
      "               --batch-size 32 --shuffle --epochs 20 --save trained.pdiparams\n"
      "  heddle train --forward model.onnx --loss loss --optimizer adam --lr 0.001\n"
      "               --feed x=x.npy --steps 100 --export tuned\n"
      "  heddle train --forward model.onnx --labels y --loss-op softmax_with_cross_entropy\n"
      "               --head 5 --optimizer adam --lr 0.001 --data train.npz --batch-size 32\n"
      "               --epochs 3 --export tuned              (docs/fine-tuning.md)\n"
      "  heddle train … --checkpoint run1/ --every 500 --resume    (again after a crash)\n"
      "Exit status: 0 done, 1 failed, 2 wrong usage, 3 stopped by SIGINT or SIGTERM with the step\n"
      "finished and everything saved. docs/training.md tells more.");
  app.on_chosen([options, &chosen] { chosen = [options] { return Train(*options); }; },
                [options] { return WhyWrong(*options); });
}

}  // namespace heddle::tools
