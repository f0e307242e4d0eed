// Computes a group with heddle's own kernels: for values that an engine cannot take, and for
// comparison.
//
// Threads: any. It has its own executor, so that a kernel of another one may run it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/thread_annotations.h"
#include "heddle/executor.h"
#include "offload/group.h"

namespace heddle::offload {

// Limits for a run that is part of other work: it ends when that is to end. Must outlive the run.
class RunWithin {
 public:
  // `stopped` says whether, and why, the other work is to end.
  explicit RunWithin(const std::function<Status()>& stopped)
      : host_([this, &stopped] {
          host_.Request();  // the run asks at each of its looks
          return stopped();
        }) {
    host_.Request();
  }
  RunWithin(const RunWithin&) = delete;
  RunWithin& operator=(const RunWithin&) = delete;
  RunOptions options() {
    RunOptions options;
    options.host = &host_;
    return options;
  }

 private:
  HostCalls host_;
};

class HostGroup {
 public:
  enum class Inputs {
    kAsDeclared,  // with the dtypes and shapes that the program declares
    kAny,
  };
  HostGroup(const Group& group, Inputs inputs, const ExecutorOptions& executor,
            const CompileOptions& options);
  // `inputs`: the group's inputs, in order. `stopped` says whether, and why, the run that this
  // computation is part of is to end; its error is returned then.
  Result<std::vector<Value>> Run(const std::vector<Value>& inputs,
                                 const std::function<Status()>& stopped = nullptr);

 private:
  Status Compile() HEDDLE_EXCLUDES(mutex_);

  const Group& group_;
  const Inputs inputs_;
  const CompileOptions options_;
  const ExecutorOptions executor_options_;
  Mutex mutex_;
  std::unique_ptr<Executor> executor_ HEDDLE_GUARDED_BY(mutex_);
  std::optional<CompiledProgram> compiled_ HEDDLE_GUARDED_BY(mutex_);
};

}  // namespace heddle::offload
