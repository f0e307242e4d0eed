// A compiled program: the result of the passes for the present values of the parameters.
//
// Threads: Compile, and setting `spoil`, before anything else; then all methods from any thread.
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
    std::string key;               // everything that plans depend on besides the feeds
    uint64_t lasting_hash = 0;     // of what means the same in another process
    bool program_is_file = false;  // its hash tells all of it
    // Names of parameters that were folded into it, where anything may be fed.
    std::unordered_set<std::string> constants;
    // Parameters without which an operator of the file cannot do, while those that the passes put
    // in its place could.
    std::vector<std::string> required;

    // Guarded by the scope's write_mutex: `source.packs` are copies of parameters as they were at
    // `packs_version` of the scope. What else is in `source` is constant.
    PlanSource source;
    uint64_t packs_version = 0;

    uint64_t version = 0;  // of the scope, when last looked at; guarded by the owner's mutex
    Mutex blocks_mutex;
    // With max_shapes, once the first plan was made.
    std::shared_ptr<ArenaBlocks> blocks HEDDLE_GUARDED_BY(blocks_mutex);
  };

  // Compiles, for `executor`, which outlives what is made.
  static Result<std::shared_ptr<CompiledImpl>> Make(ExecutorImpl* executor, const Program& program,
                                                    std::shared_ptr<Scope> scope,
                                                    const CompileOptions& options);
  // The current form, made anew when a parameter that was folded into it has been replaced, or is
  // fed.
  Result<std::shared_ptr<Form>> Current(const std::vector<Feed>& feeds = {})
      HEDDLE_EXCLUDES(mutex_);
  // Notes what is there instead of claims of a form that do not hold; the next form goes by it.
  // False: it did already.
  bool NoteFound(const std::vector<passes::NamedFact>& found) HEDDLE_EXCLUDES(mutex_);
  // The program as it is in the file, for feeds that the passes' result does not do for.
  Result<std::shared_ptr<Form>> Plain() HEDDLE_EXCLUDES(mutex_);
  // The program as it is in the file.
  Result<std::shared_ptr<const ir::Program>> Source() const HEDDLE_EXCLUDES(mutex_);
  // The report of the newest form.
  PassReport pass_report() const HEDDLE_EXCLUDES(mutex_);
  // Version, program and machine.
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
  std::vector<std::string> fetch_names;  // variables: first of the outputs, then what is kept
  std::vector<TensorInfo> inputs, outputs;
  bool writes_scope = false;  // some operator writes to a persistable variable
  bool communicates = false;  // some operator exchanges values with other ranks
  bool reads = false;         // some operator takes data that no other run sees
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
  std::shared_ptr<Form> plain_ HEDDLE_GUARDED_BY(mutex_);  // once it was asked for
  // Parameters that some run has fed, so that they are no constants.
  std::vector<std::string> fed_ HEDDLE_GUARDED_BY(mutex_);
  // Instead of declarations that did not hold, see passes/facts/declarations.h.
  std::vector<passes::NamedFact> found_ HEDDLE_GUARDED_BY(mutex_);
  PassReport report_ HEDDLE_GUARDED_BY(mutex_);
};

// Does what is fed fit what the program declares?
Status CheckFeeds(const CompiledImpl& c, const std::vector<Feed>& feeds);

// Do the largest shapes fit what the program declares?
Status CheckMaxShapes(const CompiledImpl& c);
// After a plan of the form was made: of small parameters, those that have not come by now were
// folded into others or packed, and no longer wait in memory (core/memory/lazy_buffer.h). With the
// scope's write_mutex held.
void DropWaiting(const Scope& scope, const CompiledImpl::Form& form);

// The feeds with the largest shapes that the program was compiled for, without contents; none where
// there are no such shapes, or some feed is larger.
std::vector<Feed> LargestFeeds(const CompiledImpl& c, const std::vector<Feed>& feeds);

// Everything a plan depends on: the form's key and the feeds' signature, into `key`.
void FeedKey(const CompiledImpl::Form& form, const std::vector<Feed>& feeds, std::string* key);

// A name for a plan of such feeds that means the same in another process.
std::string LastingKey(const CompiledImpl::Form& form, const std::vector<Feed>& feeds);

FeedSignature SignatureOf(const Feed& feed);

}  // namespace heddle::internal
