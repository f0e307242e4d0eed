// Plans by what they were built for, the least recently used given up first.
//
// Threads: all methods may be called from any thread. Ownership: a plan that was given up lives on
// while a run has it.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/near_list.h"
#include "core/thread_annotations.h"
#include "core/threads/at_fork.h"
#include "executor/plan/arena_blocks.h"
#include "executor/plan/plan_builder.h"
#include "executor/run/run_state.h"
#include "executor/tune/run_policy.h"

namespace heddle {

// A plan, variants of it that run the same instructions in another way, and the run states that
// wait to be used again.
class CachedPlan {
 public:
  // `request` is kept for building variants; its services are not. `lasting_key`: a name for it
  // that a tuning file knows it by.
  CachedPlan(std::shared_ptr<const Plan> plan, PlanRequest request, std::string lasting_key);

  const std::shared_ptr<const Plan>& plan() const { return plan_; }
  // Which variant the next run is to be.
  RunPolicy& policy() { return policy_; }
  // After a run that settled the policy: the choice goes into the tuning file, if there is one.
  void KeepWay(double ns);
  const PlanRequest& request() const { return request_; }

  // Variant 0 is plan() itself.
  std::shared_ptr<const Plan> variant(int v);
  void AddVariants(std::vector<std::shared_ptr<const Plan>> plans);

  // Runs of variants that fit have their temporaries in these blocks, from then on.
  void UseBlocks(std::shared_ptr<ArenaBlocks> blocks);
  // 0: the plan's runs have memory of their own.
  size_t BlockBytes(const Plan& plan);
  bool has_blocks() const { return has_blocks_.load(std::memory_order_acquire); }

  // Throws std::bad_alloc.
  std::unique_ptr<RunState> Acquire(int variant, const Services& services);
  void Release(int variant, std::unique_ptr<RunState> state);
  // A successful run of this plan, and nobody else, moved the scope's version from `before` to
  // `after`. If the plan was checked at `before`, it counts as checked at `after`.
  void NoteOwnWrites(uint64_t before, uint64_t after);
  void Trim();
  // Gives up the idle states of all variants but one; true when there were some.
  bool TrimOthers(int variant);
  // False once a variable of the scope is not what the plan takes for granted. Waits for runs that
  // write to the scope.
  bool UpToDate();

 private:
  struct Variant {
    std::shared_ptr<const Plan> plan;
    NearList<std::unique_ptr<RunState>> idle;
  };
  bool Lends(const Plan& plan) const HEDDLE_REQUIRES(mutex_);

  // Constant after construction.
  const std::shared_ptr<const Plan> plan_;
  PlanRequest request_;
  const std::string lasting_key_;

  RunPolicy policy_;                     // looks after itself
  std::atomic<bool> has_blocks_{false};  // blocks_ are there, and will stay

  Mutex mutex_;
  std::vector<Variant> variants_ HEDDLE_GUARDED_BY(mutex_);
  std::shared_ptr<ArenaBlocks> blocks_ HEDDLE_GUARDED_BY(mutex_);
  uint64_t checked_version_ HEDDLE_GUARDED_BY(mutex_) = ~uint64_t{0};
};

class PlanCache {
 public:
  explicit PlanCache(size_t capacity) : capacity_(capacity) {}

  // The place of a plan. Whoever wants the plan holds the mutex: the first one builds it meanwhile,
  // which may take minutes.
  struct Entry {
    std::string key;                    // constant
    std::list<uint64_t>::iterator age;  // of the cache, guarded by its mutex
    Mutex mutex;
    std::shared_ptr<CachedPlan> plan HEDDLE_GUARDED_BY(mutex);  // nullptr: not built

    // `plan` is `made` from now on.
    void Take(std::shared_ptr<CachedPlan> made) HEDDLE_REQUIRES(mutex);
    // The plan that was built last, also while another one is built in its place; nullptr: none.
    std::shared_ptr<CachedPlan> Last() HEDDLE_EXCLUDES(last_mutex);

   private:
    Mutex last_mutex;  // no other mutex is taken while it is held
    std::weak_ptr<CachedPlan> last HEDDLE_GUARDED_BY(last_mutex);
  };
  // `key` is the complete description, `hash` its XXH64. Takes no memory where there is one.
  std::shared_ptr<Entry> EntryOf(uint64_t hash, const std::string& key) HEDDLE_EXCLUDES(mutex_);

  void CountBuilt() { built_.fetch_add(1, std::memory_order_relaxed); }
  int64_t built() const { return built_.load(std::memory_order_relaxed); }
  // Gives up what idle runs of all plans hold. Waits for no plan that is being built, and lets
  // nobody wait who looks for one.
  void Trim() HEDDLE_EXCLUDES(mutex_);

 private:
  const size_t capacity_;
  std::atomic<int64_t> built_{0};
  Mutex mutex_;
  std::list<uint64_t> by_age_ HEDDLE_GUARDED_BY(mutex_);  // most recently used first
  std::unordered_map<uint64_t, std::shared_ptr<Entry>> entries_ HEDDLE_GUARDED_BY(mutex_);
  const AtFork at_fork_{mutex_};
};

}  // namespace heddle
