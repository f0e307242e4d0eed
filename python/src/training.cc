#include "python/src/training.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gradient/minimize.h"
#include "gradient/tuning/tuning.h"
#include "heddle/model_files.h"
#include "python/src/arrays.h"
#include "python/src/errors.h"
#include "python/src/gil.h"
#include "python/src/interrupt.h"
#include "python/src/loans.h"
#include "training/batches.h"
#include "training/fine_tuning.h"

namespace heddle::python {
namespace {

using training::Batches;
using training::BatchOptions;
using training::FineTuneOptions;
using training::FineTuning;

// f() without the GIL, interrupted by Ctrl-C as a run is. `f` takes the scope of signals.
template <typename F>
auto Interruptible(F f) {
  std::optional<decltype(f(std::declval<const InterruptScope&>()))> result;
  {
    const InterruptScope signals;
    {
      const ReleasedGil released;
      const LimitScope limits(signals.limits());
      result = f(signals);
    }
    signals.ThrowIfInterrupted();
  }
  return *std::move(result);
}

// What arrays become when they are fed to a program.
class InputKinds {
 public:
  explicit InputKinds(const Program& program)
      : infos_(program.inputs().empty() ? program.unwritten() : program.inputs()),
        types_(InputTypes(program, infos_)) {}

  Value Convert(nb::handle array, const std::string& name) const {
    for (size_t k = 0; k < infos_.size(); ++k)
      if (infos_[k].name == name) return ToValue(array, infos_[k].dtype, name, types_[k]);
    return ToValue(array, DType::kUnknown, name);
  }
  std::vector<Feed> Feeds(const nb::dict& arrays) const {
    std::vector<Feed> feeds;
    // A list: conversions may run code that changes the dict.
    for (nb::handle item : arrays.items()) {
      const auto [name, array] = nb::cast<std::pair<std::string, nb::object>>(item);
      feeds.push_back({name, Convert(array, name)});
    }
    return feeds;
  }
  std::vector<std::vector<Feed>> All(const std::vector<nb::dict>& batches) const {
    std::vector<std::vector<Feed>> feeds;
    for (const nb::dict& batch : batches) feeds.push_back(Feeds(batch));
    return feeds;
  }

 private:
  const std::vector<TensorInfo> infos_;
  const std::vector<std::string> types_;
};

// Arrays in memory, the first axis counting samples or batches.
std::shared_ptr<Batches> BatchesOf(const nb::dict& arrays, const Program& program,
                                   int64_t batch_size, bool shuffle, bool drop_last,
                                   uint64_t seed) {
  NamedTensors tensors;
  for (Feed& feed : InputKinds(program).Feeds(arrays)) {
    if (!feed.value.is_tensor())
      throw nb::type_error(("data '" + feed.name + "' is no array of numbers").c_str());
    tensors.emplace_back(feed.name, feed.value.tensor().Contiguous());
  }
  auto batches = std::make_shared<Batches>(BatchOptions{batch_size, shuffle, drop_last, seed});
  Check(batches->AddShard(
      "data", [tensors]() -> Result<NamedTensors> { return tensors; }, /*keep=*/true));
  Check(batches->Finish());
  return batches;
}

// A training job and what it needs to live.
class Tuner {
 public:
  Tuner(std::shared_ptr<Executor> executor, const Program& program, std::shared_ptr<Scope> scope,
        const std::string& name, const FineTuneOptions& options,
        const std::vector<nb::dict>& examples, Batches* batches)
      : executor_(std::move(executor)), kinds_(program) {
    std::vector<std::vector<Feed>> feeds = kinds_.All(examples);
    if (batches != nullptr)
      for (const int64_t step : {int64_t{0}, batches->steps_per_epoch() - 1})
        feeds.push_back(Check(batches->Step(step)));
    tuning_ = Check(Interruptible([&](const InterruptScope&) {
      return FineTuning::Open(*executor_, {program, std::move(scope)}, name, options, feeds);
    }));
  }

  // The losses' sum, and the other fetched values.
  nb::tuple Step(const nb::dict& feeds, double rate, bool check_nan_inf) {
    return StepOn(kinds_.Feeds(feeds), rate, check_nan_inf);
  }
  nb::tuple StepOf(Batches& batches, int64_t step, double rate, bool check_nan_inf) {
    return StepOn(Check(batches.Step(step)), rate, check_nan_inf);
  }
  double Evaluate(const std::vector<nb::dict>& batches, Batches* arrays) {
    std::vector<std::vector<Feed>> feeds = kinds_.All(batches);
    for (int64_t s = 0; arrays != nullptr && s < arrays->steps_per_epoch(); ++s)
      feeds.push_back(Check(arrays->Step(s)));
    const double loss = Check(Interruptible([&](const InterruptScope& signals) {
      return tuning_->Evaluate(feeds, OptionsOf(signals, false));
    }));
    feeds.clear();
    SettleLoans();
    return loss;
  }
  std::vector<std::string> OpenCheckpoints(const std::string& directory, int keep, bool resume,
                                           const std::string& data, int64_t most) {
    std::vector<std::string> warnings;
    Check(tuning_->OpenCheckpoints(directory, keep, resume, data, most, &warnings));
    return warnings;
  }
  void Checkpoint() {
    Status status;
    {
      const ReleasedGil released;
      status = tuning_->Checkpoint();
    }
    Check(status);
  }
  void CloseCheckpoints() { tuning_->CloseCheckpoints(); }
  // Program and scope of the tuned model.
  std::pair<Program, std::shared_ptr<Scope>> Tuned() const {
    Model model = Check(tuning_->Tuned());
    return {std::move(model.program), std::move(model.scope)};
  }
  void Export(const std::string& path, const std::string& directory) const {
    Status status;
    {
      const ReleasedGil released;
      const auto file = FindProgramFile(path);
      status = file.ok() ? tuning_->Export(*file, directory) : file.status();
    }
    Check(status);
  }
  nb::dict Arrays() const { return Copied(tuning_->Arrays()); }
  nb::dict Adapters() const { return Copied(gradient::ArraysOf(Check(tuning_->Adapters()))); }
  std::vector<std::pair<std::string, std::string>> Gradients() const {
    std::vector<std::pair<std::string, std::string>> names;
    for (const gradient::GradientName& name : tuning_->step().gradients)
      names.emplace_back(name.variable, name.gradient);
    return names;
  }
  const FineTuning& tuning() const { return *tuning_; }

 private:
  static RunOptions OptionsOf(const InterruptScope& signals, bool check_nan_inf) {
    RunOptions run;
    run.stop = signals.token();
    run.host = signals.host();
    run.check_nan_inf = check_nan_inf;
    return run;
  }
  // Steps go on writing the tensors.
  static nb::dict Copied(const NamedTensors& tensors) {
    nb::dict arrays;
    for (const auto& [name, tensor] : tensors) arrays[name.c_str()] = ToArray(tensor.Clone());
    return arrays;
  }
  nb::tuple StepOn(std::vector<Feed> feeds, double rate, bool check_nan_inf) {
    auto values = Check(Interruptible([&](const InterruptScope& signals) {
      return tuning_->Step(feeds, rate, OptionsOf(signals, check_nan_inf));
    }));
    feeds.clear();
    SettleLoans();
    nb::list rest;
    for (size_t k = tuning_->prepared().losses.size(); k < values.size(); ++k)
      rest.append(ToPython(std::move(values[k])));
    return nb::make_tuple(tuning_->losses().back(), rest);
  }

  std::shared_ptr<Executor> executor_;
  const InputKinds kinds_;
  std::unique_ptr<FineTuning> tuning_;
};

// The persistable variables in a scope of their own.
std::shared_ptr<Scope> CopiedScope(const Program& program, const Scope& scope) {
  auto copy = std::make_shared<Scope>();
  for (const TensorInfo& info : program.persistables()) {
    const Value* value = Check(FindVariable(scope, info.name));
    if (value == nullptr || !value->initialized()) continue;
    copy->Set(info.name, value->is_tensor() ? Value(value->tensor().Clone()) : *value);
  }
  return copy;
}

void BindOptions(nb::module_& module) {
  using gradient::OptimizerRule;
  nb::class_<OptimizerRule>(module, "OptimizerRule")
      .def(nb::init<>())
      .def_rw("kind", &OptimizerRule::kind)
      .def_rw("momentum", &OptimizerRule::momentum)
      .def_rw("beta1", &OptimizerRule::beta1)
      .def_rw("beta2", &OptimizerRule::beta2)
      .def_rw("epsilon", &OptimizerRule::epsilon)
      .def_rw("rho", &OptimizerRule::rho)
      .def_rw("initial_accumulator", &OptimizerRule::initial_accumulator)
      .def_rw("weight_decay", &OptimizerRule::weight_decay)
      .def_rw("nesterov", &OptimizerRule::nesterov)
      .def_rw("centered", &OptimizerRule::centered)
      .def_rw("lazy", &OptimizerRule::lazy)
      .def_rw("clip_value", &OptimizerRule::clip_value)
      .def_rw("clip_norm", &OptimizerRule::clip_norm)
      .def_rw("clip_global_norm", &OptimizerRule::clip_global_norm);
  nb::class_<FineTuneOptions>(module, "FineTuneOptions")
      .def("__init__",
           [](FineTuneOptions* self) {
             new (self) FineTuneOptions();
             self->with_losses = true;
           })
      .def_rw("losses", &FineTuneOptions::losses)
      .def_rw("wrt", &FineTuneOptions::wrt)
      .def_rw("freeze", &FineTuneOptions::freeze)
      .def_rw("no_decay", &FineTuneOptions::no_decay)
      .def_rw("rule", &FineTuneOptions::rule)
      .def_rw("fetches", &FineTuneOptions::fetches)
      .def_rw("seed", &FineTuneOptions::seed)
      .def_rw("memory_limit", &FineTuneOptions::memory_limit)
      .def_prop_rw(
          "opt_level", [](const FineTuneOptions& o) { return o.compile.opt_level; },
          [](FineTuneOptions& o, int level) { o.compile.opt_level = level; })
      .def_prop_rw(
          "serial",
          [](const FineTuneOptions& o) { return o.compile.schedule == Schedule::kSerial; },
          [](FineTuneOptions& o, bool serial) {
            o.compile.schedule = serial ? Schedule::kSerial : Schedule::kAuto;
          })
      .def("prepare", [](FineTuneOptions& o, const std::string& labels, const std::string& loss_op,
                         const std::string& output, int64_t head, int64_t rank, double alpha,
                         const std::vector<std::string>& lora_on, const nb::dict& adapter,
                         bool train_norms) {
        NamedTensors arrays;
        for (nb::handle item : adapter.items()) {
          const auto [name, array] = nb::cast<std::pair<std::string, nb::object>>(item);
          arrays.emplace_back(name, ToOwnTensor(array, DType::kUnknown, name));
        }
        o.prepare = {
            labels,
            loss_op,
            output,
            head,
            rank,
            alpha,
            lora_on,
            arrays.empty() ? std::vector<gradient::Adapter>() : Check(gradient::AdaptersOf(arrays)),
            train_norms};
      });
}

}  // namespace

void BindTraining(nb::module_& module) {
  module.def("optimizer_kinds", &gradient::OptimizerKinds);
  module.def("loss_kinds", &gradient::LossKinds);
  module.def("copied_scope", &CopiedScope, nb::arg("program"), nb::arg("scope"));
  BindOptions(module);
  nb::class_<Batches>(module, "Batches", "Arrays cut into batches; see training/batches.h.")
      .def_prop_ro("steps_per_epoch", &Batches::steps_per_epoch)
      .def("describe", &Batches::Describe);
  module.def("batches_of", &BatchesOf, nb::arg("arrays"), nb::arg("program"), nb::arg("batch_size"),
             nb::arg("shuffle"), nb::arg("drop_last"), nb::arg("seed"));
  nb::class_<Tuner>(module, "Tuner", "A training job, step by step; see heddle.train.")
      .def(nb::init<std::shared_ptr<Executor>, const Program&, std::shared_ptr<Scope>,
                    const std::string&, const FineTuneOptions&, const std::vector<nb::dict>&,
                    Batches*>(),
           nb::arg("executor"), nb::arg("program"), nb::arg("scope"), nb::arg("name"),
           nb::arg("options"), nb::arg("examples"), nb::arg("batches").none())
      .def("step", &Tuner::Step, nb::arg("feeds"), nb::arg("rate"), nb::arg("check_nan_inf"))
      .def("step_of", &Tuner::StepOf, nb::arg("batches"), nb::arg("step"), nb::arg("rate"),
           nb::arg("check_nan_inf"))
      .def("evaluate", &Tuner::Evaluate, nb::arg("batches"), nb::arg("arrays").none())
      .def("open_checkpoints", &Tuner::OpenCheckpoints, nb::arg("directory"), nb::arg("keep"),
           nb::arg("resume"), nb::arg("data"), nb::arg("most"))
      .def("checkpoint", &Tuner::Checkpoint)
      .def("close_checkpoints", &Tuner::CloseCheckpoints)
      .def("tuned", &Tuner::Tuned)
      .def("export", &Tuner::Export, nb::arg("path"), nb::arg("directory"))
      .def("arrays", &Tuner::Arrays)
      .def("adapters", &Tuner::Adapters)
      .def_prop_ro("gradients", &Tuner::Gradients)
      .def_prop_ro("done", [](const Tuner& t) { return t.tuning().done(); })
      .def_prop_ro("losses", [](const Tuner& t) { return t.tuning().losses(); })
      .def_prop_ro("loss_names", [](const Tuner& t) { return t.tuning().prepared().losses; })
      .def_prop_ro("fetches", [](const Tuner& t) { return t.tuning().fetches(); })
      .def_prop_ro("said", [](const Tuner& t) { return t.tuning().prepared().said; });
}

}  // namespace heddle::python
