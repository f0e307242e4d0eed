// The implementation of Executor: the resources that its runs share, and its plans.
//
// Threads: all methods may be called from any thread.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/interrupts.h"
#include "core/threads/near_list.h"
#include "executor/async_runs.h"
#include "executor/plan_service.h"
#include "executor/run_resources.h"
#include "executor/run_session.h"

namespace heddle::internal {

class ExecutorImpl {
 public:
  explicit ExecutorImpl(const ExecutorOptions& options)
      : options_(options),
        resources_(options),
        plans_(resources_, options.plan_cache_capacity),
        async_runs_(std::make_shared<AsyncRuns>(resources_, plans_)) {}
  ~ExecutorImpl() { async_runs_->Close(); }
  // The plan for such feeds that runs use; an error if an interrupt ends its making.
  Result<std::shared_ptr<const Plan>> Settled(CompiledImpl& c, const std::vector<Feed>& feeds) {
    return EndedInTime([&] { return plans_.Settled(c, feeds); });
  }
  Status Run(const RunCall& call) { return RunSession::Run(resources_, plans_, call); }
  // Buffers for callers that keep no RunMemory; to be given back afterwards, without outputs.
  std::unique_ptr<RunMemory> TakeMemory() {
    auto memory = spare_memory_.Take();
    return memory ? std::move(memory) : std::make_unique<RunMemory>();
  }
  void GiveBack(std::unique_ptr<RunMemory> memory) {
    memory->outputs.clear();
    spare_memory_.Put(std::move(memory));
  }
  const ExecutorOptions& options() const { return options_; }
  RunResources& resources() { return resources_; }
  PlanService& plans() { return plans_; }
  const std::shared_ptr<AsyncRuns>& async_runs() { return async_runs_; }

 private:
  const ExecutorOptions options_;
  RunResources resources_;
  PlanService plans_;
  NearSpares<RunMemory> spare_memory_;
  const std::shared_ptr<AsyncRuns> async_runs_;
};

}  // namespace heddle::internal
