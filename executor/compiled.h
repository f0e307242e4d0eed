// CompiledImpl: a compiled program, that is, the program after the passes, for the parameters'
// present values.
//
// Threads: Make, and setting `spoil`, before anything else; then all methods from any thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "core/machine.h"
#include "core/programs/ir.h"
#include "core/services.h"
#include "core/thread_annotations.h"
#include "executor/plan/arena_blocks.h"
#include "executor/plan/packed_weights.h"
#include "executor/plan/plan.h"
#include "executor/plan/plan_builder.h"
#include "executor/source_program.h"
#include "executor/tune/tuning_cache.h"
#include "heddle/executor.h"
#include "passes/pass_manager.h"

namespace heddle::internal {

class ExecutorImpl;

class CompiledImpl {
 public:
  // The result of the passes for the present values of the parameters.
  struct Form {
    // Constant after construction.
    passes::Optimized optimized;
    std::string key;               // identifies, with the feeds, a plan
    uint64_t lasting_hash = 0;     // of the parts of `key` that mean the same in another process
    bool program_is_file = false;  // the program's hash identifies it
    // Names of parameters folded into it, if any variable may be fed.
    std::unordered_set<std::string> constants;
    // Parameters that an operator of the file requires, but no operator of the optimised program.
    std::vector<std::string> required;

    // Guarded by the scope's write_mutex: `source.packs` holds copies of parameters as of the
    // scope's version `packs_version`. The rest of `source` is constant.
    PlanSource source;
    uint64_t packs_version = 0;

    uint64_t version = 0;  // of the scope when last compared; guarded by the owner's mutex
    Mutex blocks_mutex;
    // Set with max_shapes, once the first plan was made.
    std::shared_ptr<ArenaBlocks> blocks HEDDLE_GUARDED_BY(blocks_mutex);
  };

  // Compiles the program. `executor` must outlive the result.
  static Result<std::shared_ptr<CompiledImpl>> Make(ExecutorImpl* executor, const Program& program,
                                                    std::shared_ptr<Scope> scope,
                                                    const CompileOptions& options);
  // The current form. It is made anew when a parameter folded into it has been replaced or is fed.
  Result<std::shared_ptr<Form>> Current(const std::vector<Feed>& feeds = {})
      HEDDLE_EXCLUDES(mutex_);
  // Notes facts that replace claims; the next form relies on them. False: all were known.
  bool NoteFound(const std::vector<passes::NamedFact>& found) HEDDLE_EXCLUDES(mutex_);
  // The form without passes, for feeds that the optimised program does not allow.
  Result<std::shared_ptr<Form>> Plain() HEDDLE_EXCLUDES(mutex_);
  // The program as it is in the file.
  Result<std::shared_ptr<const ir::Program>> Source() const HEDDLE_EXCLUDES(mutex_);
  // The report of the newest form.
  PassReport pass_report() const HEDDLE_EXCLUDES(mutex_);
  // Fills in version, program and machine.
  void FillOrigin(PlanDescription* plan) const;
  PlanChoices plan_choices() const {
    return {options.reuse,
            options.in_place,
            options.lean,
            options.dynamic_bodies,
            options.shuffle_seed,
            options.placement,
            options.placement_seed,
            forced,
            machine,
            misjudged};
  }

  // Constant after Make.
  ExecutorImpl* executor = nullptr;
  std::shared_ptr<Scope> scope;
  CompileOptions options;
  bool host_caches = true;               // kernels run on the host
  std::vector<std::string> fetch_names;  // names of variables: the outputs, then the kept ones
  std::vector<TensorInfo> inputs, outputs;
  bool writes_scope = false;  // some operator writes to a persistable variable
  bool communicates = false;  // some operator exchanges values with other ranks
  bool reads = false;         // some operator takes data that no other run gets
  const std::shared_ptr<std::atomic<bool>> misjudged = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<TuningCache> tuning;    // nullptr: nothing is tuned
  std::shared_ptr<PackedWeights> packed;  // nullptr: packed weights stay in the process
  // CompileOptions::force and machine; nullptr: none given.
  std::shared_ptr<const ForcedImplementations> forced;
  std::shared_ptr<const Machine> machine;
  bool declared_inputs = false;  // the program has feed operators
  uint64_t program_hash = 0;
  std::function<void(Plan&)> spoil;  // see PlanSource

  std::atomic<uint64_t> runs{0};

 private:
  Status FindPorts(const Program& program);
  std::vector<passes::DeviceView> DeviceViews() const;
  Result<std::shared_ptr<Form>> MakeForm(int level) const HEDDLE_REQUIRES(mutex_);
  void AppendForm(const Form& form, std::string* key) const HEDDLE_REQUIRES(mutex_);
  bool FeedsConstants(const std::vector<Feed>& feeds) HEDDLE_REQUIRES(mutex_);

  mutable Mutex mutex_;
  SourceProgram source_ HEDDLE_GUARDED_BY(mutex_);
  std::shared_ptr<Form> form_ HEDDLE_GUARDED_BY(mutex_);
  std::shared_ptr<Form> plain_ HEDDLE_GUARDED_BY(mutex_);  // made on demand
  // Parameters that a run has fed, so that they are not folded.
  std::vector<std::string> fed_ HEDDLE_GUARDED_BY(mutex_);
  // Facts that replace wrong declarations, see passes/facts/declarations.h.
  std::vector<passes::NamedFact> found_ HEDDLE_GUARDED_BY(mutex_);
  PassReport report_ HEDDLE_GUARDED_BY(mutex_);
};

// An error if a feed does not fit the program's declarations.
Status CheckFeeds(const CompiledImpl& c, const std::vector<Feed>& feeds);

// An error if the largest shapes do not fit the program's declarations.
Status CheckMaxShapes(const CompiledImpl& c);
// To be called after a plan of the form was made, with the scope's write_mutex held: small
// parameters that have not been read by now were folded or packed, and are dropped from the
// LazyShelf (core/memory/lazy_buffer.h).
void DropWaiting(const Scope& scope, const CompiledImpl::Form& form);

// Feeds without contents that have the largest shapes of the compile options; none if there are no
// such options, or if a given feed is larger.
std::vector<Feed> LargestFeeds(const CompiledImpl& c, const std::vector<Feed>& feeds);

// Writes a plan's full key into `key`: the form's key and the feeds' signature.
void FeedKey(const CompiledImpl::Form& form, const std::vector<Feed>& feeds, std::string* key);

// A name for a plan of such feeds that is the same in another process.
std::string LastingKey(const CompiledImpl::Form& form, const std::vector<Feed>& feeds);

FeedSignature SignatureOf(const Feed& feed);

}  // namespace heddle::internal
