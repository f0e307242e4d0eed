// Plans by what they were built for, the least recently used given up first.
//
// Threads: all methods may be called from any thread; a plan is built by one thread while others
// that want the same one wait for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "core/function_ref.h"
#include "core/near_list.h"
#include "executor/plan/arena_blocks.h"
#include "executor/plan/plan_builder.h"
#include "executor/run/run_state.h"
#include "executor/tune/plan_tuner.h"
#include "executor/tune/width_choice.h"

namespace heddle {

// A plan, variants of it that run the same instructions in another way, and the run states that
// wait to be used again.
class CachedPlan {
 public:
  // `request` is kept for building variants; its services are not.
  CachedPlan(std::shared_ptr<const Plan> plan, PlanRequest request, bool tuned);

  const std::shared_ptr<const Plan>& plan() const { return plan_; }
  PlanTuner& tuner() { return tuner_; }
  // For a run that is alone, and about which nothing else is to be found out; nullptr where
  // somebody has said how to run, or the plan does not go one instruction after another.
  WidthChoice* width(const PlanTuner::Turn& turn) {
    return request_.ask_worth && tuner_.settled() && turn.what == PlanTuner::Turn::What::kRun &&
                   turn.variant == 0 && plan_->dispatch == Dispatch::kSerial
               ? &width_
               : nullptr;
  }
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
  void Trim();
  // Gives up the idle states of all variants but one; true when there were some.
  bool TrimOthers(int variant);
  // False once a variable of the scope is not what the plan takes for granted. Waits for runs that
  // write to the scope.
  bool UpToDate();

 private:
  bool Lends(const Plan& plan) const;  // mutex_ is held
  struct Variant {
    std::shared_ptr<const Plan> plan;
    NearList<std::unique_ptr<RunState>> idle;
  };
  std::shared_ptr<const Plan> plan_;
  PlanRequest request_;
  PlanTuner tuner_;
  WidthChoice width_;
  std::mutex mutex_;
  std::vector<Variant> variants_;
  std::shared_ptr<ArenaBlocks> blocks_;
  std::atomic<bool> has_blocks_{false};
  uint64_t checked_version_ = ~uint64_t{0};
};

class PlanCache {
 public:
  explicit PlanCache(size_t capacity) : capacity_(capacity) {}
  // `key` is the complete description, `hash` its XXH64. Takes no memory when it finds a plan.
  Result<std::shared_ptr<CachedPlan>> Get(uint64_t hash, const std::string& key,
                                          FunctionRef<Result<std::shared_ptr<CachedPlan>>()> build);
  int64_t built() const { return built_.load(std::memory_order_relaxed); }
  void Trim();

 private:
  struct Entry {
    std::string key;
    std::mutex mutex;  // held while the plan is built
    std::shared_ptr<CachedPlan> plan;
    std::list<uint64_t>::iterator age;
  };
  const size_t capacity_;
  std::atomic<int64_t> built_{0};
  std::mutex mutex_;
  std::list<uint64_t> by_age_;  // most recently used first
  std::unordered_map<uint64_t, std::shared_ptr<Entry>> entries_;
};

}  // namespace heddle
