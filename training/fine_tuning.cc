#include "training/fine_tuning.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "heddle/model_files.h"
#include "tools/values/values.h"
#include "training/memory_limit.h"

namespace heddle::training {
namespace {

constexpr const char* kLosses = "@losses";  // in checkpoints

Status WrongTuning(const std::string& why) { return Status(StatusCode::kInvalidArgument, why); }

Status In(const std::string& name, const Status& status) {
  return Status(status.code(), name + ": " + status.message());
}

// The sum of the losses' elements, the first `count` values; nullopt: one is no tensor of numbers.
std::optional<double> LossOf(const std::vector<Value>& values, size_t count) {
  double sum = 0;
  for (size_t k = 0; k < count; ++k) {
    if (!values[k].is_tensor() || !values[k].tensor().initialized()) return std::nullopt;
    const Tensor t = values[k].tensor().Contiguous();
    for (int64_t i = 0; i < t.numel(); ++i) sum += tools::NumberAt(t, i);
  }
  return sum;
}

// Samples in a batch: the first dimension of what is fed; 1 if there is none.
int64_t SamplesIn(const std::vector<Feed>& batch) {
  for (const Feed& feed : batch)
    if (feed.value.is_tensor() && feed.value.tensor().rank() > 0) return feed.value.tensor().dim(0);
  return 1;
}

}  // namespace

Result<std::unique_ptr<FineTuning>> FineTuning::Open(
    Executor& executor, Model model, const std::string& name, const FineTuneOptions& options,
    const std::vector<std::vector<Feed>>& examples) {
  std::unique_ptr<FineTuning> made(new FineTuning(executor, std::move(model), options));
  HEDDLE_RETURN_IF_ERROR(made->Build(name, examples));
  return made;
}

Status FineTuning::Build(const std::string& name, const std::vector<std::vector<Feed>>& examples) {
  auto prepared = Prepare(options_.prepare, model_, options_.losses, options_.seed, examples);
  if (!prepared.ok()) return In(name, prepared.status());
  prepared_ = *std::move(prepared);
  gradient::GradientRequest request;
  request.losses = prepared_.losses;
  if (!options_.wrt.empty()) request.wrt = options_.wrt;
  if (!prepared_.sides.empty()) {
    // The weights stay as they are.
    if (!request.wrt) request.wrt = prepared_.head;
    const auto& sides = prepared_.trained_sides;
    request.wrt->insert(request.wrt->end(), sides.begin(), sides.end());
  }
  gradient::OptimizerRule rule = options_.rule;
  rule.no_decay = AnyOf(options_.no_decay);
  rule.frozen = AnyOf(options_.freeze);
  auto step = gradient::Minimize(prepared_.training, request, rule);
  if (!step.ok()) return In(name, step.status());
  step_ = *std::move(step);
  for (const auto& [variable, tensor] : step_.state) model_.scope->Set(variable, tensor);
  fetches_ = options_.fetches.empty() ? prepared_.losses : options_.fetches;
  if (options_.with_losses) {
    fetches_ = prepared_.losses;
    for (const std::string& name : options_.fetches)
      if (std::find(fetches_.begin(), fetches_.end(), name) == fetches_.end())
        fetches_.push_back(name);
  }
  stacks_ = FetchStacks(options_.stack ? fetches_ : std::vector<std::string>());
  CompileOptions compile = options_.compile;
  compile.fetches = fetches_;
  // Checkpoints are of the step as it is without a limit, with the same bits.
  Program running = step_.program;
  if (options_.memory_limit > 0 && !examples.empty()) {
    compile = WithinLimit(compile);
    SetRate(0);
    auto fitting = FitStep(executor_, {step_.program, model_.scope}, compile, examples[0],
                           options_.memory_limit);
    if (!fitting.ok()) return In(name, fitting.status());
    running = fitting->program;
    prepared_.said.push_back(fitting->said);
  }
  HEDDLE_ASSIGN_OR_RETURN(compiled_, executor_.Compile(running, model_.scope, compile));
  return Status::Ok();
}

Status FineTuning::OpenCheckpoints(const std::string& directory, int keep, bool resume,
                                   const std::string& data, int64_t most,
                                   std::vector<std::string>* warnings) {
  checkpoints_ = std::make_unique<CheckpointDirectory>();
  HEDDLE_RETURN_IF_ERROR(checkpoints_->Open(directory, keep));
  data_ = data;
  if (!resume) {
    if (checkpoints_->Steps().empty()) return Status::Ok();
    return WrongTuning(directory + ": holds checkpoints (the newest after step " +
                       std::to_string(checkpoints_->Steps().back()) +
                       "); resume to go on from there, or give another directory");
  }
  TrainState job;
  job.program = HashOf(step_.program);
  job.data = data_;
  HEDDLE_ASSIGN_OR_RETURN(const auto state,
                          checkpoints_->LoadNewest(job, step_.program, *model_.scope, warnings));
  if (!state) return Status::Ok();
  const std::string path = checkpoints_->PathOf(state->step);
  if (state->step > most)
    return WrongTuning(path + ": " + std::to_string(state->step) +
                       " steps are done there, more than the " + std::to_string(most) +
                       " asked for");
  HEDDLE_RETURN_IF_ERROR(generator_.SetState(state->generator));
  NamedTensors fetched = state->fetched;
  if (options_.with_losses) {
    if (fetched.empty() || fetched.back().first != kLosses ||
        fetched.back().second.dtype() != DType::kF64)
      return WrongTuning(path + ": does not hold the losses of its steps");
    const Tensor& losses = fetched.back().second;
    losses_.assign(losses.data<double>(), losses.data<double>() + losses.numel());
    fetched.pop_back();
  }
  if (options_.stack) HEDDLE_RETURN_IF_ERROR(stacks_.Restore(fetched));
  done_ = saved_ = state->step;
  return Status::Ok();
}

Status FineTuning::Checkpoint() {
  // After no step there is nothing to go on from.
  if (checkpoints_ == nullptr || saved_ == done_ || done_ == 0) return Status::Ok();
  TrainState state;
  state.step = done_;
  state.program = HashOf(step_.program);
  state.seed = options_.seed;
  state.generator = generator_.State();
  state.data = data_;
  HEDDLE_ASSIGN_OR_RETURN(state.fetched, stacks_.Stacked());
  if (options_.with_losses) {
    Tensor losses = Tensor::Zeros(DType::kF64, Shape({done_}));
    std::copy(losses_.begin(), losses_.end(), losses.mutable_data<double>());
    state.fetched.emplace_back(kLosses, std::move(losses));
  }
  HEDDLE_RETURN_IF_ERROR(checkpoints_->Save(step_.program, *model_.scope, state));
  saved_ = done_;
  return Status::Ok();
}

std::string FineTuning::checkpoint_path() const {
  return saved_ < 0 || checkpoints_ == nullptr ? "" : checkpoints_->PathOf(saved_);
}

void FineTuning::SetRate(double rate) {
  Tensor value = Tensor::Zeros(DType::kF32, Shape({1}));
  value.mutable_data<float>()[0] = static_cast<float>(rate);
  model_.scope->Set(step_.learning_rate, std::move(value));
  rate_ = rate;
}

// Fetched variables of the scope, which a step may rewrite.
Result<std::vector<std::pair<size_t, Value>>> FineTuning::FetchedBefore() const {
  std::vector<std::pair<size_t, Value>> before;
  for (size_t k = 0; k < fetches_.size(); ++k) {
    const auto info = step_.program.variable(fetches_[k]);
    const Value* value = model_.scope->Find(fetches_[k]);
    if (!info || value == nullptr || !value->is_tensor() || !value->initialized()) continue;
    Tensor copy = value->tensor().Clone();
    if (!copy.initialized())
      return Status(StatusCode::kResourceExhausted, "no memory for '" + fetches_[k] + "'");
    before.emplace_back(k, Value(std::move(copy)));
  }
  return before;
}

Result<std::vector<Value>> FineTuning::Step(const std::vector<Feed>& feeds, double rate,
                                            RunOptions run) {
  if (rate_ != rate) SetRate(rate);
  run.generator = &generator_;
  HEDDLE_ASSIGN_OR_RETURN(auto before, FetchedBefore());
  HEDDLE_ASSIGN_OR_RETURN(std::vector<Value> values, executor_.RunValues(*compiled_, feeds, run));
  for (auto& [k, value] : before) values[k] = std::move(value);
  if (options_.stack) HEDDLE_RETURN_IF_ERROR(stacks_.Add(done_, values));
  if (options_.with_losses) {
    const auto loss = LossOf(values, prepared_.losses.size());
    if (!loss) return WrongTuning("a loss is no tensor");
    losses_.push_back(*loss);
  }
  ++done_;
  return values;
}

Result<double> FineTuning::Evaluate(const std::vector<std::vector<Feed>>& batches, RunOptions run) {
  if (batches.empty()) return WrongTuning("there is no batch for validation");
  if (!evaluation_) {
    CompileOptions compile = options_.compile;
    compile.fetches = prepared_.losses;
    HEDDLE_ASSIGN_OR_RETURN(evaluation_,
                            executor_.Compile(prepared_.evaluation, model_.scope, compile));
  }
  // Random operators draw from a generator of their own: training goes on as without validation.
  Generator generator(options_.seed);
  run.generator = &generator;
  double sum = 0, samples = 0;
  for (const std::vector<Feed>& batch : batches) {
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<Value> losses,
                            executor_.RunValues(*evaluation_, batch, run));
    const auto weight = static_cast<double>(SamplesIn(batch));
    const auto loss = LossOf(losses, losses.size());
    if (!loss) return WrongTuning("a loss is no tensor");
    sum += weight * *loss;
    samples += weight;
  }
  return samples > 0 ? sum / samples : std::nan("");
}

NamedTensors FineTuning::Arrays() const {
  std::map<std::string, Tensor> sorted;
  for (const TensorInfo& info : step_.program.persistables()) {
    const Value* value = model_.scope->Find(info.name);
    if (value != nullptr && value->is_tensor() && value->initialized())
      sorted[info.name] = value->tensor();
  }
  return NamedTensors(sorted.begin(), sorted.end());
}

// Trained parameters, and what the program itself rewrites, such as statistics.
std::vector<std::string> FineTuning::Changed() const {
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

Result<std::vector<gradient::Adapter>> FineTuning::Adapters() const {
  return TrainedAdapters(prepared_, *model_.scope);
}

Result<Model> FineTuning::Tuned() const {
  HEDDLE_ASSIGN_OR_RETURN(const auto adapters, Adapters());
  Model tuned = prepared_.exported;
  tuned.scope = std::make_shared<Scope>(model_.scope);
  HEDDLE_RETURN_IF_ERROR(gradient::MergeAdapters(adapters, tuned.scope.get()));
  return tuned;
}

Status FineTuning::Export(const std::string& file, const std::string& directory) const {
  HEDDLE_ASSIGN_OR_RETURN(const Model tuned, Tuned());
  return SaveTunedModel(tuned, file, Changed(), directory, prepared_.reshaped);
}

}  // namespace heddle::training
