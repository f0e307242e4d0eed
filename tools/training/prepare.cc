#include "tools/training/prepare.h"

#include <algorithm>
#include <charconv>

#include "tools/values/npy.h"

namespace heddle::tools {
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

struct RankAndAlpha {
  int64_t rank = 0;
  double alpha = -1;
};
std::optional<RankAndAlpha> ParseLora(const std::string& text) {
  RankAndAlpha lora;
  const char* const end = text.data() + text.size();
  const auto rank = std::from_chars(text.data(), end, lora.rank);
  if (rank.ec != std::errc() || lora.rank < 1) return std::nullopt;
  if (rank.ptr == end) return lora;
  if (*rank.ptr != ',') return std::nullopt;
  const auto alpha = std::from_chars(rank.ptr + 1, end, lora.alpha);
  if (alpha.ec != std::errc() || alpha.ptr != end || !(lora.alpha > 0)) return std::nullopt;
  return lora;
}

// What the first and the last step of an epoch are fed with.
class FirstAndLast {
 public:
  static Result<FirstAndLast> Of(TrainData* data) {
    FirstAndLast steps;
    HEDDLE_ASSIGN_OR_RETURN(steps.feeds_[0], data->Step(0));
    const int64_t last = std::max<int64_t>(data->steps_per_epoch() - 1, 0);
    HEDDLE_ASSIGN_OR_RETURN(steps.feeds_[1], data->Step(last));
    return steps;
  }
  // Dtype and shape, open where the steps differ; the first axis is that of the samples and open.
  std::optional<TensorInfo> Info(const std::string& name) const {
    const Tensor* first = Find(0, name);
    const Tensor* last = Find(1, name);
    if (first == nullptr || last == nullptr || first->rank() != last->rank()) return std::nullopt;
    TensorInfo info{name, first->dtype(), first->shape()};
    for (int k = 0; k < info.shape.rank(); ++k)
      if (k == 0 || last->shape()[k] != info.shape[k]) info.shape[k] = -1;
    return info;
  }
  // Whether a step has another number of samples than `declared`.
  bool Differs(const std::string& name, const Shape& declared) const {
    for (const int k : {0, 1}) {
      const Tensor* fed = Find(k, name);
      if (fed != nullptr && fed->rank() == declared.rank() && fed->shape()[0] != declared[0])
        return true;
    }
    return false;
  }

 private:
  const Tensor* Find(int k, const std::string& name) const {
    for (const Feed& feed : feeds_[k])
      if (feed.name == name && feed.value.is_tensor()) return &feed.value.tensor();
    return nullptr;
  }
  std::vector<Feed> feeds_[2];
};

// Inputs whose first dimension the file fixes, if some step has another number of samples.
std::vector<std::string> FixedInputs(const Program& program, const FirstAndLast& steps) {
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

void AddPreparation(Command app, const std::function<Option(Option)>& tune, PrepareOptions* o) {
  Option labels = tune(
      app.add_option("--labels", o->labels, "a new input, with which --loss-op compares the output")
          .type_name("NAME"));
  Option loss = tune(
      app.add_option("--loss-op", o->loss_op, "the loss to add to a model that has none: its mean")
          .one_of(gradient::LossKinds())
          .type_name("KIND"));
  labels.needs(loss);
  loss.needs(labels);
  tune(app.add_option("--output", o->output,
                      "the output that --loss-op compares and --head replaces [the only one]")
           .type_name("NAME"));
  tune(app.add_option("--head", o->head,
                      "give the last product new weights, for N outputs; --seed chooses them")
           .type_name("N")
           .positive());
  Option lora = tune(app.add_option("--lora", o->lora,
                                    "train adapters of this rank beside the weights of products, "
                                    "and leave the weights as they are [alpha: the rank]")
                         .type_name("RANK[,ALPHA]")
                         .check([](const std::string& text) -> std::string {
                           if (ParseLora(text)) return "";
                           return "'" + text + "' is no RANK or RANK,ALPHA, such as 8 or 8,16";
                         }));
  Option on =
      tune(app.add_option("--lora-on", o->lora_on, "beside these weights alone; may be repeated")
               .type_name("GLOB")
               .one_value_each());
  on.needs(lora);
  tune(
      app.add_option("--save-adapter", o->save_adapter, "write the adapters to a file of their own")
          .type_name("FILE.npz"));
  Option adapter =
      tune(app.add_option("--adapter", o->adapter, "go on with the adapters of such a file")
               .type_name("FILE.npz"));
  adapter.excludes(lora);
  tune(app.add_option("--norms", o->norms,
                      "batch norms: keep the file's statistics, or train with the batch's, by "
                      "which running statistics are updated")
           .one_of({"keep", "train"})
           .type_name("keep|train")
           .show_default());
}

std::string WhyNotPrepared(const PrepareOptions& o, bool losses) {
  if (losses && !o.loss_op.empty()) return "--loss excludes --loss-op";
  if (!losses && o.loss_op.empty()) return "--forward requires --loss, or --labels with --loss-op";
  if (!o.save_adapter.empty() && o.lora.empty() && o.adapter.empty())
    return "--save-adapter requires --lora or --adapter";
  if (!o.output.empty() && o.loss_op.empty() && o.head == 0)
    return "--output requires --loss-op or --head";
  return "";
}

Result<Prepared> Prepare(const PrepareOptions& options, const Model& model,
                         const std::vector<std::string>& losses, uint64_t seed, TrainData* data) {
  Prepared made;
  made.training = model.program;
  made.exported = model;
  made.losses = losses;
  HEDDLE_ASSIGN_OR_RETURN(const FirstAndLast steps, FirstAndLast::Of(data));
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
  if (options.norms == "train") {
    HEDDLE_ASSIGN_OR_RETURN(gradient::TrainedNorms norms, gradient::TrainNorms(made.training));
    made.training = norms.program;
    made.said.push_back(std::move(norms.said));
  }
  if (!options.loss_op.empty()) {
    const auto labels = steps.Info(options.labels);
    if (!labels)
      return Status(StatusCode::kInvalidArgument,
                    "--labels '" + options.labels + "': neither --feed nor --data has this array");
    HEDDLE_ASSIGN_OR_RETURN(
        gradient::AddedLoss loss,
        gradient::AddLoss(made.training, {options.loss_op, *labels, options.output}));
    made.training = loss.program;
    made.losses = {loss.loss};
    made.said.push_back(std::move(loss.said));
  }
  if (options.lora.empty() && options.adapter.empty()) return made;
  gradient::AdapterRequest request;
  request.seed = seed;
  request.on = AnyOf(options.lora_on);
  request.losses = made.losses;
  if (const auto lora = ParseLora(options.lora)) {
    request.rank = lora->rank;
    request.alpha = lora->alpha;
  }
  if (!options.adapter.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(const NamedTensors arrays, ReadNpz(options.adapter));
    auto given = gradient::AdaptersOf(arrays);
    if (!given.ok())
      return Status(given.status().code(), options.adapter + ": " + given.status().message());
    request.given = *std::move(given);
  } else if (!made.head.empty()) {
    // A new head has nothing to be adapted; it is trained itself.
    request.on = [on = request.on, head = made.head](const std::string& name) {
      return std::find(head.begin(), head.end(), name) == head.end() && (!on || on(name));
    };
  }
  HEDDLE_ASSIGN_OR_RETURN(gradient::Adapted adapted, gradient::AddAdapters(made.training, request));
  made.training = adapted.program;
  made.adapters = std::move(adapted.adapters);
  for (auto& [name, tensor] : adapted.parameters) {
    made.sides.push_back(name);
    model.scope->Set(name, std::move(tensor));
  }
  made.trained_sides = std::move(adapted.trained);
  made.said.push_back(std::move(adapted.said));
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

}  // namespace heddle::tools
