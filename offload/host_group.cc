#include "offload/host_group.h"

namespace heddle::offload {

HostGroup::HostGroup(const Group& group, Inputs inputs, const ExecutorOptions& executor,
                     const CompileOptions& options)
    : group_(group), inputs_(inputs), options_(options), executor_options_(executor) {}

Status HostGroup::Compile() {
  MutexLock lock(mutex_);
  if (compiled_) return Status::Ok();
  if (executor_ == nullptr) executor_ = std::make_unique<Executor>(executor_options_);
  auto scope = std::make_shared<Scope>();
  for (const auto& [var, tensor] : group_.parameters)
    scope->Set(group_.program->vars[var].name, tensor);
  auto program = std::make_shared<ir::Program>(*group_.program);
  if (inputs_ == Inputs::kAny)
    for (const ir::Port& feed : program->feeds) {
      program->vars[feed.var].dtype = DType::kUnknown;
      program->vars[feed.var].shape = Shape::Unknown();
    }
  auto compiled = executor_->Compile(Program(std::move(program)), std::move(scope), options_);
  if (!compiled.ok()) return compiled.status();
  compiled_ = *std::move(compiled);
  return Status::Ok();
}

Result<std::vector<Value>> HostGroup::Run(const std::vector<Value>& inputs,
                                          const std::function<Status()>& stopped) {
  HEDDLE_RETURN_IF_ERROR(Compile());
  std::vector<Feed> feeds;
  for (size_t k = 0; k < inputs.size(); ++k)
    feeds.push_back({group_.program->vars[group_.program->feeds[k].var].name, inputs[k]});
  Executor* executor;
  std::optional<CompiledProgram> compiled;
  {
    MutexLock lock(mutex_);
    executor = executor_.get();
    compiled = compiled_;
  }
  if (stopped == nullptr) return executor->RunValues(*compiled, feeds);
  RunWithin within(stopped);
  return executor->RunValues(*compiled, feeds, within.options());
}

}  // namespace heddle::offload
