// The options that say what is done to a model before it is trained (training/prepare.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heddle/status.h"
#include "tools/command_line.h"
#include "training/prepare.h"

namespace heddle::tools {

struct PrepareFlags {
  std::string labels, loss_op, output;
  int64_t head = 0;
  std::string lora;  // RANK or RANK,ALPHA; empty: no new adapters
  std::vector<std::string> lora_on;
  std::string adapter, save_adapter;  // files
  std::string norms = "keep";
};

// `tune` adds an option that is for --forward alone.
void AddPreparation(Command app, const std::function<Option(Option)>& tune, PrepareFlags* options);
// Why the options do not fit together; empty if they do. `losses`: whether --loss is given.
std::string WhyNotPrepared(const PrepareFlags& options, bool losses);
// Reads what is in files.
Result<training::PrepareOptions> ReadPreparation(const PrepareFlags& flags);

}  // namespace heddle::tools
