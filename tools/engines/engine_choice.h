// Options that say which parts of a model engines compute: --target, --engine and how.
#pragma once

#include <string>
#include <vector>

#include "heddle/engine.h"
#include "tools/command_line.h"
#include "tools/json_output.h"
#include "tools/options.h"

namespace heddle::tools {

struct EngineChoice {
  std::vector<std::string> targets;  // files
  std::vector<std::string> engines;  // TARGET=LIBRARY
  std::vector<std::string> options;  // TARGET:KEY=VALUE
  bool always = false;
  int limit_ms = 0;

  bool any() const { return !targets.empty() || !engines.empty(); }
};

// --target, --engine, --engine-option, --engine-policy and --engine-limit-ms.
void AddEngineOptions(Command app, EngineChoice* choice);

// The model with groups on engines; `feeds` are what it will be run with. Without a choice, the
// model as it is.
Result<OffloadedModel> ApplyEngines(const EngineChoice& choice, const ModelOptions& options,
                                    const CompileOptions& compile, Model model,
                                    const std::vector<Feed>& feeds);

Json EnginesJson(const OffloadReport& report);

}  // namespace heddle::tools
