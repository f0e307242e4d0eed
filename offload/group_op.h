// The operator that a group becomes. Its definition belongs to one program and not to the registry:
// it knows the group and the engine's module, and its kernel calls that.
//
// Ownership: programs with such operators keep their definitions alive (split.h). Threads: any.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/op_def.h"
#include "offload/engine_library.h"
#include "offload/group.h"
#include "offload/host_group.h"

namespace heddle {
class OpContext;
}

namespace heddle::offload {

// What trial runs leave of a group's calls.
class Recorder {
 public:
  // Times the engine, and keeps copies of the inputs of the first call.
  void Note(const std::vector<Tensor>& inputs, double ms);
  bool called() const;
  std::vector<Value> inputs() const;
  double best_ms() const;

 private:
  mutable std::mutex mutex_;
  std::vector<Value> inputs_;
  double best_ms_ = -1;
};

// How many runs came to a group, and what its engine refused of them.
class RunCount {
 public:
  void Note(const Status& status);  // of one call
  GroupRuns runs() const;

 private:
  mutable std::mutex mutex_;
  GroupRuns runs_;
};

class GroupOp : public OpDef {
 public:
  static constexpr const char* kName = "offload_group";

  struct Options {
    std::string told = {};                         // what plans say of it
    double cost_ns = 0;                            // of a call; 0: not known
    int host_level = 0;                            // of what heddle itself computes of it
    std::shared_ptr<Recorder> recorder = nullptr;  // of trial runs
    std::shared_ptr<RunCount> count = nullptr;     // of others
    bool may_leave = false;  // calls end with their run even where the engine does not ask
  };
  // `module`: null where heddle's own kernels compute the group.
  GroupOp(std::shared_ptr<const Group> group, std::shared_ptr<Module> module, Options options);

  const Group& group() const { return *group_; }
  const std::shared_ptr<Module>& module() const { return module_; }

 private:
  struct State;
  static const GroupOp& Of(const OpContext& ctx);
  // Whose rules tell shapes, for inputs that passes did not go by, too.
  const Group& declared() const { return group_->plain != nullptr ? *group_->plain : *group_; }
  static Status Infer(ShapeContext& ctx);
  static Result<std::unique_ptr<KernelState>> PrepareCall(PrepareContext& ctx);
  static Status Compute(KernelContext& ctx);
  static double CostNs(const ShapeContext& ctx);
  Status ComputeOnHost(KernelContext& ctx, HostGroup& host) const;
  Status ComputeOnEngine(KernelContext& ctx, std::vector<Tensor> inputs) const;

  const std::shared_ptr<const Group> group_;
  const std::shared_ptr<Module> module_;
  // As passes left it; as it was before them.
  const std::shared_ptr<HostGroup> host_, plain_;
  const Options options_;
};

}  // namespace heddle::offload
