// PlanCache: plans by what they were made for; the least recently used one is dropped first.
//
// Threads: all methods may be called from any thread. Ownership: a dropped plan lives on while a
// run uses it.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/services.h"
#include "core/thread_annotations.h"
#include "core/threads/at_fork.h"
#include "core/threads/near_list.h"
#include "executor/plan/arena_blocks.h"
#include "executor/plan/plan_builder.h"
#include "executor/plan/scope_values.h"
#include "executor/run/run_state.h"
#include "executor/tune/run_policy.h"

namespace heddle {

// CachedPlan: a plan, its variants (plans that run the same instructions in another way), and the
// idle run states of each.
class CachedPlan {
 public:
  // `request` is kept for making variants, without its services. `lasting_key`: the plan's name in
  // a tuning file.
  CachedPlan(std::shared_ptr<const Plan> plan, PlanRequest request, std::string lasting_key);

  const std::shared_ptr<const Plan>& plan() const { return plan_; }
  // Decides which variant the next run uses.
  RunPolicy& policy() { return policy_; }
  // To be called after a run that settled the policy: writes the choice into the tuning file, if
  // there is one.
  void KeepWay(double ns);
  const PlanRequest& request() const { return request_; }

  // Variant 0 is plan() itself.
  std::shared_ptr<const Plan> variant(int v);
  void AddVariants(std::vector<std::shared_ptr<const Plan>> plans);

  // From now on runs of variants that fit have their temporaries in these blocks.
  void UseBlocks(std::shared_ptr<ArenaBlocks> blocks);
  // The size of the blocks; 0: the plan's runs have memory of their own.
  size_t BlockBytes(const Plan& plan);
  bool has_blocks() const { return has_blocks_.load(std::memory_order_acquire); }

  // Takes an idle state, or makes one. Throws std::bad_alloc.
  std::unique_ptr<RunState> Acquire(int variant, const Services& services);
  void Release(int variant, std::unique_ptr<RunState> state);
  // Notes that a successful run of this plan alone moved the scope's version from `before` to
  // `after`: a plan that was valid at `before` is valid at `after`.
  void NoteOwnWrites(uint64_t before, uint64_t after);
  void Trim();
  // Frees the idle states of all variants but one; true if there were some.
  bool TrimOthers(int variant);
  // False if a variable of the scope is not what the plan relies on. Waits for runs that write to
  // the scope.
  bool UpToDate();
  // The same where the caller holds the scope's write_mutex.
  bool IsUpToDate();
  // What a run reads of the scope, as UpToDate found it last; nullptr: it was dropped since.
  std::shared_ptr<const ScopeValues> Held();
  // Lets go of values that may have been replaced; runs under way keep theirs.
  void DropHeld();

 private:
  struct Variant {
    std::shared_ptr<const Plan> plan;
    NearList<std::unique_ptr<RunState>> idle;
  };
  bool Lends(const Plan& plan) const HEDDLE_REQUIRES(mutex_);
  // nullptr: a variable is not what the plan relies on.
  std::shared_ptr<const ScopeValues> ReadScope() HEDDLE_REQUIRES(mutex_);

  // Constant after construction.
  const std::shared_ptr<const Plan> plan_;
  PlanRequest request_;
  const std::string lasting_key_;

  RunPolicy policy_;                     // synchronizes itself
  std::atomic<bool> has_blocks_{false};  // blocks_ are set, which is never undone

  Mutex mutex_;
  std::vector<Variant> variants_ HEDDLE_GUARDED_BY(mutex_);
  std::shared_ptr<ArenaBlocks> blocks_ HEDDLE_GUARDED_BY(mutex_);
  uint64_t checked_version_ HEDDLE_GUARDED_BY(mutex_) = ~uint64_t{0};
  std::shared_ptr<const ScopeValues> held_ HEDDLE_GUARDED_BY(mutex_);
  uint64_t times_held_ HEDDLE_GUARDED_BY(mutex_) = 0;
};

class PlanCache {
 public:
  explicit PlanCache(size_t capacity) : capacity_(capacity) {}

  // The entry of a plan. A thread that wants the plan holds the mutex, under which the first one
  // makes it; that may take minutes.
  struct Entry {
    std::string key;                    // constant
    std::list<uint64_t>::iterator age;  // position in the cache's list; guarded by its mutex
    Mutex mutex;
    std::shared_ptr<CachedPlan> plan HEDDLE_GUARDED_BY(mutex);  // nullptr: not made yet

    // Sets `plan`.
    void Take(std::shared_ptr<CachedPlan> made) HEDDLE_REQUIRES(mutex);
    // The plan made last, also while another one is being made; nullptr: none.
    std::shared_ptr<CachedPlan> Last() HEDDLE_EXCLUDES(last_mutex);

   private:
    Mutex last_mutex;  // no other mutex is taken while it is held
    std::weak_ptr<CachedPlan> last HEDDLE_GUARDED_BY(last_mutex);
  };
  // The entry for a key, made if it does not exist. `key` describes the plan completely, `hash` is
  // its XXH64. Allocates nothing for an existing entry.
  std::shared_ptr<Entry> EntryOf(uint64_t hash, const std::string& key) HEDDLE_EXCLUDES(mutex_);

  void CountBuilt() { built_.fetch_add(1, std::memory_order_relaxed); }
  int64_t built() const { return built_.load(std::memory_order_relaxed); }
  // Frees what idle runs of all plans hold. Does not wait for plans that are being made, and blocks
  // no look-up.
  void Trim() HEDDLE_EXCLUDES(mutex_);
  // Has plans let go of parameters that may have been replaced. Waits for nothing either.
  void DropHeld() HEDDLE_EXCLUDES(mutex_);

 private:
  std::vector<std::shared_ptr<CachedPlan>> LastPlans() HEDDLE_EXCLUDES(mutex_);

  const size_t capacity_;
  std::atomic<int64_t> built_{0};
  Mutex mutex_;
  std::list<uint64_t> by_age_ HEDDLE_GUARDED_BY(mutex_);  // most recently used first
  std::unordered_map<uint64_t, std::shared_ptr<Entry>> entries_ HEDDLE_GUARDED_BY(mutex_);
  const AtFork at_fork_{mutex_};
};

}  // namespace heddle
