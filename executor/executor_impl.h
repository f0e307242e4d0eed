// The implementation of Executor: resources that its runs share, and its plans.
//
// Threads: all methods from any thread.
#pragma once

#include <memory>

#include "executor/async_runs.h"
#include "executor/plan_service.h"
#include "executor/run_resources.h"
#include "executor/run_session.h"

namespace heddle::internal {

class ExecutorImpl {
 public:
  explicit ExecutorImpl(const ExecutorOptions& options)
      : resources_(options),
        plans_(resources_, options.plan_cache_capacity),
        async_runs_(std::make_shared<AsyncRuns>(resources_, plans_)) {}
  ~ExecutorImpl() { async_runs_->Close(); }
  Status Run(const RunCall& call) { return RunSession::Run(resources_, plans_, call); }
  RunResources& resources() { return resources_; }
  PlanService& plans() { return plans_; }
  const std::shared_ptr<AsyncRuns>& async_runs() { return async_runs_; }

 private:
  RunResources resources_;
  PlanService plans_;
  const std::shared_ptr<AsyncRuns> async_runs_;
};

}  // namespace heddle::internal
