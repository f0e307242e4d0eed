// A group as heddle itself computes it: for values that an engine cannot take, and to compare with.
//
// Threads: any. It has an executor of its own, so that a kernel of another one may run it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/thread_annotations.h"
#include "heddle/executor.h"
#include "offload/group.h"

namespace heddle::offload {

class HostGroup {
 public:
  enum class Inputs {
    kAsDeclared,  // of the dtypes and shapes that the program declares
    kAny,
  };
  HostGroup(const Group& group, Inputs inputs, const ExecutorOptions& executor,
            const CompileOptions& options);
  // `inputs`: of the group, in their order. `stopped`: why the run that this is part of is to end;
  // then this returns it.
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
