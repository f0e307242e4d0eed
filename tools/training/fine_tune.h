// heddle train --forward: goes on training the model of a file.
//
// The gradients and the updates are added to the model's program; parameters come from the file,
// and go back into a file of its format.
#pragma once

#include <string>
#include <vector>

#include "gradient/minimize.h"
#include "heddle/status.h"
#include "tools/command_line.h"
#include "tools/options.h"
#include "tools/training/prepare_options.h"
#include "tools/training/train_data.h"

namespace heddle::tools {

struct FineTuneFlags {
  std::string forward, signature;
  std::vector<std::string> losses, wrt, freeze, no_decay;
  gradient::OptimizerRule rule;
  std::string rates;  // a file with the learning rate of each step
  double rate = -1;   // below zero: not given
  PrepareFlags prepare;
  std::vector<std::string> validate;
  int64_t validate_every = 0;  // steps; 0: an epoch

  // What all training has.
  ModelOptions model;
  DataOptions data;
  std::vector<std::string> init;
  int64_t steps = 0, epochs = 0, log_every = 0;
  std::string out, save, metrics, exported, checkpoint;
  int64_t every = 100;
  int keep = 3;
  bool resume = false, json = false, quiet = false, check_nan_inf = false;
};

// `begin`: the choice of what training begins with.
void AddFineTuning(Command app, Command begin, FineTuneFlags* options);

// kCancelled: a signal stopped it, and everything was saved.
Status FineTune(const FineTuneFlags& options);

}  // namespace heddle::tools
