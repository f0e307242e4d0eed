#include "training/prepare.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace heddle::training {
namespace {

using gradient::Adapter;

// Whether the whole name matches, with * for any text and ? for one character.
bool MatchesGlob(std::string_view pattern, std::string_view name) {
  size_t p = 0, n = 0;
  // The last *, and how far into the name it reaches: a later * makes an earlier one final.
  size_t star = std::string_view::npos, reached = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      reached = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++reached;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

// What some steps are fed with.
class ExampleFeeds {
 public:
  explicit ExampleFeeds(const std::vector<std::vector<Feed>>& steps) : steps_(steps) {}
  // Dtype and shape, open where the steps differ; the first axis is that of the samples and open.
  // nullopt: a step lacks it, or has it with another rank.
  std::optional<TensorInfo> Info(const std::string& name) const {
    std::optional<TensorInfo> info;
    for (const auto& step : steps_) {
      const Tensor* fed = Find(step, name);
      if (fed == nullptr || (info && info->shape.rank() != fed->rank())) return std::nullopt;
      if (!info) info = TensorInfo{name, fed->dtype(), fed->shape()};
      for (int k = 0; k < info->shape.rank(); ++k)
        if (k == 0 || fed->shape()[k] != info->shape[k]) info->shape[k] = -1;
    }
    return info;
  }
  // Whether a step has another number of samples than `declared`.
  bool Differs(const std::string& name, const Shape& declared) const {
    for (const auto& step : steps_) {
      const Tensor* fed = Find(step, name);
      if (fed != nullptr && fed->rank() == declared.rank() && fed->rank() > 0 &&
          fed->shape()[0] != declared[0])
        return true;
    }
    return false;
  }

 private:
  static const Tensor* Find(const std::vector<Feed>& step, const std::string& name) {
    for (const Feed& feed : step)
      if (feed.name == name && feed.value.is_tensor()) return &feed.value.tensor();
    return nullptr;
  }
  const std::vector<std::vector<Feed>>& steps_;
};

// Inputs whose first dimension the file fixes, if some step has another number of samples.
std::vector<std::string> FixedInputs(const Program& program, const ExampleFeeds& steps) {
  std::vector<std::string> fixed;
  bool differs = false;
  const auto inputs = program.inputs().empty() ? program.unwritten() : program.inputs();
  for (const TensorInfo& input : inputs) {
    if (!input.shape.known_rank() || input.shape.rank() == 0 || input.shape[0] <= 0) continue;
    if (!steps.Differs(input.name, input.shape)) continue;
    differs = true;
    fixed.push_back(input.name);
  }
  return differs ? fixed : std::vector<std::string>();
}

}  // namespace

std::function<bool(const std::string&)> AnyOf(const std::vector<std::string>& patterns) {
  if (patterns.empty()) return nullptr;
  return [patterns](const std::string& name) {
    for (const std::string& pattern : patterns)
      if (MatchesGlob(pattern, name)) return true;
    return false;
  };
}

namespace {

// Adapters beside the weights of the prepared programs, new ones or those given.
Status AddSides(const PrepareOptions& options, Scope& scope, uint64_t seed, Prepared* made) {
  gradient::AdapterRequest request;
  request.seed = seed;
  request.on = AnyOf(options.lora_on);
  request.losses = made->losses;
  request.rank = options.rank;
  request.alpha = options.alpha;
  request.given = options.adapters;
  if (request.given.empty() && !made->head.empty()) {
    // A new head has nothing to be adapted; it is trained itself.
    request.on = [on = request.on, head = made->head](const std::string& name) {
      return std::find(head.begin(), head.end(), name) == head.end() && (!on || on(name));
    };
  }
  HEDDLE_ASSIGN_OR_RETURN(gradient::Adapted adapted,
                          gradient::AddAdapters(made->training, request));
  made->training = adapted.program;
  if (options.train_norms) {
    HEDDLE_ASSIGN_OR_RETURN(const gradient::Adapted same,
                            gradient::AddAdapters(made->evaluation, request));
    made->evaluation = same.program;
  }
  made->adapters = std::move(adapted.adapters);
  for (auto& [name, tensor] : adapted.parameters) {
    made->sides.push_back(name);
    scope.Set(name, std::move(tensor));
  }
  made->trained_sides = std::move(adapted.trained);
  made->said.push_back(std::move(adapted.said));
  return Status::Ok();
}

}  // namespace

Result<Prepared> Prepare(const PrepareOptions& options, const Model& model,
                         const std::vector<std::string>& losses, uint64_t seed,
                         const std::vector<std::vector<Feed>>& examples) {
  Prepared made;
  made.training = model.program;
  made.exported = model;
  made.losses = losses;
  const ExampleFeeds steps(examples);
  if (options.head > 0) {
    HEDDLE_ASSIGN_OR_RETURN(
        gradient::NewHead head,
        gradient::ReplaceHead(made.training,
                              {.outputs = options.head, .seed = seed, .output = options.output}));
    for (auto& [name, tensor] : head.parameters) {
      made.head.push_back(name);
      model.scope->Set(name, std::move(tensor));
    }
    made.training = made.exported.program = head.program;
    made.reshaped = std::move(head.reshaped);
    made.said.push_back(std::move(head.said));
  }
  if (const auto fixed = FixedInputs(made.training, steps); !fixed.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(gradient::OpenedBatch opened,
                            gradient::OpenBatch(made.training, *model.scope, fixed));
    made.training = opened.program;
    made.said.push_back(std::move(opened.said));
  }
  made.evaluation = made.training;
  if (options.train_norms) {
    HEDDLE_ASSIGN_OR_RETURN(gradient::TrainedNorms norms, gradient::TrainNorms(made.training));
    made.training = norms.program;
    made.said.push_back(std::move(norms.said));
  }
  if (!options.loss_op.empty()) {
    const auto labels = steps.Info(options.labels);
    if (!labels)
      return Status(StatusCode::kInvalidArgument,
                    "labels '" + options.labels + "': the data have no such array");
    HEDDLE_ASSIGN_OR_RETURN(
        gradient::AddedLoss loss,
        gradient::AddLoss(made.training, {options.loss_op, *labels, options.output}));
    made.training = loss.program;
    made.losses = {loss.loss};
    made.said.push_back(std::move(loss.said));
    if (options.train_norms) {
      HEDDLE_ASSIGN_OR_RETURN(
          const gradient::AddedLoss same,
          gradient::AddLoss(made.evaluation, {options.loss_op, *labels, options.output}));
      made.evaluation = same.program;
    }
  }
  if (!options.train_norms) made.evaluation = made.training;
  if (options.rank > 0 || !options.adapters.empty()) {
    HEDDLE_RETURN_IF_ERROR(AddSides(options, *model.scope, seed, &made));
    if (!options.train_norms) made.evaluation = made.training;
  }
  return made;
}

Result<std::vector<Adapter>> TrainedAdapters(const Prepared& prepared, const Scope& scope) {
  std::vector<Adapter> adapters = prepared.adapters;
  for (size_t k = 0; k < adapters.size(); ++k) {
    for (const bool left : {true, false}) {
      const std::string& name = prepared.sides[2 * k + (left ? 0 : 1)];
      const Value* value = scope.Find(name);
      if (value == nullptr || !value->is_tensor() || !value->initialized())
        return Status(StatusCode::kNotFound, "the adapter '" + name + "' has no value");
      (left ? adapters[k].left : adapters[k].right) = value->tensor().Contiguous();
    }
  }
  return adapters;
}

}  // namespace heddle::training
