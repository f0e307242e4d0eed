#include "tools/training/prepare_options.h"

#include <charconv>
#include <optional>

#include "tools/values/npy.h"

namespace heddle::tools {
namespace {

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

}  // namespace

void AddPreparation(Command app, const std::function<Option(Option)>& tune, PrepareFlags* o) {
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

std::string WhyNotPrepared(const PrepareFlags& o, bool losses) {
  if (losses && !o.loss_op.empty()) return "--loss excludes --loss-op";
  if (!losses && o.loss_op.empty()) return "--forward requires --loss, or --labels with --loss-op";
  if (!o.save_adapter.empty() && o.lora.empty() && o.adapter.empty())
    return "--save-adapter requires --lora or --adapter";
  if (!o.output.empty() && o.loss_op.empty() && o.head == 0)
    return "--output requires --loss-op or --head";
  return "";
}

Result<training::PrepareOptions> ReadPreparation(const PrepareFlags& flags) {
  training::PrepareOptions options;
  options.labels = flags.labels;
  options.loss_op = flags.loss_op;
  options.output = flags.output;
  options.head = flags.head;
  if (const auto lora = ParseLora(flags.lora)) {
    options.rank = lora->rank;
    options.alpha = lora->alpha;
  }
  options.lora_on = flags.lora_on;
  options.train_norms = flags.norms == "train";
  if (flags.adapter.empty()) return options;
  HEDDLE_ASSIGN_OR_RETURN(const NamedTensors arrays, ReadNpz(flags.adapter));
  auto given = gradient::AdaptersOf(arrays);
  if (!given.ok())
    return Status(given.status().code(), flags.adapter + ": " + given.status().message());
  options.adapters = *std::move(given);
  return options;
}

}  // namespace heddle::tools
