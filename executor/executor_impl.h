// The implementation of Executor: resources that its runs share, and its plans.
//
// Threads: all methods from any thread.
#pragma once

#include "executor/plan_service.h"
#include "executor/run_resources.h"
#include "executor/run_session.h"

namespace heddle::internal {

class ExecutorImpl {
 public:
  explicit ExecutorImpl(const ExecutorOptions& options)
      : resources_(options), plans_(resources_, options.plan_cache_capacity) {}
  Status Run(const RunCall& call) { return RunSession::Run(resources_, plans_, call); }
  RunResources& resources() { return resources_; }
  PlanService& plans() { return plans_; }

 private:
  RunResources resources_;
  PlanService plans_;
};

}  // namespace heddle::internal
