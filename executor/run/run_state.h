// RunState: the memory and counters of one run of a Plan, reused by later runs of the same Plan.
//
// Ownership: keeps its Plan alive. Threads: one run at a time; inside a run on several threads, the
// order of the instructions keeps accesses apart.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "core/services.h"
#include "core/shape_context.h"
#include "core/thread_annotations.h"
#include "executor/plan/arena_blocks.h"
#include "executor/plan/plan.h"
#include "executor/plan/scope_values.h"
#include "executor/run/bare_value.h"
#include "executor/run/run_control.h"
#include "executor/run/run_tokens.h"
#include "ranks/communicator.h"
#include "scheduler/host_pool.h"
#include "scheduler/kernel_arena.h"
#include "scheduler/lane_run.h"
#include "scheduler/work_queue.h"

namespace heddle {

struct DeviceRun;

class RunState final : public BlockRunner, public RankRun {
 public:
  // Throws std::bad_alloc if there is no memory for the arena. Without an arena of its own, a state
  // borrows a block for each run.
  RunState(std::shared_ptr<const Plan> plan, const Services& services, bool own_arena = true);
  ~RunState() override;
  // Before a run: borrows a block for the plan's arena. Throws std::bad_alloc.
  void Borrow(std::shared_ptr<ArenaBlocks> blocks);
  // After a run: gives the block back, if one was borrowed.
  void GiveBackBlock();

  const Plan& plan() const { return *plan_; }
  const std::shared_ptr<const Plan>& shared_plan() const { return plan_; }
  Value* const* frame() const { return frame_.data(); }
  Value& value(uint32_t slot) { return *frame_[slot]; }
  Services& services() { return services_; }
  RandomState& random() { return random_; }
  RunControl& control() { return control_; }
  // Sets the threads that help kernels, and the arena of kernels that may use all threads (nullptr:
  // none). To be called before a run.
  void UseArenas(IntraOp& intra, KernelArena* wide) {
    services_.intra = &intra;
    wide_ = wide;
  }
  KernelArena* wide() const { return wide_; }
  // The threads that share the lanes of sub-blocks, and the arena of their kernels.
  struct Helpers {
    HostPool* pool;
    KernelArena* arena;
  };
  // nullptr: sub-blocks run on the calling thread. Precondition: no lanes are running.
  void UseHelpers(const Helpers* helpers) {
    helpers_ = helpers != nullptr ? std::optional(*helpers) : std::nullopt;
  }
  const Helpers* helpers() const { return helpers_ ? &*helpers_ : nullptr; }
  // Sets the rank to which the run belongs; nullptr: none. To be called before a run.
  void set_communicator(Communicator* communicator) { communicator_ = communicator; }
  Communicator* communicator() const override { return communicator_; }

  // Has the next run read these instead of the scope's variables; to be called before Begin.
  // Without it the run reads the variables themselves.
  void Hold(std::shared_ptr<const ScopeValues> values);

  // For tests: overwrites memory, so that what an earlier run left is not taken for this run's.
  void PoisonMemory();
  // Binds feeds (in the plan's order), outputs and views. `bound`: by position, the caller's memory
  // for fetched values, or empty. Throws std::bad_alloc.
  void Begin(const std::vector<const Value*>& feeds, const std::vector<Tensor>& bound);
  // Moves out the first `count` fetched values, in order; those beyond `required` may be empty.
  Status Fetch(size_t count, size_t required, const std::vector<Tensor>& bound,
               std::vector<Value>* out);
  // Drops everything that the run held except the arena; to be called after every run, also after a
  // failed one.
  void End();

  Status RunBlock(int block) override;
  // Gives the block of a function the operands of a call.
  void BindCall(const FunctionPlan& function, const BoundOp& call);
  // Runs blocks on a device, for operators whose blocks the plan gives to a device
  // (DevicePlan::Runs); nullptr: there are none.
  class DeviceBodies {
   public:
    virtual bool Has(int block) const = 0;
    virtual Status Run(int block) = 0;

   protected:
    ~DeviceBodies() = default;
  };
  void UseDeviceBodies(DeviceBodies* bodies) { device_bodies_ = bodies; }
  // The next run of the block is a loop's first iteration.
  void BeginLoop(int block) { iterates_[static_cast<size_t>(block)] = 0; }
  // Whether the block's next run is a first iteration; clears that.
  bool IsFirst(int block) {
    return std::exchange(iterates_[static_cast<size_t>(block)], uint8_t{1}) == 0;
  }
  Status Interrupted() const override { return control_.Look(); }

  // Memory for a value of a pooled slot. Throws std::bad_alloc.
  BufferRef TakeMemory(uint32_t slot, size_t bytes) {
    return tokens_ ? tokens_->Take(slot, bytes) : services_.allocator->Allocate(bytes);
  }

  // Gives a kept list of the plan to the block that fills it, with an earlier run's capacity.
  void GiveList(uint32_t k) {
    Value& list = value(plan_->kept_lists[k]);
    if (!list.initialized()) std::swap(list, kept_lists_[k]);
  }

  // Releases a pooled slot's contents.
  void Release(uint32_t slot) {
    const bool keeps_shape = !plan_->keeps_shape.empty() && plan_->keeps_shape[slot];
    value(slot) = keeps_shape ? ShapeOf(value(slot)) : Value();
  }
  // Counts down the readers of a counted slot; the last one releases its contents.
  void CountRead(uint32_t slot) {
    if (readers_[slot].fetch_sub(1, std::memory_order_acq_rel) == 1) value(slot) = Value();
  }

  // Resets the count of a counted slot's readers, before a run of its block.
  void CountReadersAnew(uint32_t slot) {
    readers_[slot].store(static_cast<int>(plan_->consumers[slot]), std::memory_order_relaxed);
  }

  // The calls of the instruction in the latest run.
  CallMemo& MemoOf(const ShapedCalls& calls) { return memos_[calls.place]; }

  // A buffer for the answer of a shape function. It is kept from call to call, since a loop's body
  // would otherwise allocate for each of its instructions. Any thread of the run may call this.
  using OutMetas = std::vector<ShapeContext::OutMeta>;
  std::unique_ptr<OutMetas> TakeOutMetas() {
    for (auto& spare : spare_metas_)
      if (OutMetas* room = spare.exchange(nullptr, std::memory_order_acquire); room != nullptr)
        return std::unique_ptr<OutMetas>(room);
    return std::make_unique<OutMetas>();
  }
  void GiveBackOutMetas(std::unique_ptr<OutMetas> room) {
    for (auto& spare : spare_metas_) {
      OutMetas* none = nullptr;
      if (!spare.compare_exchange_strong(none, room.get(), std::memory_order_release)) continue;
      (void)room.release();
      return;
    }
  }

  // The first error of a run on several threads.
  class FirstError {
   public:
    void Keep(Status error) {
      MutexLock lock(mutex_);
      if (error_.ok()) error_ = std::move(error);
    }
    Status Take() {
      MutexLock lock(mutex_);
      return std::exchange(error_, Status::Ok());
    }

   private:
    Mutex mutex_;
    Status error_ HEDDLE_GUARDED_BY(mutex_);
  };
  FirstError& error() { return error_; }

  // Notes a variable to which the run has written something else than its program claims. Any
  // thread may call this.
  void NoteOtherwise(ir::VarId v) {
    MutexLock lock(otherwise_mutex_);
    otherwise_.push_back(v);
  }
  // The variables noted; to be called after a run.
  std::vector<ir::VarId> TakeOtherwise() {
    MutexLock lock(otherwise_mutex_);
    return std::exchange(otherwise_, {});
  }

  // What runs with a device keep from run to run; the first run makes it.
  std::shared_ptr<DeviceRun>& device_run() { return device_run_; }
  // Whether, in the latest run, the kernels were put on the device as one captured piece.
  bool replayed() const { return replayed_; }
  void set_replayed(bool replayed) { replayed_ = replayed; }

  LaneRun* lane_run() { return lane_run_.get(); }
  LaneRun* body_lanes(int block) { return body_lanes_[static_cast<size_t>(block)].get(); }
  // The state of a run from a queue. Memory ordering: a task's predecessors happen before it, by
  // the acq_rel decrements of `waiting`; all tasks happen before the end, by those of `unfinished`.
  // A task is pushed before its publisher takes the mutex, and a thread looks once more under the
  // mutex before it sleeps, so no wake-up is lost.
  struct Queue {
    std::vector<std::atomic<uint32_t>> waiting;
    WorkQueue ready;
    std::atomic<uint32_t> unfinished{0};
    std::atomic<bool> failed{false};
    Mutex mutex;
    CondVar changed;  // tasks became ready, or the run ended
    int sleeping HEDDLE_GUARDED_BY(mutex) = 0;
    Queue(const UnitGraph& tasks, int threads, uint64_t shuffle_seed)
        : waiting(tasks.size()), ready(threads, shuffle_seed, tasks.graph.priority) {}
  };
  Queue* queue() { return queue_.get(); }

 private:
  void BindOutputs(const std::vector<Tensor>& bound);
  // Replaces a bool feed that has bytes other than 0 and 1 by a copy that has not.
  void HoldTruths(Value* v) const;
  void BindArena();

  std::shared_ptr<const Plan> plan_;
  Services services_;
  KernelArena* wide_ = nullptr;
  std::optional<Helpers> helpers_;
  Communicator* communicator_ = nullptr;
  RandomState random_;
  RunControl control_;
  std::vector<Value> values_;
  std::vector<Value*> frame_;
  std::shared_ptr<const ScopeValues> held_;  // during a run
  uint64_t bound_values_ = 0;                // the number of those to which frame_ points
  BufferRef arena_;
  std::unique_ptr<RunTokens> tokens_;  // null: the plan has no loose values
  bool poison_ = false;
  std::shared_ptr<ArenaBlocks> lender_;    // set while arena_ is borrowed
  std::vector<std::atomic<int>> readers_;  // per slot; empty: none is counted
  // Parallel to the plan's; an element is empty while a run uses it.
  std::vector<Value> kept_lists_;
  // Per block: the first iteration of its loop has begun. Written by the thread that runs the loop.
  std::vector<uint8_t> iterates_;
  std::vector<CallMemo> memos_;  // per instruction that keeps calls
  FirstError error_;
  Mutex otherwise_mutex_;
  std::vector<ir::VarId> otherwise_ HEDDLE_GUARDED_BY(otherwise_mutex_);
  std::array<std::atomic<OutMetas*>, 4> spare_metas_{};  // one per thread at the same time
  std::shared_ptr<DeviceRun> device_run_;
  DeviceBodies* device_bodies_ = nullptr;
  bool replayed_ = false;
  std::unique_ptr<LaneRun> lane_run_;
  std::vector<std::unique_ptr<LaneRun>> body_lanes_;  // per block; empty: no sub-block has lanes
  std::unique_ptr<Queue> queue_;
};

}  // namespace heddle
