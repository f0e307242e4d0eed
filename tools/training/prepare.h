// What is done to a model of a file before it is trained: a new head, other batch sizes, batch
// norms in training mode, a loss, adapters.
//
// Ownership: results share nothing with the arguments but tensors. Threads: one at a time.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gradient/tuning/tuning.h"
#include "heddle/program.h"
#include "heddle/status.h"
#include "tools/command_line.h"
#include "tools/feeds.h"
#include "tools/training/train_data.h"

namespace heddle::tools {

struct PrepareOptions {
  std::string labels, loss_op, output;
  int64_t head = 0;  // outputs; 0: the head stays
  std::string lora;  // RANK or RANK,ALPHA; empty: no new adapters
  std::vector<std::string> lora_on;
  std::string adapter, save_adapter;  // files
  std::string norms = "keep";
};

struct Prepared {
  Program training;  // before gradients are added
  Model exported;    // with the shapes that the file is to have
  std::vector<std::string> reshaped;
  std::vector<std::string> losses;  // of the options, or the added one
  std::vector<std::string> head;    // the parameters that the new head has
  std::vector<gradient::Adapter> adapters;
  std::vector<std::string> sides;          // of adapters: the variables of left and right, in turn
  std::vector<std::string> trained_sides;  // those that a loss depends on
  std::vector<std::string> said;           // for the user, a line each
};

// `tune` adds an option that is for --forward alone.
void AddPreparation(Command app, const std::function<Option(Option)>& tune,
                    PrepareOptions* options);
// Why the options do not fit together; empty if they do. `losses`: whether --loss is given.
std::string WhyNotPrepared(const PrepareOptions& options, bool losses);

// Sets new parameters in the model's scope. `losses`: as given.
Result<Prepared> Prepare(const PrepareOptions& options, const Model& model,
                         const std::vector<std::string>& losses, uint64_t seed, TrainData* data);

// The adapters with the values that the scope has now.
Result<std::vector<gradient::Adapter>> TrainedAdapters(const Prepared& prepared,
                                                       const Scope& scope);

// Whether the name matches one of the patterns, with * for any text and ? for one character; null:
// there is no pattern.
std::function<bool(const std::string&)> AnyOf(const std::vector<std::string>& patterns);

}  // namespace heddle::tools
