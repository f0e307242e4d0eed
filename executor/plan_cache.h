// Plans by what they were built for, the least recently used given up first.
//
// Threads: all methods may be called from any thread; a plan is built by one thread while others
// that want the same one wait for it.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "executor/run_state.h"

namespace heddle {

// A plan and the run states that wait to be used again.
class CachedPlan {
 public:
  explicit CachedPlan(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {}
  const std::shared_ptr<const Plan>& plan() const { return plan_; }
  // Throws std::bad_alloc.
  std::unique_ptr<RunState> Acquire(const Services& services);
  void Release(std::unique_ptr<RunState> state);
  void Trim();
  // False once a variable of the scope is not what the plan takes for granted. Waits for runs that
  // write to the scope.
  bool UpToDate();

 private:
  std::shared_ptr<const Plan> plan_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<RunState>> idle_;
  uint64_t checked_version_ = ~uint64_t{0};
};

class PlanCache {
 public:
  explicit PlanCache(size_t capacity) : capacity_(capacity) {}
  // `key` is the complete description, `hash` its XXH64.
  Result<std::shared_ptr<CachedPlan>> Get(
      uint64_t hash, const std::string& key,
      const std::function<Result<std::shared_ptr<const Plan>>()>& build);
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
