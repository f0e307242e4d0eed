// Options that say which parts of a model engines compute: --target, --engine and how.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/engine.h"
#include "partition/target.h"
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
  std::string cache_directory;  // empty: no cache
  int cache_mb = static_cast<int>(EngineCache::kMaxBytes >> 20);
  std::shared_ptr<EngineCache> cache;

  // Makes `cache`, which all ranks of a run share.
  void OpenCache();
  // Options of engines without an engine, too: ApplyEngines says what is wrong with them.
  bool any() const {
    return !targets.empty() || !engines.empty() || !options.empty() || limit_ms > 0;
  }
};

// --target, --engine, --engine-option, --engine-policy, --engine-limit-ms, --engine-cache and its
// size.
void AddEngineOptions(Command app, EngineChoice* choice);

// The model with groups on engines; `feeds` are what it will be run with. Without a choice, the
// model as it is.
Result<OffloadedModel> ApplyEngines(const EngineChoice& choice, const ModelOptions& options,
                                    const CompileOptions& compile, Model model,
                                    const std::vector<Feed>& feeds);

// Warns on stderr of operators, slots and attributes that the target names and heddle does not
// know.
void WarnOfNames(const partition::Target& target, const std::string& file);

Json EnginesJson(const OffloadReport& report);

}  // namespace heddle::tools
