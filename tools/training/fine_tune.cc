#include "tools/training/fine_tune.h"

#include <chrono>
#include <csignal>
#include <memory>
#include <optional>

#include "heddle/heddle.h"
#include "heddle/model_files.h"
#include "tools/feeds.h"
#include "tools/json_output.h"
#include "tools/training/stop_signal.h"
#include "tools/training/train_output.h"
#include "tools/values/durable.h"
#include "tools/values/names.h"
#include "tools/values/npy.h"
#include "training/fine_tuning.h"

namespace heddle::tools {
namespace {

using TuneClock = std::chrono::steady_clock;
using training::FineTuning;

class FineTuner {
 public:
  explicit FineTuner(const FineTuneFlags& options)
      : options_(options), executor_(options.model.executor()) {}

  Status Run() {
    CatchStopSignals();
    std::vector<std::string> warnings;
    HEDDLE_RETURN_IF_ERROR(Open(&warnings));
    const auto start = TuneClock::now();
    {
      TrainProgress progress(options_.quiet, first_, steps_, data_.steps_per_epoch(),
                             options_.log_every);
      for (const std::string& line : tuning_->prepared().said) progress.Say("heddle: " + line);
      for (const std::string& warning : warnings) progress.Say("heddle: " + warning);
      if (first_ > 0) progress.Say("resumed after step " + std::to_string(first_));
      while (tuning_->done() < steps_ && StopSignal() == 0) {
        const Status status = Step(progress, start);
        if (!status.ok()) {
          const Status told(status.code(),
                            "in step " + std::to_string(tuning_->done()) + ": " + status.message());
          return status.location() ? told.At(*status.location()) : told;
        }
        HEDDLE_RETURN_IF_ERROR(AfterStep(progress));
      }
    }
    const int signal = tuning_->done() < steps_ ? StopSignal() : 0;
    HEDDLE_RETURN_IF_ERROR(Finish());
    const std::chrono::duration<double> took = TuneClock::now() - start;
    return Report(signal, took.count());
  }

 private:
  Status Open(std::vector<std::string>* warnings) {
    ProgramPart part;
    part.signature = options_.signature;
    HEDDLE_ASSIGN_OR_RETURN(file_, FindProgramFile(options_.forward));
    HEDDLE_ASSIGN_OR_RETURN(Model model, LoadModel(file_, "", part));
    for (const std::string& path : options_.init)
      HEDDLE_RETURN_IF_ERROR(LoadParameters(model.program, path, *model.scope));
    const ProgramInputs inputs = TypedInputsOf(model.program);
    HEDDLE_ASSIGN_OR_RETURN(data_, OpenTrainData(options_.data, inputs));
    HEDDLE_RETURN_IF_ERROR(OpenValidation(inputs));
    steps_ = options_.steps;
    if (options_.epochs > 0 && data_.steps_per_epoch() == 0)
      return Status(StatusCode::kInvalidArgument,
                    "--epochs needs --data or --feed: without them an epoch has no length");
    if (options_.epochs > 0) steps_ = options_.epochs * data_.steps_per_epoch();
    HEDDLE_RETURN_IF_ERROR(OpenRates());
    training::FineTuneOptions tune;
    tune.losses = SplitNames(options_.losses);
    tune.wrt = SplitNames(options_.wrt);
    tune.freeze = options_.freeze;
    tune.no_decay = options_.no_decay;
    tune.rule = options_.rule;
    HEDDLE_ASSIGN_OR_RETURN(tune.prepare, ReadPreparation(options_.prepare));
    tune.fetches = options_.model.fetches;
    tune.stack = !options_.out.empty();
    tune.compile = options_.model.compile();
    tune.memory_limit = options_.model.memory_limit;
    tune.seed = options_.data.batches.seed;
    std::vector<std::vector<Feed>> examples(2);
    HEDDLE_ASSIGN_OR_RETURN(examples[0], data_.Step(0));
    const int64_t last = std::max<int64_t>(data_.steps_per_epoch() - 1, 0);
    HEDDLE_ASSIGN_OR_RETURN(examples[1], data_.Step(last));
    HEDDLE_ASSIGN_OR_RETURN(
        tuning_, FineTuning::Open(executor_, std::move(model), options_.forward, tune, examples));
    if (!options_.checkpoint.empty())
      HEDDLE_RETURN_IF_ERROR(tuning_->OpenCheckpoints(
          options_.checkpoint, options_.keep, options_.resume, data_.Describe(), steps_, warnings));
    first_ = tuning_->done();
    if (options_.metrics.empty()) return Status::Ok();
    return metrics_.Open(options_.metrics, tuning_->fetches(), first_);
  }

  Status OpenValidation(const ProgramInputs& inputs) {
    if (options_.validate.empty()) return Status::Ok();
    DataOptions data = options_.data;
    data.feeds.clear();
    data.lods.clear();
    data.shards = options_.validate;
    data.batches.shuffle = data.batches.drop_last = false;
    HEDDLE_ASSIGN_OR_RETURN(training::Batches batches, OpenTrainData(data, inputs));
    for (int64_t s = 0; s < batches.steps_per_epoch(); ++s) {
      HEDDLE_ASSIGN_OR_RETURN(validation_.emplace_back(), batches.Step(s));
    }
    return Status::Ok();
  }

  Status OpenRates() {
    if (options_.rates.empty()) {
      rates_.assign(1, options_.rate);
      return Status::Ok();
    }
    HEDDLE_ASSIGN_OR_RETURN(const Tensor tensor, ReadNpy(options_.rates));
    if (tensor.shape().rank() != 1 || tensor.numel() < steps_ ||
        (tensor.dtype() != DType::kF32 && tensor.dtype() != DType::kF64))
      return Status(StatusCode::kInvalidArgument,
                    options_.rates + ": expected a float for each of " + std::to_string(steps_) +
                        " steps, got " + std::string(Name(tensor.dtype())) + " " +
                        tensor.shape().ToString());
    for (int64_t s = 0; s < tensor.numel(); ++s)
      rates_.push_back(tensor.dtype() == DType::kF32
                           ? static_cast<double>(static_cast<const float*>(tensor.raw())[s])
                           : static_cast<const double*>(tensor.raw())[s]);
    return Status::Ok();
  }

  Status Step(TrainProgress& progress, TuneClock::time_point start) {
    const auto s = rates_.size() == 1 ? 0 : static_cast<size_t>(tuning_->done());
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<Feed> feeds, data_.Step(tuning_->done()));
    RunOptions run = options_.model.run();
    run.check_nan_inf = options_.check_nan_inf;
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<Value> values, tuning_->Step(feeds, rates_[s], run));
    const int64_t done = tuning_->done();
    last_ = MetricsOf(tuning_->fetches(), values);
    const int64_t per_epoch = data_.steps_per_epoch();
    const std::chrono::duration<double> passed = TuneClock::now() - start;
    metrics_.Add(done, per_epoch > 0 ? (done - 1) / per_epoch + 1 : 1, passed.count(), last_);
    progress.Step(done, last_);
    return Status::Ok();
  }

  Status AfterStep(TrainProgress& progress) {
    const int64_t done = tuning_->done();
    if (!options_.checkpoint.empty() && done % options_.every == 0)
      HEDDLE_RETURN_IF_ERROR(Checkpoint());
    if (validation_.empty()) return Status::Ok();
    const int64_t every = options_.validate_every > 0
                              ? options_.validate_every
                              : std::max<int64_t>(data_.steps_per_epoch(), 1);
    if (done % every != 0 && done != steps_) return Status::Ok();
    HEDDLE_ASSIGN_OR_RETURN(const double loss,
                            tuning_->Evaluate(validation_, options_.model.run()));
    validated_.emplace_back(done, loss);
    char text[64];
    std::snprintf(text, sizeof(text), "%.6g", loss);
    progress.Say("validation after step " + std::to_string(done) + ": loss " + text);
    return Status::Ok();
  }

  Status Checkpoint() {
    // Whoever resumes from this checkpoint wants the metrics of all steps before it.
    HEDDLE_RETURN_IF_ERROR(metrics_.Flush());
    return tuning_->Checkpoint();
  }

  Status Finish() {
    HEDDLE_RETURN_IF_ERROR(Checkpoint());
    const Model& exported = tuning_->prepared().exported;
    if (!options_.out.empty()) HEDDLE_RETURN_IF_ERROR(tuning_->stacks().Write(options_.out));
    if (options_.save.ends_with(".npz")) {
      HEDDLE_ASSIGN_OR_RETURN(const std::string bytes, PackNpz(tuning_->Arrays()));
      HEDDLE_RETURN_IF_ERROR(WriteDurable(options_.save, bytes));
    } else if (options_.save.ends_with('/')) {
      HEDDLE_RETURN_IF_ERROR(
          SaveParametersSeparately(exported.program, *exported.scope, options_.save));
    } else if (!options_.save.empty()) {
      HEDDLE_RETURN_IF_ERROR(SaveParameters(exported.program, *exported.scope, options_.save));
    }
    if (!options_.prepare.save_adapter.empty()) {
      HEDDLE_ASSIGN_OR_RETURN(const auto adapters, tuning_->Adapters());
      HEDDLE_ASSIGN_OR_RETURN(const std::string bytes, PackNpz(gradient::ArraysOf(adapters)));
      HEDDLE_RETURN_IF_ERROR(WriteDurable(options_.prepare.save_adapter, bytes));
    }
    if (options_.exported.empty()) return Status::Ok();
    return tuning_->Export(file_, options_.exported);
  }

  Status Report(int signal, double seconds) const {
    const int64_t done = tuning_->done();
    if (options_.json) {
      Json json = NewJson("train");
      json["program"] = file_;
      json["steps"] = done;
      json["resumed_from"] = first_;
      json["seconds"] = seconds;
      json["steps_per_s"] = static_cast<double>(done - first_) / std::max(seconds, 1e-9);
      json["threads"] = executor_.threads();
      for (const Metric& m : last_)
        if (!m.text.empty()) json["last"][m.name] = std::strtod(m.text.c_str(), nullptr);
      json["gradients"] = Json::object();
      for (const gradient::GradientName& name : tuning_->step().gradients)
        json["gradients"][name.variable] = name.gradient;
      json["loss"] = tuning_->prepared().losses;
      if (!tuning_->prepared().said.empty()) json["said"] = tuning_->prepared().said;
      for (const auto& [step, loss] : validated_)
        json["validation"].push_back({{"step", step}, {"loss", loss}});
      if (!tuning_->checkpoint_path().empty()) json["checkpoint"] = tuning_->checkpoint_path();
      if (!options_.save.empty()) json["save"] = options_.save;
      json["stopped"] = signal != 0;
      WriteJson(json);
    }
    if (signal == 0) return Status::Ok();
    std::string text = std::string(signal == SIGINT ? "SIGINT" : "SIGTERM") + " after step " +
                       std::to_string(done) + " of " + std::to_string(steps_);
    if (!options_.checkpoint.empty()) text += "; go on with --resume";
    return Status(StatusCode::kCancelled, text);
  }

  const FineTuneFlags& options_;
  Executor executor_;
  std::string file_;
  std::unique_ptr<FineTuning> tuning_;
  std::vector<double> rates_;
  training::Batches data_;
  std::vector<std::vector<Feed>> validation_;
  std::vector<std::pair<int64_t, double>> validated_;  // step, loss
  MetricsFile metrics_;
  std::vector<Metric> last_;
  int64_t steps_ = 0, first_ = 0;
};

}  // namespace

void AddFineTuning(Command app, Command begin, FineTuneFlags* o) {
  Option forward = begin
                       .add_option("--forward", o->forward,
                                   "a model of any format, whose gradients and updates are added")
                       .type_name("MODEL");
  const auto tune = [&](Option option) {
    option.needs(forward);
    return option;
  };
  tune(app.add_option("--loss", o->losses,
                      "the loss, or several with commas: their sum is minimised")
           .type_name("NAME,...")
           .one_value_each());
  Option kind = tune(app.add_option("--optimizer", o->rule.kind, "the rule of the updates")
                         .one_of(gradient::OptimizerKinds())
                         .type_name("KIND"));
  forward.needs(kind);
  AddPreparation(app, tune, &o->prepare);
  Option rate =
      tune(app.add_option("--lr", o->rate, "learning rate").type_name("X").not_negative());
  Option rates =
      tune(app.add_option("--lr-schedule", o->rates, "learning rates: element s is that of step s")
               .type_name("FILE.npy"));
  rate.excludes(rates);
  tune(app.add_option("--momentum", o->rule.momentum, "of momentum [0.9] and rmsprop [0]")
           .type_name("X"));
  tune(app.add_flag("--nesterov", o->rule.nesterov, "Nesterov's momentum"));
  tune(app.add_option("--beta1", o->rule.beta1, "decay of the first moment [0.9]").type_name("X"));
  tune(app.add_option("--beta2", o->rule.beta2, "decay of the second moment [0.999]")
           .type_name("X"));
  tune(app.add_option("--epsilon", o->rule.epsilon, "the rule's small number").type_name("X"));
  tune(app.add_option("--rho", o->rule.rho, "decay of adadelta and rmsprop [0.95]").type_name("X"));
  tune(app.add_flag("--centered", o->rule.centered, "rmsprop without the mean gradient"));
  tune(app.add_option("--initial-accumulator", o->rule.initial_accumulator, "of adagrad [0]")
           .type_name("X"));
  tune(app.add_flag("--lazy", o->rule.lazy, "adam leaves rows alone that did not occur"));
  tune(
      app.add_option("--weight-decay", o->rule.weight_decay,
                     "added to gradients times the parameter; in the rule of adamw [0.01] and lamb")
          .type_name("X"));
  tune(app.add_option("--no-decay", o->no_decay, "parameters without it; may be repeated")
           .type_name("GLOB")
           .one_value_each());
  Option value =
      tune(app.add_option("--clip-value", o->rule.clip_value, "clip each element").type_name("X"));
  Option norm = tune(
      app.add_option("--clip-norm", o->rule.clip_norm, "clip each gradient's norm").type_name("X"));
  Option global = tune(app.add_option("--clip-global-norm", o->rule.clip_global_norm,
                                      "clip the norm of all gradients together")
                           .type_name("X"));
  value.excludes(norm);
  value.excludes(global);
  norm.excludes(global);
  tune(app.add_option("--wrt", o->wrt, "what is trained [all trainable parameters]")
           .type_name("NAME,...")
           .one_value_each());
  tune(app.add_option("--freeze", o->freeze, "parameters that are not trained; may be repeated")
           .type_name("GLOB")
           .one_value_each());
  Option validate =
      tune(app.add_option("--validate", o->validate,
                          "batches as those of --data, of which the mean loss is told from time to "
                          "time, without learning from them; may be several files")
               .type_name("FILE.npz"));
  tune(app.add_option("--validate-every", o->validate_every, "steps between [an epoch]")
           .type_name("K")
           .positive())
      .needs(validate);
  tune(app.add_option("--signature", o->signature,
                      "inputs and outputs of a TensorFlow SavedModel [serving_default]")
           .type_name("KEY"));
}

Status FineTune(const FineTuneFlags& options) { return FineTuner(options).Run(); }

}  // namespace heddle::tools
