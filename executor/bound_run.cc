#include "heddle/bound_run.h"

#include <utility>

#include "core/error.h"
#include "executor/compiled.h"
#include "executor/executor_impl.h"

namespace heddle {

struct BoundRun::State {
  CompiledProgram compiled;
  std::vector<Feed> feeds;
  internal::RunMemory memory = {};
  std::vector<Value> outputs = {};
};

BoundRun::BoundRun(CompiledProgram compiled, std::vector<Feed> feeds)
    : state_(std::make_unique<State>(State{std::move(compiled), std::move(feeds)})) {}
BoundRun::~BoundRun() = default;
BoundRun::BoundRun(BoundRun&&) noexcept = default;
BoundRun& BoundRun::operator=(BoundRun&&) noexcept = default;

std::vector<Feed>& BoundRun::feeds() { return state_->feeds; }
const std::vector<Value>& BoundRun::outputs() const { return state_->outputs; }

Status BoundRun::BindOutput(size_t index, Tensor memory) {
  const size_t count = state_->compiled.outputs().size();
  if (index >= count) return InvalidArgument("there is no output ", index, " of ", count);
  if (memory.initialized() && !memory.is_contiguous())
    return InvalidArgument("memory for output '", state_->compiled.outputs()[index].name,
                           "' is not contiguous");
  state_->memory.bound.resize(count);
  state_->memory.bound[index] = std::move(memory);
  return Status::Ok();
}

Status BoundRun::Run(const RunOptions& options) {
  State& s = *state_;
  s.outputs.clear();  // frees their memory for this run
  internal::CompiledImpl& c = *s.compiled.impl();
  const Status status = c.executor->Run({c, s.feeds, options, s.memory, &s.outputs});
  if (!status.ok()) s.outputs.clear();
  return status;
}

}  // namespace heddle
