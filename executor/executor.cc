// The public interface of the executor. executor/README.md explains what is behind it.
#include "heddle/executor.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/interrupts.h"
#include "executor/compiled.h"
#include "executor/executor_impl.h"
#include "executor/report/describe_plan.h"
#include "executor/report/plan_text.h"
#include "heddle/bounds.h"
#include "heddle/host.h"

namespace heddle {

void ExecutorOptions::SetDevices(std::vector<std::shared_ptr<Device>> all) {
  device = all.empty() ? nullptr : std::move(all.front());
  if (!all.empty()) all.erase(all.begin());
  more_devices = std::move(all);
}

Status CheckOptions(const ExecutorOptions& options) {
  const auto check = [](const char* name, int value) {
    if (value >= 0 && value <= kMostThreads) return Status::Ok();
    return InvalidArgument(name, " is ", value, "; 0 to ", kMostThreads, " are possible");
  };
  HEDDLE_RETURN_IF_ERROR(check("threads", options.threads));
  return check("runs_at_once", options.runs_at_once);
}

Executor::Executor(const ExecutorOptions& options) {
  if (const Status status = CheckOptions(options); !status.ok())
    throw std::invalid_argument(std::string(status.message()));
  impl_ = std::make_unique<internal::ExecutorImpl>(options);
}
Executor::~Executor() = default;

Result<CompiledProgram> Executor::Compile(const Program& program, std::shared_ptr<Scope> scope,
                                          const CompileOptions& options) {
  HEDDLE_RETURN_IF_ERROR(CheckProcessor());
  if (options.opt_level < 0 || options.opt_level > 2)
    return InvalidArgument("opt_level is ", options.opt_level, "; it is 0, 1 or 2");
  HEDDLE_ASSIGN_OR_RETURN(auto compiled, EndedInTime([&] {
                            return internal::CompiledImpl::Make(impl_.get(), program,
                                                                std::move(scope), options);
                          }));
  return CompiledProgram(std::move(compiled));
}

Result<std::vector<Value>> Executor::RunValues(const CompiledProgram& compiled,
                                               const std::vector<Feed>& feeds,
                                               const RunOptions& options) {
  std::unique_ptr<internal::RunMemory> memory = impl_->TakeMemory();
  std::vector<Value> out;
  const Status status = impl_->Run({*compiled.impl(), feeds, options, *memory, &out});
  impl_->GiveBack(std::move(memory));
  HEDDLE_RETURN_IF_ERROR(status);
  return out;
}

Result<std::vector<Tensor>> Executor::Run(const CompiledProgram& compiled,
                                          const std::vector<Feed>& feeds,
                                          const RunOptions& options) {
  std::unique_ptr<internal::RunMemory> memory = impl_->TakeMemory();
  std::vector<Value>& values = memory->outputs;
  Status status = impl_->Run({*compiled.impl(), feeds, options, *memory, &values});
  std::vector<Tensor> out;
  out.reserve(values.size());
  for (size_t i = 0; i < values.size() && status.ok(); ++i) {
    if (values[i].is_tensor())
      out.push_back(std::move(values[i].tensor()));
    else
      status = InvalidArgument("output '", compiled.outputs()[i].name,
                               "' is not a plain tensor; use RunValues");
  }
  impl_->GiveBack(std::move(memory));
  HEDDLE_RETURN_IF_ERROR(status);
  return out;
}

Result<PlanStats> Executor::Prepare(const CompiledProgram& compiled,
                                    const std::vector<Feed>& feeds) {
  HEDDLE_ASSIGN_OR_RETURN(const auto plan, impl_->Settled(*compiled.impl(), feeds));
  return plan->stats;
}

Result<PlanDescription> Executor::DescribePlan(const CompiledProgram& compiled,
                                               const std::vector<Feed>& feeds) {
  HEDDLE_ASSIGN_OR_RETURN(const auto plan, impl_->Settled(*compiled.impl(), feeds));
  const internal::RunResources& resources = impl_->resources();
  PlanDescription description = heddle::DescribePlan(*plan, resources.places());
  compiled.impl()->FillOrigin(&description);
  return description;
}

Result<std::string> Executor::PlanText(const CompiledProgram& compiled,
                                       const std::vector<Feed>& feeds) {
  HEDDLE_ASSIGN_OR_RETURN(const auto plan, impl_->Settled(*compiled.impl(), feeds));
  return heddle::PlanText(*plan);
}

Result<MemoryReport> Executor::PlanMemory(const CompiledProgram& compiled,
                                          const std::vector<Feed>& feeds) {
  return EndedInTime([&] { return impl_->plans().Memory(*compiled.impl(), feeds); });
}

int Executor::threads() const { return impl_->resources().threads; }
int64_t Executor::plans_built() const { return impl_->plans().built(); }

std::vector<PlaceMemory> Executor::MemoryUse() const {
  const internal::RunResources& resources = impl_->resources();
  const PoolAllocator& host = resources.allocator;
  const size_t allocated = host.bytes_in_use();
  std::vector<PlaceMemory> places = {
      {"cpu", allocated, allocated + host.bytes_cached(), std::max(host.peak_bytes(), allocated)}};
  for (const auto& device : resources.devices) places.push_back(device->memory_use());
  return places;
}

void Executor::ResetMemoryPeaks() {
  internal::RunResources& resources = impl_->resources();
  resources.allocator.ResetPeak();
  for (const auto& device : resources.devices) device->memory().ResetPeak();
}

void Executor::Trim() {
  internal::RunResources& resources = impl_->resources();
  impl_->plans().Trim();
  resources.allocator.Trim();
  for (const auto& device : resources.devices) device->Trim();
}

}  // namespace heddle
