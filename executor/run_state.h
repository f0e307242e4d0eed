// RunState: what one run of a Plan needs for itself. Reused by later runs of the same Plan.
//
// Ownership: keeps its Plan alive. Threads: one run at a time; inside a parallel run the
// instructions' order keeps threads apart.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "executor/plan.h"
#include "scheduler/work_queue.h"

namespace heddle {

class RunState final : public BlockRunner {
 public:
  // Throws std::bad_alloc when there is no memory for the arena.
  RunState(std::shared_ptr<const Plan> plan, const Services& services);

  const Plan& plan() const { return *plan_; }
  Value* const* frame() const { return frame_.data(); }
  Value& value(uint32_t slot) { return *frame_[slot]; }
  Services& services() { return services_; }
  RandomState& random() { return random_; }

  // Binds feeds (in the plan's order), outputs and views. Throws std::bad_alloc.
  void Begin(const std::vector<const Value*>& feeds);
  // The fetched values, in order.
  Status Fetch(std::vector<Value>* out);
  // Drops everything the run held but the arena; called after every run, failed ones included.
  void End();

  Status RunBlock(int block) override;

  // Parallel runs: counters per task and per pooled slot, ready tasks.
  struct Parallel {
    std::vector<std::atomic<int>> waiting;
    std::vector<std::atomic<int>> readers;
    WorkQueue ready;
    std::atomic<int> unfinished{0};
    std::atomic<bool> failed{false};
    std::mutex mutex;
    std::condition_variable changed;  // tasks became ready, or the run ended
    int sleeping = 0;                 // guarded by mutex
    Status error;                     // guarded by mutex
    Parallel(size_t tasks, size_t slots, int threads) : waiting(tasks), readers(slots), ready(threads) {}
  };
  Parallel* parallel() { return parallel_.get(); }

 private:
  std::shared_ptr<const Plan> plan_;
  Services services_;
  RandomState random_;
  std::vector<Value> values_;
  std::vector<Value*> frame_;
  BufferRef arena_;
  std::unique_ptr<Parallel> parallel_;
};

}  // namespace heddle
