// heddle train --forward: goes on training the model of a file.
//
// The gradients and the updates are added to the model's program; parameters come from the file,
// and go back into a file of its format.
#pragma once

#include <string>
#include <vector>

#include "heddle/status.h"
#include "tools/command_line.h"
#include "tools/options.h"
#include "tools/training/prepare.h"
#include "tools/training/train_data.h"

namespace heddle::tools {

struct FineTuneOptions {
  std::string forward, signature;
  std::vector<std::string> losses, wrt, freeze, no_decay;
  std::string optimizer, rates;  // `rates`: a file with the learning rate of each step
  // Below zero: the optimizer's own.
  double rate = -1, momentum = -1, beta1 = -1, beta2 = -1, epsilon = -1, rho = -1;
  double weight_decay = -1, initial_accumulator = 0;
  double clip_value = 0, clip_norm = 0, clip_global_norm = 0;
  bool nesterov = false, centered = false, lazy = false;

  PrepareOptions prepare;

  // What all training has.
  ModelOptions model;
  DataOptions data;
  std::vector<std::string> init;
  int64_t steps = 0, epochs = 0, log_every = 0;
  std::string out, save, metrics, exported;
  bool json = false, quiet = false, check_nan_inf = false;
};

// `begin`: the choice of what training begins with.
void AddFineTuning(Command app, Command begin, FineTuneOptions* options);

// kCancelled: a signal stopped it, and everything was saved.
Status FineTune(const FineTuneOptions& options);

}  // namespace heddle::tools
