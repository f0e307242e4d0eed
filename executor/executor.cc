// The public face of an executor. executor/README.md says what is behind it.
#include "heddle/executor.h"

#include <utility>

#include "core/error.h"
#include "executor/compiled.h"
#include "executor/executor_impl.h"
#include "executor/report/describe_plan.h"
#include "executor/report/plan_text.h"
#include "heddle/host.h"

namespace heddle {

Executor::Executor(const ExecutorOptions& options)
    : impl_(std::make_unique<internal::ExecutorImpl>(options)) {}
Executor::~Executor() = default;

Result<CompiledProgram> Executor::Compile(const Program& program, std::shared_ptr<Scope> scope,
                                          const CompileOptions& options) {
  HEDDLE_RETURN_IF_ERROR(CheckProcessor());
  HEDDLE_ASSIGN_OR_RETURN(
      auto compiled, internal::CompiledImpl::Make(impl_.get(), program, std::move(scope), options));
  return CompiledProgram(std::move(compiled));
}

Result<std::vector<Value>> Executor::RunValues(const CompiledProgram& compiled,
                                               const std::vector<Feed>& feeds,
                                               const RunOptions& options) {
  internal::RunMemory memory;
  std::vector<Value> out;
  HEDDLE_RETURN_IF_ERROR(impl_->Run({*compiled.impl(), feeds, options, memory, &out}));
  return out;
}

Result<std::vector<Tensor>> Executor::Run(const CompiledProgram& compiled,
                                          const std::vector<Feed>& feeds,
                                          const RunOptions& options) {
  auto values = RunValues(compiled, feeds, options);
  if (!values.ok()) return values.status();
  std::vector<Tensor> out;
  for (size_t i = 0; i < values->size(); ++i) {
    if (!(*values)[i].is_tensor())
      return InvalidArgument("output '", compiled.outputs()[i].name,
                             "' is not a plain tensor; use RunValues");
    out.push_back(std::move((*values)[i].tensor()));
  }
  return out;
}

Result<PlanStats> Executor::Prepare(const CompiledProgram& compiled,
                                    const std::vector<Feed>& feeds) {
  HEDDLE_ASSIGN_OR_RETURN(const auto plan, impl_->plans().Settled(*compiled.impl(), feeds));
  return plan->stats;
}

Result<PlanDescription> Executor::DescribePlan(const CompiledProgram& compiled,
                                               const std::vector<Feed>& feeds) {
  HEDDLE_ASSIGN_OR_RETURN(const auto plan, impl_->plans().Settled(*compiled.impl(), feeds));
  return heddle::DescribePlan(*plan);
}

Result<std::string> Executor::PlanText(const CompiledProgram& compiled,
                                       const std::vector<Feed>& feeds) {
  HEDDLE_ASSIGN_OR_RETURN(const auto plan, impl_->plans().Settled(*compiled.impl(), feeds));
  return heddle::PlanText(*plan);
}

Result<MemoryReport> Executor::PlanMemory(const CompiledProgram& compiled,
                                          const std::vector<Feed>& feeds) {
  return impl_->plans().Memory(*compiled.impl(), feeds);
}

int Executor::threads() const { return impl_->resources().threads; }
int64_t Executor::plans_built() const { return impl_->plans().built(); }
void Executor::Trim() {
  internal::RunResources& resources = impl_->resources();
  impl_->plans().Trim();
  resources.allocator.Trim();
  if (resources.device) resources.device->Trim();
}

}  // namespace heddle
