// Options that several subcommands share.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heddle/bounds.h"
#include "heddle/executor.h"
#include "heddle/program.h"
#include "tools/command_line.h"
#include "tools/feeds.h"

namespace heddle::tools {

constexpr int kMostOptLevel = 2;

// Which model, and how it is compiled and run.
struct ModelOptions {
  std::string model;
  std::string params;
  std::string adapter;  // a file of adapters to be added to the weights; empty: none
  std::string signature;
  std::vector<std::string> fetches;
  int threads = 0;
  int runs_at_once = 0;
  int opt_level = 2;
  bool serial = false;
  bool parallel = false;
  bool lanes = false;
  std::string place = "cpu";
  bool tf32 = false;           // with place "cuda"
  int64_t random_places = -1;  // seed; -1: not at random
  PassOptions passes;
  Reuse reuse = Reuse::kOrdered;
  bool in_place = true;
  bool wait_after_each = false;
  std::optional<bool> lean;  // not said: the command decides
  bool outline = false;
  std::vector<std::string> max_shapes;  // NAME=32,3,224,224
  bool tune = false;
  std::string tuning_file;
  std::string packed_weights;  // a file; empty: none
  std::string force;           // FAMILY=IMPLEMENTATION,...
  std::string machine;         // the text of a description; empty: this machine
  std::string plan;            // a file of `heddle plan --json` to be followed; empty: none
  std::shared_ptr<const PlanDescription> follow;  // what it says, see tools/plans/plan_json.h
  size_t memory_limit = 0;                        // bytes; 0: none
  double deadline_ms = 0;                         // of a run; 0: none
  int ranks = 0;                                  // a group of so many executors; 0: none
  std::shared_ptr<Communicator> communicator;     // of the rank that these options are for

  // The model, or the part of its file that these options and what is fed name. kNotFound: a fetch
  // is no variable of it.
  Result<Model> Load() const;
  Result<Model> Load(const FeedOptions& feeds) const;
  ExecutorOptions executor() const;
  CompileOptions compile() const;
  // Without fetch operators and --fetch, the fetches are the program's results.
  CompileOptions compile(const Program& program) const;
  RunOptions run() const;  // of a run that begins now
};
// MODEL, --params, --signature and --fetch.
void AddModelOptions(Command app, ModelOptions* options);
// --disable-pass, --only-pass, --pass, --verify-passes, --dump-passes and how.
void AddPassOptions(Command app, PassOptions* options);
// --ranks; `does`: what each rank does.
void AddRanksOption(Command app, ModelOptions* options, const std::string& does);
// --threads, --serial, --parallel, --opt, --place, --random-places and --tune, and those of passes.
void AddExecutionOptions(Command app, ModelOptions* options);

// --plan: see FollowPlan in tools/plans/plan_json.h.
void AddFollowOption(Command app, ModelOptions* options);

// --memory-limit and --deadline-ms. `run`: what a deadline is for, as in "run".
void AddLimitOptions(Command app, ModelOptions* options, const std::string& run = "run");

// A line about what was tuned, for people, where tuning was asked for; empty where it was not. What
// went wrong becomes warnings.
std::string CachesText(const ModelOptions& options, const CompiledProgram& compiled);

// Why the names of places are wrong; empty when they are right.
std::string CheckPlace(const std::string& text);

// Writes the report's events to `path` in the Trace Event format.
Status WriteTrace(const std::string& path, const RunReport& report);

}  // namespace heddle::tools
