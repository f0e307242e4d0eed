#include "tools/training/fine_tune.h"

#include <chrono>
#include <csignal>
#include <cstring>
#include <map>
#include <memory>
#include <optional>

#include "gradient/minimize.h"
#include "heddle/heddle.h"
#include "heddle/model_files.h"
#include "tools/feeds.h"
#include "tools/json_output.h"
#include "tools/training/durable.h"
#include "tools/training/stop_signal.h"
#include "tools/training/train_output.h"
#include "tools/values/names.h"
#include "tools/values/npy.h"

namespace heddle::tools {
namespace {

using TuneClock = std::chrono::steady_clock;

class FineTuner {
 public:
  explicit FineTuner(const FineTuneOptions& options)
      : options_(options), executor_(options.model.executor()), generator_(options.data.seed) {}

  Status Run() {
    CatchStopSignals();
    HEDDLE_RETURN_IF_ERROR(Open());
    const auto start = TuneClock::now();
    {
      TrainProgress progress(options_.quiet, 0, steps_, data_.steps_per_epoch(),
                             options_.log_every);
      for (const std::string& line : prepared_.said) progress.Say("heddle: " + line);
      while (done_ < steps_ && StopSignal() == 0) {
        const Status status = Step(progress, start);
        if (!status.ok()) {
          const Status told(status.code(),
                            "in step " + std::to_string(done_) + ": " + status.message());
          return status.location() ? told.At(*status.location()) : told;
        }
      }
    }
    const int signal = done_ < steps_ ? StopSignal() : 0;
    HEDDLE_RETURN_IF_ERROR(Finish());
    const std::chrono::duration<double> took = TuneClock::now() - start;
    return Report(signal, took.count());
  }

 private:
  Status Open() {
    ProgramPart part;
    part.signature = options_.signature;
    HEDDLE_ASSIGN_OR_RETURN(file_, FindProgramFile(options_.forward));
    HEDDLE_ASSIGN_OR_RETURN(model_, LoadModel(file_, "", part));
    for (const std::string& path : options_.init)
      HEDDLE_RETURN_IF_ERROR(LoadParameters(model_.program, path, *model_.scope));
    HEDDLE_ASSIGN_OR_RETURN(data_, TrainData::Open(options_.data, TypedInputsOf(model_.program)));
    auto prepared =
        Prepare(options_.prepare, model_, SplitNames(options_.losses), options_.data.seed, &data_);
    if (!prepared.ok())
      return Status(prepared.status().code(),
                    options_.forward + ": " + prepared.status().message());
    prepared_ = *std::move(prepared);
    gradient::GradientRequest request;
    request.losses = prepared_.losses;
    if (!options_.wrt.empty()) request.wrt = SplitNames(options_.wrt);
    if (!prepared_.sides.empty()) {
      // The weights stay as they are.
      if (!request.wrt) request.wrt = prepared_.head;
      const auto& sides = prepared_.trained_sides;
      request.wrt->insert(request.wrt->end(), sides.begin(), sides.end());
    }
    gradient::OptimizerRule rule;
    rule.kind = options_.optimizer;
    rule.momentum = options_.momentum;
    rule.beta1 = options_.beta1;
    rule.beta2 = options_.beta2;
    rule.epsilon = options_.epsilon;
    rule.rho = options_.rho;
    rule.initial_accumulator = options_.initial_accumulator;
    rule.weight_decay = options_.weight_decay;
    rule.nesterov = options_.nesterov;
    rule.centered = options_.centered;
    rule.lazy = options_.lazy;
    rule.clip_value = options_.clip_value;
    rule.clip_norm = options_.clip_norm;
    rule.clip_global_norm = options_.clip_global_norm;
    rule.no_decay = AnyOf(options_.no_decay);
    rule.frozen = AnyOf(options_.freeze);
    auto step = gradient::Minimize(prepared_.training, request, rule);
    if (!step.ok())
      return Status(step.status().code(), options_.forward + ": " + step.status().message());
    step_ = *std::move(step);
    for (const auto& [name, tensor] : step_.state) model_.scope->Set(name, tensor);
    steps_ = options_.steps;
    if (options_.epochs > 0 && data_.steps_per_epoch() == 0)
      return Status(StatusCode::kInvalidArgument,
                    "--epochs needs --data or --feed: without them an epoch has no length");
    if (options_.epochs > 0) steps_ = options_.epochs * data_.steps_per_epoch();
    HEDDLE_RETURN_IF_ERROR(OpenRates());
    fetches_ = options_.model.fetches;
    if (fetches_.empty()) fetches_ = request.losses;
    stacks_ = FetchStacks(options_.out.empty() ? std::vector<std::string>() : fetches_);
    CompileOptions compile = options_.model.compile();
    compile.fetches = fetches_;
    HEDDLE_ASSIGN_OR_RETURN(compiled_, executor_.Compile(step_.program, model_.scope, compile));
    if (options_.metrics.empty()) return Status::Ok();
    return metrics_.Open(options_.metrics, fetches_, 0);
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
    if (done_ == 0 || rates_.size() > 1) {
      const auto s = rates_.size() == 1 ? 0 : static_cast<size_t>(done_);
      Tensor rate = Tensor::Zeros(DType::kF32, Shape({1}));
      rate.mutable_data<float>()[0] = static_cast<float>(rates_[s]);
      model_.scope->Set(step_.learning_rate, std::move(rate));
    }
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<Feed> feeds, data_.Step(done_));
    RunOptions run = options_.model.run();
    run.generator = &generator_;
    run.check_nan_inf = options_.check_nan_inf;
    // What is fetched is from before the updates, also where a step rewrites it.
    std::vector<std::pair<size_t, Value>> before;
    for (size_t k = 0; k < fetches_.size(); ++k) {
      const auto info = step_.program.variable(fetches_[k]);
      const Value* value = model_.scope->Find(fetches_[k]);
      if (!info || value == nullptr || !value->is_tensor() || !value->initialized()) continue;
      const Tensor now = value->tensor().Contiguous();
      Tensor copy = Tensor::Zeros(now.dtype(), now.shape());
      std::memcpy(copy.mutable_raw(), now.raw(), now.bytes());
      before.emplace_back(k, Value(std::move(copy)));
    }
    HEDDLE_ASSIGN_OR_RETURN(std::vector<Value> values, executor_.RunValues(*compiled_, feeds, run));
    for (auto& [k, value] : before) values[k] = std::move(value);
    HEDDLE_RETURN_IF_ERROR(stacks_.Add(done_, values));
    ++done_;
    last_ = MetricsOf(fetches_, values);
    const int64_t per_epoch = data_.steps_per_epoch();
    const std::chrono::duration<double> passed = TuneClock::now() - start;
    metrics_.Add(done_, per_epoch > 0 ? (done_ - 1) / per_epoch + 1 : 1, passed.count(), last_);
    progress.Step(done_, last_);
    return Status::Ok();
  }

  // The trained and all persistable variables, by name.
  Status SaveArrays() const {
    std::map<std::string, Tensor> sorted;
    for (const TensorInfo& info : step_.program.persistables()) {
      const Value* value = model_.scope->Find(info.name);
      if (value != nullptr && value->is_tensor() && value->initialized())
        sorted[info.name] = value->tensor();
    }
    HEDDLE_ASSIGN_OR_RETURN(const std::string bytes,
                            PackNpz(NamedTensors(sorted.begin(), sorted.end())));
    return WriteDurable(options_.save, bytes);
  }

  // Trained parameters, and what the program itself rewrites, such as statistics.
  std::vector<std::string> Changed() const {
    std::vector<std::string> names = prepared_.head;
    const auto add = [&](const std::string& name) {
      const auto has = [&](const std::vector<std::string>& list) {
        return std::find(list.begin(), list.end(), name) != list.end();
      };
      if (!has(names) && !has(prepared_.sides)) names.push_back(name);
    };
    for (const gradient::GradientName& name : step_.gradients) add(name.variable);
    for (const gradient::Adapter& adapter : prepared_.adapters) add(adapter.weight);
    for (const TensorInfo& info : WrittenPersistables(prepared_.training)) add(info.name);
    return names;
  }

  Status Finish() {
    HEDDLE_RETURN_IF_ERROR(metrics_.Flush());
    if (!options_.out.empty()) HEDDLE_RETURN_IF_ERROR(stacks_.Write(options_.out));
    if (options_.save.ends_with(".npz"))
      HEDDLE_RETURN_IF_ERROR(SaveArrays());
    else if (options_.save.ends_with('/'))
      HEDDLE_RETURN_IF_ERROR(
          SaveParametersSeparately(prepared_.exported.program, *model_.scope, options_.save));
    else if (!options_.save.empty())
      HEDDLE_RETURN_IF_ERROR(
          SaveParameters(prepared_.exported.program, *model_.scope, options_.save));
    HEDDLE_ASSIGN_OR_RETURN(const auto adapters, TrainedAdapters(prepared_, *model_.scope));
    if (!options_.prepare.save_adapter.empty()) {
      HEDDLE_ASSIGN_OR_RETURN(const std::string bytes, PackNpz(gradient::ArraysOf(adapters)));
      HEDDLE_RETURN_IF_ERROR(WriteDurable(options_.prepare.save_adapter, bytes));
    }
    if (options_.exported.empty()) return Status::Ok();
    HEDDLE_RETURN_IF_ERROR(gradient::MergeAdapters(adapters, model_.scope.get()));
    return SaveTunedModel(prepared_.exported, file_, Changed(), options_.exported,
                          prepared_.reshaped);
  }

  Status Report(int signal, double seconds) const {
    if (options_.json) {
      Json json = NewJson("train");
      json["program"] = file_;
      json["steps"] = done_;
      json["resumed_from"] = 0;
      json["seconds"] = seconds;
      json["steps_per_s"] = static_cast<double>(done_) / std::max(seconds, 1e-9);
      json["threads"] = executor_.threads();
      for (const Metric& m : last_)
        if (!m.text.empty()) json["last"][m.name] = std::strtod(m.text.c_str(), nullptr);
      json["gradients"] = Json::object();
      for (const gradient::GradientName& name : step_.gradients)
        json["gradients"][name.variable] = name.gradient;
      json["loss"] = prepared_.losses;
      if (!prepared_.said.empty()) json["said"] = prepared_.said;
      if (!options_.save.empty()) json["save"] = options_.save;
      json["stopped"] = signal != 0;
      WriteJson(json);
    }
    if (signal == 0) return Status::Ok();
    return Status(StatusCode::kCancelled, std::string(signal == SIGINT ? "SIGINT" : "SIGTERM") +
                                              " after step " + std::to_string(done_) + " of " +
                                              std::to_string(steps_));
  }

  const FineTuneOptions& options_;
  Executor executor_;
  Generator generator_;
  std::string file_;
  Model model_;
  Prepared prepared_;
  gradient::TrainingStep step_;
  std::optional<CompiledProgram> compiled_;
  std::vector<std::string> fetches_;
  std::vector<double> rates_;
  TrainData data_;
  FetchStacks stacks_{{}};
  MetricsFile metrics_;
  std::vector<Metric> last_;
  int64_t steps_ = 0, done_ = 0;
};

}  // namespace

void AddFineTuning(Command app, Command begin, FineTuneOptions* o) {
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
  Option kind = tune(app.add_option("--optimizer", o->optimizer, "the rule of the updates")
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
  tune(app.add_option("--momentum", o->momentum, "of momentum [0.9] and rmsprop [0]")
           .type_name("X"));
  tune(app.add_flag("--nesterov", o->nesterov, "Nesterov's momentum"));
  tune(app.add_option("--beta1", o->beta1, "decay of the first moment [0.9]").type_name("X"));
  tune(app.add_option("--beta2", o->beta2, "decay of the second moment [0.999]").type_name("X"));
  tune(app.add_option("--epsilon", o->epsilon, "the rule's small number").type_name("X"));
  tune(app.add_option("--rho", o->rho, "decay of adadelta and rmsprop [0.95]").type_name("X"));
  tune(app.add_flag("--centered", o->centered, "rmsprop without the mean gradient"));
  tune(app.add_option("--initial-accumulator", o->initial_accumulator, "of adagrad [0]")
           .type_name("X"));
  tune(app.add_flag("--lazy", o->lazy, "adam leaves rows alone that did not occur"));
  tune(
      app.add_option("--weight-decay", o->weight_decay,
                     "added to gradients times the parameter; in the rule of adamw [0.01] and lamb")
          .type_name("X"));
  tune(app.add_option("--no-decay", o->no_decay, "parameters without it; may be repeated")
           .type_name("GLOB")
           .one_value_each());
  Option value =
      tune(app.add_option("--clip-value", o->clip_value, "clip each element").type_name("X"));
  Option norm =
      tune(app.add_option("--clip-norm", o->clip_norm, "clip each gradient's norm").type_name("X"));
  Option global = tune(app.add_option("--clip-global-norm", o->clip_global_norm,
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
  tune(app.add_option("--signature", o->signature,
                      "inputs and outputs of a TensorFlow SavedModel [serving_default]")
           .type_name("KEY"));
}

Status FineTune(const FineTuneOptions& options) { return FineTuner(options).Run(); }

}  // namespace heddle::tools
