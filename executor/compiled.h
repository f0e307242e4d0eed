// What Executor::Compile makes of a program: its passes' result for the parameters as they are.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "core/ir.h"
#include "core/machine.h"
#include "core/services.h"
#include "executor/plan/arena_blocks.h"
#include "executor/plan/packed_weights.h"
#include "executor/plan/plan.h"
#include "executor/source_program.h"
#include "executor/tune/tuning_cache.h"
#include "heddle/executor.h"
#include "passes/pass_manager.h"

namespace heddle::internal {

class ExecutorImpl;

class CompiledImpl {
 public:
  // What the passes made of the program for the parameters as they are now.
  struct Form {
    passes::Optimized optimized;
    // Copies of parameters as they were at `packs_version` of the scope; guarded by its
    // write_mutex.
    std::shared_ptr<PackCache> packs;
    uint64_t packs_version = 0;
    std::vector<ir::VarId> fetches;
    std::string key;       // everything that plans depend on besides the feeds
    uint64_t version = 0;  // of the scope, when last looked at
    std::mutex blocks_mutex;
    std::shared_ptr<ArenaBlocks> blocks;  // with max_shapes, once the first plan was made
    // Names of parameters that were folded into it, where anything may be fed.
    std::unordered_set<std::string> constants;
  };
  // The current form, made anew when a parameter that was folded into it has been replaced, or is
  // fed.
  Result<std::shared_ptr<Form>> Current(const std::vector<Feed>& feeds = {});
  // Of the last form that was made.
  PassReport pass_report() const;

  ExecutorImpl* executor = nullptr;  // which compiled it, and outlives it
  SourceProgram source;
  std::shared_ptr<Scope> scope;
  CompileOptions options;
  std::vector<std::string> fetch_names;  // first the outputs, then what is kept
  std::vector<TensorInfo> inputs, outputs;
  std::shared_ptr<TuningCache> tuning;    // nullptr: nothing is tuned
  std::shared_ptr<PackedWeights> packed;  // nullptr: packed weights stay in the process
  // CompileOptions::force and machine; nullptr: none given.
  std::shared_ptr<const ForcedImplementations> forced;
  std::shared_ptr<const Machine> machine;
  bool declared_inputs = false;  // the program has feed operators
  std::atomic<uint64_t> runs{0};
  std::function<void(Plan&)> spoil;  // see PlanRequest; set before the first plan is made

 private:
  Result<std::shared_ptr<Form>> Make() const;
  bool FeedsConstants(const std::vector<Feed>& feeds);
  mutable std::mutex mutex_;
  std::shared_ptr<Form> form_;
  std::vector<std::string> fed_;  // parameters that some run has fed, so that they are no constants
  PassReport report_;
};

// Does what is fed fit what the program declares?
Status CheckFeeds(const CompiledImpl& c, const std::vector<Feed>& feeds);

// Do the largest shapes fit what the program declares?
Status CheckMaxShapes(const CompiledImpl& c);
// After a plan of the form was made: of small parameters, those that have not come by now were
// folded into others or packed, and no longer wait in memory (core/lazy_buffer.h). With the scope's
// write_mutex held.
void DropWaiting(const Scope& scope, const CompiledImpl::Form& form);

// The feeds with the largest shapes that the program was compiled for, without contents; none where
// there are no such shapes, or some feed is larger.
std::vector<Feed> LargestFeeds(const CompiledImpl& c, const std::vector<Feed>& feeds);

// Everything a plan depends on: the form's key and the feeds' signature, into `key`.
void FeedKey(const CompiledImpl::Form& form, const std::vector<Feed>& feeds, std::string* key);

}  // namespace heddle::internal
