// What is done to a model of a file before it is trained: a new head, other batch sizes, batch
// norms in training mode, a loss, adapters.
//
// Ownership: results share nothing with the arguments but tensors. Threads: one at a time. Errors:
// those of gradient/tuning/tuning.h.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gradient/tuning/tuning.h"
#include "heddle/executor.h"
#include "heddle/program.h"
#include "heddle/status.h"

namespace heddle::training {

struct PrepareOptions {
  // Adds a loss (LossKinds) of `output` and the new input `labels`; both texts are empty if the
  // model has one.
  std::string labels, loss_op;
  std::string output;  // what is compared, and what a head makes; empty: the only floating output
  int64_t head = 0;    // outputs of a new head; 0: the head stays
  int64_t rank = 0;    // of new adapters; 0: none
  double alpha = -1;   // below zero: the rank
  std::vector<std::string> lora_on;         // globs of the weights that get adapters; empty: all
  std::vector<gradient::Adapter> adapters;  // instead of new ones
  bool train_norms = false;
};

struct Prepared {
  Program training;    // before gradients are added
  Program evaluation;  // gives the loss with the statistics that batch norms have
  Model exported;      // with the shapes that the file is to have
  std::vector<std::string> reshaped;
  std::vector<std::string> losses;  // as given, or the added one
  std::vector<std::string> head;    // the parameters that the new head has
  std::vector<gradient::Adapter> adapters;
  std::vector<std::string> sides;          // of adapters: the variables of left and right, in turn
  std::vector<std::string> trained_sides;  // those that a loss depends on
  std::vector<std::string> said;           // for the user, a line each
};

// Sets new parameters in the model's scope. `losses`: the model's own. `examples`: what some steps
// are fed with, by which the labels' shape and the size of batches are known.
Result<Prepared> Prepare(const PrepareOptions& options, const Model& model,
                         const std::vector<std::string>& losses, uint64_t seed,
                         const std::vector<std::vector<Feed>>& examples);

// The adapters with the values that the scope has now.
Result<std::vector<gradient::Adapter>> TrainedAdapters(const Prepared& prepared,
                                                       const Scope& scope);

// Whether the name matches one of the patterns, with * for any text and ? for one character; null:
// there is no pattern.
std::function<bool(const std::string&)> AnyOf(const std::vector<std::string>& patterns);

}  // namespace heddle::training
